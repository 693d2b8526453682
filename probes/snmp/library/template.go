package library

import (
	"errors"
	"strconv"
	"strings"
)

// template is a text with references to a row in braces.
type template struct{ parts []part }

// part is a literal text, or the first of several references that yields a text.
type part struct {
	text string
	refs []ref
}

// ref is one reference: to a column of the same row (3); to a column of another table with the same index
// (1.3.6.1.2.1.47.1.1.1.1.7), with a part of it ([1] for the first number, [2:] for those from the second on, [1:2] for
// the first two, [] for none: the object itself), or with the index that a column of this row holds (…@4); or to the
// index itself (#, #1, #text).
type ref struct {
	column   column
	isIndex  bool
	isText   bool // the index as a text
	noIndex  bool
	from, to int // of the index, from 0; to 0 means its end
	pointer  *column
}

// parseTemplate parses "Fan {2}", "{4|3}", "Slot {#1}".
func parseTemplate(s string) (t template, err error) {
	for s != "" {
		before, rest, ok := strings.Cut(s, "{")
		if before != "" {
			t.parts = append(t.parts, part{text: before})
		}
		if !ok {
			return t, nil
		}
		inner, after, ok := strings.Cut(rest, "}")
		if !ok {
			return t, errors.New("a { has no }")
		}
		var p part
		for word := range strings.SplitSeq(inner, "|") {
			r, err := parseRef(word)
			if err != nil {
				return t, err
			}
			p.refs = append(p.refs, r)
		}
		t.parts, s = append(t.parts, p), after
	}
	return t, nil
}

func parseRef(s string) (r ref, err error) {
	if rest, ok := strings.CutPrefix(s, "#"); ok {
		r.isIndex = true
		switch {
		case rest == "text":
			r.isText = true
		case rest != "":
			n, err := strconv.Atoi(rest)
			if err != nil || n < 1 || n > maxArcs {
				return r, errors.New("after # stands text or the place of a number in the index, from 1 on")
			}
			r.from, r.to = n-1, n
		}
		return r, nil
	}
	if before, pointer, ok := strings.Cut(s, "@"); ok {
		c, err := parseColumn(pointer)
		if err != nil {
			return r, err
		}
		s, r.pointer = before, &c
	}
	if before, rest, ok := strings.Cut(s, "["); ok {
		if err := r.places(rest); err != nil {
			return r, err
		}
		s = before
	}
	r.column, err = parseColumn(s)
	return r, err
}

// places parses the relevant part of the index, after a [.
func (r *ref) places(s string) error {
	s, closed := strings.CutSuffix(s, "]")
	if r.noIndex = s == "" && closed; r.noIndex {
		return nil
	}
	first, last, open := strings.Cut(s, ":")
	from, err := strconv.Atoi(first)
	to := from
	if open && last != "" && err == nil {
		to, err = strconv.Atoi(last)
	}
	if err != nil || !closed || from < 1 || to < from || to > maxArcs {
		return errors.New("brackets hold a place in the index, as [1], [2:] or [1:2], or nothing")
	}
	if r.from, r.to = from-1, to; open && last == "" {
		r.to = 0
	}
	return nil
}

// parseColumn parses the number of a column, or an OID, which begins with 1.
func parseColumn(s string) (column, error) {
	o, err := ParseOID(s)
	if err != nil {
		return column{}, err
	}
	return column{arcs: o, absolute: len(o) > 4 && o[0] == 1 && o[1] == 3}, nil
}

// row is one row of a table under evaluation.
type row struct {
	tree  *Tree
	table *table
	index OID
}

func (r row) at(c column) *Variable { return r.tree.get(c.base(r.table).join(r.index...)) }

// base returns the OID of the column without an index.
func (c column) base(t *table) OID {
	if c.absolute {
		return c.arcs
	}
	return t.entry.join(c.arcs...)
}

// render fills the template. It drops parts without a text and collapses runs of blanks.
func (t template) render(r row) string {
	var b strings.Builder
	for _, p := range t.parts {
		b.WriteString(p.text)
		for _, x := range p.refs {
			if s, _ := x.value(r); s != "" {
				b.WriteString(s)
				break
			}
		}
	}
	return strings.ToValidUTF8(strings.Join(strings.Fields(b.String()), " "), "\uFFFD")
}

// value returns the referenced text; there is false if the device lacks it.
func (x ref) value(r row) (text string, there bool) {
	index := r.index
	if x.noIndex {
		index = nil
	}
	if x.pointer != nil {
		v := r.at(*x.pointer)
		if v == nil || !v.Numeric || v.Number < 0 || v.Number > 1<<32-1 {
			return "", false
		}
		index = OID{uint32(v.Number)}
	}
	to := x.to
	if to == 0 || to > len(index) {
		to = len(index)
	}
	index = index[min(x.from, to):to]
	if x.isText {
		return indexText(index), true
	}
	if x.isIndex {
		return index.String(), true
	}
	if v := r.tree.get(x.column.base(r.table).join(index...)); v != nil {
		return v.text(), true
	}
	return "", false
}

// indexText decodes an index that is a text, with or without its length before it.
func indexText(o OID) string {
	if len(o) > 1 && int(o[0]) == len(o)-1 {
		o = o[1:]
	}
	b := make([]byte, 0, len(o))
	for _, v := range o {
		if v < 0x20 || v > 0x7e {
			return o.String()
		}
		b = append(b, byte(v))
	}
	return string(b)
}
