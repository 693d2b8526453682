package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"hwsagent/internal/redact"
)

// Bounds of a configuration file. Both are far above any real file, and keep a hostile or mistaken one from exhausting
// the host's memory.
const (
	maxBytes    = 1 << 20
	maxNodes    = 100_000 // with aliases followed
	maxMistakes = 100     // reported for one file; more would not be read
)

// document is a configuration file as a tree with positions: it maps paths to positions and back, and shows lines
// without their secrets.
type document struct {
	name  string // of the file, for messages
	lines []string
	root  *yaml.Node // the top mapping; nil for an empty file

	values   map[string]*yaml.Node // by path, as remote_write[0].url
	keys     map[string]*yaml.Node // the key's own node, by the same path
	valuesAt map[place]string
	keysAt   map[place]string
	byLine   map[int][]scalarAt // the keys, scalar values, aliases, anchors and tags that begin on a line

	shapes map[string][]redact.Shape // by path; see shapesAt

	// written holds the text in the file of each expanded scalar.
	written map[*yaml.Node]string
	// given holds the parts of such a scalar that expansion inserted.
	given map[*yaml.Node][]part
	// masks replaces texts that must not appear in a message.
	masks []mask

	// unexpanded holds the places of scalars that could not be expanded; further mistakes there are not reported.
	unexpanded map[place]bool
	broken     map[string]bool // paths of list entries that could not be decoded

	// unknownSection says that a key at the top is unknown. It may be a section that seems to be missing.
	unknownSection bool

	errs  []Error
	warns []Warning

	parts []filePart  // the files joined into this document, see join; none if it is one file
	inner []*document // the files that scrape_config_files names
}

type place struct{ line, column int }

// scalarAt is a node with a text of its own, and its path. Two may have the same path if a key appears twice.
type scalarAt struct {
	path string
	n    *yaml.Node
	key  bool // n is the key itself
}

type mask struct{ secret, shown string }

func newDocument(name string, lines []string) *document {
	return &document{
		name: name, lines: lines,
		values: map[string]*yaml.Node{}, keys: map[string]*yaml.Node{},
		valuesAt: map[place]string{}, keysAt: map[place]string{},
		written: map[*yaml.Node]string{}, given: map[*yaml.Node][]part{}, unexpanded: map[place]bool{}, broken: map[string]bool{},
		byLine: map[int][]scalarAt{}, shapes: map[string][]redact.Shape{},
	}
}

// parse reads text into a document. The error is an [*Errors].
func parse(name string, text []byte) (*document, error) {
	d := newDocument(name, strings.Split(string(text), "\n"))
	if len(text) > maxBytes {
		return d, d.refuse(fmt.Sprintf("the file has %d bytes, more than the limit of %d", len(text), maxBytes))
	}
	if !utf8.Valid(text) {
		return d, d.refuse("the file is not UTF-8 text")
	}
	var top yaml.Node
	if err := yaml.Load(text, &top, yaml.WithAllDocuments(false)); err != nil {
		return d, d.syntaxError(err)
	}
	root := &top
	if top.Kind == yaml.DocumentNode {
		if len(top.Content) == 0 {
			return d, nil
		}
		root = top.Content[0]
	}
	if root.Kind == 0 || root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return d, nil
	}
	if root.Kind != yaml.MappingNode {
		d.add(root.Line, root.Column, "", "the file must hold keys such as \"probes:\" and \"remote_write:\"", "")
		return d, d.failed()
	}
	if countNodes(root, map[*yaml.Node]int{}) > maxNodes {
		return d, d.refuse("the file is too large, or endless, once its aliases are followed")
	}
	d.root = root
	d.index(root, "")
	return d, nil
}

// refuse returns the error for a file that is unusable as a whole.
func (d *document) refuse(why string) error {
	d.errs = append(d.errs, Error{File: d.name, Message: why})
	return d.failed()
}

// failed returns the mistakes found so far as one error, with the lines of their files, or nil.
func (d *document) failed() error {
	if len(d.errs) == 0 {
		return nil
	}
	found := sortErrors(slices.Clone(d.errs))
	for i := range found {
		found[i].File, found[i].Line = d.fileOf(found[i].Line)
	}
	return &Errors{Errors: found}
}

// warnings returns the warnings found so far, with the lines of their files.
func (d *document) warnings() []Warning {
	found := slices.Clone(d.warns)
	for i := range found {
		found[i].File, found[i].Line = d.fileOf(found[i].Line)
	}
	return found
}

