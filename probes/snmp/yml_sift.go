package snmp

import (
	"bytes"
	"crypto/sha256"
	"iter"
	"regexp"
	"strings"
)

// outline shows where the modules of an snmp.yml are: a published file has 50 modules and 60,000 lines, of which a device needs a few.
type outline struct {
	text  []byte
	names []string // of all modules, in the order of the file
	// starts are the offsets of the modules in text, and the end of the last one.
	starts []int
	// whole means that the lines of text do not show where modules begin. names is then empty.
	whole bool
}

// entryLine matches a key that opens a block, in quotes or plain.
var entryLine = regexp.MustCompile(`^( *)("[^"\\]+"|'[^']+'|[A-Za-z0-9_][^\s:#]*)[ \t]*:[ \t]*(?:#.*)?$`)

// outlineOf finds the modules of a text.
func outlineOf(text []byte) outline {
	whole := outline{text: text, whole: true}
	if refers(text) {
		return whole
	}
	from, to := 0, len(text)
	if at := topKey(text, "modules"); at >= 0 {
		from = at + lineLen(text[at:])
		to = from + topLen(text[from:])
	} else if topKey(text, "auths") >= 0 || topKey(text, "version") >= 0 {
		return whole
	}
	starts, names, ok := entries(text[from:to])
	if !ok {
		return whole
	}
	for i := range starts {
		starts[i] += from
	}
	return outline{text: text, names: names, starts: append(starts, to)}
}

// parts yields the text in parts, and whether want takes them.
func (o *outline) parts(want func(name string) bool) iter.Seq2[[]byte, bool] {
	return func(yield func([]byte, bool) bool) {
		from := 0
		for i, name := range o.names {
			start, end := o.starts[i], o.starts[i+1]
			if want(name) {
				continue
			}
			if !yield(o.text[from:start], true) || !yield(o.text[start:end], false) {
				return
			}
			from = end
		}
		yield(o.text[from:], true)
	}
}

// only returns the text with empty lines in place of the modules that want rejects, so that all other lines keep their numbers.
func (o *outline) only(want func(name string) bool) []byte {
	if o.whole {
		return o.text
	}
	newline := []byte("\n")
	size := 0
	for part, wanted := range o.parts(want) {
		if size += len(part); !wanted {
			size += bytes.Count(part, newline) - len(part)
		}
	}
	kept := make([]byte, 0, size)
	for part, wanted := range o.parts(want) {
		if !wanted {
			part = bytes.Repeat(newline, bytes.Count(part, newline))
		}
		kept = append(kept, part...)
	}
	return kept
}

// digest returns a digest of the lines that are not empty and no comments, without the modules that want rejects.
func (o *outline) digest(want func(name string) bool) (sum [sha256.Size]byte) {
	h := sha256.New()
	for part, wanted := range o.parts(want) {
		if !wanted {
			continue
		}
		for l := range bytes.Lines(part) {
			if !ignored(l) {
				h.Write(bytes.TrimSuffix(l, []byte("\n")))
			}
		}
	}
	h.Sum(sum[:0])
	return sum
}

// refers reports whether a text may have an anchor, an alias or a merge key, by which one module
// may need another's lines. A false positive only costs time.
func refers(text []byte) bool {
	for at := 0; ; at++ {
		i := bytes.IndexAny(text[at:], "&*<")
		if i < 0 {
			return false
		}
		at += i
		if at+1 == len(text) || strings.IndexByte(" \t\r\n,]}", text[at+1]) >= 0 {
			continue
		}
		if text[at] == '<' {
			if text[at+1] == '<' {
				return true
			}
			continue
		}
		before := bytes.TrimRight(text[max(0, at-64):at], " \t")
		if len(before) == 0 || strings.IndexByte(":?,[{-\n", before[len(before)-1]) >= 0 {
			return true
		}
	}
}

// lineLen returns the length of the first line, with its end.
func lineLen(text []byte) int {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// topKey returns the offset of the line of a key at the left margin, -1 if there is none.
func topKey(text []byte, key string) int {
	at := 0
	for l := range bytes.Lines(text) {
		if l[0] != ' ' {
			if m := entryLine.FindSubmatch(bytes.TrimRight(l, "\r\n")); m != nil && unquoted(m[2]) == key {
				return at
			}
		}
		at += len(l)
	}
	return -1
}

// topLen returns the length of the text before the first line that begins at the left margin.
func topLen(text []byte) int {
	at := 0
	for l := range bytes.Lines(text) {
		if !ignored(l) && l[0] != ' ' && l[0] != '\t' {
			break
		}
		at += len(l)
	}
	return at
}

// entries returns the offsets of the lines that open an entry of a mapping in block style, and their keys. ok is
// false if the lines are anything else.
func entries(text []byte) (starts []int, names []string, ok bool) {
	depth, at := -1, 0
	for line := range bytes.Lines(text) {
		l := bytes.TrimRight(line, "\r\n")
		start := at
		at += len(line)
		if ignored(l) || bytes.Equal(l, []byte("---")) && depth < 0 {
			continue
		}
		indent := len(l) - len(bytes.TrimLeft(l, " "))
		if depth < 0 {
			depth = indent
		}
		if indent > depth {
			continue
		}
		m := entryLine.FindSubmatch(l)
		if indent < depth || m == nil {
			return nil, nil, false
		}
		starts, names = append(starts, start), append(names, unquoted(m[2]))
	}
	return starts, names, len(starts) > 0
}

// ignored reports whether a line is empty or a comment.
func ignored(l []byte) bool {
	l = bytes.TrimSpace(l)
	return len(l) == 0 || l[0] == '#'
}

func unquoted(key []byte) string { return strings.Trim(string(key), `"'`) }
