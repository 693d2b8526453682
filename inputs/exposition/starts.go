package exposition

import (
	"bytes"
	"math"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// createdSuffix ends the name of the line that holds the start timestamp of a metric, in OpenMetrics 1.0.
const createdSuffix = "_created"

// starts is the parser of OpenMetrics 1.0 with a StartTimestamp of its own.
//
// There, the start timestamp of a metric is a line of its own that follows the metric's samples. The
// parser of textparse looks for it from each sample again: that takes time with the square of the
// length, never ends at some malformed lines, and changes what Labels and Series return. Here a second
// parser, the scout, looks for these lines. It only goes forward, so that each line is parsed twice.
type starts struct {
	*textparse.OpenMetricsParser

	body    []byte
	symbols *labels.SymbolTable
	skips   bool // the option OpenMetricsSkipSTSeries: these lines are not entries

	place placeInBody

	scout *scout // nil until the first question
	// The answer that was found last: Prometheus' parser keeps it for the samples of the same metric
	// that follow the line, until it has found nothing for another.
	known      []byte
	knownStart int64

	key []byte // memory
}

func newStarts(p *textparse.OpenMetricsParser, body []byte, symbols *labels.SymbolTable, skips bool) *starts {
	return &starts{OpenMetricsParser: p, body: body, symbols: symbols, skips: skips}
}

// placeInBody is what the entries of a parser have said up to the current one.
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

// StartTimestamp implements [textparse.Parser]. The start timestamp is that of the first _created line
// that follows in the family, if the line is about the same metric.
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
	p     *textparse.OpenMetricsParser // that gives all lines; nil at its end, and if the body has no such line
	skips bool
	place placeInBody // entries are those that the parser ahead of which the scout is gives
	found created
}

// created is a _created line.
type created struct {
	key   []byte // empty if there is none up to the next line that is about a family
	start int64  // milliseconds
	until int    // the entry that is the last one before the line
}

func (s *starts) newScout() *scout {
	sc := &scout{skips: s.skips, found: created{until: -1}}
	if bytes.Contains(s.body, []byte(createdSuffix)) {
		sc.p, _ = textparse.NewOpenMetricsParser(s.body, s.symbols).(*textparse.OpenMetricsParser)
	}
	return sc
}

// after is the first _created line after the entry of that number, which is never less than in the
// call before.
func (sc *scout) after(entry int) created {
	for entry > sc.found.until {
		sc.advance()
	}
	return sc.found
}

// advance goes to the next line that is a _created line or one about a family.
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

// seriesName is the name of a series as it is written, without quotation marks.
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

// appendKey appends what is the same for all samples of a metric: the labels as they are written, but
// for le of a histogram and quantile of a summary, and the name of the family.
func appendKey(key, raw, family []byte, kind model.MetricType) []byte {
	eachPart(raw, func(name, value []byte, isLabel bool) {
		if !isLabel || kind == model.MetricTypeSummary && string(name) == model.QuantileLabel || kind == model.MetricTypeHistogram && string(name) == model.BucketLabel {
			return
		}
		key = append(append(append(append(key, name...), '='), value...), 0)
	})
	return append(append(key, 0), family...)
}

// eachPart calls f for each label of a series that the parser has taken, and, not as a label, for its
// name if that is in the braces. Quotation marks are left out.
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

// part is the string that begins at an offset, with or without quotation marks, and the offset behind it.
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
