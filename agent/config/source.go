package config

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// source returns a line of the file with the position and width of the marker for column, all in characters. It returns no
// line that has a value which must not be shown: file, line, column and key must do then.
func (d *document) source(line, column int) (text string, caret, width int) {
	if !d.mayShow(line) {
		return "", 0, 0
	}
	text, width = strings.TrimRight(d.lines[line-1], "\r"), 1
	for _, at := range d.byLine[line] {
		if at.n.Column == column {
			width = max(1, utf8.RuneCountInString(tokenAt(text, at.n, d.asWritten(at.n))))
		}
	}
	return window(text, column, width)
}

// mayShow reports whether all keys and values on a line may be shown as they are written, by their types. A line of a file
// that cannot be parsed has no known types.
func (d *document) mayShow(line int) bool {
	for _, at := range d.byLine[line] {
		if !d.mayShowScalar(at) {
			return false
		}
	}
	if d.root == nil {
		return false
	}
	// A value that is not shown may continue on this line.
	for before := line - 1; before > 0; before-- {
		if on := d.byLine[before]; len(on) > 0 {
			last := on[len(on)-1]
			return d.mayShowScalar(last) || last.n.Kind == yaml.ScalarNode && strings.Contains(d.lines[before-1], d.asWritten(last.n))
		}
	}
	return true
}

func (d *document) mayShowScalar(at scalarAt) bool {
	if at.key {
		return at.n.Kind == yaml.ScalarNode && !d.hiddenKey(at.path, at.n.Value)
	}
	text := d.asWritten(at.n)
	if text == "" {
		// Nothing is written there, or an alias, an anchor or a tag.
		return at.n.Kind == yaml.ScalarNode && at.n.Anchor == "" && at.n.Style&yaml.TaggedStyle == 0 || d.masked(at.path, "x") == "x"
	}
	return d.masked(at.path, text) == text
}

// tokenAt returns the part of a line in which the scalar n, with that value, is written.
func tokenAt(line string, n *yaml.Node, value string) string {
	rest := line
	for column := n.Column; column > 1 && rest != ""; column-- {
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
	switch {
	case rest == "" || n.Kind != yaml.ScalarNode:
		return ""
	case rest[0] == '"' || rest[0] == '\'':
		for i := 1; i < len(rest); i++ {
			if rest[0] == '"' && rest[i] == '\\' {
				i++
			} else if rest[i] == rest[0] {
				return rest[:i+1]
			}
		}
	case strings.HasPrefix(rest, value) && value != "":
		return value
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return rest[:1] // the "|"; the value is on other lines
	}
	return strings.TrimRight(rest, " \t\r")
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

// asWritten returns a scalar's text in the file, before expansion.
func (d *document) asWritten(n *yaml.Node) string {
	if w, ok := d.written[n]; ok {
		return w
	}
	return n.Value
}
