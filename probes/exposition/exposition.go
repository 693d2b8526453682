// Package exposition reads Prometheus' text format and OpenMetrics into a round, with
// Prometheus' own parsers.
package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"hwsagent/probes"
)

// The content types of the formats.
const (
	Text        = "text/plain"
	OpenMetrics = "application/openmetrics-text"
)

// Bounds of one text. A series beyond them, as it is written, fails the text before anything is
// made of it.
const (
	maxSeriesBytes = 64 << 10 // of a series' name and labels
	maxLabels      = 128      // of a series
	maxHelpBytes   = 4 << 10  // longer help is cut
)

// ErrTimestamp means that a sample has a timestamp where none may be.
var ErrTimestamp = errors.New("a sample has a timestamp of its own")

// Options say what a text is and may have.
type Options struct {
	// ContentType is that of HTTP; what is not OpenMetrics is read as Text. The protobuf
	// format is refused.
	ContentType string
	// NoTimestamps refuses a text in which a sample has a timestamp. Else they are kept.
	NoTimestamps bool
}

// Parse adds the samples of a text to r, all or, with an error, none. It stops when r is
// full. It keeps no reference to text.
func Parse(text []byte, o Options, r *probes.Round) error {
	before := len(r.Samples())
	if err := parse(text, o, r); err != nil {
		r.Cut(before)
		return err
	}
	return nil
}

func parse(text []byte, o Options, r *probes.Round) error {
	media, _, _ := strings.Cut(o.ContentType, ";")
	switch strings.TrimSpace(media) {
	case OpenMetrics:
		o.ContentType = OpenMetrics
	case "application/vnd.google.protobuf":
		return errors.New("parse exposition: the protobuf format was not asked for")
	default:
		o.ContentType = Text
	}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return fmt.Errorf("parse exposition: there is a zero byte at offset %d, which the parser would take for the end", i)
	}
	p, err := textparse.New(text, o.ContentType, nil, textparse.ParserOptions{OpenMetricsSkipSTSeries: true})
	if err != nil {
		return fmt.Errorf("parse exposition: %w", err)
	}
	in := reader{p: p, o: o, r: r, others: map[string]*probes.Family{}}
	for r.Over() == 0 {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = in.entry(entry)
		}
		if err != nil {
			return fmt.Errorf("parse exposition: %w", err)
		}
	}
	return nil
}

// reader is the state of one text.
type reader struct {
	p textparse.Parser
	o Options
	r *probes.Round

	family *probes.Family            // that the last # line was about
	others map[string]*probes.Family // of samples without one
	labels []string                  // memory of the samples' labels
}

func (in *reader) entry(e textparse.Entry) error {
	switch e {
	case textparse.EntryHelp:
		name, text := in.p.Help()
		in.about(name).Help = string(text[:min(len(text), maxHelpBytes)])
	case textparse.EntryType:
		name, kind := in.p.Type()
		in.about(name).Type = kind
	case textparse.EntryUnit:
		name, unit := in.p.Unit()
		in.about(name).Unit = string(unit)
	case textparse.EntrySeries:
		raw, t, v := in.p.Series()
		s := probes.Sample{Value: v}
		return in.sample(raw, t, &s)
	case textparse.EntryHistogram:
		raw, t, h, fh := in.p.Histogram()
		s := probes.Sample{H: h, FH: fh}
		return in.sample(raw, t, &s)
	}
	return nil
}

// about is the family that a # line names. Each line of another name begins one.
func (in *reader) about(name []byte) *probes.Family {
	if in.family == nil || in.family.Name != string(name) {
		in.family = &probes.Family{Name: string(name)}
	}
	return in.family
}

func (in *reader) sample(raw []byte, t *int64, s *probes.Sample) error {
	if len(raw) > maxSeriesBytes {
		return fmt.Errorf("series %.60q… takes %d bytes, more than %d", raw, len(raw), maxSeriesBytes)
	}
	if t != nil && in.o.NoTimestamps {
		return fmt.Errorf("%w: %.200q", ErrTimestamp, raw)
	}
	if t != nil {
		s.T = *t
	}
	var ls labels.Labels
	in.p.Labels(&ls)
	if ls.Len() > maxLabels {
		return fmt.Errorf("series %.200q has %d labels, more than %d", raw, ls.Len(), maxLabels)
	}
	at := len(in.labels)
	name := ""
	ls.Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			name = l.Value
			return
		}
		in.labels = append(in.labels, l.Name, l.Value)
	})
	s.Labels = in.labels[at:len(in.labels):len(in.labels)]
	s.Family = in.familyOf(name)
	if name != s.Family.Name {
		s.Name = name
	}
	s.ST = in.p.StartTimestamp()
	for {
		var e exemplar.Exemplar
		if !in.p.Exemplar(&e) {
			break
		}
		if !e.HasTs {
			e.Ts = s.T
		}
		s.Exemplars = append(s.Exemplars, e)
	}
	in.r.AddSample(*s)
	return nil
}

// familyOf is the family of a sample: that of the last # line, if the name is one that such a family
// has, or one of its own.
func (in *reader) familyOf(name string) *probes.Family {
	if f := in.family; f != nil {
		if rest, ok := strings.CutPrefix(name, f.Name); ok && isSuffix(f.Type, rest) {
			return f
		}
	}
	f := in.others[name]
	if f == nil {
		f = &probes.Family{Name: name, Type: model.MetricTypeUnknown}
		in.others[name] = f
	}
	return f
}

// isSuffix reports whether samples of a family of that type may have this after its name.
func isSuffix(kind model.MetricType, rest string) bool {
	switch rest {
	case "":
		return true
	case "_bucket", "_gsum", "_gcount":
		return kind == model.MetricTypeHistogram || kind == model.MetricTypeGaugeHistogram
	case "_sum", "_count":
		return kind == model.MetricTypeHistogram || kind == model.MetricTypeSummary
	case "_total":
		return kind == model.MetricTypeCounter
	case "_created":
		return kind == model.MetricTypeCounter || kind == model.MetricTypeHistogram || kind == model.MetricTypeSummary
	case "_info":
		return kind == model.MetricTypeInfo
	}
	return false
}
