package wal

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the log's own figures.
type metrics struct {
	registry   prometheus.Registerer // nil: not registered
	collectors []prometheus.Collector

	appended atomic.Uint64 // samples
	refused  atomic.Uint64

	commit          prometheus.Histogram
	fsync           prometheus.Histogram
	errors          prometheus.Counter
	segmentsCreated prometheus.Counter
	deletedBytes    *prometheus.CounterVec
}

// durations are histogram bounds in seconds, from a write into memory to a disk that
// hangs.
var durations = []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 30}

// newMetrics makes the metrics of l and registers them.
func newMetrics(r prometheus.Registerer, l *Log) (*metrics, error) {
	m := &metrics{
		registry:        r,
		commit:          prometheus.NewHistogram(prometheus.HistogramOpts{Name: "hwsagent_wal_commit_duration_seconds", Help: "How long commits to the log took.", Buckets: durations}),
		fsync:           prometheus.NewHistogram(prometheus.HistogramOpts{Name: "hwsagent_wal_fsync_duration_seconds", Help: "How long it took to make the log durable.", Buckets: durations}),
		errors:          prometheus.NewCounter(prometheus.CounterOpts{Name: "hwsagent_wal_errors_total", Help: "Failed writes, syncs and housekeeping of the log."}),
		segmentsCreated: prometheus.NewCounter(prometheus.CounterOpts{Name: "hwsagent_wal_segments_created_total", Help: "Segments begun."}),
		deletedBytes:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hwsagent_wal_deleted_bytes_total", Help: "Bytes of segments let go, by reason: delivered, or budget."}, []string{"reason"}),
	}
	counter := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, f)
	}
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	m.collectors = []prometheus.Collector{
		m.commit, m.fsync, m.errors, m.segmentsCreated, m.deletedBytes,
		counter("hwsagent_wal_appended_samples_total", "Samples committed to the log.", func() float64 { return float64(m.appended.Load()) }),
		counter("hwsagent_wal_refused_samples_total", "Samples whose commit failed.", func() float64 { return float64(m.refused.Load()) }),
		gauge("hwsagent_wal_series", "Series that had a sample in the last hour, but for those marked stale.", func() float64 { return float64(l.series.size()) }),
		gauge("hwsagent_wal_segments", "Segment files.", func() float64 { n, _ := l.index.usage(); return float64(n) }),
		gauge("hwsagent_wal_size_bytes", "Bytes of the segment files.", func() float64 { _, n := l.index.usage(); return float64(n) }),
		gauge("hwsagent_wal_head_samples", "Samples ever given to the log.", func() float64 { return float64(l.index.mark().Total) }),
		gauge("hwsagent_wal_failing", "1 while commits fail, else 0.", func() float64 {
			if _, err := l.index.trouble(); err != nil {
				return 1
			}
			return 0
		}),
	}
	if r == nil {
		return m, nil
	}
	for i, c := range m.collectors {
		if err := r.Register(c); err != nil {
			m.collectors = m.collectors[:i]
			m.unregister()
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// unregister lets another log use the registry.
func (m *metrics) unregister() {
	for _, c := range m.collectors {
		if m.registry != nil {
			m.registry.Unregister(c)
		}
	}
}

// committed notes how a commit of count samples went.
func (m *metrics) committed(count uint64, took time.Duration, err error) {
	m.commit.Observe(took.Seconds())
	switch {
	case err == nil:
		m.appended.Add(count)
	case !errors.Is(err, ErrClosed):
		m.refused.Add(count)
	}
}
