package convert

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// account knows what became of each value of the input: it is in the result, or a note speaks of it. Values of neither kind get a
// note at the end, so that nothing is lost in silence whatever the converter of a format forgets.
type account struct {
	notes   []Note
	seen    map[Note]bool
	spoken  map[string]bool     // paths of values of which a note speaks; true: with all below
	taken   map[*yaml.Node]bool // values that are in the result in some form
	unknown func(key string) string
}

func newAccount(unknown func(key string) string) *account {
	return &account{notes: []Note{}, seen: map[Note]bool{}, spoken: map[string]bool{}, taken: map[*yaml.Node]bool{}, unknown: unknown}
}

// add adds a note, once.
func (a *account) add(n Note) {
	if !a.seen[n] {
		a.seen[n] = true
		a.notes = append(a.notes, n)
		a.spoken[n.Key] = a.spoken[n.Key] || n.LeftOut
	}
}

// take records that values, with all below, are in the result.
func (a *account) take(values ...*yaml.Node) {
	for _, n := range values {
		if n == nil || a.taken[n] {
			continue
		}
		a.taken[n] = true
		a.take(n.Content...)
	}
}

// lost is a value of which nothing is said.
type lost struct {
	key  *yaml.Node
	path string
	name string
}

// missing returns what is lost at a path. found reports whether the value, or anything below it, is in the result or in a note.
func (a *account) missing(key, v *yaml.Node, path, name string) (all []lost, found bool) {
	own := []lost{{key, path, name}}
	whole, spoken := a.spoken[path]
	switch {
	case whole || a.taken[v]:
		return nil, true
	case len(v.Content) == 0 && spoken:
		return nil, true
	case len(v.Content) == 0:
		return own, false
	}
	found = spoken
	each(v, path, func(k, inner *yaml.Node, at, part string) {
		more, some := a.missing(k, inner, at, part)
		all, found = append(all, more...), found || some
	})
	if !found {
		return own, false
	}
	return all, true
}

// each calls f for each value in a mapping or list, with its path and with the last key in that.
func each(v *yaml.Node, path string, f func(key, value *yaml.Node, path, name string)) {
	if v.Kind == yaml.SequenceNode {
		for i, item := range v.Content {
			f(item, item, at(path, i), "")
		}
		return
	}
	pairs(v, func(key string, k, inner *yaml.Node) {
		where := key
		if path != "" {
			where = path + "." + key
		}
		f(k, inner, where, key)
	})
}

// note records that the value at a path was not carried over. n has the line.
func (c *converter) note(n *yaml.Node, path, format string, args ...any) {
	c.add(Note{File: c.file, Line: lineOf(n), Key: path, Text: fmt.Sprintf(format, args...), LeftOut: true})
}

// remark records that a value was carried over but behaves differently, or what to do beside.
func (c *converter) remark(n *yaml.Node, path, format string, args ...any) {
	c.add(Note{File: c.file, Line: lineOf(n), Key: path, Text: fmt.Sprintf(format, args...)})
}

func lineOf(n *yaml.Node) int {
	if n == nil {
		return 1
	}
	return n.Line
}

// noteRest adds a note for each value of the input that is neither in the result nor in a note.
func (c *converter) noteRest(root *yaml.Node) {
	c.take(c.out)
	each(root, "", func(k, v *yaml.Node, path, name string) {
		all, _ := c.missing(k, v, path, name)
		for _, l := range all {
			c.note(l.key, l.path, "%s", c.unknown(l.name))
		}
	})
}

// text returns the scalar at a path, "" if there is none. The value counts as carried over.
func (c *converter) text(n *yaml.Node, path ...string) string {
	c.take(get(n, path...))
	return text(n, path...)
}

// at returns the path of a list entry.
func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
