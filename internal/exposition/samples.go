package exposition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/textparse"
)

// Content types that [Each] knows.
const (
	Text        = "text/plain; version=0.0.4"
	OpenMetrics = "application/openmetrics-text; version=1.0.0"
	Protobuf    = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

// Sample is one sample of an exposition. It is valid until the next one.
type Sample struct {
	Labels labels.Labels
	Family string // "" if the exposition does not describe it
	Meta   metadata.Metadata
	ST     int64 // milliseconds; 0 if unknown
	T      int64 // milliseconds, if Timed
	Timed  bool
	V      float64
	H      *histogram.Histogram
	FH     *histogram.FloatHistogram
	// Exemplars are those that a Prometheus TSDB would keep. LongExemplars counts those that it would
	// drop because their labels are too long.
	Exemplars     []exemplar.Exemplar
	LongExemplars int
}

// checkEvery is the number of entries between two checks of the context.
const checkEvery = 256

// Each calls f for each sample of a body of that content type. It stops at an error of f, at the first
// error in the body, and when ctx ends. The bounds are those of [New].
//
// The lines of OpenMetrics 1.0 that end in _created are not samples, but start timestamps of others
// (https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md#counter-1).
func Each(ctx context.Context, body []byte, contentType string, f func(*Sample) error) error {
	p, err := New(body, contentType, nil, textparse.ParserOptions{KeepClassicOnClassicAndNativeHistograms: true, OpenMetricsSkipSTSeries: true})
	if p == nil {
		return fmt.Errorf("read the exposition: %w", err)
	}
	in := samples{p: p}
	for n := 0; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return fmt.Errorf("read the exposition: %w", context.Cause(ctx))
		}
		e, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the exposition: %w", err)
		}
		s := in.entry(e)
		if s == nil {
			continue
		}
		if err := f(s); err != nil {
			return err
		}
	}
}

// samples is the state of [Each].
type samples struct {
	p      textparse.Parser
	family string            // the family described last
	meta   metadata.Metadata // of that family
	sample Sample
}

// entry returns the sample of an entry, or nil if it has none.
func (in *samples) entry(e textparse.Entry) *Sample {
	switch e {
	case textparse.EntryType:
		name, kind := in.p.Type()
		in.about(name).Type = kind
		return nil
	case textparse.EntryHelp:
		name, help := in.p.Help()
		in.about(name).Help = string(help)
		return nil
	case textparse.EntryUnit:
		name, unit := in.p.Unit()
		in.about(name).Unit = string(unit)
		return nil
	}
	s := &in.sample
	*s = Sample{Exemplars: s.Exemplars[:0]}
	var at *int64
	switch e {
	case textparse.EntrySeries:
		_, at, s.V = in.p.Series()
	case textparse.EntryHistogram:
		_, at, s.H, s.FH = in.p.Histogram()
	default:
		return nil
	}
	if at != nil {
		s.T, s.Timed = *at, true
	}
	in.p.Labels(&s.Labels)
	s.ST = in.p.StartTimestamp()
	for e := (exemplar.Exemplar{}); in.p.Exemplar(&e); e = (exemplar.Exemplar{}) {
		if LongExemplar(e.Labels) {
			s.LongExemplars++
			continue
		}
		s.Exemplars = append(s.Exemplars, e)
	}
	if belongs(s.Labels.Get(model.MetricNameLabel), in.family, in.meta.Type) {
		s.Family, s.Meta = in.family, in.meta
	}
	return s
}

// about returns the metadata of the family that a line describes. A line about another family resets it.
func (in *samples) about(name []byte) *metadata.Metadata {
	if string(name) != in.family {
		in.family, in.meta = string(name), metadata.Metadata{}
	}
	return &in.meta
}

// LongExemplar reports whether the labels of an exemplar exceed the limit of a Prometheus TSDB:
// 128 characters in total, as in OpenMetrics 1.0
// (https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md#exemplars).
func LongExemplar(ls labels.Labels) bool {
	n := 0
	ls.Range(func(l labels.Label) { n += utf8.RuneCountInString(l.Name) + utf8.RuneCountInString(l.Value) })
	return n > exemplar.ExemplarMaxLabelSetLength
}

// belongs reports whether a series belongs to the family of that name and type.
func belongs(series, family string, kind model.MetricType) bool {
	end, ok := strings.CutPrefix(series, family)
	if !ok || family == "" {
		return false
	}
	switch end {
	case "":
		return true
	case "_bucket", "_gsum", "_gcount":
		return kind == model.MetricTypeHistogram || kind == model.MetricTypeGaugeHistogram
	case "_sum", "_count":
		return kind == model.MetricTypeHistogram || kind == model.MetricTypeGaugeHistogram || kind == model.MetricTypeSummary
	case "_total":
		return kind == model.MetricTypeCounter
	case "_created":
		return kind == model.MetricTypeCounter || kind == model.MetricTypeHistogram || kind == model.MetricTypeSummary
	case "_info":
		return kind == model.MetricTypeInfo
	}
	return false
}
