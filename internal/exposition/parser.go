// Package exposition parses the formats in which programs expose metrics: Prometheus' text
// format, OpenMetrics 1.0 and 2.0, and delimited protobuf. It uses Prometheus' parsers and
// makes them safe for untrusted bodies.
//
// Those parsers trust the body: on some bodies of a few bytes they never return, on others they
// panic, and on others they need time or memory that grows with the square of the length.
// [New] checks a body first, and shields the parsers from calls whose cost has no bound.
package exposition

import (
	"errors"
	"fmt"
	"io"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// ErrBound means that a body exceeds a bound of this package. It may be valid otherwise.
var ErrBound = errors.New("the exposition passes a bound of the parser")

// ErrLabels is the [ErrBound] of a series that has too many labels.
var ErrLabels = fmt.Errorf("%w: a series has too many labels", ErrBound)

// Bounds of a body. They are far above the sizes that instrumented programs need, and far below the
// sizes at which the parsers or the labels library fail.
const (
	// maxRecordBytes bounds a line of text, a metric of a protobuf family, and the name and the help of
	// a family. The log takes no series with longer labels.
	maxRecordBytes = 1 << 20
	// maxLabels bounds the labels of a series.
	maxLabels = 1024
	// maxUnitBytes bounds the unit of a family, which may become a label of each series.
	maxUnitBytes = 256
	// maxConverted bounds the buckets of a classic histogram that is converted to a native one. The
	// conversion takes time with the square of this number.
	maxConverted = 4096
	// maxErrorBytes is the length to which the text of an error is cut: the parsers quote the whole line.
	maxErrorBytes = 512

	// maxExpansion bounds the bytes produced per byte of a line or protobuf family: a value with many buckets becomes
	// as many series, each with all labels. maxExpanded bounds the bytes produced by one value, which are all in
	// memory at once.
	maxExpansion = 512
	maxExpanded  = 16 << 20
)

// New chooses the parser of a body by the content type and the options, as [textparse.New] does. The
// parser returns the same entries as Prometheus' for every body within the bounds of this package, except that blanks
// before a line of the text format are not part of a name, as that format demands. A nil
// parser means that the body cannot be read; the error gives the reason, [ErrBound] if a bound is
// exceeded. If both results are set, the parser is usable and the error is a warning about the content type.
//
// The parser finishes every body in time linear in its length, and never panics. Where Prometheus'
// parser would fail in a call that returns no error, the next call of Next returns the error. After an
// error, Next always returns the same error. The bodies of the text formats must not contain a zero
// byte. Otherwise the methods follow the contract of [textparse.Parser], with two additions:
// StartTimestamp does not change the results of Series and Labels, and may be called with any
// options.
//
// A parser belongs to one goroutine. It keeps body, and may write one byte behind its end if the
// capacity allows.
func New(body []byte, contentType string, st *labels.SymbolTable, o textparse.ParserOptions) (Known, error) {
	if st == nil {
		st = labels.NewSymbolTable()
	}
	withoutNHCB := o
	withoutNHCB.ConvertClassicHistogramsToNHCB = false
	p, warning := textparse.New(body, contentType, st, withoutNHCB)
	var err error
	switch base := p.(type) {
	case nil:
		return nil, warning
	case *textparse.ProtobufParser: // it converts histograms by itself
		if body, err = checkProtobuf(body, o.ConvertClassicHistogramsToNHCB); err == nil {
			p, _ = textparse.New(body, contentType, st, o)
		}
		return guard(p, warning, err)
	case *textparse.OpenMetricsParser:
		err = checkText(body, openMetrics1)
		p = newStarts(base, body, st, o.OpenMetricsSkipSTSeries)
	case *textparse.OpenMetrics2Parser:
		err = checkText(body, openMetrics2)
	default:
		if err = checkText(body, promText); err == nil {
			if plain := unindented(body); len(plain) != len(body) {
				p, _ = textparse.New(plain, contentType, st, withoutNHCB)
				body = plain
			}
		}
		if err == nil && !o.ConvertClassicHistogramsToNHCB && !o.EnableTypeAndUnitLabels {
			p = newKnown(body, st)
		}
	}
	if o.ConvertClassicHistogramsToNHCB {
		p = textparse.NewNHCBParser(&bucketBound{Parser: p}, st, o.KeepClassicOnClassicAndNativeHistograms, o.OpenMetricsSkipSTSeries)
	}
	g, err := guard(p, warning, err)
	if g != nil {
		g.(*guarded).text = body
	}
	return g, err
}

func guard(p textparse.Parser, warning, err error) (Known, error) {
	if err != nil {
		return nil, err
	}
	return &guarded{p: p}, warning
}

// guarded is the outermost parser. It turns a panic into an error, as a last line of defence, and
// keeps the first error.
type guarded struct {
	p    textparse.Parser
	text []byte // the body, if it is text
	err  error  // that Next returned or will return; p is no longer used
}

// Next implements [textparse.Parser].
func (g *guarded) Next() (entry textparse.Entry, err error) {
	if g.err != nil {
		return textparse.EntryInvalid, g.err
	}
	defer func() {
		g.recovered(recover())
		if g.err != nil {
			entry, err = textparse.EntryInvalid, g.err
		}
	}()
	entry, err = g.p.Next()
	switch {
	case errors.Is(err, io.EOF):
		g.err = io.EOF
	case errors.Is(err, ErrBound):
		g.err = err
	case err != nil:
		g.err = errors.New(cut(err.Error()))
		if WindowsLines(g.text) {
			g.err = fmt.Errorf("%w: the text has Windows line ends; write lines that end with a line feed alone", g.err)
		}
	}
	return entry, err
}

// Takes implements [Known].
func (g *guarded) Takes() bool {
	_, takes := g.p.(*known)
	return takes
}

// Take implements [Known].
func (g *guarded) Take(size int, digest uint64, of func(text []byte) uint64) (at *int64, v float64, ok bool) {
	k, takes := g.p.(*known)
	if g.err != nil || !takes {
		return nil, 0, false
	}
	return k.Take(size, digest, of)
}

// recovered stores a panic as the error.
func (g *guarded) recovered(panicked any) {
	if panicked != nil {
		g.err = fmt.Errorf("the parser panicked, this is a mistake of it: %s", cut(fmt.Sprint(panicked)))
	}
}

// Series implements [textparse.Parser].
func (g *guarded) Series() (series []byte, at *int64, v float64) {
	if g.err == nil {
		defer func() { g.recovered(recover()) }()
		return g.p.Series()
	}
	return nil, nil, 0
}

// Histogram implements [textparse.Parser].
func (g *guarded) Histogram() (series []byte, at *int64, h *histogram.Histogram, fh *histogram.FloatHistogram) {
	if g.err == nil {
		defer func() {
			if g.recovered(recover()); g.err != nil {
				h = &histogram.Histogram{} // callers expect one
			}
		}()
		return g.p.Histogram()
	}
	return nil, nil, &histogram.Histogram{}, nil
}

// Help implements [textparse.Parser].
func (g *guarded) Help() (name, text []byte) {
	if g.err == nil {
		defer func() { g.recovered(recover()) }()
		return g.p.Help()
	}
	return nil, nil
}

// Type implements [textparse.Parser].
func (g *guarded) Type() (name []byte, kind model.MetricType) {
	if g.err == nil {
		defer func() { g.recovered(recover()) }()
		return g.p.Type()
	}
	return nil, model.MetricTypeUnknown
}

// Unit implements [textparse.Parser].
func (g *guarded) Unit() (name, unit []byte) {
	if g.err == nil {
		defer func() { g.recovered(recover()) }()
		return g.p.Unit()
	}
	return nil, nil
}

// Comment implements [textparse.Parser].
func (g *guarded) Comment() []byte {
	if g.err == nil {
		defer func() { g.recovered(recover()) }()
		return g.p.Comment()
	}
	return nil
}

// Labels implements [textparse.Parser].
func (g *guarded) Labels(l *labels.Labels) {
	if g.err == nil {
		defer func() { g.recovered(recover()) }()
		g.p.Labels(l)
		return
	}
	*l = labels.EmptyLabels()
}

// Exemplar implements [textparse.Parser].
func (g *guarded) Exemplar(e *exemplar.Exemplar) bool {
	if g.err == nil {
		defer func() { g.recovered(recover()) }()
		return g.p.Exemplar(e)
	}
	return false
}

// StartTimestamp implements [textparse.Parser].
func (g *guarded) StartTimestamp() int64 {
	if g.err == nil {
		defer func() { g.recovered(recover()) }()
		return g.p.StartTimestamp()
	}
	return 0
}

// cut shortens the text of an error.
func cut(s string) string {
	if len(s) <= maxErrorBytes {
		return s
	}
	return s[:maxErrorBytes] + "…"
}
