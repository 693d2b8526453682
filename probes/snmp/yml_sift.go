package snmp

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// sifted is the text of an snmp.yml without the unwanted modules. Their lines are empty, so all
// other lines keep their numbers: a published file has 50 modules and 60,000 lines, of which a
// device needs a few.
type sifted struct {
	text  []byte
	names []string // of all modules, in the order of the file
	// whole means that the text is unchanged, because its lines do not show where modules begin.
	// names is then empty.
	whole bool
}

// entryLine matches a key that opens a block, in quotes or plain.
var entryLine = regexp.MustCompile(`^( *)("[^"\\]+"|'[^']+'|[A-Za-z0-9_][^\s:#]*)[ \t]*:[ \t]*(?:#.*)?$`)

// sift drops the modules that want rejects.
func sift(text []byte, want func(name string) bool) sifted {
	unsifted := sifted{text: text, whole: true}
	if refers(text) {
		return unsifted
	}
	lines := bytes.Split(text, []byte("\n"))
	from, to := 0, len(lines)
	if i := topKey(lines, "modules"); i >= 0 {
		from, to = i+1, nextTop(lines, i+1)
	} else if topKey(lines, "auths") >= 0 || topKey(lines, "version") >= 0 {
		return unsifted
	}
	starts, names, ok := entries(lines[from:to])
	if !ok {
		return unsifted
	}
	out := slices.Clone(lines)
	for i, at := range starts {
		end := to
		if i+1 < len(starts) {
			end = from + starts[i+1]
		}
		if !want(names[i]) {
			clear(out[from+at : end])
		}
	}
	return sifted{text: bytes.Join(out, []byte("\n")), names: names}
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

// topKey returns the line of a key at the left margin, -1 if there is none.
func topKey(lines [][]byte, key string) int {
	return slices.IndexFunc(lines, func(l []byte) bool {
		if len(l) == 0 || l[0] == ' ' {
			return false
		}
		m := entryLine.FindSubmatch(bytes.TrimRight(l, "\r"))
		return m != nil && unquoted(m[2]) == key
	})
}

// nextTop returns the first line from i on that begins at the left margin.
func nextTop(lines [][]byte, i int) int {
	for ; i < len(lines); i++ {
		if l := lines[i]; !ignored(l) && l[0] != ' ' && l[0] != '\t' {
			return i
		}
	}
	return i
}

// entries returns the lines that open an entry of a mapping in block style, and their keys. ok is
// false if the lines are anything else.
func entries(lines [][]byte) (starts []int, names []string, ok bool) {
	depth := -1
	for i, l := range lines {
		l = bytes.TrimRight(l, "\r")
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
		starts, names = append(starts, i), append(names, unquoted(m[2]))
	}
	return starts, names, len(starts) > 0
}

// ignored reports whether a line is empty or a comment.
func ignored(l []byte) bool {
	l = bytes.TrimSpace(l)
	return len(l) == 0 || l[0] == '#'
}

func unquoted(key []byte) string { return strings.Trim(string(key), `"'`) }
