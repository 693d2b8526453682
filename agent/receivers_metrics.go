package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/receivers"
)

// intakeMetrics shows what came to each receiver.
type intakeMetrics struct {
	set *receivers.Set

	requests, samples, active      *prometheus.Desc
	refusedRequests, refusedSample *prometheus.Desc
}

func newIntakeMetrics(set *receivers.Set) *intakeMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("hwsagent_receiver_"+name, help, append([]string{"receiver"}, labels...), nil)
	}
	return &intakeMetrics{
		set:             set,
		requests:        desc("requests_total", "Requests that came, whatever was answered."),
		samples:         desc("samples_total", "Samples that the log took, histograms included."),
		active:          desc("active_series", "Different series of the last one to two hours."),
		refusedRequests: desc("refused_requests_total", "Requests that got another answer than 2xx, by reason.", "reason"),
		refusedSample:   desc("refused_samples_total", "Single samples, exemplars and metadata that were not taken, by reason.", "reason"),
	}
}

// Describe implements [prometheus.Collector].
func (m *intakeMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.requests, m.samples, m.active, m.refusedRequests, m.refusedSample} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *intakeMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, r := range m.set.Status() {
		ch <- prometheus.MustNewConstMetric(m.requests, prometheus.CounterValue, float64(r.Requests), r.Name)
		ch <- prometheus.MustNewConstMetric(m.samples, prometheus.CounterValue, float64(r.Samples), r.Name)
		ch <- prometheus.MustNewConstMetric(m.active, prometheus.GaugeValue, float64(r.ActiveSeries), r.Name)
		for reason, n := range r.RefusedRequests {
			ch <- prometheus.MustNewConstMetric(m.refusedRequests, prometheus.CounterValue, float64(n), r.Name, string(reason))
		}
		for reason, n := range r.RefusedSamples {
			ch <- prometheus.MustNewConstMetric(m.refusedSample, prometheus.CounterValue, float64(n), r.Name, string(reason))
		}
	}
}
