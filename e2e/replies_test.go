package e2e

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"hwsagent/remotewrite/reply"
)

// hostileValue is a label's value that tries to pass for other texts of receivers.
const hostileValue = "\"} out of order sample\nout of bounds for series {a=\"b\"}; (err-mimir-sample-timestamp-too-old). too old sample"

// asker sends hand-made writes to a receiver and compares how its answers are read.
type asker struct {
	t  *testing.T
	to string
	v2 bool
	at time.Time // the newest time of what was sent at first
}

// sent is one series with one sample.
type sent struct {
	labels []string      // names and values
	age    time.Duration // of the sample; below 0 in the future
	v      float64
	schema int32 // of a native histogram; 0: a float
	empty  bool  // without a sample
}

func up(name string, age time.Duration, v float64) sent {
	return sent{labels: []string{"__name__", name, "zone", hostileValue}, age: age, v: v}
}

// post sends series and returns the answer's status and text.
func (a *asker) post(series ...sent) (int, string) {
	a.t.Helper()
	raw, proto, version := a.encode1(series), "prometheus.WriteRequest", "0.1.0"
	if a.v2 {
		raw, proto, version = a.encode2(series), "io.prometheus.write.v2.Request", "2.0.0"
	}
	return a.postRaw(snappy.Encode(nil, raw), proto, version)
}

func (a *asker) postRaw(body []byte, proto, version string) (int, string) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.to, bytes.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("Content-Type", "application/x-protobuf;proto="+proto)
	req.Header.Set("X-Prometheus-Remote-Write-Version", version)
	resp, err := httpClient(a.t).Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (a *asker) encode1(series []sent) []byte {
	var w prompb.WriteRequest
	for _, s := range series {
		t := a.at.Add(-s.age).UnixMilli()
		ts := prompb.TimeSeries{}
		for i := 0; i+1 < len(s.labels); i += 2 {
			ts.Labels = append(ts.Labels, prompb.Label{Name: s.labels[i], Value: s.labels[i+1]})
		}
		switch {
		case s.empty:
		case s.schema != 0:
			ts.Histograms = []prompb.Histogram{{Count: &prompb.Histogram_CountInt{CountInt: 1}, Schema: s.schema, Timestamp: t}}
		default:
			ts.Samples = []prompb.Sample{{Value: s.v, Timestamp: t}}
		}
		w.Timeseries = append(w.Timeseries, ts)
	}
	raw, err := w.Marshal()
	if err != nil {
		a.t.Fatal(err)
	}
	return raw
}

func (a *asker) encode2(series []sent) []byte {
	var (
		w       writev2.Request
		symbols = writev2.NewSymbolTable()
	)
	refs := func(labels []string) []uint32 {
		var all []uint32
		for _, text := range labels {
			all = append(all, symbols.Symbolize(text))
		}
		return all
	}
	for _, s := range series {
		t := a.at.Add(-s.age).UnixMilli()
		ts := writev2.TimeSeries{LabelsRefs: refs(s.labels)}
		switch {
		case s.empty:
		case s.schema != 0:
			ts.Histograms = []writev2.Histogram{{Count: &writev2.Histogram_CountInt{CountInt: 1}, Schema: s.schema, Timestamp: t}}
		default:
			ts.Samples = []writev2.Sample{{Value: s.v, Timestamp: t}}
		}
		w.Timeseries = append(w.Timeseries, ts)
	}
	w.Symbols = symbols.Symbols()
	raw, err := w.Marshal()
	if err != nil {
		a.t.Fatal(err)
	}
	return raw
}

// want sends series and compares how the answer is read. The text is read whole, and folded and cut as the
// agent keeps it.
func (a *asker) want(what string, want reply.Reason, series ...sent) {
	a.t.Helper()
	status, text := a.post(series...)
	if status/100 == 2 {
		a.t.Errorf("%s: %d, want a refusal: %s", what, status, want)
		return
	}
	a.compare(what, status, text, want)
}

