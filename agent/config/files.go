package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// confDir is the directory beside the configuration file that holds further parts of the configuration.
const confDir = "conf.d"

// maxFiles bounds how many files a configuration has.
const maxFiles = 1000

// fileText is one file of a configuration.
type fileText struct {
	name string // for messages
	text []byte
}

// readAll reads the configuration file and the files of conf.d beside it, in order of name. Together they may have
// at most maxBytes.
func readAll(path string) ([]fileText, []Warning, error) {
	text, err := readAtMost(path, maxBytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRead, err)
	}
	files := []fileText{{path, text}}
	names, warns, err := furtherFiles(filepath.Join(filepath.Dir(path), confDir))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRead, err)
	}
	size := len(text)
	for _, name := range names {
		text, err := readRegular(name, maxBytes)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrRead, err)
		}
		if size += len(text); size > maxBytes {
			return nil, nil, &Errors{Errors: []Error{{File: name, Message: fmt.Sprintf("with this file the configuration exceeds the limit of %d bytes", maxBytes)}}}
		}
		files = append(files, fileText{name, text})
	}
	return files, warns, nil
}

// furtherFiles returns the files in dir that belong to the configuration: *.yaml, except hidden ones. A dir that does not
// exist has none.
func furtherFiles(dir string) (names []string, warns []Warning, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case filepath.Ext(name) == ".yaml":
			names = append(names, name)
		case filepath.Ext(name) == ".yml":
			warns = append(warns, Warning{File: name, Message: "the file is not read: only *.yaml is", Hint: "rename it to " + strings.TrimSuffix(e.Name(), ".yml") + ".yaml"})
		}
	}
	if len(names) > maxFiles {
		return nil, nil, fmt.Errorf("%s has %d files, more than the limit of %d", dir, len(names), maxFiles)
	}
	return names, warns, nil
}

