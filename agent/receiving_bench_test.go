//go:build unix

package agent

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"golang.org/x/sys/unix"

	"hwsagent/agent/inputs"
	"hwsagent/receivers"
	"hwsagent/receivers/otlp"
	"hwsagent/receivers/promtext"
	remotewritein "hwsagent/receivers/remotewrite"
	"hwsagent/wal"
)

// intake is the whole way of what others send but the network: a receiver's handler, its gate,
// the inputs' path, and the log on disk.
type intake struct {
	handler     http.Handler
	path        string
	contentType string
	encoding    string
	// body makes the request of samples of all series at a time, in milliseconds.
	body func(tb testing.TB, series []seriesOf, t int64, r *rand.Rand) []byte
}

// intakes returns the protocols, each before a log of its own.
func intakes(tb testing.TB) map[string]func() intake {
	gate := func(name string) *receivers.Gate {
		dir := tb.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil {
			tb.Fatal(err)
		}
		log, err := wal.Open(wal.Options{Dir: dir, Settings: wal.Settings{MaxBytes: 1 << 30}})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := log.Close(); err != nil {
				tb.Error(err)
			}
		})
		in := inputs.NewPath(log, slog.New(slog.DiscardHandler)).Input(receiverKind, name, inputs.Settings{})
		return receivers.NewGate(receivers.GateOptions{
			Name: name, Limits: receivers.DefaultLimits(), Out: in, Logger: slog.New(slog.DiscardHandler),
			Full: func(err error) bool { return errors.Is(err, wal.ErrFull) },
		})
	}
	return map[string]func() intake{
		"remote write 1.0": func() intake {
			return intake{remotewritein.New(gate("rw1")), remotewritein.Path, "application/x-protobuf", "snappy", body1}
		},
		"remote write 2.0": func() intake {
			return intake{remotewritein.New(gate("rw2")), remotewritein.Path, "application/x-protobuf;proto=io.prometheus.write.v2.Request", "snappy", body2}
		},
		"OTLP over HTTP": func() intake {
			return intake{otlp.New(otlp.Settings{}, 200_000).HTTP(gate("otlp")), otlp.Path, "application/x-protobuf", "gzip", bodyOTLP}
		},
		"text": func() intake {
			return intake{promtext.New(gate("import")), promtext.Path, "text/plain", "", bodyText}
		},
	}
}

func marshalled(tb testing.TB, b []byte, err error) []byte {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func body1(tb testing.TB, series []seriesOf, t int64, r *rand.Rand) []byte {
	q := &prompb.WriteRequest{}
	for i := range series {
		ts := prompb.TimeSeries{Samples: []prompb.Sample{{Timestamp: t, Value: series[i].next(r)}}}
		series[i].labels.Range(func(l labels.Label) { ts.Labels = append(ts.Labels, prompb.Label{Name: l.Name, Value: l.Value}) })
		q.Timeseries = append(q.Timeseries, ts)
	}
	b, err := q.Marshal()
	return snappy.Encode(nil, marshalled(tb, b, err))
}

func body2(tb testing.TB, series []seriesOf, t int64, r *rand.Rand) []byte {
	q, symbols := &writev2.Request{}, writev2.NewSymbolTable()
	for i := range series {
		s := &series[i]
		q.Timeseries = append(q.Timeseries, writev2.TimeSeries{
			LabelsRefs: symbols.SymbolizeLabels(s.labels, nil),
			Samples:    []writev2.Sample{{Timestamp: t, Value: s.next(r)}},
			Metadata:   writev2.Metadata{Type: writev2.FromMetadataType(s.meta.Type), HelpRef: symbols.Symbolize(s.meta.Help)},
		})
	}
	q.Symbols = symbols.Symbols()
	b, err := q.Marshal()
	return snappy.Encode(nil, marshalled(tb, b, err))
}

// bodyOTLP has a resource for each host and a metric for each family, as an exporter does.
func bodyOTLP(tb testing.TB, series []seriesOf, t int64, r *rand.Rand) []byte {
	md := pmetric.NewMetrics()
	var metrics pmetric.MetricSlice
	var points pmetric.NumberDataPointSlice
	host, family, at := "", "", pcommon.NewTimestampFromTime(time.UnixMilli(t))
	for i := range series {
		s := &series[i]
		if of := s.labels.Get(model.InstanceLabel); of != host {
			resource := md.ResourceMetrics().AppendEmpty()
			resource.Resource().Attributes().PutStr("service.name", "host")
			resource.Resource().Attributes().PutStr("service.instance.id", of)
			resource.Resource().Attributes().PutStr("os.type", "linux")
			metrics, host, family = resource.ScopeMetrics().AppendEmpty().Metrics(), of, ""
		}
		if s.family != family {
			m := metrics.AppendEmpty()
			m.SetName(s.family)
			m.SetDescription(s.meta.Help)
			if family = s.family; s.meta.Type == model.MetricTypeCounter {
				sum := m.SetEmptySum()
				sum.SetIsMonotonic(true)
				sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				points = sum.DataPoints()
			} else {
				points = m.SetEmptyGauge().DataPoints()
			}
		}
		p := points.AppendEmpty()
		p.SetTimestamp(at)
		p.SetDoubleValue(s.next(r))
		s.labels.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel && l.Name != model.InstanceLabel && l.Name != model.JobLabel {
				p.Attributes().PutStr(l.Name, l.Value)
			}
		})
	}
	b, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, werr := z.Write(marshalled(tb, b, err)); werr != nil || z.Close() != nil {
		tb.Fatal(werr)
	}
	return out.Bytes()
}

