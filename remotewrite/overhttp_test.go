package remotewrite

import (
	"context"
	"io"
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/client"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// wired is a request as it came over HTTP.
type wired struct {
	method, uri string
	header      http.Header
	raw         []byte // decompressed
	v1          *prompb.WriteRequest
	v2          *writev2.Request
	series      []wiredSeries
}

// wiredSeries is a TimeSeries of either version.
type wiredSeries struct {
	labels     []labels.Label // as they came
	samples    []writev2.Sample
	histograms []writev2.Histogram
	exemplars  int
	traces     []writev2.Exemplar // 2.0 only
	meta       writev2.Metadata   // 2.0 only
}

func (s *wiredSeries) name() string {
	for _, l := range s.labels {
		if l.Name == "__name__" {
			return l.Value
		}
	}
	return ""
}

// overHTTP runs a queue and a client with the entry until all samples of the log have their outcome, and returns the
// requests. answer may be nil: everything is stored.
func overHTTP(t *testing.T, entry string, fill func(*memLog), answer func(n int, r *wired, h http.Header) int) (got []*wired, o queue.Outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		n, stop := testnet.Serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
			x := readWire(t, r)
			mu.Lock()
			got = append(got, x)
			i := len(got) - 1
			mu.Unlock()
			status := http.StatusNoContent
			if answer != nil {
				status = answer(i, x, w.Header())
			} else {
				x.confirm(w.Header())
			}
			w.WriteHeader(status)
		})
		defer stop()
		cfg := mustLoad(t, "url: http://h.example/api/v1/write?x=y\nsend_exemplars: true\nsend_native_histograms: true\nhwsagent: {future_limit: 0s}\n"+entry)
		c, err := client.New(cfg, client.Options{Dial: n.Dial, Version: "1.2.3"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		log := newMemLog(t)
		fill(log)
		q, err := New(Options{Name: "test", Config: *cfg, Source: log, Sender: c, DeadLetters: &memLetters{}, ExternalLabels: labels.FromStrings("site", "fra1")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); q.Run(ctx) }()
		testnet.Within(t, 10*time.Minute, "all has its outcome", func() bool { return log.pending() == 0 })
		cancel()
		<-done
		o = log.outcome()
	})
	return got, o
}

// confirm writes the headers of a receiver of 2.0 that has stored everything.
func (r *wired) confirm(h http.Header) {
	if r.v2 != nil {
		h.Set("X-Prometheus-Remote-Write-Samples-Written", "1000000")
	}
}

func readWire(t *testing.T, r *http.Request) *wired {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	x := &wired{method: r.Method, uri: r.RequestURI, header: r.Header}
	if x.raw, err = snappy.Decode(nil, body); err != nil {
		t.Errorf("the body is no snappy block: %v", err)
	}
	if r.Header.Get("X-Prometheus-Remote-Write-Version") == "2.0.0" {
		x.v2 = decodeRequest2(t, body)
		for _, ts := range x.v2.Timeseries {
			s := wiredSeries{samples: ts.Samples, histograms: ts.Histograms, exemplars: len(ts.Exemplars), traces: ts.Exemplars, meta: ts.Metadata}
			for i := 0; i+1 < len(ts.LabelsRefs); i += 2 {
				s.labels = append(s.labels, labels.Label{Name: x.v2.Symbols[ts.LabelsRefs[i]], Value: x.v2.Symbols[ts.LabelsRefs[i+1]]})
			}
			x.series = append(x.series, s)
		}
		return x
	}
	x.v1 = decode(t, body)
	for _, ts := range x.v1.Timeseries {
		s := wiredSeries{exemplars: len(ts.Exemplars)}
		for _, l := range ts.Labels {
			s.labels = append(s.labels, labels.Label{Name: l.Name, Value: l.Value})
		}
		for _, p := range ts.Samples {
			s.samples = append(s.samples, writev2.Sample{Value: p.Value, Timestamp: p.Timestamp})
		}
		for _, h := range ts.Histograms {
			s.histograms = append(s.histograms, writev2.Histogram{Timestamp: h.Timestamp, Sum: h.Sum, Schema: h.Schema})
		}
		x.series = append(x.series, s)
	}
	return x
}

// wireStart is when the log of everyKind begins, in ms.
const wireStart = 946_684_740_000 // a minute before synctest's clock begins

// everyKind fills a log with work for encoders and label rules: a backlog of twelve commits of each kind of sample, a
// clock that was set back in one series, and invalid names and values.
func everyKind(m *memLog) {
	series := func(slot int, meta metadata.Metadata, ls ...string) *wal.Series {
		return wal.NewSeries(slot, labels.FromStrings(ls...), &wal.About{Meta: meta, Family: "f"})
	}
	counter := metadata.Metadata{Type: "counter", Help: "Help\xff.", Unit: "bytes"}
	all := []*wal.Series{
		series(0, counter, "__name__", "a_total", "zone", "z", "Upper", "u", "_x", "x", "job", "host"),
		series(1, metadata.Metadata{}, "__name__", "b", "job", "host"),
		series(2, metadata.Metadata{Type: "gauge"}, "__name__", "hw.temperature", "hw.id", "cpu", "job", "host"),
		series(3, metadata.Metadata{Type: "unknown", Help: "Values."}, "__name__", "values", "bad", "v\xff", "job", "host"),
		series(4, metadata.Metadata{Type: "histogram"}, "__name__", "h", "job", "host"),
		series(5, metadata.Metadata{Type: "gaugehistogram"}, "__name__", "fh", "job", "host"),
		series(6, metadata.Metadata{Type: "histogram"}, "__name__", "nhcb", "job", "host"),
	}
	total := uint64(0)
	for i := range int64(12) {
		t := wireStart + 1000*i
		if i == 6 {
			t -= 3500 // the clock is set back
		}
		e := &wal.Entry{MinT: t, MaxT: t}
		for _, s := range all[:4] {
			v := float64(i)
			if i == 11 {
				v = math.Float64frombits(value.StaleNaN)
			}
			e.Samples = append(e.Samples, wal.Sample{Series: s, ST: wireStart - 5000, T: t, V: v})
		}
		h := &histogram.Histogram{Schema: 1, Count: 2, Sum: 3, PositiveSpans: []histogram.Span{{Length: 1}}, PositiveBuckets: []int64{2}}
		fh := &histogram.FloatHistogram{Schema: 1, Count: 2, Sum: 3, PositiveSpans: []histogram.Span{{Length: 1}}, PositiveBuckets: []float64{2}}
		custom := &histogram.Histogram{Schema: histogram.CustomBucketsSchema, Count: 2, Sum: 3, CustomValues: []float64{1, 2},
			PositiveSpans: []histogram.Span{{Length: 1}}, PositiveBuckets: []int64{2}}
		if i == 11 {
			h.Sum = math.Float64frombits(value.StaleNaN)
		}
		e.Histograms = []wal.Histogram{
			{Series: all[4], ST: wireStart - 5000, T: t, H: h}, {Series: all[5], T: t, FH: fh}, {Series: all[6], T: t, H: custom},
			{Series: all[1], T: t + 1, H: h.Copy()}, // a series that has floats and histograms
		}
		for _, s := range []*wal.Series{all[0], all[4]} {
			e.Exemplars = append(e.Exemplars, wal.Exemplar{Series: s, T: t, V: float64(i), Labels: labels.FromStrings("trace_id", "x")})
		}
		total += e.Count()
		e.End = markAt(uint64(i)+1, total)
		m.entries = append(m.entries, e)
	}
}
