package snmp

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Bounds of a file of modules. The published one has 2 MB; the sifted rest of a file may have as
// many YAML marks as four of them.
const (
	maxYMLBytes = 64 << 20
	maxYMLMarks = 2_000_000
)

// ymlFile is the parsed content of a file of modules, restricted to the wanted ones.
type ymlFile struct {
	name    string
	auths   map[string]*ymlAuth
	modules map[string]*ymlModule // the wanted ones
	names   []string              // of all modules
	old     bool                  // the format before 0.23: modules at the top level, each with a login
	notes   []*Note               // of the lines read
	digest  [sha256.Size]byte     // of the lines read
}

// ymlModule is a module with its place.
type ymlModule struct {
	module
	place  Note     // File, Line and Column
	auth   *ymlAuth // of the old format; nil if it has none
	static []staticFilter
	notes  []*Note
	made   *compiled // see compiled
}

// compiled returns the module ready for use, which all probes of a configuration share.
func (m *ymlModule) compiled(name string) *compiled {
	if m.made == nil {
		m.made = compileExact(name, m.module)
	}
	return m.made
}

// tree returns the text's top node, nil for an empty text.
func (f *ymlFile) tree(text []byte) (*yaml.Node, *Note) {
	if n := marks(text); n > maxYMLMarks {
		return nil, &Note{File: f.name, Text: fmt.Sprintf("the needed part of the file has over %d keys and values", maxYMLMarks),
			Try: "write it in block style without anchors, so that only the modules in use are read, or split it"}
	}
	var top yaml.Node
	if err := yaml.Load(text, &top, yaml.WithAllDocuments(false)); err != nil {
		return nil, syntaxNote(f.name, err)
	}
	if top.Kind == yaml.DocumentNode {
		if len(top.Content) == 0 {
			return nil, nil
		}
		return top.Content[0], nil
	}
	return &top, nil
}

// marks returns at least half the number of nodes that YAML makes of a text.
func marks(text []byte) (n int) {
	last := byte('\n')
	for _, c := range text {
		switch c {
		case ':', ',', '-', '[', '{', '?':
			n++
		case '\n':
			if last != '\n' {
				n++
			}
		}
		last = c
	}
	return n
}

var quoted = regexp.MustCompile("`[^`]*`|'[^']*'|\"[^\"]*\"")

// syntaxNote describes an error in the YAML, without the parser's quotes of the file; it returns
// nil for a file without content.
func syntaxNote(file string, err error) *Note {
	n := &Note{File: file, Text: "the file cannot be read as YAML", Try: "correct the YAML there"}
	var one *yaml.LoadError
	var many *yaml.LoadErrors
	if errors.As(err, &many) && len(many.Errors) > 0 {
		one = many.Errors[0]
	} else if !errors.As(err, &one) {
		return n
	}
	if strings.Contains(one.Message, "no documents") {
		return nil
	}
	n.Line, n.Column = one.Mark.Line, max(1, one.Mark.Column)
	n.Text += ": " + quoted.ReplaceAllString(strings.TrimPrefix(one.Message, "yaml: "), "…")
	return n
}

// read reads the top level of the file, in either format.
func (f *ymlFile) read(r *ymlReader, root *yaml.Node, want func(string) bool) {
	if root == nil {
		return
	}
	var top []string
	plain := root
	for i := 0; plain.Kind == yaml.MappingNode && i+1 < len(plain.Content); i += 2 {
		top = append(top, plain.Content[i].Value)
	}
	f.old = len(top) > 0 && !slices.Contains(top, "modules") && !slices.Contains(top, "auths")
	if f.old {
		f.readModules(r, root, want)
		return
	}
	r.mapping(root, "the file",
		field{"auths", func(n *yaml.Node) {
			r.entries(n, "auths", func(k, v *yaml.Node) { f.auths[k.Value] = readAuth(r, k, v, nil) })
		}},
		field{"modules", func(n *yaml.Node) { f.readModules(r, n, want) }},
		field{"version", func(*yaml.Node) {}},
	)
}

func (f *ymlFile) readModules(r *ymlReader, n *yaml.Node, want func(string) bool) {
	r.entries(n, "modules", func(k, v *yaml.Node) {
		if !slices.Contains(f.names, k.Value) {
			f.names = append(f.names, k.Value)
		}
		if want(k.Value) {
			before := len(r.unknown)
			m := readModule(r, k, v, f.old)
			m.notes, r.unknown = slices.Clone(r.unknown[before:]), r.unknown[:before]
			f.modules[k.Value] = m
		}
	})
}
