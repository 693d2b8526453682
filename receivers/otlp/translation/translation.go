package translation

import (
	"context"
	"fmt"
	"math"

	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Settings say how names and labels are made, with the meaning of the section otlp of Prometheus' configuration.
type Settings struct {
	Suffixes  bool // suffixes of metrics: their unit, and _total
	AllowUTF8 bool // names stay as they are

	// Attributes of a resource that become labels of each of its series: those in Promote, or with
	// PromoteAll all that are not in Ignore.
	Promote, Ignore []string
	PromoteAll      bool

	KeepIdentifying     bool // service.name and its like are labels of target_info, too
	CustomBuckets       bool // histograms with explicit bounds become native ones
	ScopeLabels         bool // a scope's name, version, URL and attributes become labels
	SanitizeUnderscores bool // a label name beginning with _ gets the prefix key
	KeepUnderscores     bool // several underscores in a row stay
}

// Sink receives the samples, like [storage.AppenderV2]. An error ends the translation.
type Sink interface {
	Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error)
}

// PointEnder is an optional interface of sinks that tell which samples belong to one point.
type PointEnder interface {
	// PointEnds is called after the samples of each point.
	PointEnds()
}

// Translate appends the samples of md to sink, and target_info with each resource's samples. It stops at the first
// metric without a form in Prometheus; then only a part of md was appended. open is kept from one call to the next. All metrics must be cumulative.
func Translate(ctx context.Context, md pmetric.Metrics, s Settings, open *Open, sink Sink) error {
	t := newTranslator(ctx, s, sink)
	t.open = open
	for _, r := range md.ResourceMetrics().All() {
		if err := t.resource(r); err != nil {
			return err
		}
	}
	return nil
}

// translator is one call of Translate.
type translator struct {
	ctx      context.Context //nolint:containedctx // of the call that it lives in
	steps    int
	settings Settings
	sink     Sink
	open     *Open
	points   PointEnder // of sink; nil if it is none
	naming   naming
	info     *Info
}

func newTranslator(ctx context.Context, s Settings, sink Sink) *translator {
	points, _ := sink.(PointEnder)
	return &translator{ctx: ctx, settings: s, sink: sink, points: points, naming: newNaming(s), info: NewInfo(sink)}
}

// resource translates the metrics of one resource.
func (t *translator) resource(r pmetric.ResourceMetrics) error {
	t.naming.setResource(r.Resource().Attributes())
	all := newPeriod()
	for _, scope := range r.ScopeMetrics().All() {
		t.naming.setScope(scope)
		for _, m := range scope.Metrics().All() {
			if err := t.step(); err != nil {
				return err
			}
			all.addMetric(m)
			if err := t.metric(m); err != nil {
				return err
			}
		}
	}
	if all.empty() {
		return nil
	}
	if ls := t.naming.infoLabels(r.Resource().Attributes()); !ls.IsEmpty() {
		return t.info.Append(ls, all.first, all.last)
	}
	return nil
}

// stepsPerCheck is how many points are translated between checks of the context.
const stepsPerCheck = 128

// step must be called for each point. The error is the context's.
func (t *translator) step() error {
	if t.steps++; t.steps%stepsPerCheck != 0 {
		return nil
	}
	return t.ctx.Err()
}

