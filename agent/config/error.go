package config

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// Error is one mistake in a configuration file, described so that the reader can find and correct it. It holds no
// secret: expanded values appear as they are written in the file, and values of secret and unknown keys do not appear.
type Error struct {
	File    string `json:"file"`
	Line    int    `json:"line"`             // from 1; 0 if the mistake has no place
	Column  int    `json:"column"`           // from 1, in characters; 0 if it has no place
	Path    string `json:"path,omitempty"`   // as remote_write[0] "mimir".remote_timeout
	Message string `json:"message"`          // what is wrong
	Hint    string `json:"hint,omitempty"`   // what to write instead
	Source  string `json:"source,omitempty"` // the line as in the file; empty if a value on it must not be shown

	// caret and width place the marker under Source, in characters; caret differs from the column in a long line, of which
	// Source is a part.
	caret, width int
}

// Error returns the mistake in one line.
func (e Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// text returns the mistake with its source line, a marker and the hint.
func (e Error) text() string {
	var b strings.Builder
	b.WriteString(e.Error())
	b.WriteByte('\n')
	switch {
	case e.Line > 0 && e.Source != "":
		fmt.Fprintf(&b, "%5d | %s\n", e.Line, strings.ReplaceAll(e.Source, "\t", " "))
		fmt.Fprintf(&b, "      | %s%s", strings.Repeat(" ", max(e.caret-1, 0)), strings.Repeat("^", max(e.width, 1)))
		if e.Hint != "" {
			b.WriteString("  " + e.Hint)
		}
		b.WriteByte('\n')
	case e.Hint != "":
		b.WriteString("      " + e.Hint + "\n")
	}
	return b.String()
}

// Errors holds every mistake found in one configuration, in the order of the file. It is never empty.
type Errors struct {
	Errors []Error `json:"errors"`

	files []string // see Files
}

// Files returns the files and patterns that the configuration names in ${file:…} and scrape_config_files, as far as they were
// found beside the mistakes: another content of theirs may correct one.
func (e *Errors) Files() []string { return e.files }

// Error returns all mistakes with their source lines, as several lines of text.
func (e *Errors) Error() string {
	var b strings.Builder
	for _, one := range e.Errors {
		b.WriteString(one.text())
	}
	if n := len(e.Errors); n == 1 {
		b.WriteString("1 mistake in the configuration")
	} else {
		fmt.Fprintf(&b, "%d mistakes in the configuration", n)
	}
	return b.String()
}

// Unwrap returns the single mistakes for errors.As.
func (e *Errors) Unwrap() []error {
	out := make([]error, len(e.Errors))
	for i := range e.Errors {
		out[i] = e.Errors[i]
	}
	return out
}

// Warning is a setting that is allowed but probably not intended.
type Warning struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// String returns the warning in one line.
func (w Warning) String() string {
	s := Error{File: w.File, Line: w.Line, Column: w.Column, Path: w.Path, Message: w.Message}.Error()
	if w.Hint != "" {
		s += " (" + w.Hint + ")"
	}
	return s
}

// sortErrors puts mistakes in the order of the file and removes duplicates.
func sortErrors(errs []Error) []Error {
	sort.SliceStable(errs, func(i, j int) bool {
		a, b := errs[i], errs[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	out := errs[:0]
	for i, e := range errs {
		if i > 0 && e == out[len(out)-1] {
			continue
		}
		out = append(out, e)
	}
	return out
}

// nearest returns the known word most likely meant by word, or "". It ignores case and the choice between "_", "-" and
// camel case.
func nearest(word string, known []string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
	}
	best, bestDist := "", 1+max(1, utf8.RuneCountInString(word)/3)
	for _, k := range known {
		d := distance(word, k)
		if plain(word) == plain(k) {
			d = 0
		}
		if d < bestDist {
			best, bestDist = k, d
		}
	}
	return best
}

// distance is the Levenshtein distance of a and b in characters.
func distance(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	row := make([]int, len(rb)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range ra {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range rb {
			cost := diagonal
			if x != y {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(rb)]
}
