package exposition

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
)

// Known is a parser that can skip parsing a line whose series the caller knows. [New] returns a Known; for formats
// other than the text format, its Take never succeeds.
type Known interface {
	textparse.Parser
	// Takes reports whether the body is in the text format, so that Take can succeed.
	Takes() bool
	// Take reads the next line if it shows a known series: the first size bytes are the text of the series, whose digest
	// by the function of must match, and only a value and optionally a time in milliseconds may follow. On success Take
	// consumes the line, and the next call of Next or Take reads the line after it; until then only Labels, Exemplar and
	// StartTimestamp may be called, and the last two return nothing. Otherwise Take consumes nothing. The text must come
	// from Series, called while Takes was true. at is valid until the next call.
	Take(size int, digest uint64, of func(text []byte) uint64) (at *int64, v float64, ok bool)
}

// known is a parser of the text format that does not parse the text of series that the caller knows. It leaves lines
// that it is unsure of to Prometheus' parser, which is restarted behind the lines taken.
type known struct {
	textparse.Parser // of the body from some line on
	body             []byte
	symbols          *labels.SymbolTable
	at               int  // offset of the next line; -1 if unknown
	taken            int  // offset of the line that Take consumed
	ahead            bool // known has read lines that Parser has not
	scaled           bool // the labels of a line depend on the family's type, which a restarted parser does not know
	stamp            int64

	about *description // of the family, if known itself read the line, not Parser
	own   description
}

// description is what a line says about a family: its help or its type.
type description struct {
	name, help []byte
	kind       model.MetricType
}

func newKnown(body []byte, symbols *labels.SymbolTable) *known {
	if cap(body) == len(body) {
		body = append(body, '\n')[:len(body)] // each parser appends a newline, which must not copy the body
	}
	return &known{Parser: textparse.NewPromParser(body, symbols, false), body: body, symbols: symbols}
}

// Next implements [textparse.Parser].
func (k *known) Next() (textparse.Entry, error) {
	if k.about = nil; k.ahead {
		if entry, ok := k.describe(); ok {
			return entry, nil
		}
		k.Parser, k.ahead = textparse.NewPromParser(k.body[k.at:], k.symbols, false), false
	}
	k.at = -1
	entry, err := k.Parser.Next()
	if err != nil {
		return entry, err
	}
	var part []byte // of the line, or of its beginning if a name in it has line breaks
	switch entry {
	case textparse.EntrySeries:
		part, _, _ = k.Parser.Series()
	case textparse.EntryHelp:
		part, _ = k.Parser.Help()
	case textparse.EntryType:
		var kind model.MetricType
		part, kind = k.Parser.Type()
		k.scaled = kind == model.MetricTypeHistogram || kind == model.MetricTypeSummary
	default:
		return entry, nil
	}
	// part is a slice of body, or of the same array: its capacity gives its offset.
	behind := cap(k.body) - cap(part) + len(part)
	if n := bytes.IndexByte(k.body[min(behind, len(k.body)):], '\n'); n >= 0 {
		k.at = behind + n + 1
	}
	return entry, nil
}

// describe reads the next line if it is the help or the type of a family in the form that programs usually write: a
// restarted parser for each family of a page would allocate a kilobyte. It leaves other lines to the parser, and the types
// that change how the parser reads labels.
func (k *known) describe() (entry textparse.Entry, ok bool) {
	line, _, ended := bytes.Cut(k.body[k.at:], []byte{'\n'})
	rest, isHelp := bytes.CutPrefix(line, []byte("# HELP "))
	rest, isType := bytes.CutPrefix(rest, []byte("# TYPE "))
	name, text, _ := bytes.Cut(rest, []byte{' '})
	if !ended || isHelp == isType || !legacyName(name) || len(text) == 0 || text[0] == ' ' || text[0] == '\t' {
		return textparse.EntryInvalid, false
	}
	k.own = description{name: name, help: text}
	if entry = textparse.EntryHelp; isHelp {
		ok = bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text)
	} else {
		entry = textparse.EntryType
		k.own.kind, ok = typeOf(text)
	}
	if ok {
		k.about, k.at = &k.own, k.at+len(line)+1
	}
	return entry, ok
}

// legacyName reports whether a name of a metric needs no quotation marks.
func legacyName(name []byte) bool {
	for i, c := range name {
		if !isNameByte(c) || i == 0 && '0' <= c && c <= '9' {
			return false
		}
	}
	return len(name) > 0
}

// typeOf returns the type with that name in the text format, unless series of that type have labels that are numbers.
func typeOf(text []byte) (kind model.MetricType, ok bool) {
	switch string(text) {
	case "counter":
		return model.MetricTypeCounter, true
	case "gauge":
		return model.MetricTypeGauge, true
	case "untyped":
		return model.MetricTypeUnknown, true
	}
	return "", false
}

// Help implements [textparse.Parser].
func (k *known) Help() (name, text []byte) {
	if k.about != nil {
		return k.about.name, k.about.help
	}
	return k.Parser.Help()
}

// Type implements [textparse.Parser].
func (k *known) Type() (name []byte, kind model.MetricType) {
	if k.about != nil {
		return k.about.name, k.about.kind
	}
	return k.Parser.Type()
}

// Labels implements [textparse.Parser].
func (k *known) Labels(l *labels.Labels) {
	p := k.Parser
	if k.ahead {
		p = textparse.NewPromParser(k.body[k.taken:k.at:k.at], k.symbols, false)
		_, _ = p.Next() // the line is good
	}
	p.Labels(l)
}

// Take implements [Known].
func (k *known) Take(size int, digest uint64, of func(text []byte) uint64) (at *int64, v float64, ok bool) {
	if k.at < 0 || k.scaled || size+1 >= len(k.body)-k.at {
		return nil, 0, false
	}
	rest := k.body[k.at:]
	if rest[size] != ' ' || of(rest[:size]) != digest {
		return nil, 0, false
	}
	n := bytes.IndexByte(rest[size+1:], '\n')
	if n < 0 {
		return nil, 0, false
	}
	number, stamp, timed := bytes.Cut(rest[size+1:size+1+n], []byte{' '})
	if v, ok = readValue(number); !ok {
		return nil, 0, false
	}
	if timed {
		if k.stamp, ok = readStamp(stamp); !ok {
			return nil, 0, false
		}
		at = &k.stamp
	}
	k.taken, k.at = k.at, k.at+size+1+n+1
	k.ahead = true
	return at, v, true
}

// readValue reads a value of the text format. It leaves unusual values to the parser.
func readValue(text []byte) (v float64, ok bool) {
	if v, ok = readWhole(text); ok {
		return v, true
	}
	if bytes.ContainsAny(text, "pPxX_") {
		return 0, false // strconv would accept more than the text format
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if math.IsNaN(v) {
		v = math.Float64frombits(value.NormalNaN)
	}
	return v, err == nil
}

// readWhole reads a value of digits only, as many are, if a float64 has it exactly.
func readWhole(text []byte) (v float64, ok bool) {
	const exact = 15 // digits
	if len(text) == 0 || len(text) > exact {
		return 0, false
	}
	n := int64(0)
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return float64(n), true
}

// readStamp reads a timestamp of digits only. It leaves other forms to the parser.
func readStamp(text []byte) (ms int64, ok bool) {
	if len(text) == 0 || text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	ms, err := strconv.ParseInt(string(text), 10, 64)
	return ms, err == nil
}
