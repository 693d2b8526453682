package remotewrite

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal"
)

// BenchmarkFurtherTarget measures the memory that each further target at the head of the log needs for a series: that
// of its cursor and cache, and that of the cache alone. Targets share the memory of the first one.
func BenchmarkFurtherTarget(b *testing.B) {
	const series, targets = 10_000, 20
	for b.Loop() {
		log, err := wal.Open(wal.Options{Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		var caches []*seriesCache
		var readers []*wal.Reader
		heap := func() float64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return float64(m.HeapAlloc)
		}
		for i := range targets + 1 {
			r, err := log.Reader(strconv.Itoa(i), wal.ReaderOptions{})
			if err != nil {
				b.Fatal(err)
			}
			readers = append(readers, r)
		}
		app := log.AppenderV2(b.Context())
		for i := range series {
			ls := labels.FromStrings("__name__", "hw_temperature_celsius", "instance", "host1:9100", "job", "hardware",
				"component", "chassis-1", "sensor", "sensor-"+strconv.Itoa(i), "location", "slot "+strconv.Itoa(i%40))
			if _, err := app.Append(0, ls, 0, 1_700_000_000_000, float64(i), nil, nil, storage.AppendV2Options{}); err != nil {
				b.Fatal(err)
			}
		}
		if err := app.Commit(); err != nil {
			b.Fatal(err)
		}
		keep := func(e *wal.Entry) {
			c := newSeriesCache(labels.FromStrings("site", "fra1"), nil)
			for _, s := range e.Samples {
				c.get(s.Series)
			}
			caches = append(caches, c)
		}
		var last *wal.Entry
		target := func(r *wal.Reader) {
			e, err := r.Next(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			keep(e)
			last = e
		}
		before := heap()
		target(readers[0])
		first := heap()
		for _, r := range readers[1:] {
			target(r)
		}
		b.ReportMetric((first-before)/series, "bytes/series-first")
		further := heap()
		b.ReportMetric((further-first)/series/targets, "bytes/series-further")
		for range targets {
			keep(last)
		}
		b.ReportMetric((heap()-further)/series/targets, "bytes/series-cache")
		runtime.KeepAlive(caches)
		for _, r := range readers {
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