func (t *translator) metric(m pmetric.Metric) error {
	kind, ok := kindOf(m)
	if !ok {
		return fmt.Errorf("metric %q has no type, or is not cumulative", m.Name())
	}
	namer := otlptranslator.MetricNamer{WithMetricSuffixes: t.settings.Suffixes, UTF8Allowed: t.settings.AllowUTF8}
	name, err := namer.Build(otlptranslator.Metric{Name: m.Name(), Unit: m.Unit(), Type: kind.naming})
	if err != nil {
		return err
	}
	unit := otlptranslator.UnitNamer{}
	f := family{translator: t, name: name, about: storage.AOptions{
		MetricFamilyName: name,
		Metadata:         metadata.Metadata{Type: kind.metadata, Unit: unit.Build(m.Unit()), Help: m.Description()},
	}}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return each(t, m.Gauge().DataPoints().All(), f.gauge)
	case pmetric.MetricTypeSum:
		return each(t, m.Sum().DataPoints().All(), f.sum)
	case pmetric.MetricTypeHistogram:
		if t.settings.CustomBuckets {
			return each(t, m.Histogram().DataPoints().All(), f.customBuckets)
		}
		return each(t, m.Histogram().DataPoints().All(), f.histogram)
	case pmetric.MetricTypeExponentialHistogram:
		return each(t, m.ExponentialHistogram().DataPoints().All(), f.exponential)
	case pmetric.MetricTypeSummary:
		return each(t, m.Summary().DataPoints().All(), f.summary)
	case pmetric.MetricTypeEmpty:
	}
	return nil
}

// each calls do for each point, until one fails.
func each[P any](t *translator, points func(func(int, P) bool), do func(P) error) (err error) {
	for _, p := range points {
		if err = t.step(); err == nil {
			err = do(p)
		}
		if err != nil {
			return err
		}
		if t.points != nil {
			t.points.PointEnds()
		}
	}
	return nil
}

// kind is the type of a metric in the words of its names and of its metadata.
type kind struct {
	naming   otlptranslator.MetricType
	metadata model.MetricType
}

// kindOf returns false for a metric without type, and for one that is not cumulative.
func kindOf(m pmetric.Metric) (kind, bool) {
	const cumulative = pmetric.AggregationTemporalityCumulative
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return kind{otlptranslator.MetricTypeGauge, model.MetricTypeGauge}, true
	case pmetric.MetricTypeSum:
		if m.Sum().IsMonotonic() {
			return kind{otlptranslator.MetricTypeMonotonicCounter, model.MetricTypeCounter}, m.Sum().AggregationTemporality() == cumulative
		}
		return kind{otlptranslator.MetricTypeNonMonotonicCounter, model.MetricTypeGauge}, m.Sum().AggregationTemporality() == cumulative
	case pmetric.MetricTypeHistogram:
		return kind{otlptranslator.MetricTypeHistogram, model.MetricTypeHistogram}, m.Histogram().AggregationTemporality() == cumulative
	case pmetric.MetricTypeExponentialHistogram:
		return kind{otlptranslator.MetricTypeExponentialHistogram, model.MetricTypeHistogram}, m.ExponentialHistogram().AggregationTemporality() == cumulative
	case pmetric.MetricTypeSummary:
		return kind{otlptranslator.MetricTypeSummary, model.MetricTypeSummary}, true
	case pmetric.MetricTypeEmpty:
	}
	return kind{}, false
}

// period is the time from the first to the last point of a resource.
type period struct{ first, last pcommon.Timestamp }

func newPeriod() period { return period{first: math.MaxUint64} }

func (p *period) empty() bool { return p.first == math.MaxUint64 }

func (p *period) addMetric(m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		addAll(p, m.Gauge().DataPoints().All())
	case pmetric.MetricTypeSum:
		addAll(p, m.Sum().DataPoints().All())
	case pmetric.MetricTypeHistogram:
		addAll(p, m.Histogram().DataPoints().All())
	case pmetric.MetricTypeExponentialHistogram:
		addAll(p, m.ExponentialHistogram().DataPoints().All())
	case pmetric.MetricTypeSummary:
		addAll(p, m.Summary().DataPoints().All())
	case pmetric.MetricTypeEmpty:
	}
}

func addAll[P interface{ Timestamp() pcommon.Timestamp }](p *period, points func(func(int, P) bool)) {
	for _, point := range points {
		p.first, p.last = min(p.first, point.Timestamp()), max(p.last, point.Timestamp())
	}
}
