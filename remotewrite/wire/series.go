package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// Series is the labels of one series, encoded once and copied into each request; for 2.0
// also its metadata. It is immutable. The zero value has no labels and must not be sent.
type Series struct {
	// labels is the label part of a prompb TimeSeries, keys included. It is the only form in
	// which the labels are kept.
	labels string
	v2     *series2 // nil: nothing, or the series was made for 1.0
}

// series2 is what remote write 2.0 says of a series beyond what 1.0 says of it. Series with
// the same metadata share one.
type series2 struct {
	labels     string // as Series.labels, where that differs: names may be any UTF-8 here
	typ        byte   // a writev2.Metadata_MetricType
	help, unit string // valid UTF-8
}

// SeriesOf is the inverse of [Series.Encoded]. The text is not checked.
func SeriesOf(encoded string) Series { return Series{labels: encoded} }

// Encoded returns the labels as requests of 1.0 have them.
func (s *Series) Encoded() string { return s.labels }

// IsEmpty reports whether s is the zero value.
func (s *Series) IsEmpty() bool { return s.labels == "" }

// Labels decodes the labels.
func (s *Series) Labels() (labels.Labels, error) {
	var ts prompb.TimeSeries
	if err := ts.Unmarshal([]byte(s.labels)); err != nil {
		return labels.EmptyLabels(), fmt.Errorf("decode labels: %w", err)
	}
	b := labels.NewScratchBuilder(len(ts.Labels))
	return ts.ToLabels(&b, nil), nil
}

// labels2 returns the labels as 2.0 sends them, encoded as for 1.0.
func (s *Series) labels2() string {
	if s.v2 != nil && s.v2.labels != "" {
		return s.v2.labels
	}
	return s.labels
}

// maxShared bounds how many different metadata a SeriesEncoder shares among series.
const maxShared = 20000

// SeriesEncoder makes [Series]. Not safe for concurrent use.
type SeriesEncoder struct {
	// shared are those series2 that have no labels of their own, by metadata; nil for 1.0.
	shared  map[metadata.Metadata]*series2
	scratch labels.ScratchBuilder
	encoded []byte // scratch
}

// NewSeriesEncoder makes an encoder of series that are sent in that version and in those
// before it.
func NewSeriesEncoder(newest Version) *SeriesEncoder {
	e := &SeriesEncoder{scratch: labels.NewScratchBuilder(16)}
	if newest == V2 {
		e.shared = map[metadata.Metadata]*series2{}
	}
	return e
}

// Encode encodes a series. No value in ls may be empty: that label does not exist. legal are
// the labels as 1.0 sends them. share returns the bytes that it gets as a string; targets that send
// the same labels of a series may have one string in common.
func (e *SeriesEncoder) Encode(ls labels.Labels, meta metadata.Metadata, share func([]byte) string) (s Series, legal labels.Labels) {
	legal = e.Legal(ls)
	if legal.IsEmpty() {
		return Series{}, legal
	}
	e.encoded = appendLabels(e.encoded[:0], keySeriesLabel, legal)
	s.labels = share(e.encoded)
	if e.shared != nil {
		s.v2 = e.encode2(meta, ls, s.labels)
	}
	return s, legal
}

// encode2 makes what remote write 2.0 adds to a series with these labels.
func (e *SeriesEncoder) encode2(meta metadata.Metadata, ls labels.Labels, legal string) *series2 {
	e.encoded = appendLabels(e.encoded[:0], keySeriesLabel, e.valid(ls))
	m := series2{
		typ:  byte(writev2.FromMetadataType(meta.Type)),
		help: strings.ToValidUTF8(meta.Help, "\uFFFD"),
		unit: strings.ToValidUTF8(meta.Unit, "\uFFFD"),
	}
	if string(e.encoded) != legal {
		m.labels = string(e.encoded)
		return &m
	}
	if m == (series2{}) {
		return nil
	}
	if shared := e.shared[meta]; shared != nil {
		return shared
	}
	if len(e.shared) >= maxShared { // many of them belong to series that are gone
		clear(e.shared)
	}
	e.shared[meta] = &m
	return &m
}

// valid returns ls as the specification of remote write 2.0 allows it: names may be any
// UTF-8. Wrong bytes become U+FFFD; if that makes names equal, it returns Legal's form.
func (e *SeriesEncoder) valid(ls labels.Labels) labels.Labels {
	ok := true
	ls.Range(func(l labels.Label) { ok = ok && utf8.ValidString(l.Name) && utf8.ValidString(l.Value) })
	if ok {
		return ls
	}
	e.scratch.Reset()
	ls.Range(func(l labels.Label) {
		e.scratch.Add(strings.ToValidUTF8(l.Name, "\uFFFD"), strings.ToValidUTF8(l.Value, "\uFFFD"))
	})
	e.scratch.Sort()
	valid := e.scratch.Labels()
	if _, twice := valid.HasDuplicateLabelNames(); twice {
		return e.Legal(ls)
	}
	return valid
}

// Legal returns ls as the specification of remote write 1.0 allows it ("Labels"): metric
// names of [a-zA-Z_:][a-zA-Z0-9_:]*, label names of [a-zA-Z_][a-zA-Z0-9_]*, and valid UTF-8,
// which protocol buffers demand of every string. Other runes of a name become underscores,
// as in Prometheus' underscore escaping; if that makes two label names of a series equal,
// their values are joined by ";" in the order of the original names, as the OpenTelemetry
// translation does. A wrong byte of a value becomes U+FFFD. A receiver would refuse the
// samples of such a series for ever; this way they arrive.
func (e *SeriesEncoder) Legal(ls labels.Labels) labels.Labels {
	ok := true
	ls.Range(func(l labels.Label) {
		switch {
		case l.Name == model.MetricNameLabel:
			ok = ok && model.LegacyValidation.IsValidMetricName(l.Value)
		default:
			ok = ok && model.LegacyValidation.IsValidLabelName(l.Name) && utf8.ValidString(l.Value)
		}
	})
	if ok {
		return ls
	}
	values := map[string]string{}
	ls.Range(func(l labels.Label) {
		name, value := l.Name, strings.ToValidUTF8(l.Value, "\uFFFD")
		if name == model.MetricNameLabel {
			value = model.EscapeName(value, model.UnderscoreEscaping)
		} else {
			name = legalLabelName(name)
		}
		if before, twice := values[name]; twice {
			value = before + ";" + value
		}
		values[name] = value
	})
	e.scratch.Reset()
	for name, value := range values {
		e.scratch.Add(name, value)
	}
	e.scratch.Sort()
	return e.scratch.Labels()
}

// legalLabelName is the escaping of a label's name, in which a colon is not allowed.
func legalLabelName(name string) string {
	name = model.EscapeName(name, model.UnderscoreEscaping)
	return strings.ReplaceAll(name, ":", "_")
}
