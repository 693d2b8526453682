package snmp

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// source is a file of modules. It parses each module once, whichever probes want it.
type source struct {
	outline outline
	refusal *Note    // why the file cannot be read at all
	file    *ymlFile // with all modules parsed so far; nil before the first
}

func newSource(name string, text []byte) *source {
	s := &source{file: &ymlFile{name: name, auths: map[string]*ymlAuth{}, modules: map[string]*ymlModule{}}}
	switch {
	case len(text) > maxYMLBytes:
		s.refusal = &Note{File: name, Text: fmt.Sprintf("the file has %d bytes, more than %d", len(text), maxYMLBytes), Try: "split it"}
	case !utf8.Valid(text):
		s.refusal = &Note{File: name, Text: "the file is not UTF-8 text", Try: "name an snmp.yml"}
	default:
		s.outline = outlineOf(text)
	}
	return s
}

// read returns the file with the wanted modules. With mistakes it returns the part that has none, and parses it again the next time.
func (s *source) read(want func(string) bool) (*ymlFile, []*Note) {
	if s.refusal != nil {
		return s.file, []*Note{s.refusal}
	}
	if !s.has(want) {
		f, broken := s.parse(func(name string) bool { return want(name) && s.file.modules[name] == nil })
		if len(broken) > 0 {
			return f, broken
		}
		for name, m := range s.file.modules {
			f.modules[name] = m
		}
		s.file = f
	}
	f := *s.file
	f.modules, f.notes = map[string]*ymlModule{}, slices.Clone(f.notes)
	for _, name := range f.names {
		if m := s.file.modules[name]; m != nil && want(name) {
			f.modules[name], f.notes = m, append(f.notes, m.notes...)
		}
	}
	f.digest = s.outline.digest(want)
	return &f, nil
}

// has reports whether all wanted modules are parsed.
func (s *source) has(want func(string) bool) bool {
	return s.file.names != nil && !slices.ContainsFunc(s.file.names, func(name string) bool { return want(name) && s.file.modules[name] == nil })
}

// parse parses the wanted modules and all that is no module.
func (s *source) parse(want func(string) bool) (*ymlFile, []*Note) {
	f := &ymlFile{name: s.file.name, auths: map[string]*ymlAuth{}, modules: map[string]*ymlModule{}}
	root, note := f.tree(s.outline.only(want))
	if note != nil && !s.outline.whole {
		// A line that looked like the start of a module may not have been one.
		s.outline = outline{text: s.outline.text, whole: true}
		root, note = f.tree(s.outline.text)
	}
	if note != nil {
		return f, []*Note{note}
	}
	r := &ymlReader{file: f.name}
	f.names = slices.Clone(s.outline.names)
	f.read(r, root, want)
	f.notes = r.unknown
	return f, r.broken
}
