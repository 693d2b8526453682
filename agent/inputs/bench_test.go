package inputs

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// countingLog takes everything, as fast as can be.
type countingLog struct{ next storage.SeriesRef }

func (l *countingLog) AppenderV2(context.Context) storage.AppenderV2 { return l }

func (l *countingLog) Append(ref storage.SeriesRef, _ labels.Labels, _, _ int64, _ float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	if ref == 0 {
		l.next++
		ref = l.next
	}
	return ref, nil
}
func (*countingLog) Name(storage.SeriesRef) string       { return "" }
func (*countingLog) Remember(time.Duration)              {}
func (*countingLog) Ref(labels.Labels) storage.SeriesRef { return 0 }
func (*countingLog) Newest(storage.SeriesRef) (ls labels.Labels, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions, ok bool) {
	return ls, 0, 0, nil, nil, o, false
}
func (l *countingLog) Commit() error   { return nil }
func (l *countingLog) Rollback() error { return nil }

// BenchmarkPath measures the cost of the path: time per sample, and memory per series without
// its labels, which the log has anyway.
func BenchmarkPath(b *testing.B) {
	const n = 50_000
	series := make([]labels.Labels, n)
	for i := range series {
		series[i] = labels.FromStrings(model.MetricNameLabel, "node_cpu_seconds_total", "cpu", fmt.Sprint(i), "instance", "host-1:9100", "job", "node", "mode", "idle")
	}
	p := NewPath(&countingLog{}, slog.New(slog.DiscardHandler))
	in := p.Input("scrape", "node", Settings{MaxSeries: 2 * n})
	refs := make([]storage.SeriesRef, n)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	round := func(t int64) {
		app := in.AppenderV2(context.Background())
		for i := range series {
			refs[i], _ = app.Append(refs[i], series[i], 0, t, float64(t), nil, nil, storage.AOptions{MetricFamilyName: "node_cpu_seconds_total"})
		}
		_ = app.Commit()
	}
	before := heap()
	round(1)
	perSeries := float64(heap()-before) / n
	t := int64(1)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		t++
		round(t)
	}
	b.ReportMetric(perSeries, "B/series")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/sample")
	runtime.KeepAlive(p)
}