// takes sends series that the receiver must take.
func (a *asker) takes(what string, series ...sent) {
	a.t.Helper()
	if status, text := a.post(series...); status/100 != 2 {
		a.t.Errorf("%s: %d %q", what, status, text)
	}
}

func (a *asker) compare(what string, status int, text string, want reply.Reason) {
	a.t.Helper()
	folded := strings.Join(strings.Fields(text), " ")
	for _, text := range []string{text, folded[:min(len(folded), 1024)]} {
		if got := reply.Of(text); got != want {
			a.t.Errorf("%s: %d %q is read as %v, want %v", what, status, text, got, want)
		}
	}
}

// TestRealReplies: the answers of real receivers to late, old, invalid and other samples are read rightly, whatever
// words the labels have.
func TestRealReplies(t *testing.T) {
	for _, b := range realReceivers() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			a := &asker{t: t, to: b.start(t, b).write, v2: b.v2, at: time.Now()}
			for i := range 40 {
				a.takes("a sample", up("up"+string(rune('A'+i)), 0, 1))
			}
			a.takes("the same once more", up("upA", 0, 1))
			status, text := a.postRaw([]byte("this is not snappy"), "prometheus.WriteRequest", "0.1.0")
			a.compare("no snappy", status, text, reply.Unknown)
			if b.everything {
				a.takes("a late one", up("upA", time.Minute, 2))
				return
			}
			a.prometheus(b)
		})
	}
}

// prometheus asks what a Prometheus refuses.
func (a *asker) prometheus(b backend) {
	a.t.Helper()
	if b.window > 0 {
		a.takes("an older one", up("upA", time.Minute, 2))
	} else {
		a.want("an older one", reply.OutOfOrder, up("upA", time.Minute, 2))
	}
	a.want("another value", reply.DuplicateTimestamp, up("upB", 0, 2))
	a.want("one of the day before", reply.OutsideWindow, up("upC", 24*time.Hour, 1))
	a.want("one of a new series, of the day before", reply.OutsideWindow, up("new", 24*time.Hour, 1))
	if !b.queried { // Prometheus 2.42 takes it, and nothing after it
		a.want("one of tomorrow", reply.TooFarInFuture, up("upD", -24*time.Hour, 1))
	}
	if b.window > 0 {
		a.want("old and good ones", reply.OutsideWindow, up("good", 0, 1), up("upE", 24*time.Hour, 1))
	} else {
		a.want("late and good ones", reply.OutOfOrder, up("good", 0, 1), up("upE", time.Minute, 1))
	}
	if !a.v2 {
		return // what is invalid is left out without a word by 1.0, but for what is twice
	}
	a.want("no name", reply.InvalidLabels, sent{labels: []string{"zone", hostileValue}})
	a.want("a label twice", reply.InvalidLabels, sent{labels: []string{"__name__", "up", "zone", "a", "zone", hostileValue}})
	a.want("no sample", reply.Unknown, sent{labels: []string{"__name__", "empty", "zone", hostileValue}, empty: true})
	a.want("a histogram of a schema that there is not", reply.InvalidHistogram, sent{labels: []string{"__name__", "h", "zone", hostileValue}, schema: 99})
	var many []sent
	for i := range 40 {
		many = append(many, up("up"+string(rune('A'+i)), 24*time.Hour, math.Pi))
	}
	a.want("many old ones", reply.OutsideWindow, many...)
	a.want("old ones, and no name", reply.OutsideWindow, up("upA", 24*time.Hour, 1), sent{labels: []string{"zone", hostileValue}}, up("upB", 24*time.Hour, 1))
}

// TestRealLimits: VictoriaMetrics' answers to requests that are too large.
func TestRealLimits(t *testing.T) {
	for _, b := range realReceivers() {
		if !b.everything {
			continue
		}
		a := &asker{t: t, to: startVictoriaWith(t, b, "-maxInsertRequestSize=1000").write, at: time.Now()}
		long := sent{labels: []string{"__name__", "up", "zone", strings.Repeat("x", 5000)}, v: 1}
		a.want("too large", reply.RequestTooLarge, long)
	}
}
