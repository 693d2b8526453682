// Package self is the probe that reads the agent's own metrics. They go through the log to
// every target like all other samples, so that a host needs no scraper for them.
package self

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// Probe gathers a registry once per round.
type Probe struct {
	from     prometheus.Gatherer
	families map[string]*probes.Family // by name; keeps samples of one family on one value
}

// New returns a probe of what from gathers.
func New(from prometheus.Gatherer) *Probe {
	return &Probe{from: from, families: make(map[string]*probes.Family)}
}

// Collect adds every metric of the registry. Histograms and summaries become the
// series of the text format: _bucket, _sum and _count.
func (p *Probe) Collect(_ context.Context, r *probes.Round) error {
	gathered, err := p.from.Gather()
	for _, mf := range gathered {
		p.add(r, mf)
	}
	if err != nil && len(gathered) > 0 {
		return fmt.Errorf("%w: %w", probes.ErrPartial, err)
	}
	return err
}

func (p *Probe) add(r *probes.Round, mf *dto.MetricFamily) {
	name := mf.GetName()
	f := p.families[name]
	if f == nil {
		f = &probes.Family{Name: name, Help: mf.GetHelp(), Type: metricType(mf.GetType()), Unit: mf.GetUnit()}
		p.families[name] = f
	}
	for _, m := range mf.GetMetric() {
		base := make([]string, 0, 2*len(m.GetLabel())+2)
		for _, l := range m.GetLabel() {
			base = append(base, l.GetName(), l.GetValue())
		}
		one := func(suffix string, v float64, extra ...string) {
			s := probes.Sample{Family: f, Value: v, Labels: append(base[:len(base):len(base)], extra...)}
			if suffix != "" {
				s.Name = name + suffix
			}
			r.AddSample(s)
		}
		switch {
		case m.Counter != nil:
			one("", m.Counter.GetValue())
		case m.Gauge != nil:
			one("", m.Gauge.GetValue())
		case m.Untyped != nil:
			one("", m.Untyped.GetValue())
		case m.Summary != nil:
			for _, q := range m.Summary.GetQuantile() {
				one("", q.GetValue(), model.QuantileLabel, number(q.GetQuantile()))
			}
			one("_sum", m.Summary.GetSampleSum())
			one("_count", float64(m.Summary.GetSampleCount()))
		case m.Histogram != nil:
			h := m.Histogram
			infinite := false
			for _, b := range h.GetBucket() {
				infinite = infinite || math.IsInf(b.GetUpperBound(), 1)
				one("_bucket", float64(b.GetCumulativeCount()), model.BucketLabel, number(b.GetUpperBound()))
			}
			if !infinite {
				one("_bucket", float64(h.GetSampleCount()), model.BucketLabel, number(math.Inf(1)))
			}
			one("_sum", h.GetSampleSum())
			one("_count", float64(h.GetSampleCount()))
		}
	}
}

func metricType(t dto.MetricType) model.MetricType {
	switch t {
	case dto.MetricType_COUNTER:
		return model.MetricTypeCounter
	case dto.MetricType_GAUGE:
		return model.MetricTypeGauge
	case dto.MetricType_SUMMARY:
		return model.MetricTypeSummary
	case dto.MetricType_HISTOGRAM:
		return model.MetricTypeHistogram
	default:
		return model.MetricTypeUnknown
	}
}

// number formats a bound or quantile as the text format does.
func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