var unquotedVariable = regexp.MustCompile(`[:,\[{]\s*[^"'\s,]*\$\{`)

var secondDocument = regexp.MustCompile(`^---(\s|$)`)

// syntaxError turns the parser's error into a mistake with a place.
func (d *document) syntaxError(err error) error {
	var many *yaml.LoadErrors
	var one *yaml.LoadError
	switch {
	case errors.As(err, &many) && len(many.Errors) > 0:
		one = many.Errors[0]
	case errors.As(err, &one):
	default:
		return d.refuse(err.Error())
	}
	msg := strings.TrimPrefix(one.Message, "yaml: ")
	switch {
	case strings.HasPrefix(msg, "unknown anchor "), strings.HasPrefix(msg, "alias-data:"): // the rest repeats text of the file
		msg = "an alias (*) names no anchor (&) above it"
	case strings.HasPrefix(msg, "found character '"):
		msg = "found a character that is not allowed in a tag"
	case strings.Contains(msg, "no documents"):
		return nil
	case strings.Contains(msg, "found multiple"):
		seen := false
		for i, l := range d.lines {
			if secondDocument.MatchString(l) {
				if seen || i > 0 && strings.TrimSpace(strings.Join(d.lines[:i], "")) != "" {
					d.add(i+1, 1, "", "a second document begins here; the file must hold one", "remove the line or keep the documents in files of their own")
					return d.failed()
				}
				seen = true
			}
		}
	}
	if one.ContextMsg != "" {
		msg = one.ContextMsg + ": " + msg
	}
	line, column := one.Mark.Line, one.Mark.Column
	if line > len(d.lines) || line == len(d.lines) && d.lines[line-1] == "" {
		line, column = one.ContextMark.Line, one.ContextMark.Column
	}
	hint := ""
	switch {
	case line > 0 && line <= len(d.lines) && strings.HasPrefix(strings.TrimLeft(d.lines[line-1], " "), "\t"):
		hint = "YAML does not allow tabs as indentation: use spaces"
	case strings.Contains(msg, "flow mapping") && line > 0 && line <= len(d.lines) && unquotedVariable.MatchString(d.lines[line-1]):
		hint = `between { and }, put quotes around it: "${VAR}"`
	case strings.Contains(msg, "mapping values are not allowed"):
		hint = `check the indentation, or quote a value that contains ": "`
	case strings.Contains(msg, "did not find expected key"):
		hint = "check that this line is indented like its neighbours"
	}
	d.add(line, column, "", "not valid YAML: "+msg, hint)
	return d.failed()
}

// countNodes returns how many nodes n stands for with its aliases followed; a cycle of aliases counts as more than any
// limit.
func countNodes(n *yaml.Node, seen map[*yaml.Node]int) int {
	const endless = maxNodes + 1
	if c, ok := seen[n]; ok {
		return c
	}
	seen[n] = endless // until it is known; inside a cycle it stays endless
	c := 1
	if n.Kind == yaml.AliasNode {
		c += countNodes(n.Alias, seen)
	}
	for _, k := range n.Content {
		if c += countNodes(k, seen); c > maxNodes {
			return endless
		}
	}
	seen[n] = c
	return c
}

// index records the path and place of every node below n.
func (d *document) index(n *yaml.Node, path string) {
	d.values[path] = n
	at := place{n.Line, n.Column}
	if _, ok := d.valuesAt[at]; !ok {
		d.valuesAt[at] = path
	}
	d.note(n, path)
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			p := key.Value
			if path != "" {
				p = path + "." + key.Value
			}
			if _, ok := d.keys[p]; !ok {
				d.keys[p] = key
			}
			d.keysAt[place{key.Line, key.Column}] = p
			d.byLine[key.Line] = append(d.byLine[key.Line], scalarAt{p, key, true})
			d.index(n.Content[i+1], p)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			d.index(item, path+"["+strconv.Itoa(i)+"]")
		}
	}
}

// note records the line of a value that has a text of its own.
func (d *document) note(n *yaml.Node, path string) {
	if n.Kind == yaml.ScalarNode || n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		d.byLine[n.Line] = append(d.byLine[n.Line], scalarAt{path, n, false})
	}
}

