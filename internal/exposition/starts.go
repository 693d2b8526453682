package exposition

import (
	"bytes"
	"math"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// createdSuffix ends the name of a line that holds the start timestamp of a metric, in OpenMetrics 1.0.
const createdSuffix = "_created"

// starts is the parser of OpenMetrics 1.0 with its own StartTimestamp.
//
// In that format the start timestamp of a metric is a separate line behind the metric's samples. The
// parser of textparse searches for it again from each sample: that takes time with the square of the
// length, never ends on some malformed lines, and changes the results of Labels and Series. Here a second
// parser, the scout, finds these lines. It only moves forward, so each line is parsed twice.
type starts struct {
	*textparse.OpenMetricsParser

	body    []byte
	symbols *labels.SymbolTable
	skips   bool // the option OpenMetricsSkipSTSeries: these lines are not entries

	place placeInBody

	scout *scout // nil until first needed
	// The answer found last. Prometheus' parser keeps it for samples of the same metric behind the line,
	// until a search for another metric finds nothing.
	known      []byte
	knownStart int64

	key []byte // reused memory
}

func newStarts(p *textparse.OpenMetricsParser, body []byte, symbols *labels.SymbolTable, skips bool) *starts {
	return &starts{OpenMetricsParser: p, body: body, symbols: symbols, skips: skips}
}

// placeInBody is the state that the entries of a parser have established so far.
type placeInBody struct {
	entries   int // that Next returned
	kind      model.MetricType
	nameBytes int // of the name in the last line about a family
}

func (at *placeInBody) moved(p *textparse.OpenMetricsParser, e textparse.Entry) {
	at.entries++
	var name []byte
	switch e {
	case textparse.EntryType:
		name, at.kind = p.Type()
	case textparse.EntryHelp:
		name, _ = p.Help()
	case textparse.EntryUnit:
		name, _ = p.Unit()
	default:
		return
	}
	at.nameBytes = len(name)
}

// hasStart reports whether the metrics of the current family may have a start timestamp.
func (at *placeInBody) hasStart() bool {
	return at.kind == model.MetricTypeCounter || at.kind == model.MetricTypeSummary || at.kind == model.MetricTypeHistogram
}

// Next implements [textparse.Parser].
func (s *starts) Next() (textparse.Entry, error) {
	e, err := s.OpenMetricsParser.Next()
	if err == nil {
		s.place.moved(s.OpenMetricsParser, e)
	}
	return e, err
}

// StartTimestamp implements [textparse.Parser]. It returns the value of the first _created line that
// follows in the family, if that line is about the same metric.
func (s *starts) StartTimestamp() int64 {
	if !s.place.hasStart() {
		s.known = s.known[:0]
		return 0
	}
	if s.scout == nil {
		s.scout = s.newScout()
	}
	raw, _, _ := s.Series()
	name := seriesName(raw)
	if s.place.nameBytes > len(name) {
		s.known = s.known[:0]
		return 0
	}
	s.key = appendKey(s.key[:0], raw, name[:s.place.nameBytes], s.place.kind)
	if s.knownStart > 0 && bytes.Equal(s.key, s.known) {
		return s.knownStart
	}
	found := s.scout.after(s.place.entries)
	if !bytes.Equal(s.key, found.key) {
		s.known = s.known[:0]
		return 0
	}
	s.known, s.knownStart = append(s.known[:0], s.key...), found.start
	return found.start
}

// scout finds the _created lines ahead of a [starts].
type scout struct {
	p     *textparse.OpenMetricsParser // returns all lines; nil at its end, and if the body has no such line
	skips bool
	place placeInBody // entries counts as the parser does that the scout is ahead of
	found created
}

// created is a _created line.
type created struct {
	key   []byte // empty if there is none before the next line about a family
	start int64  // milliseconds
	until int    // the last entry before the line
}

func (s *starts) newScout() *scout {
	sc := &scout{skips: s.skips, found: created{until: -1}}
	if bytes.Contains(s.body, []byte(createdSuffix)) {
		sc.p, _ = textparse.NewOpenMetricsParser(s.body, s.symbols).(*textparse.OpenMetricsParser)
	}
	return sc
}

// after returns the first _created line after the entry of that number, which must not decrease
// between calls.
func (sc *scout) after(entry int) created {
	for entry > sc.found.until {
		sc.advance()
	}
	return sc.found
}

// advance moves to the next _created line or line about a family.
func (sc *scout) advance() {
	for sc.p != nil {
		e, err := sc.p.Next()
		if err != nil {
			break
		}
		if e != textparse.EntrySeries {
			sc.place.moved(sc.p, e)
			sc.found = created{key: sc.found.key[:0], until: sc.place.entries - 1}
			return
		}
		raw, _, v := sc.p.Series()
		name, is := bytes.CutSuffix(seriesName(raw), []byte(createdSuffix))
		if !is || !sc.place.hasStart() {
			sc.place.entries++
			continue
		}
		sc.found = created{key: appendKey(sc.found.key[:0], raw, name, sc.place.kind), start: int64(v * 1000.0), until: sc.place.entries}
		if !sc.skips {
			sc.place.entries++
		}
		return
	}
	sc.p, sc.found = nil, created{until: math.MaxInt}
}

// seriesName returns the name of a series as written, without quotation marks.
func seriesName(raw []byte) []byte {
	if i := bytes.IndexByte(raw, '{'); i > 0 {
		return raw[:i]
	} else if i < 0 {
		return raw
	}
	var name []byte
	eachPart(raw, func(left, right []byte, isLabel bool) {
		if !isLabel {
			name = left
		}
	})
	return name
}

// appendKey appends the part that all samples of a metric share: the labels as written, except le of a
// histogram and quantile of a summary, and the name of the family.
func appendKey(key, raw, family []byte, kind model.MetricType) []byte {
	eachPart(raw, func(name, value []byte, isLabel bool) {
		if !isLabel || kind == model.MetricTypeSummary && string(name) == model.QuantileLabel || kind == model.MetricTypeHistogram && string(name) == model.BucketLabel {
			return
		}
		key = append(append(append(append(key, name...), '='), value...), 0)
	})
	return append(append(key, 0), family...)
}

// eachPart calls f for each label of a series that the parser has accepted, and for its name (isLabel
// false) if that is inside the braces. Quotation marks are removed.
func eachPart(raw []byte, f func(left, right []byte, isLabel bool)) {
	at := bytes.IndexByte(raw, '{') + 1
	for at > 0 && at < len(raw) && raw[at] != '}' {
		left, next := part(raw, at)
		if next < len(raw) && raw[next] == '=' {
			var right []byte
			right, next = part(raw, next+1)
			f(left, right, true)
		} else {
			f(left, nil, false)
		}
		at = next
		if at < len(raw) && raw[at] == ',' {
			at++
		}
	}
}

// part returns the string at an offset, with or without quotation marks, and the offset behind it.
func part(raw []byte, at int) (text []byte, next int) {
	if at >= len(raw) {
		return nil, len(raw)
	}
	if raw[at] != '"' {
		n := bytes.IndexAny(raw[at:], "=,}")
		if n < 0 {
			n = len(raw) - at
		}
		return raw[at : at+n], at + max(n, 1)
	}
	end := at + 1
	for end < len(raw) && raw[end] != '"' {
		if raw[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(raw))
	return raw[at+1 : end], min(end+1, len(raw))
}
