package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// scrapeMistake is a mistake that the scraper found.
type scrapeMistake struct {
	Entry     int // -1: global
	Line      int
	Key, Text string
}

var (
	wrongInto   = regexp.MustCompile("(?s)^cannot unmarshal (!!\\w+)(?: `(.*)`)? into (.+)$")
	quotedValue = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
)

// scrapeMistake reports one mistake at its place in its file, and returns the path of that place.
func (d *document) scrapeMistake(src scrapeSource, m scrapeMistake) (path string) {
	in, path := d, "global"
	if m.Entry >= 0 {
		in, path = src.Entries[m.Entry].entry.in, src.Entries[m.Entry].entry.path
	}
	at, line, column := in.onLine(path, m)
	switch {
	case m.Key != "":
		parent := holder(at, m.Key)
		in.add(line, column, parent, fmt.Sprintf("unknown key %q", m.Key), in.hintForKey(parent, m.Key))
	case wrongInto.MatchString(m.Text):
		in.addValueError(place{line, column}, at, strings.Replace(m.Text, "unmarshal", "construct", 1))
	case in.notURL(at, m.Text):
		in.add(line, column, at, "not a URL", "write it like https://host:port/path")
	default:
		hint := ""
		if n := in.value(at); n != nil && n.Kind == yaml.ScalarNode && strings.Contains(m.Text, "duration") && strings.Contains(m.Text, n.Value) {
			hint = durationHint(n.Value)
		}
		in.add(line, column, at, m.Text, hint)
	}
	return at
}

// spot is a key or a value in a document, and where it begins.
type spot struct {
	path         string
	line, column int
}

// onLine finds the place of a mistake below path: with a line, the key of that name on it, or the value; without a
// line, the value or key that its text names, or else the whole.
func (d *document) onLine(path string, m scrapeMistake) (at string, line, column int) {
	keys, values := d.placesBelow(path)
	quoted := quotedIn(m.Text)
	named := func(p spot) bool {
		return !strings.HasSuffix(p.path, ".job_name") && m.names(d.values[p.path].Value, quoted) // job_name only identifies the job; the mistake is elsewhere
	}
	var found *spot
	switch {
	case m.Key != "":
		found = first(keys, func(p spot) bool { return p.line == m.Line && d.keys[p.path].Value == m.Key })
	case m.Line > 0:
		if found = first(values, func(p spot) bool { return p.line == m.Line && named(p) }); found == nil {
			found = first(keys, func(p spot) bool { return p.line == m.Line })
		}
	default:
		found = first(values, named)
	}
	switch {
	case found != nil:
		return found.path, found.line, found.column
	case m.Line > 0:
		return path, m.Line, 1
	}
	return d.keyNamedFirst(path, m.Text)
}

// placesBelow returns the keys and scalar values at path and below it, in any order.
func (d *document) placesBelow(path string) (keys, values []spot) {
	below := func(p string) bool { return strings.HasPrefix(p, path+".") || p == path }
	for p, k := range d.keys {
		if below(p) {
			keys = append(keys, spot{p, k.Line, k.Column})
		}
	}
	for p, n := range d.values {
		if below(p) && n.Kind == yaml.ScalarNode {
			values = append(values, spot{p, n.Line, n.Column})
		}
	}
	return keys, values
}

// first returns the earliest spot that fits, or nil.
func first(all []spot, fits func(spot) bool) *spot {
	var best *spot
	for i, p := range all {
		if fits(p) && (best == nil || p.line < best.line || p.line == best.line && p.column < best.column) {
			best = &all[i]
		}
	}
	return best
}

// quotedIn returns the values that the text of a mistake quotes, or says that it could not parse.
func quotedIn(text string) (quoted []string) {
	for _, q := range quotedValue.FindAllStringSubmatch(text, -1) {
		quoted = append(quoted, q[1])
	}
	if w := wrongInto.FindStringSubmatch(text); w != nil {
		quoted = append(quoted, w[2])
	}
	return quoted
}

// names reports whether the text of the mistake, in which these values are quoted, names the value v.
func (m scrapeMistake) names(v string, quoted []string) bool {
	if v == "" {
		return false
	}
	// As in "unknown unit x in 12x", and in the form in which relabelling wraps a regex.
	if strings.HasSuffix(m.Text, " "+v) || strings.Contains(m.Text, "`^(?s:"+v+")$`") {
		return true
	}
	return slices.ContainsFunc(quoted, func(q string) bool { return q == v || len(q) > 9 && strings.HasPrefix(v, strings.TrimSuffix(q, "...")) })
}

// keyNamedFirst returns the first key of path, or below its keys, that a text such as "scrape timeout greater than
// scrape interval" names; path itself if it names none.
func (d *document) keyNamedFirst(path, text string) (at string, line, column int) {
	words := "_" + notInKeys.ReplaceAllString(strings.ReplaceAll(text, " ", "_"), "_") + "_"
	for _, deep := range []bool{false, true} {
		var best spot
		first := len(words)
		for p, k := range d.keys {
			if !strings.HasPrefix(p, path+".") || deep == (holder(p, k.Value) == path) {
				continue
			}
			i := strings.Index(words, k.Value)
			if deep {
				i = strings.Index(words, "_"+k.Value+"_")
			}
			if i >= 0 && (i < first || i == first && p < best.path) {
				first, best = i, spot{p, k.Line, k.Column}
			}
		}
		if best.path != "" {
			return best.path, best.line, best.column
		}
	}
	line, column = d.placeOf(path)
	return path, line, column
}

// notInKeys are the characters that no key has.
var notInKeys = regexp.MustCompile(`[^a-z0-9_]+`)
