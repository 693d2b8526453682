// Package otlp receives metrics by OpenTelemetry's protocol, over HTTP (protobuf and JSON)
// and gRPC, and translates them with Prometheus' own package, so that series are named and
// labelled as by a Prometheus that receives OTLP.
//
// Source: https://opentelemetry.io/docs/specs/otlp/.
package otlp

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/config"
	translator "github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"hwsagent/receivers"
)

// Settings say how metrics are translated, with the meaning and the names that they have in
// the section otlp of Prometheus' configuration.
type Settings struct {
	PromoteResourceAttributes         []string
	PromoteAllResourceAttributes      bool
	IgnoreResourceAttributes          []string
	TranslationStrategy               string // "" is UnderscoreEscapingWithSuffixes
	KeepIdentifyingResourceAttributes bool
	ConvertHistogramsToNHCB           bool
	PromoteScopeMetadata              bool
}

// lookback is PromQL's default lookback delta: target_info is repeated at half of it.
const lookback = 5 * time.Minute

func (s Settings) translator() translator.Settings {
	strategy := config.DefaultOTLPConfig.TranslationStrategy
	for _, known := range strategies() {
		if string(known) == s.TranslationStrategy {
			strategy = known
		}
	}
	return translator.Settings{
		AddMetricSuffixes: strategy.ShouldAddSuffixes(),
		AllowUTF8:         !strategy.ShouldEscape(),
		PromoteResourceAttributes: translator.NewPromoteResourceAttributes(config.OTLPConfig{
			PromoteResourceAttributes: s.PromoteResourceAttributes, PromoteAllResourceAttributes: s.PromoteAllResourceAttributes,
			IgnoreResourceAttributes: s.IgnoreResourceAttributes,
		}),
		KeepIdentifyingResourceAttributes:    s.KeepIdentifyingResourceAttributes,
		ConvertHistogramsToNHCB:              s.ConvertHistogramsToNHCB,
		PromoteScopeMetadata:                 s.PromoteScopeMetadata,
		LookbackDelta:                        lookback,
		LabelNameUnderscoreSanitization:      true,
		LabelNamePreserveMultipleUnderscores: true,
	}
}

// Receiver stores metrics. It is safe for concurrent use.
type Receiver struct {
	settings translator.Settings
	shape    *shape
	deltas   *deltas
}

// New makes a receiver. Its streams of deltas are at most limit.
func New(s Settings, limit int) *Receiver {
	return &Receiver{settings: s.translator(), shape: newShape(), deltas: newDeltas(limit)}
}

// decode reads a request, after what it will take of memory is taken.
func (v *Receiver) decode(r *receivers.Request, body []byte, json bool) (pmetricotlp.ExportRequest, error) {
	req := pmetricotlp.NewExportRequest()
	var w weight
	var err error
	if json {
		w.numbers = int64(len(body)) * jsonBytes / numberBytes
		err = w.addJSON(body)
	} else {
		err = w.add(v.shape, body, 0)
	}
	if err != nil {
		return req, err
	}
	if err := r.Take(w.bytes()); err != nil {
		return req, err
	}
	if json {
		err = req.UnmarshalJSON(body)
	} else {
		err = req.UnmarshalProto(body)
	}
	if err != nil {
		return req, fmt.Errorf("read the request: %w", err)
	}
	return req, nil
}

// store puts the metrics of a request into the log, in one commit. Of a request of which
// single samples are refused, refused and why tell; the rest is stored then.
func (v *Receiver) store(r *receivers.Request, md pmetric.Metrics) (refused uint64, why string, err error) {
	b := r.Batch()
	defer b.Rollback()
	delta := sort(md, b)
	app := &appender{b: b}
	if err := v.translate(r, md, app); err != nil {
		return 0, "", err
	}
	if delta.MetricCount() == 0 {
		return verdict(b)
	}
	// Deltas are added up one request after the other; what they add up to counts only
	// when it is in the log.
	v.deltas.mu.Lock()
	defer v.deltas.mu.Unlock()
	sums := v.deltas.begin(time.Now())
	if err := v.translate(r, delta, &summing{appender: app, sums: sums}); err != nil {
		return 0, "", err
	}
	refused, why, err = verdict(b)
	if err == nil {
		sums.commit()
	}
	return refused, why, err
}

// verdict commits b.
func verdict(b *receivers.Batch) (refused uint64, why string, err error) {
	_, err = b.Commit()
	if err == nil {
		return 0, "", nil
	}
	if r := receivers.AsRefusal(err); r.Reason == receivers.InvalidSample {
		return b.RefusedSamples(), r.Text, nil
	}
	return 0, "", err
}

func (v *Receiver) translate(r *receivers.Request, md pmetric.Metrics, app interface {
	sink
	failure() error
}) error {
	_, err := translator.NewPrometheusConverter(app).FromMetrics(r.Context(), md, v.settings)
	if bound := app.failure(); bound != nil {
		return bound
	}
	if err != nil {
		return receivers.Refuse(receivers.Malformed, http.StatusBadRequest, "translate the metrics: %.300s", err)
	}
	return nil
}

// sort takes out of md what is not cumulative: deltas are returned, as if they were
// cumulative; what is neither is refused.
func sort(md pmetric.Metrics, b *receivers.Batch) (delta pmetric.Metrics) {
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
				kind, points := temporality(m)
				switch kind {
				case pmetric.AggregationTemporalityCumulative:
					return false
				case pmetric.AggregationTemporalityDelta:
				default:
					b.RefuseSamples(receivers.NotCumulative, uint64(points), fmt.Sprintf("%.100q has no type, or is neither cumulative nor delta", m.Name()))
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
	return delta
}

// temporality is how the points of a metric are to be read, and how many they are.
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

// cumulative says of a metric that it is what it will be.
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

// strategies are the ways to translate names.
func strategies() []otlptranslator.TranslationStrategyOption {
	return []otlptranslator.TranslationStrategyOption{
		otlptranslator.UnderscoreEscapingWithSuffixes, otlptranslator.UnderscoreEscapingWithoutSuffixes,
		otlptranslator.NoUTF8EscapingWithSuffixes, otlptranslator.NoTranslation,
	}
}