// parseAll reads several files into one document. It leaves out files that are not valid YAML, and adds their mistakes
// to the document. It returns an error if no file is left.
func parseAll(files []fileText) (*document, error) {
	parts := make([]*document, len(files))
	var failed []*document
	for i, f := range files {
		var err error
		if parts[i], err = parse(f.name, f.text); err != nil {
			failed = append(failed, parts[i])
			parts[i] = newDocument(f.name, nil)
		}
	}
	if len(failed) == len(files) {
		return nil, (&document{inner: failed}).allFailed()
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	d, err := join(parts)
	if d != nil {
		d.inner = failed
	}
	return d, err
}

// filePart is the place where a file begins in a document of several files.
type filePart struct {
	name  string
	lines int // how many lines of the document are before it
	// entries counts the entries of top-level lists that come before it, by the list's key.
	entries map[string]int
}

// join makes one document of several files, as if they were one text: the lines of each file follow those of the file
// before, and failed maps them back. Top-level lists are appended, mappings are merged key by key; any other key in two
// files is a mistake.
func join(parts []*document) (*document, error) {
	d := newDocument(parts[0].name, nil)
	twice := []givenTwice{}
	for _, p := range parts {
		part := filePart{name: p.name, lines: len(d.lines), entries: map[string]int{}}
		shift(p.root, part.lines, map[*yaml.Node]bool{})
		d.lines = append(d.lines, p.lines...)
		switch {
		case p.root == nil:
		case d.root == nil:
			root := *p.root
			d.root = &root
		default:
			for i := 0; i+1 < len(d.root.Content); i += 2 {
				if v := d.root.Content[i+1]; v.Kind == yaml.SequenceNode {
					part.entries[d.root.Content[i].Value] = len(v.Content)
				}
			}
			twice = append(twice, joinMappings(d.root, p.root, "")...)
		}
		d.parts = append(d.parts, part)
	}
	if d.root == nil {
		return d, nil
	}
	if countNodes(d.root, map[*yaml.Node]int{}) > maxNodes {
		return d, d.refuse("the files are too large together, once their aliases are followed")
	}
	d.index(d.root, "")
	for _, g := range twice {
		d.cover(g.value, g.path)
		if d.keys[g.path] == nil {
			d.keys[g.path] = g.key
		}
		d.keysAt[place{g.key.Line, g.key.Column}] = g.path
		d.byLine[g.key.Line] = append(d.byLine[g.key.Line], scalarAt{g.path, g.key, true})
	}
	for _, g := range twice {
		file, line := d.fileOf(g.first.Line)
		d.add(g.key.Line, g.key.Column, holder(g.path, g.key.Value), fmt.Sprintf("key %q is given twice; the first is at %s:%d", g.key.Value, file, line), "keep one of them")
	}
	return d, nil
}

// shift moves the position of n and of all nodes below it by some lines.
func shift(n *yaml.Node, lines int, seen map[*yaml.Node]bool) {
	if n == nil || seen[n] {
		return
	}
	seen[n] = true
	n.Line += lines
	shift(n.Alias, lines, seen)
	for _, inner := range n.Content {
		shift(inner, lines, seen)
	}
}

// givenTwice is a key that two files have. The first one counts.
type givenTwice struct {
	path              string
	first, key, value *yaml.Node
}

// joinMappings adds the keys of more to the mapping at path. A mapping that several files have must not contain a merge
// key ("<<"), because its keys are not visible here.
func joinMappings(mapping, more *yaml.Node, path string) (twice []givenTwice) {
	merge := func(n *yaml.Node) *yaml.Node {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == "<<" {
				return n.Content[i]
			}
		}
		return nil
	}
	if m := merge(mapping); m != nil && len(more.Content) > 0 {
		return []givenTwice{{strings.TrimPrefix(path+"."+more.Content[0].Value, "."), m, more.Content[0], more.Content[1]}}
	}
	own := slices.Clone(mapping.Content)
	for i := 0; i+1 < len(more.Content); i += 2 {
		key, value := more.Content[i], more.Content[i+1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		j := keyIndex(own, key.Value)
		switch {
		case j < 0 && key.Value == "<<" && len(own) > 0:
			twice = append(twice, givenTwice{at, own[0], key, value})
		case j < 0:
			mapping.Content = append(mapping.Content, key, value)
		case value.ShortTag() == "!!null" && value.Kind == yaml.ScalarNode: // such as "probes:" with all entries commented out
		case own[j+1].ShortTag() == "!!null" && own[j+1].Kind == yaml.ScalarNode:
			mapping.Content[j], mapping.Content[j+1] = key, value
		case path == "" && own[j+1].Kind == yaml.SequenceNode && value.Kind == yaml.SequenceNode:
			list := *own[j+1]
			list.Content = append(slices.Clone(list.Content), value.Content...)
			mapping.Content[j+1] = &list
		case own[j+1].Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			inner := *own[j+1]
			inner.Content = slices.Clone(inner.Content)
			twice = append(twice, joinMappings(&inner, value, at)...)
			mapping.Content[j+1] = &inner
		default:
			twice = append(twice, givenTwice{at, own[j], key, value})
		}
	}
	return twice
}

// keyIndex returns the index of a key in the contents of a mapping, or -1.
func keyIndex(content []*yaml.Node, key string) int {
	for i := 0; i+1 < len(content); i += 2 {
		if content[i].Value == key {
			return i
		}
	}
	return -1
}

// cover makes sure that values below n are hidden where their lines are shown, although n is not in the tree.
func (d *document) cover(n *yaml.Node, path string) {
	d.note(n, path)
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			d.byLine[key.Line] = append(d.byLine[key.Line], scalarAt{path + "." + key.Value, key, true})
			d.cover(n.Content[i+1], path+"."+key.Value)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			d.cover(item, path+"["+strconv.Itoa(i)+"]")
		}
	}
}

// partOf returns the file of a line of the document; nil if the document is one file.
func (d *document) partOf(line int) *filePart {
	for i := len(d.parts) - 1; i >= 0; i-- {
		if line > d.parts[i].lines {
			return &d.parts[i]
		}
	}
	return nil
}

// fileOf returns the file of a line of the document, and the line's number there.
func (d *document) fileOf(line int) (name string, number int) {
	if p := d.partOf(line); p != nil {
		return p.name, line - p.lines
	}
	return d.name, line
}

// inFile returns the path with the position that a top-level list entry has in its own file; other paths stay as they
// are.
func (d *document) inFile(path string) string {
	list, rest, ok := strings.Cut(path, "[")
	digits, rest, closed := strings.Cut(rest, "]")
	n, err := strconv.Atoi(digits)
	if !ok || !closed || err != nil || len(d.parts) == 0 || d.values[list+"["+digits+"]"] == nil {
		return path
	}
	before := d.partOf(d.values[list+"["+digits+"]"].Line).entries[list]
	return fmt.Sprintf("%s[%d]%s", list, n-before, rest)
}

// cite names a list entry in a mistake that is shown at another entry.
func (d *document) cite(path string) string {
	if n := d.values[path]; n != nil && len(d.parts) > 0 {
		file, line := d.fileOf(n.Line)
		return fmt.Sprintf("%s (%s:%d)", d.inFile(path), file, line)
	}
	return path
}
