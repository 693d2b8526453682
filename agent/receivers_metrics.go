package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/internal/meter"
	"hwsagent/receivers"
)

// intakeMetrics exposes the requests and samples that each receiver got.
type intakeMetrics struct {
	set      *receivers.Set
	own      *meter.Set
	counters counters

	requests, repeated, samples, active *prometheus.Desc
	refusedRequests, refusedSample      *prometheus.Desc
}

func newIntakeMetrics(set *receivers.Set) *intakeMetrics {
	own := meter.NewSet("hwsagent_receiver_")
	return &intakeMetrics{
		set:             set,
		own:             own,
		requests:        own.Desc(meter.Sent, meter.Counter, "requests_total", "Requests received, whatever the answer.", "receiver"),
		repeated:        own.Desc(meter.NotZero, meter.Counter, "repeated_requests_total", "Requests whose body was stored before: answered, and not stored again.", "receiver"),
		samples:         own.Desc(meter.Sent, meter.Counter, "samples_total", "Samples appended to the log, histograms included.", "receiver"),
		active:          own.Desc(meter.Sent, meter.Gauge, "active_series", "Different series of the last one to two hours.", "receiver"),
		refusedRequests: own.Desc(meter.NotZero, meter.Counter, "refused_requests_total", "Requests not answered with 2xx, by reason.", "receiver", "reason"),
		refusedSample:   own.Desc(meter.NotZero, meter.Counter, "refused_samples_total", "Single samples, exemplars and metadata that were refused, by reason.", "receiver", "reason"),
	}
}

// Describe implements [prometheus.Collector].
func (m *intakeMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.requests, m.repeated, m.samples, m.active, m.refusedRequests, m.refusedSample} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *intakeMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, r := range m.set.Status() {
		ch <- m.counters.metric(m.requests, r.Requests, r.Name)
		ch <- m.counters.metric(m.repeated, r.Repeated, r.Name)
		ch <- m.counters.metric(m.samples, r.Samples, r.Name)
		ch <- prometheus.MustNewConstMetric(m.active, prometheus.GaugeValue, float64(r.ActiveSeries), r.Name)
		for reason, n := range r.RefusedRequests {
			ch <- m.counters.metric(m.refusedRequests, n, r.Name, string(reason))
		}
		for reason, n := range r.RefusedSamples {
			ch <- m.counters.metric(m.refusedSample, n, r.Name, string(reason))
		}
	}
}
