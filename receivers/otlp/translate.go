package otlp

import (
	"cmp"
	"context"
	"fmt"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"hwsagent/receivers"
	"hwsagent/receivers/otlp/translation"
)

func translate(ctx context.Context, md pmetric.Metrics, s translation.Settings, open *translation.Open, app interface {
	translation.Sink
	failure() error
}) error {
	err := translation.Translate(ctx, md, s, open, app)
	if bound := app.failure(); bound != nil {
		return bound
	}
	if err != nil {
		return &untranslatable{err}
	}
	return nil
}

// untranslatable is the translation's error for metrics without a form in Prometheus.
type untranslatable struct{ err error }

// Error implements error.
func (u *untranslatable) Error() string { return fmt.Sprintf("translate the metrics: %.300s", u.err) }

// flaw describes points of one metric that are not stored, whatever the outcome of the others.
type flaw struct {
	reason receivers.Reason
	points uint64
	why    string
}

// weed removes each metric that cannot be translated alone from md, and returns these metrics: one of them would make the
// whole request fail. A trial costs as much as the metric: resources and scopes are tried once, with one point, because
// target_info is appended for all the time between two points.
func (v *Receiver) weed(ctx context.Context, md pmetric.Metrics) (bad []flaw) {
	alone := newTrial()
	md.ResourceMetrics().RemoveIf(func(from pmetric.ResourceMetrics) bool {
		r := newTrial()
		from.Resource().CopyTo(r.resource.Resource())
		ofResource := r.run(ctx, v.settings)
		from.ScopeMetrics().RemoveIf(func(scope pmetric.ScopeMetrics) bool {
			s := newTrial()
			scope.Scope().CopyTo(s.scope.Scope())
			ofScope := s.run(ctx, v.settings)
			scope.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				m.MoveTo(alone.metric)
				err := cmp.Or(ofResource, ofScope)
				if err == nil {
					err = alone.run(ctx, v.settings)
				}
				if err != nil {
					_, points := temporality(alone.metric)
					bad = append(bad, flaw{receivers.InvalidSample, uint64(max(points, 1)), fmt.Sprintf("%.100q: %s", alone.metric.Name(), err)}) // #nosec G115 -- a count
				}
				alone.metric.MoveTo(m)
				return err != nil
			})
			return scope.Metrics().Len() == 0
		})
		return from.ScopeMetrics().Len() == 0
	})
	return bad
}

// trial is a request with one metric, which has one point.
type trial struct {
	all      pmetric.Metrics
	resource pmetric.ResourceMetrics
	scope    pmetric.ScopeMetrics
	metric   pmetric.Metric
}

func newTrial() trial {
	t := trial{all: pmetric.NewMetrics()}
	t.resource = t.all.ResourceMetrics().AppendEmpty()
	t.scope = t.resource.ScopeMetrics().AppendEmpty()
	t.metric = t.scope.Metrics().AppendEmpty()
	t.metric.SetName("any")
	t.metric.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(1)
	return t
}

// run returns why the request cannot be translated, nil if it can.
func (t trial) run(ctx context.Context, s translation.Settings) error {
	return translate(ctx, t.all, s, translation.NewOpen(), nowhere{})
}

// nowhere is a sink that discards everything.
type nowhere struct{}

func (nowhere) failure() error { return nil }

// Append implements [translation.Sink].
func (nowhere) Append(storage.SeriesRef, labels.Labels, int64, int64, float64, *histogram.Histogram, *histogram.FloatHistogram, storage.AOptions) (storage.SeriesRef, error) {
	return 0, nil
}

// sort removes all metrics that are not cumulative from md. It returns deltas in the form of cumulative metrics. Metrics
// that are neither are bad, and so are points without a time.
func sort(md pmetric.Metrics) (delta pmetric.Metrics, bad []flaw) {
	delta = pmetric.NewMetrics()
	for i := range md.ResourceMetrics().Len() {
		from := md.ResourceMetrics().At(i)
		var resource pmetric.ResourceMetrics
		made := false
		for j := range from.ScopeMetrics().Len() {
			scope := from.ScopeMetrics().At(j)
			var to pmetric.MetricSlice
			begun := false
			scope.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				if n := dropTimeless(m); n > 0 {
					bad = append(bad, flaw{receivers.InvalidSample, n, fmt.Sprintf("%.100q has %d points without a time", m.Name(), n)})
				}
				kind, points := temporality(m)
				switch kind {
				case pmetric.AggregationTemporalityCumulative:
					return false
				case pmetric.AggregationTemporalityDelta:
				default:
					bad = append(bad, flaw{receivers.NotCumulative, uint64(points), fmt.Sprintf("%.100q has no type, or is neither cumulative nor delta", m.Name())}) // #nosec G115 -- a count
					return true
				}
				if !made {
					resource, made = delta.ResourceMetrics().AppendEmpty(), true
					from.Resource().CopyTo(resource.Resource())
				}
				if !begun {
					s := resource.ScopeMetrics().AppendEmpty()
					scope.Scope().CopyTo(s.Scope())
					s.SetSchemaUrl(scope.SchemaUrl())
					to, begun = s.Metrics(), true
				}
				moved := to.AppendEmpty()
				m.MoveTo(moved)
				cumulative(moved)
				return true
			})
		}
	}
	return delta, bad
}

// temporality returns a metric's temporality, and the number of its points.
func temporality(m pmetric.Metric) (pmetric.AggregationTemporality, int) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return pmetric.AggregationTemporalityCumulative, m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return pmetric.AggregationTemporalityCumulative, m.Summary().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().AggregationTemporality(), m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().AggregationTemporality(), m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().AggregationTemporality(), m.ExponentialHistogram().DataPoints().Len()
	}
	return pmetric.AggregationTemporalityUnspecified, 1
}

// cumulative marks a metric as cumulative.
func cumulative(m pmetric.Metric) {
	const is = pmetric.AggregationTemporalityCumulative
	switch m.Type() {
	case pmetric.MetricTypeSum:
		m.Sum().SetAggregationTemporality(is)
	case pmetric.MetricTypeHistogram:
		m.Histogram().SetAggregationTemporality(is)
	case pmetric.MetricTypeExponentialHistogram:
		m.ExponentialHistogram().SetAggregationTemporality(is)
	}
}

// dropTimeless removes the points without a time from m, and returns how many there were. With such a point, of 1970,
// the translation would repeat target_info every few minutes up to the present.
func dropTimeless(m pmetric.Metric) (n uint64) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().RemoveIf(timeless[pmetric.NumberDataPoint](&n))
	case pmetric.MetricTypeSummary:
		m.Summary().DataPoints().RemoveIf(timeless[pmetric.SummaryDataPoint](&n))
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().RemoveIf(timeless[pmetric.NumberDataPoint](&n))
	case pmetric.MetricTypeHistogram:
		m.Histogram().DataPoints().RemoveIf(timeless[pmetric.HistogramDataPoint](&n))
	case pmetric.MetricTypeExponentialHistogram:
		m.ExponentialHistogram().DataPoints().RemoveIf(timeless[pmetric.ExponentialHistogramDataPoint](&n))
	}
	return n
}

func timeless[P interface{ Timestamp() pcommon.Timestamp }](n *uint64) func(P) bool {
	return func(p P) bool {
		if p.Timestamp() != 0 {
			return false
		}
		*n++
		return true
	}
}
