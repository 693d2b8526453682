package scrape

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"context"
)

// hardwarePage is what a host shows of its hardware: n series in families of 250.
func hardwarePage(n, value int) []byte {
	var b strings.Builder
	for i := range n {
		if i%250 == 0 {
			fmt.Fprintf(&b, "# HELP hw_family_%d_celsius What the family is about, in a sentence.\n# TYPE hw_family_%[1]d_celsius gauge\n", i/250)
		}
		fmt.Fprintf(&b, "hw_family_%d_celsius{host=\"host-%d.example\",id=\"sensor/%d/%d\",component=\"chassis\",sensor=\"temp%d\",location=\"rack b4\"} %d.%d\n", i/250, i%7, i/250, i, i%250, 20+(i+value)%60, value%10)
	}
	return []byte(b.String())
}

// void takes everything and keeps nothing but references.
type void struct{ refs storage.SeriesRef }

func (v *void) AppenderV2(context.Context) storage.AppenderV2 { return v }

func (v *void) Append(ref storage.SeriesRef, _ labels.Labels, _, _ int64, _ float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	if ref == 0 {
		v.refs++
		return v.refs, nil
	}
	return ref, nil
}

func (*void) Commit() error   { return nil }
func (*void) Rollback() error { return nil }

// BenchmarkPass measures the cost of a sample of a page that shows the series of the previous page, in the same order and in
// another, and the memory kept for each series.
func BenchmarkPass(b *testing.B) {
	const n = 10_000
	ordered := [][]byte{hardwarePage(n, 1), hardwarePage(n, 2)}
	lines := strings.SplitAfter(string(hardwarePage(n, 3)), "\n")
	var moved strings.Builder
	for i := range lines {
		moved.WriteString(lines[i*7919%len(lines)])
	}
	for name, pages := range map[string][][]byte{"same order": ordered, "another order": {ordered[0], []byte(moved.String())}} {
		b.Run(name, func(b *testing.B) {
			cfg := configOf(b, "{job_name: j, sample_limit: 100000}")
			tg, err := newTarget(labels.NewBuilder(labels.EmptyLabels()), cfg, model.LabelSet{"__address__": "a:1", "instance": "i"}, nil)
			if err != nil {
				b.Fatal(err)
			}
			s := newSink(func(string, time.Duration) storage.AppendableV2 { return &void{} }, slog.New(slog.DiscardHandler))
			m, c := newMetrics(), newCache()
			pass := func(page []byte) {
				batch := s.begin(b.Context(), "j", time.Minute)
				p := &pass{
					reading: newReading(cfg, tg, false), ctx: b.Context(), target: tg, cache: c, to: batch, metrics: m,
					builder: labels.NewBuilder(labels.EmptyLabels()), t: 1000, latest: 601_000,
				}
				if err := p.page(page, "text/plain; version=0.0.4"); err != nil {
					b.Fatal(err)
				}
				batch.commit()
			}
			heap := func() uint64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := heap()
			pass(pages[0])
			kept := heap() - before
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				pass(pages[(i+1)%2])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/sample")
			b.ReportMetric(float64(kept)/n, "B/series")
			runtime.KeepAlive(c)
		})
	}
}
