package otlp

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"hwsagent/receivers"
)

// maxAttributes bounds the attributes of one resource, scope, point or exemplar, unless a series may have more labels.
// The translator compares each attribute with all before it.
const maxAttributes = 512

// pruning removes points with too many attributes, of their own or of their resource or scope.
type pruning struct {
	most   int
	points uint64 // removed
	why    string // of the first one
}

// prune removes points with more attributes than most from md, and returns them. Of exemplars with more it removes all
// attributes.
func prune(md pmetric.Metrics, most int) (bad []flaw) {
	p := &pruning{most: most}
	md.ResourceMetrics().RemoveIf(func(r pmetric.ResourceMetrics) bool {
		ofResource := p.exceeds("resource", r.Resource().Attributes())
		r.ScopeMetrics().RemoveIf(func(s pmetric.ScopeMetrics) bool {
			beyond := p.exceeds("scope", s.Scope().Attributes()) || ofResource
			s.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				if beyond {
					_, n := temporality(m)
					p.points += uint64(n) // #nosec G115 -- a count
					return true
				}
				p.metric(m)
				return false
			})
			return beyond
		})
		return ofResource
	})
	if p.why != "" {
		bad = append(bad, flaw{receivers.TooManyLabels, p.points, p.why})
	}
	return bad
}

// exceeds reports whether m has more attributes than most.
func (p *pruning) exceeds(part string, m pcommon.Map) bool {
	if m.Len() <= p.most {
		return false
	}
	if p.why == "" {
		p.why = fmt.Sprintf("a %s has %d attributes, more than %d", part, m.Len(), p.most)
	}
	return true
}

// metric prunes the points of one metric.
func (p *pruning) metric(m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().RemoveIf(p.number)
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().RemoveIf(p.number)
	case pmetric.MetricTypeHistogram:
		m.Histogram().DataPoints().RemoveIf(func(point pmetric.HistogramDataPoint) bool {
			p.exemplars(point.Exemplars())
			return p.point(point.Attributes())
		})
	case pmetric.MetricTypeExponentialHistogram:
		m.ExponentialHistogram().DataPoints().RemoveIf(func(point pmetric.ExponentialHistogramDataPoint) bool {
			p.exemplars(point.Exemplars())
			return p.point(point.Attributes())
		})
	case pmetric.MetricTypeSummary:
		m.Summary().DataPoints().RemoveIf(func(point pmetric.SummaryDataPoint) bool { return p.point(point.Attributes()) })
	case pmetric.MetricTypeEmpty:
	}
}

func (p *pruning) number(point pmetric.NumberDataPoint) bool {
	p.exemplars(point.Exemplars())
	return p.point(point.Attributes())
}

// point reports whether to remove a point with these attributes.
func (p *pruning) point(attributes pcommon.Map) bool {
	if !p.exceeds("point", attributes) {
		return false
	}
	p.points++
	return true
}

// exemplars removes the attributes of exemplars that have too many; the translation does so with far fewer, too.
func (p *pruning) exemplars(all pmetric.ExemplarSlice) {
	for _, e := range all.All() {
		if attributes := e.FilteredAttributes(); attributes.Len() > p.most {
			attributes.Clear()
		}
	}
}
