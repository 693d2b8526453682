// Package otlp receives metrics by OpenTelemetry's protocol, over HTTP (protobuf and JSON)
// and gRPC, and translates them with Prometheus' own package, so that series are named and
// labelled as by a Prometheus that receives OTLP.
//
// Source: https://opentelemetry.io/docs/specs/otlp/.
package otlp

import (
	"errors"
	"fmt"
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
	NoUnderscoreSanitization          bool // label_name_underscore_sanitization: false
	CollapseUnderscores               bool // label_name_preserve_multiple_underscores: false
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
		LabelNameUnderscoreSanitization:      !s.NoUnderscoreSanitization,
		LabelNamePreserveMultipleUnderscores: !s.CollapseUnderscores,
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
	return req, checkAttributes(req.Metrics(), max(maxAttributes, r.Limits().Labels))
}

// store puts the metrics of a request into the log, in one commit. Of a request of which
// single samples are refused, refused and why tell; the rest is stored then.
func (v *Receiver) store(r *receivers.Request, md pmetric.Metrics) (refused uint64, why string, err error) {
	delta, bad := sort(md)
	refused, why, err = v.try(r, md, delta, bad)
	if fault := (*untranslatable)(nil); errors.As(err, &fault) && r.Context().Err() == nil {
		// Once more, without the metrics that are to blame.
		bad = append(append(bad, v.weed(r.Context(), md)...), v.weed(r.Context(), delta)...)
		refused, why, err = v.try(r, md, delta, bad)
	}
	return refused, why, err
}

// try stores what it can translate all of, or nothing. bad was taken out before.
func (v *Receiver) try(r *receivers.Request, md, delta pmetric.Metrics, bad []flaw) (refused uint64, why string, err error) {
	b := r.Batch()
	defer b.Rollback()
	for _, f := range bad {
		b.RefuseSamples(f.reason, f.points, f.why)
	}
	app := &appender{b: b}
	if err := translate(r.Context(), md, v.settings, app); err != nil {
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
	if err := translate(r.Context(), delta, v.settings, &summing{appender: app, sums: sums}); err != nil {
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

// strategies are the ways to translate names.
func strategies() []otlptranslator.TranslationStrategyOption {
	return []otlptranslator.TranslationStrategyOption{
		otlptranslator.UnderscoreEscapingWithSuffixes, otlptranslator.UnderscoreEscapingWithoutSuffixes,
		otlptranslator.NoUTF8EscapingWithSuffixes, otlptranslator.NoTranslation,
	}
}