func bodyText(_ testing.TB, series []seriesOf, t int64, r *rand.Rand) []byte {
	var b bytes.Buffer
	family := ""
	for i := range series {
		s := &series[i]
		if s.family != family {
			family = s.family
			fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", family, s.meta.Help, family, s.meta.Type)
		}
		b.WriteString(family + "{")
		s.labels.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel {
				fmt.Fprintf(&b, "%s=%q,", l.Name, l.Value)
			}
		})
		b.WriteString("} " + strconv.FormatFloat(s.next(r), 'g', -1, 64) + " " + strconv.FormatInt(t, 10) + "\n")
	}
	return b.Bytes()
}

// cpu returns what the process has used.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkReceive takes requests of 2,000 samples of 10,000 series, each with metadata where
// the protocol has it, into the log. That the requests are made is not counted.
func BenchmarkReceive(b *testing.B) {
	const all, each, ahead = 10_000, 2000, 50
	for _, name := range []string{"remote write 1.0", "remote write 2.0", "OTLP over HTTP", "text"} {
		b.Run(name, func(b *testing.B) {
			in := intakes(b)[name]()
			series, r, now := realisticSeries(all), rand.New(rand.NewPCG(1, 2)), time.Now().Add(-24*time.Hour).UnixMilli()
			var bodies [][]byte
			var used time.Duration
			var bytesIn int
			var allocated, mallocs uint64
			var before, after runtime.MemStats
			round := 0
			serve := func(count int) {
				bodies = bodies[:0]
				for range count {
					first := round % (all / each) * each
					if first == 0 {
						now += 15_000
					}
					bodies = append(bodies, in.body(b, series[first:first+each], now, r))
					round++
				}
				runtime.ReadMemStats(&before)
				began := cpu(b)
				b.StartTimer()
				for _, body := range bodies {
					q := httptest.NewRequest(http.MethodPost, in.path, bytes.NewReader(body))
					q.Header.Set("Content-Type", in.contentType)
					q.Header.Set("Content-Encoding", in.encoding)
					w := httptest.NewRecorder()
					in.handler.ServeHTTP(w, q)
					if w.Code/100 != 2 || w.Body.Len() > 0 {
						b.Fatalf("%d %s", w.Code, w.Body)
					}
					bytesIn += len(body)
				}
				b.StopTimer()
				used += cpu(b) - began
				runtime.ReadMemStats(&after)
				allocated, mallocs = allocated+after.TotalAlloc-before.TotalAlloc, mallocs+after.Mallocs-before.Mallocs
			}
			b.StopTimer()
			serve(3 * all / each) // the series are made, buffers grow
			b.ResetTimer()
			b.StopTimer()
			used, allocated, mallocs, bytesIn = 0, 0, 0, 0
			for left := b.N; left > 0; left -= ahead {
				serve(min(left, ahead))
			}
			n := float64(b.N * each)
			b.ReportMetric(b.Elapsed().Seconds()*1e9/n, "ns/sample")
			b.ReportMetric(float64(used.Nanoseconds())/1000/n, "cpu-µs/sample")
			b.ReportMetric(float64(allocated)/n, "B/sample")
			b.ReportMetric(float64(mallocs)/n, "allocs/sample")
			b.ReportMetric(float64(bytesIn)/n, "wire-B/sample")
			b.ReportMetric(n/b.Elapsed().Seconds()/1e6, "Msamples/s")
		})
	}
}
