// Package otlp receives metrics by OpenTelemetry's protocol, over HTTP (protobuf and JSON)
// and gRPC, and translates them so that series are named and labelled as by a Prometheus that
// receives OTLP.
//
// Source: https://opentelemetry.io/docs/specs/otlp/.
package otlp

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"hwsagent/receivers"
	"hwsagent/receivers/otlp/translation"
)

// Settings configure the translation, with the meaning and the names of the section otlp of Prometheus' configuration.
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

func (s Settings) translation() translation.Settings {
	strategy := otlptranslator.UnderscoreEscapingWithSuffixes
	for _, known := range strategies() {
		if string(known) == s.TranslationStrategy {
			strategy = known
		}
	}
	return translation.Settings{
		Suffixes: strategy.ShouldAddSuffixes(), AllowUTF8: !strategy.ShouldEscape(),
		Promote: s.PromoteResourceAttributes, PromoteAll: s.PromoteAllResourceAttributes, Ignore: s.IgnoreResourceAttributes,
		KeepIdentifying: s.KeepIdentifyingResourceAttributes, CustomBuckets: s.ConvertHistogramsToNHCB, ScopeLabels: s.PromoteScopeMetadata,
		SanitizeUnderscores: !s.NoUnderscoreSanitization, KeepUnderscores: !s.CollapseUnderscores,
	}
}

// Receiver stores metrics. It is safe for concurrent use.
type Receiver struct {
	settings translation.Settings
	shape    *shape
	deltas   *deltas
	open     *translation.Open
	known    *known
	ids      atomic.Uint64 // of resources and heads
}

// New returns a receiver with at most limit streams of deltas.
func New(s Settings, limit int) *Receiver {
	return &Receiver{settings: s.translation(), shape: newShape(), deltas: newDeltas(limit), open: translation.NewOpen(), known: newKnown()}
}

// receive stores a request, and returns as store does.
func (v *Receiver) receive(r *receivers.Request, body []byte, json bool) (refused uint64, why string, err error) {
	r.Reusable() // decoded objects are copies
	var learn *learning
	if !json {
		var done bool
		if done, learn, refused, why, err = v.repeat(r, body); done {
			return refused, why, err
		}
	}
	if err := v.weigh(r, body, json); err != nil {
		return 0, "", err
	}
	md, err := decode(body, json)
	if err != nil {
		return 0, "", err
	}
	return v.store(r, md, learn)
}

// weigh reserves the memory for the objects of a request.
func (v *Receiver) weigh(r *receivers.Request, body []byte, json bool) (err error) {
	var w weight
	if json {
		w.numbers = int64(len(body)) * jsonBytes / numberBytes
		err = w.addJSON(body)
	} else {
		err = w.add(v.shape, body, 0)
	}
	if err != nil {
		return err
	}
	return r.Take(w.bytes())
}

// decode decodes a request. The encoding of a request is that of metrics in a file; pmetricotlp, which has a type for
// requests, would link grpc.
func decode(body []byte, json bool) (md pmetric.Metrics, err error) {
	if json {
		md, err = (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(body)
	} else {
		md, err = (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(body)
	}
	if err != nil {
		return md, fmt.Errorf("read the request: %w", err)
	}
	return md, nil
}

// store writes the metrics of a request to the log, in one commit. If single samples are refused, why describes them and
// refused counts their points, and the rest is stored. learn stores the series in the tables, unless it is nil.
func (v *Receiver) store(r *receivers.Request, md pmetric.Metrics, learn *learning) (refused uint64, why string, err error) {
	bad := prune(md, max(maxAttributes, r.Limits().Labels))
	delta, unfit := sort(md)
	bad = append(bad, unfit...)
	if learn != nil && (len(bad) > 0 || md.DataPointCount() != len(learn.points)) { // points were removed
		learn = nil
	}
	refused, why, err = v.try(r, md, delta, bad, learn)
	if fault := (*untranslatable)(nil); errors.As(err, &fault) && r.Context().Err() == nil {
		// Try again without the metrics that caused the failure.
		bad = append(append(bad, v.weed(r.Context(), md)...), v.weed(r.Context(), delta)...)
		refused, why, err = v.try(r, md, delta, bad, nil)
	}
	return refused, why, err
}

// try stores all metrics, or none if one cannot be translated. bad was removed before.
func (v *Receiver) try(r *receivers.Request, md, delta pmetric.Metrics, bad []flaw, learn *learning) (refused uint64, why string, err error) {
	b := r.Batch()
	defer b.Rollback()
	for _, f := range bad {
		b.RefuseSamples(f.reason, f.points, f.why)
	}
	app := &appender{b: b, points: b.RefusedSamples(), before: b.RefusedSamples(), learning: learn}
	if learn != nil {
		learn.begin(md)
	}
	if err := translate(r.Context(), md, v.settings, v.open, app); err != nil {
		return 0, "", err
	}
	if delta.MetricCount() == 0 {
		return verdict(b, app)
	}
	// Add deltas up one request at a time; a sum counts only once it is in the log.
	v.deltas.mu.Lock()
	defer v.deltas.mu.Unlock()
	sums := v.deltas.begin(time.Now())
	if err := translate(r.Context(), delta, v.settings, v.open, &summing{appender: app, sums: sums}); err != nil {
		return 0, "", err
	}
	refused, why, err = verdict(b, app)
	if err == nil {
		sums.commit()
	}
	return refused, why, err
}

// verdict commits b.
func verdict(b *receivers.Batch, app *appender) (refused uint64, why string, err error) {
	_, err = b.Commit()
	if err == nil {
		return 0, "", nil
	}
	if r := receivers.AsRefusal(err); r.Reason == receivers.InvalidSample {
		return app.points, r.Text, nil
	}
	return 0, "", err
}

// strategies returns the ways to translate names.
func strategies() []otlptranslator.TranslationStrategyOption {
	return []otlptranslator.TranslationStrategyOption{
		otlptranslator.UnderscoreEscapingWithSuffixes, otlptranslator.UnderscoreEscapingWithoutSuffixes,
		otlptranslator.NoUTF8EscapingWithSuffixes, otlptranslator.NoTranslation,
	}
}
