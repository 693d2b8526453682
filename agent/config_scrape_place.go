package agent

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

// scrapeMistake tells one mistake at its place in its file.
func (d *document) scrapeMistake(src scrapeSource, m scrapeMistake) {
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
}

// onLine finds what a mistake below path is about: the key of that name, or the value, on
// its line; without a line, the value or key that its text names, else the whole.
func (d *document) onLine(path string, m scrapeMistake) (at string, line, column int) {
	below := func(p string) bool { return strings.HasPrefix(p, path+".") || p == path }
	type candidate struct {
		path         string
		line, column int
	}
	var keys, values []candidate
	for p, k := range d.keys {
		if below(p) {
			keys = append(keys, candidate{p, k.Line, k.Column})
		}
	}
	for p, n := range d.values {
		if below(p) && n.Kind == yaml.ScalarNode {
			values = append(values, candidate{p, n.Line, n.Column})
		}
	}
	first := func(all []candidate, fits func(candidate) bool) *candidate {
		var best *candidate
		for i, c := range all {
			if fits(c) && (best == nil || c.line < best.line || c.line == best.line && c.column < best.column) {
				best = &all[i]
			}
		}
		return best
	}
	var quoted []string
	for _, q := range quotedValue.FindAllStringSubmatch(m.Text, -1) {
		quoted = append(quoted, q[1])
	}
	if w := wrongInto.FindStringSubmatch(m.Text); w != nil {
		quoted = append(quoted, w[2])
	}
	named := func(c candidate) bool {
		v := d.values[c.path].Value
		if strings.HasSuffix(c.path, ".job_name") {
			return false // which job it is; the mistake is elsewhere
		}
		// As in "unknown unit x in 12x", and as relabelling wraps a regex.
		if v != "" && (strings.HasSuffix(m.Text, " "+v) || strings.Contains(m.Text, "`^(?s:"+v+")$`")) {
			return true
		}
		return v != "" && slices.ContainsFunc(quoted, func(q string) bool { return q == v || len(q) > 9 && strings.HasPrefix(v, strings.TrimSuffix(q, "...")) })
	}
	var found *candidate
	switch {
	case m.Key != "":
		found = first(keys, func(c candidate) bool { return c.line == m.Line && d.keys[c.path].Value == m.Key })
	case m.Line > 0:
		if found = first(values, func(c candidate) bool { return c.line == m.Line && named(c) }); found == nil {
			found = first(keys, func(c candidate) bool { return c.line == m.Line })
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
	// Such as "scrape timeout greater than scrape interval": the key that is named first.
	told := strings.ReplaceAll(m.Text, " ", "_")
	best := len(told)
	for p, k := range d.keys {
		if holder(p, k.Value) != path {
			continue
		}
		if i := strings.Index(told, k.Value); i >= 0 && i < best {
			best, at, line, column = i, p, k.Line, k.Column
		}
	}
	if at == "" {
		line, column = d.placeOf(path)
		at = path
	}
	return at, line, column
}
