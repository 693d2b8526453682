package imports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"hwsagent/internal/text"
)

// Result holds the definitions of an import, and the entries that it could not convert.
type Result struct {
	Definitions int    `json:"definitions"`
	Values      int    `json:"values"` // readings, limits and states
	Left        int    `json:"left"`   // entries not converted
	Files       []File `json:"files"`  // in the order read

	texts []Text
}

// Text is a file to write.
type Text struct {
	Name string
	Text []byte
}

// Texts returns the files of definitions, in order.
func (r *Result) Texts() []Text { return r.texts }

// File is the result for one file.
type File struct {
	File       string `json:"file"`
	Definition string `json:"definition,omitempty"` // "" if no part of it was converted
	Values     int    `json:"values"`
	Left       []Left `json:"left,omitempty"` // most first
}

// Left counts the entries that were not converted, or only in part, for one reason.
type Left struct {
	Reason   string   `json:"reason"`
	Count    int      `json:"count"`
	Examples []string `json:"examples"`
}

const maxExamples = 3

// leave counts one entry.
func (f *File) leave(reason, example string) {
	i := slices.IndexFunc(f.Left, func(l Left) bool { return l.Reason == reason })
	if i < 0 {
		i = len(f.Left)
		f.Left = append(f.Left, Left{Reason: reason})
	}
	l := &f.Left[i]
	if l.Count++; len(l.Examples) < maxExamples && example != "" {
		l.Examples = append(l.Examples, example[:min(len(example), 200)])
	}
}

// add adds a file with its definition, which is nil if it has no content.
func (r *Result) add(f File, d *definition, source string) {
	if d != nil {
		if written, err := d.text(source); err != nil {
			f.leave(text.OneLine(err.Error()), "")
			f.Values = 0
		} else if r.has(d.Name) {
			f.leave("another file is of the same system", d.Name)
			f.Values = 0
		} else {
			f.Definition = d.Name
			r.Definitions++
			r.Values += f.Values
			r.texts = append(r.texts, Text{d.Name + ".yaml", written})
		}
	}
	slices.SortStableFunc(f.Left, func(a, b Left) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Reason, b.Reason)) })
	for _, l := range f.Left {
		r.Left += l.Count
	}
	r.Files = append(r.Files, f)
}

// has reports whether there is a definition of that name.
func (r *Result) has(name string) bool {
	return slices.ContainsFunc(r.texts, func(t Text) bool { return t.Name == name+".yaml" })
}

// Write prints the result for a person.
func (r *Result) Write(w io.Writer, dir string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d definitions with %d values in %s, of %d files\n", r.Definitions, r.Values, dir, len(r.Files))
	if r.Left > 0 {
		fmt.Fprintf(&b, "not carried over: %d entries\n", r.Left)
	}
	for _, f := range r.Files {
		if len(f.Left) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s: %d values\n", printable(f.File), f.Values)
		for _, l := range f.Left {
			fmt.Fprintf(&b, "  %d: %s", l.Count, printable(l.Reason))
			if len(l.Examples) > 0 {
				fmt.Fprintf(&b, " (%s)", printable(strings.Join(l.Examples, ", ")))
			}
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
