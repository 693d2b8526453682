package meter

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Brief returns a gatherer of the metrics in from that are sent by default: those of metrics at [Sent] or [NotZero],
// and the families named others.
func Brief(from prometheus.Gatherer, metrics []Metric, others ...string) prometheus.Gatherer {
	levels := make(map[string]Level, len(metrics)+len(others))
	for _, m := range metrics {
		levels[m.Name] = m.Level
	}
	for _, name := range others {
		levels[name] = Sent
	}
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all, err := from.Gather()
		var brief []*dto.MetricFamily
		for _, f := range all {
			switch levels[f.GetName()] {
			case Sent:
				brief = append(brief, f)
			case NotZero:
				if f = withoutZeros(f); len(f.GetMetric()) > 0 {
					brief = append(brief, f)
				}
			}
		}
		return brief, err
	})
}

// withoutZeros returns the family without the counters and gauges that are 0.
func withoutZeros(f *dto.MetricFamily) *dto.MetricFamily {
	kept := &dto.MetricFamily{Name: f.Name, Help: f.Help, Type: f.Type, Unit: f.Unit}
	for _, m := range f.GetMetric() {
		if m.Counter != nil && m.GetCounter().GetValue() == 0 || m.Gauge != nil && m.GetGauge().GetValue() == 0 {
			continue
		}
		kept.Metric = append(kept.Metric, m)
	}
	return kept
}
