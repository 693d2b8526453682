package wal

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/internal/meter"
)

// metrics are the metrics of one log.
type metrics struct {
	set      *meter.Set
	registry prometheus.Registerer // nil: not registered

	appended atomic.Uint64 // samples
	refused  atomic.Uint64

	commit          prometheus.Histogram
	fsync           prometheus.Histogram
	errors          prometheus.Counter
	segmentsCreated prometheus.Counter
	deletedBytes    *prometheus.CounterVec
}

// newMetrics makes the metrics of l.
func newMetrics(r prometheus.Registerer, l *Log) *metrics {
	set := meter.NewSet("hwsagent_wal_")
	durations := []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 30} // seconds, from a write to memory to a hanging disk
	m := &metrics{
		set: set, registry: r,
		commit:          set.Histogram(meter.Shown, "commit_duration_seconds", "How long commits to the log took.", prometheus.HistogramOpts{Buckets: durations}),
		fsync:           set.Histogram(meter.Shown, "fsync_duration_seconds", "How long syncs of the log took.", prometheus.HistogramOpts{Buckets: durations}),
		errors:          set.Counter(meter.Sent, "errors_total", "Failed writes, syncs and housekeeping of the log."),
		segmentsCreated: set.Counter(meter.Shown, "segments_created_total", "Segments begun."),
		deletedBytes:    set.CounterVec(meter.Shown, "deleted_bytes_total", "Bytes of segments let go, by reason: delivered, or budget.", "reason"),
	}
	set.CounterFunc(meter.Sent, "appended_samples_total", "Samples committed to the log since the start.", func() float64 { return float64(m.appended.Load()) })
	set.CounterFunc(meter.Sent, "refused_samples_total", "Samples whose commit failed: they were not acknowledged.", func() float64 { return float64(m.refused.Load()) })
	set.GaugeFunc(meter.Sent, "series", "Series that had a sample in the last hour, but for those marked stale.", func() float64 { return float64(l.series.size()) })
	set.GaugeFunc(meter.Shown, "segments", "Segment files.", func() float64 { n, _ := l.index.usage(); return float64(n) })
	set.GaugeFunc(meter.Sent, "size_bytes", "Bytes of the segment files.", func() float64 { _, n := l.index.usage(); return float64(n) })
	set.GaugeFunc(meter.Shown, "head_samples", "Samples ever given to this log.", func() float64 { return float64(l.index.mark().Total) })
	set.GaugeFunc(meter.Sent, "failing", "1 while commits fail, else 0.", func() float64 {
		if _, err := l.index.trouble(); err != nil {
			return 1
		}
		return 0
	})
	return m
}

// Metrics lists the metrics of a log.
func Metrics() []meter.Metric { return newMetrics(nil, nil).set.Metrics() }

// register adds the metrics to the registry.
func (m *metrics) register() error { return m.set.Register(m.registry) }

// unregister removes the metrics, so that another log can use the registry.
func (m *metrics) unregister() { m.set.Unregister(m.registry) }

// committed records the result of a commit of count samples.
func (m *metrics) committed(count uint64, took time.Duration, err error) {
	m.commit.Observe(took.Seconds())
	switch {
	case err == nil:
		m.appended.Add(count)
	case !errors.Is(err, ErrClosed):
		m.refused.Add(count)
	}
}