// value is the node at path with an alias followed, or nil.
func (d *document) value(path string) *yaml.Node {
	n := d.values[path]
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// parentPath cuts the last step of path: a.b[0].c, a.b[0], a.b, a, "".
func parentPath(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

var listStep = regexp.MustCompile(`\[\d+\]`)

// shown formats path for people: list entries with a name carry it, and positions are those in their own file.
func (d *document) shown(path string) string {
	var b strings.Builder
	last := 0
	for _, m := range listStep.FindAllStringIndex(path, -1) {
		b.WriteString(path[last:m[1]])
		last = m[1]
		if name := d.values[path[:m[1]]+".name"]; name != nil && name.Kind == yaml.ScalarNode && name.Value != "" {
			fmt.Fprintf(&b, " %q", d.hide(name.Value))
		}
	}
	b.WriteString(path[last:])
	if local := d.inFile(path); local != path {
		bare, _, _ := strings.Cut(path, "]")
		own, _, _ := strings.Cut(local, "]")
		return own + strings.TrimPrefix(b.String(), bare)
	}
	return b.String()
}

// errorAt adds a mistake about the value at path, or about its nearest parent in the file.
func (d *document) errorAt(path, message, hint string) {
	line, column := d.placeOf(path)
	d.add(line, column, path, message, hint)
}

// warnAt adds a warning about the value at path.
func (d *document) warnAt(path, message, hint string) {
	line, column := d.placeOf(path)
	d.warns = append(d.warns, Warning{File: d.name, Line: line, Column: column,
		Path: d.hide(d.shown(path)), Message: d.hide(message), Hint: d.hide(hint)})
}

// errorAtKey is errorAt, but points at the key.
func (d *document) errorAtKey(path, message, hint string) {
	if k := d.keys[path]; k != nil {
		d.add(k.Line, k.Column, path, message, hint)
		return
	}
	d.errorAt(path, message, hint)
}

func (d *document) placeOf(path string) (line, column int) {
	for p := path; p != ""; p = parentPath(p) {
		n := d.values[p]
		if n == nil {
			continue
		}
		// Point at a mapping or list by its key.
		if k := d.keys[p]; k != nil && n.Kind != yaml.ScalarNode && n.Kind != yaml.AliasNode {
			n = k
		}
		return n.Line, n.Column
	}
	return 0, 0
}

// add records one mistake.
func (d *document) add(line, column int, path, message, hint string) {
	if d.unexpanded[place{line, column}] || len(d.errs) >= maxMistakes {
		return
	}
	e := Error{File: d.name, Line: line, Column: column, Path: d.hide(d.shown(path)), Message: d.hide(message), Hint: d.hide(hint)}
	if line > 0 && line <= len(d.lines) {
		e.Source, e.caret, e.width = d.source(line, column)
	}
	d.errs = append(d.errs, e)
}

// hide replaces expanded values, and values under secret keys, in a text.
func (d *document) hide(s string) string {
	for _, m := range d.masks {
		if len(m.secret) >= 4 {
			s = strings.ReplaceAll(s, m.secret, m.shown)
		}
		for _, q := range []string{`"`, "`", "'"} {
			s = strings.ReplaceAll(s, q+m.secret+q, q+m.shown+q)
		}
		if q := strconv.Quote(m.secret); q != `"`+m.secret+`"` {
			s = strings.ReplaceAll(s, q, strconv.Quote(m.shown))
		}
	}
	return s
}

// collectMasks gathers the texts for hide. It must run after expansion.
func (d *document) collectMasks() {
	for path, n := range d.values {
		if _, known := d.kindAt(path); !known || n.Kind != yaml.ScalarNode || n.Value == "" {
			continue // no message repeats the value of an unknown key
		}
		if w, ok := d.written[n]; ok && w != n.Value {
			d.masks = append(d.masks, mask{n.Value, d.masked(path, w)})
		} else if m := d.masked(path, n.Value); m != n.Value {
			d.masks = append(d.masks, mask{n.Value, m})
			if m == hidden && n.Style&yaml.TaggedStyle != 0 {
				d.masks = append(d.masks, mask{n.Tag, hidden})
			}
		}
	}
	for path, k := range d.keys {
		if d.hiddenKey(path, k.Value) {
			d.masks = append(d.masks, mask{k.Value, hidden})
		}
	}
	d.sortMasks()
}

// sortMasks puts longer secrets first, so that none is hidden only in part.
func (d *document) sortMasks() {
	sort.Slice(d.masks, func(i, j int) bool {
		a, b := d.masks[i], d.masks[j]
		if len(a.secret) != len(b.secret) {
			return len(a.secret) > len(b.secret)
		}
		return a.secret < b.secret
	})
}
