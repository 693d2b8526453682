package config

import (
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"hwsagent/internal/redact"
)

// source returns a line of the file without its secrets, and the position and width of the marker for column, all in
// characters.
func (d *document) source(line, column int) (text string, caret, width int) {
	text = strings.TrimRight(d.lines[line-1], "\r")
	caret, width = column, 1
	if d.root == nil {
		text, _ = d.rawSource(line)
		return window(text, min(caret, utf8.RuneCountInString(text)+1), width)
	}
	if d.inBlock(line) {
		return "", 0, 0
	}
	type span struct { // of a scalar that is not shown
		start, end int // in bytes of text
		with       string
	}
	var spans []span
	for _, at := range d.byLine[line] {
		n := at.n
		start := byteOffset(text, n.Column)
		end := scalarEnd(text, start, n, d.asWritten(n))
		raw := text[start:end]
		if n.Column == column {
			width = utf8.RuneCountInString(raw)
		}
		m := d.shownScalar(at)
		if from := withProperties(text, start); !at.key && (from < start || start < end && (text[start] == '&' || text[start] == '!')) && d.masked(at.path, "x") == hidden {
			start, m = from, hidden
		}
		// A key without a value has nothing to hide, and the text after it belongs to something else.
		if start < end && m != d.asWritten(n) {
			if raw != "" && (raw[0] == '"' || raw[0] == '\'') {
				m = raw[:1] + m + raw[:1]
			}
			spans = append(spans, span{start, end, m})
		}
	}
	if p, ok := d.keysAt[place{line, column}]; ok {
		width = utf8.RuneCountInString(d.keys[p].Value)
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].start > spans[j].start })
	at := byteOffset(text, column)
	shown := len(text)
	for _, s := range spans {
		// The next scalar begins at the latest where this one ends, whatever the tree says.
		s.end = min(s.end, shown)
		shown = s.start
		grown := utf8.RuneCountInString(s.with) - utf8.RuneCountInString(text[s.start:s.end])
		switch {
		case s.start == at:
			width += grown
		case s.start < at:
			caret += grown
		}
		text = text[:s.start] + s.with + text[s.end:]
	}
	return window(redact.Text(text), caret, max(1, width))
}

// shownScalar returns a scalar as it is written in the file, in the form that may be shown.
func (d *document) shownScalar(at scalarAt) string {
	text := d.asWritten(at.n)
	if !at.key {
		return d.masked(at.path, text)
	}
	if d.hiddenKey(at.path, text) {
		return hidden
	}
	return text
}

// withProperties returns where the tag or anchor begins that belongs to the token at start.
func withProperties(text string, start int) int {
	for {
		before := strings.TrimRight(text[:start], " ")
		i := strings.LastIndexAny(before, " \t{[,") + 1
		if i == len(before) || before[i] != '&' && before[i] != '!' {
			return start
		}
		start = i
	}
}

// widest bounds how much of a line is shown, in characters.
const widest = 160

// window cuts a long line to the part around the marker.
func window(text string, caret, width int) (string, int, int) {
	runes := []rune(text)
	if len(runes) <= widest {
		return text, caret, width
	}
	from := max(0, min(caret-widest/2, len(runes)-widest))
	runes = runes[from:min(len(runes), from+widest)]
	caret -= from
	if from > 0 {
		runes[0] = '…'
	}
	return string(runes), caret, min(width, max(1, widest+1-caret))
}

// inBlock reports whether line continues a secret of several lines, such as a key in PEM, which is never shown.
func (d *document) inBlock(line int) bool {
	nearest := ""
	from := 0
	for at, path := range d.valuesAt {
		if at.line <= line && at.line >= from && d.values[path].Kind == yaml.ScalarNode {
			nearest, from = path, at.line
		}
	}
	for at := range d.keysAt {
		if at.line == line {
			return false
		}
	}
	return from > 0 && from < line && d.masked(nearest, "x") == hidden
}

// asWritten returns a scalar's text in the file, before expansion.
func (d *document) asWritten(n *yaml.Node) string {
	if w, ok := d.written[n]; ok {
		return w
	}
	return n.Value
}

// byteOffset returns the byte offset of a column, counted in characters from 1.
func byteOffset(s string, column int) int {
	for i := range s {
		if column--; column < 1 {
			return i
		}
	}
	return len(s)
}

// scalarEnd returns where the scalar that begins at start ends on its line.
func scalarEnd(text string, start int, n *yaml.Node, value string) int {
	rest := text[start:]
	switch {
	case rest == "":
		return start
	case rest[0] == '"' || rest[0] == '\'':
		for i := 1; i < len(rest); i++ {
			if rest[0] == '"' && rest[i] == '\\' {
				i++
			} else if rest[i] == rest[0] {
				return start + i + 1
			}
		}
	case strings.HasPrefix(rest, value) && value != "":
		return start + len(value)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return start + 1 // the "|"; the value is on other lines
	}
	return start + len(strings.TrimRight(rest, " \t\r"))
}
