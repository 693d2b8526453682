// Package exposition reads Prometheus' text format and OpenMetrics into a round.
package exposition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/internal/exposition"
	"hwsagent/probes"
)

// Bounds of one text. A series beyond them fails the text.
const (
	maxSeriesBytes = 64 << 10 // of a series' name and labels
	maxLabels      = 128      // of a series
	maxHelpBytes   = 4 << 10  // longer help is cut
)

// How many names and values of labels one allocation has room for: the first has room for
// firstPiece, each further one for twice as many, up to lastPiece.
const (
	firstPiece = 64
	lastPiece  = 4096
)

// ErrTimestamp means that a sample has a timestamp where none may be.
var ErrTimestamp = errors.New("a sample has a timestamp of its own")

// errOver ends the reading when the round is full.
var errOver = errors.New("the round is full")

// Options say what a text is and may have.
type Options struct {
	// ContentType is that of HTTP. Every type but that of OpenMetrics is read as the text format; the
	// protobuf format is refused.
	ContentType string
	// NoTimestamps refuses a text in which a sample has a timestamp. Otherwise they are kept.
	NoTimestamps bool
}

// Parse adds all samples of a text to r, or, with an error, none. It stops when r is full, and with an
// error when ctx ends. It keeps no reference to text.
func Parse(ctx context.Context, text []byte, o Options, r *probes.Round) error {
	contentType := exposition.Text
	media, _, _ := strings.Cut(o.ContentType, ";")
	switch strings.TrimSpace(media) {
	case "application/openmetrics-text":
		contentType = exposition.OpenMetrics
	case "application/vnd.google.protobuf":
		return errors.New("read the exposition: it is in the protobuf format, which was not asked for")
	}
	before := len(r.Samples())
	in := reader{o: o, r: r, others: map[string]*probes.Family{}}
	err := exposition.Each(ctx, text, contentType, in.sample)
	if err == nil || errors.Is(err, errOver) {
		return nil
	}
	r.Cut(before)
	return err
}

// reader is the state of one text.
type reader struct {
	o Options
	r *probes.Round

	family *probes.Family            // of the sample before, if the text describes it
	others map[string]*probes.Family // that the text does not describe
	// piece is the memory for the labels of the next samples. It is never grown: growing would copy
	// labels that samples already hold, and keep both copies in memory.
	piece []string
}

// sample adds a sample to the round.
func (in *reader) sample(s *exposition.Sample) error {
	switch {
	case in.r.Over() > 0:
		return errOver
	case s.Labels.ByteSize() > maxSeriesBytes:
		return fmt.Errorf("series %.60s… takes %d bytes, more than %d", s.Labels.Get(model.MetricNameLabel), s.Labels.ByteSize(), maxSeriesBytes)
	case s.Labels.Len() > maxLabels:
		return fmt.Errorf("series %.200s has %d labels, more than %d", s.Labels, s.Labels.Len(), maxLabels)
	case s.Timed && in.o.NoTimestamps:
		return fmt.Errorf("%w: %.200s", ErrTimestamp, s.Labels)
	}
	name, at := "", in.room(2*s.Labels.Len())
	s.Labels.Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			name = l.Value
			return
		}
		in.piece = append(in.piece, l.Name, l.Value)
	})
	one := probes.Sample{
		Family: in.familyOf(s, name), Labels: in.piece[at:len(in.piece):len(in.piece)],
		Value: s.V, ST: s.ST, T: s.T, Exemplars: slices.Clone(s.Exemplars),
	}
	if name != one.Family.Name {
		one.Name = name
	}
	for i, e := range one.Exemplars {
		if !e.HasTs {
			one.Exemplars[i].Ts = s.T
		}
	}
	in.r.AddSample(one)
	return nil
}

// room makes room for n more strings in the piece, and returns where they begin.
func (in *reader) room(n int) int {
	if cap(in.piece)-len(in.piece) < n {
		in.piece = make([]string, 0, max(n, min(2*cap(in.piece), lastPiece), firstPiece))
	}
	return len(in.piece)
}

// familyOf is the family of a sample: one that the text describes, or one of its own name.
func (in *reader) familyOf(s *exposition.Sample, name string) *probes.Family {
	if s.Family == "" {
		if in.others[name] == nil {
			in.others[name] = &probes.Family{Name: name, Type: model.MetricTypeUnknown}
		}
		return in.others[name]
	}
	help := s.Meta.Help
	if len(help) > maxHelpBytes {
		help = strings.ToValidUTF8(help[:maxHelpBytes], "") // the last character may be cut in two
	}
	if f := in.family; f != nil && f.Name == s.Family && f.Type == s.Meta.Type && f.Help == help && f.Unit == s.Meta.Unit {
		return f
	}
	in.family = &probes.Family{Name: s.Family, Help: help, Type: s.Meta.Type, Unit: s.Meta.Unit}
	return in.family
}
