package otlp

import (
	"net/http"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"hwsagent/receivers"
)

// maxAttributes bounds the attributes of one resource, scope, point or exemplar, unless a series may have more labels.
// The translator compares each attribute with all before it.
const maxAttributes = 512

// attributes checks the attributes of a message's parts, and keeps the first part that has too many.
type attributes struct {
	most int
	err  error
}

// checkAttributes refuses metrics if one part has more attributes than most.
func checkAttributes(md pmetric.Metrics, most int) error {
	a := &attributes{most: most}
	for _, r := range md.ResourceMetrics().All() {
		a.add("resource", r.Resource().Attributes())
		for _, s := range r.ScopeMetrics().All() {
			a.add("scope", s.Scope().Attributes())
			for _, m := range s.Metrics().All() {
				a.metric(m)
			}
		}
	}
	return a.err
}

func (a *attributes) add(part string, m pcommon.Map) {
	if n := m.Len(); n > a.most && a.err == nil {
		a.err = receivers.Refuse(receivers.TooManyLabels, http.StatusBadRequest, "a %s has %d attributes, more than %d", part, n, a.most)
	}
}

func (a *attributes) metric(m pmetric.Metric) {
	exemplars := func(all pmetric.ExemplarSlice) {
		for _, e := range all.All() {
			a.add("exemplar", e.FilteredAttributes())
		}
	}
	numbers := func(all pmetric.NumberDataPointSlice) {
		for _, p := range all.All() {
			a.add("point", p.Attributes())
			exemplars(p.Exemplars())
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			a.add("point", p.Attributes())
			exemplars(p.Exemplars())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			a.add("point", p.Attributes())
			exemplars(p.Exemplars())
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			a.add("point", p.Attributes())
		}
	case pmetric.MetricTypeEmpty:
	}
}
