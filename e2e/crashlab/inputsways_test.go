//go:build linux

package crashlab

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// A sender says numbers: one is the value of all parts of a request, so that a request of
// which only a part was stored shows.
const (
	saidName = "said"
	saidBy   = "by"   // label: the way
	saidWho  = "who"  // label: the sender
	saidPart = "part" // label: the series of the request
	parts    = 3
)

// way is a protocol by which programs send samples to the agent.
type way string

const (
	byWrite1 way = "remote write 1.0"
	byWrite2 way = "remote write 2.0"
	byOTLP   way = "OTLP/HTTP"
	byGRPC   way = "OTLP/gRPC"
	byPush   way = "pushgateway"
	byText   way = "import"
)

// ways returns all of them.
func ways() []way { return []way{byWrite1, byWrite2, byOTLP, byGRPC, byPush, byText} }

// addresses are those of the agent's receivers, host:port.
type addresses struct{ write, push, text, otlp, grpc string }

// url returns where a way's requests go.
func (a addresses) url(w way, who int) string {
	switch w {
	case byWrite1, byWrite2:
		return "http://" + a.write + "/api/v1/write"
	case byOTLP:
		return "http://" + a.otlp + "/v1/metrics"
	case byGRPC:
		return "http://" + a.grpc + "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
	case byPush:
		return fmt.Sprintf("http://%s/metrics/job/crash/%s/%d", a.push, saidWho, who)
	default:
		return "http://" + a.text + "/api/v1/import/prometheus"
	}
}

// header is that of a way's requests.
func (w way) header() http.Header {
	h := http.Header{}
	switch w {
	case byWrite1:
		h.Set("Content-Type", "application/x-protobuf")
		h.Set("Content-Encoding", "snappy")
	case byWrite2:
		h.Set("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
		h.Set("Content-Encoding", "snappy")
	case byOTLP:
		h.Set("Content-Type", "application/x-protobuf")
	case byGRPC:
		h.Set("Content-Type", "application/grpc")
		h.Set("Te", "trailers")
	default:
		h.Set("Content-Type", "text/plain")
	}
	return h
}

// body returns a request that says a number of a metric at a time, milliseconds. A push has no time.
func (w way) body(metric string, who int, n uint64, at int64) ([]byte, error) {
	sender := strconv.Itoa(who)
	switch w {
	case byWrite1:
		var all prompb.WriteRequest
		for part := range parts {
			all.Timeseries = append(all.Timeseries, prompb.TimeSeries{
				Labels: []prompb.Label{
					{Name: "__name__", Value: metric}, {Name: saidBy, Value: string(w)},
					{Name: saidPart, Value: strconv.Itoa(part)}, {Name: saidWho, Value: sender},
				},
				Samples: []prompb.Sample{{Value: float64(n), Timestamp: at}},
			})
		}
		raw, err := all.Marshal()
		return snappy.Encode(nil, raw), err
	case byWrite2:
		all := writev2.Request{Symbols: []string{"", "__name__", metric, saidBy, string(w), saidPart, saidWho, sender}}
		for part := range parts {
			all.Symbols = append(all.Symbols, strconv.Itoa(part))
			all.Timeseries = append(all.Timeseries, writev2.TimeSeries{
				LabelsRefs: []uint32{1, 2, 3, 4, 5, uint32(len(all.Symbols) - 1), 6, 7},
				Samples:    []writev2.Sample{{Value: float64(n), Timestamp: at}},
			})
		}
		raw, err := all.Marshal()
		return snappy.Encode(nil, raw), err
	case byOTLP, byGRPC:
		all := pmetric.NewMetrics()
		m := all.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(metric)
		points := m.SetEmptyGauge().DataPoints()
		for part := range parts {
			p := points.AppendEmpty()
			p.SetDoubleValue(float64(n))
			p.SetTimestamp(pcommon.NewTimestampFromTime(time.UnixMilli(at)))
			p.Attributes().PutStr(saidBy, string(w))
			p.Attributes().PutStr(saidPart, strconv.Itoa(part))
			p.Attributes().PutStr(saidWho, sender)
		}
		raw, err := pmetricotlp.NewExportRequestFromMetrics(all).MarshalProto()
		if w == byGRPC { // a message: not compressed, and its length
			n := len(raw)
			raw = append([]byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, raw...)
		}
		return raw, err
	}
	var text bytes.Buffer
	for part := range parts {
		if w == byPush { // its sender is among the labels of the group
			fmt.Fprintf(&text, "%s{%s=%q,%s=\"%d\"} %d\n", metric, saidBy, w, saidPart, part, n)
		} else {
			fmt.Fprintf(&text, "%s{%s=%q,%s=\"%d\",%s=%q} %d %d\n", metric, saidBy, w, saidPart, part, saidWho, sender, n, at)
		}
	}
	return text.Bytes(), nil
}

// client makes what a sender of this way sends with, which keeps its connection.
func (w way) client() *http.Client {
	t := &http.Transport{}
	if w == byGRPC {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	return &http.Client{Transport: t, Timeout: answerWithin}
}

// answer is what a request came to.
type answer struct {
	status int    // of HTTP, or what gRPC's stands for: 0 if there was no answer
	text   string // for a person
	retry  bool   // the sender is asked to come again later
}

func (a answer) ok() bool { return a.status/100 == 2 }

// ask sends a request and reads the whole answer.
func (w way) ask(ctx context.Context, c *http.Client, method, url, encoding string, body []byte) answer {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return answer{text: err.Error()}
	}
	req.Header = w.header()
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	resp, err := c.Do(req)
	if err != nil {
		return answer{text: err.Error()}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{text: err.Error()} // cut in the middle: it says nothing
	}
	if w != byGRPC || resp.StatusCode != http.StatusOK {
		return answer{resp.StatusCode, string(text), resp.Header.Get("Retry-After") != ""}
	}
	said := func(key string) string { return cmp.Or(resp.Trailer.Get(key), resp.Header.Get(key)) }
	code, err := strconv.Atoi(said("Grpc-Status"))
	if err != nil {
		return answer{text: "a call without a status"}
	}
	// By what OTLP says about codes: after UNAVAILABLE and DEADLINE_EXCEEDED a client tries again.
	status := map[int]int{0: 200, 3: 400, 4: 408, 8: 413, 12: 415, 14: 503}[code]
	return answer{cmp.Or(status, 500), said("Grpc-Message"), code == 14}
}
