package imports

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Bounds of input files.
const (
	maxFileBytes = 4 << 20
	maxAllBytes  = 256 << 20 // of one directory
	maxFiles     = 5000
	maxEntries   = 20_000    // of one file
	maxNodes     = 1_000_000 // of one file, with aliases followed
)

// node is a part of a YAML file; the zero value is a missing part.
type node struct{ n *yaml.Node }

func parseNode(text []byte) (node, error) {
	var top yaml.Node
	if err := yaml.Load(text, &top); err != nil {
		return node{}, err
	}
	n := &top
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind != yaml.MappingNode {
		return node{}, errors.New("the file is not a mapping")
	}
	if weight(n, map[*yaml.Node]int{}) > maxNodes {
		return node{}, errors.New("the file is too large, or endless, once its aliases are followed")
	}
	return node{n}, nil
}

// weight returns the number of nodes of a part with aliases followed, at most maxNodes+1, as for a part that contains itself.
// known caches weights, including those in progress.
func weight(n *yaml.Node, known map[*yaml.Node]int) int {
	if w, ok := known[n]; ok {
		return w
	}
	known[n] = maxNodes + 1
	w := 1
	if n.Kind == yaml.AliasNode {
		w += weight(n.Alias, known)
	}
	for _, child := range n.Content {
		w = min(w+weight(child, known), maxNodes+1)
	}
	known[n] = w
	return w
}

func (x node) resolved() *yaml.Node {
	if x.n != nil && x.n.Kind == yaml.AliasNode {
		return x.n.Alias
	}
	return x.n
}

func (x node) there() bool { return x.n != nil && !x.null() }

func (x node) null() bool {
	n := x.resolved()
	return n != nil && n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// get returns the value of a key of a mapping.
func (x node) get(keys ...string) node {
	for _, key := range keys {
		n := x.resolved()
		x = node{}
		if n == nil || n.Kind != yaml.MappingNode {
			return x
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				x = node{n.Content[i+1]}
			}
		}
	}
	return x
}

// entry is a key of a mapping with its value.
type entry struct {
	key   string
	value node
}

func (x node) entries() (all []entry) {
	if n := x.resolved(); n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content) && i < 2*maxEntries; i += 2 {
			all = append(all, entry{n.Content[i].Value, node{n.Content[i+1]}})
		}
	}
	return all
}

// list returns the items of a list; any other node counts as a list of one.
func (x node) list() (all []node) {
	n := x.resolved()
	if !x.there() {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return []node{x}
	}
	for _, i := range n.Content[:min(len(n.Content), maxEntries)] {
		all = append(all, node{i})
	}
	return all
}

// text returns a scalar as written, "" for anything else.
func (x node) text() string {
	if n := x.resolved(); n != nil && n.Kind == yaml.ScalarNode && !x.null() {
		return n.Value
	}
	return ""
}

func (x node) texts() (all []string) {
	for _, i := range x.list() {
		if s := i.text(); s != "" {
			all = append(all, s)
		}
	}
	return all
}

func (x node) isMapping() bool { n := x.resolved(); return n != nil && n.Kind == yaml.MappingNode }

// number returns a scalar that is a number.
func (x node) number() (v float64, ok bool) {
	v, err := strconv.ParseFloat(x.text(), 64)
	return v, err == nil && v-v == 0
}

// source is a file that was read.
type source struct {
	name string // relative to the directory
	text []byte
	err  error
}

// sources reads the YAML files below a directory, in order.
func sources(dir string) (all []source, err error) {
	bytes := 0
	err = filepath.WalkDir(dir, func(file string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ext := filepath.Ext(file); !e.Type().IsRegular() || ext != ".yaml" && ext != ".yml" {
			return nil
		}
		if len(all) == maxFiles {
			return fmt.Errorf("%s has more than %d files", dir, maxFiles)
		}
		s := source{}
		if bytes > maxAllBytes {
			return fmt.Errorf("the files in %s have more than %d bytes", dir, maxAllBytes)
		}
		if s.name, err = filepath.Rel(dir, file); err != nil {
			return err
		}
		s.name = filepath.ToSlash(s.name)
		if info, err := e.Info(); err != nil {
			s.err = err
		} else if info.Size() > maxFileBytes {
			s.err = fmt.Errorf("it has %d bytes, more than %d", info.Size(), maxFileBytes)
		} else {
			s.text, s.err = os.ReadFile(file) // #nosec G304 G122 -- the user's own
		}
		bytes += len(s.text)
		all = append(all, s)
		return nil
	})
	slices.SortFunc(all, func(a, b source) int { return strings.Compare(a.name, b.name) })
	return all, err
}
