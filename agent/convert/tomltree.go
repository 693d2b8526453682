package convert

import (
	"errors"
	"fmt"
	"sort"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"go.yaml.in/yaml/v4"
)

// maxEntries bounds how many tables, and keys with values, a TOML file has.
const maxEntries = 10_000

// parsedTOML returns a TOML file as a tree, with the lines of its keys.
func parsedTOML(file string, text []byte) (*yaml.Node, error) {
	if len(text) > maxBytes {
		return nil, fmt.Errorf("convert %s: the file has more than %d bytes", file, maxBytes)
	}
	if err := checkTOML(file, text); err != nil {
		return nil, err
	}
	t := &tomlTree{root: mapping()}
	for i, c := range text {
		if c == '\n' {
			t.ends = append(t.ends, i)
		}
	}
	t.parser.Reset(text)
	here := t.root
	for t.parser.NextExpression() {
		e := t.parser.Expression()
		if e.Kind == unstable.KeyValue {
			t.put(here, e)
			continue
		}
		here = t.open(e)
	}
	return t.root, nil
}

// checkTOML judges the size and the rules that the parser alone does not know, such as that no key is given twice.
func checkTOML(file string, text []byte) error {
	var parser unstable.Parser
	parser.Reset(text)
	for n := 0; parser.NextExpression(); n++ {
		if n > maxEntries {
			return fmt.Errorf("convert %s: the file has more than %d tables and keys", file, maxEntries)
		}
	}
	var all map[string]any
	err := toml.Unmarshal(text, &all)
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, column := at.Position()
		return fmt.Errorf("convert %s:%d:%d: %w", file, line, column, err)
	}
	if err != nil {
		return fmt.Errorf("convert %s: %w", file, err)
	}
	return nil
}

type tomlTree struct {
	parser unstable.Parser
	root   *yaml.Node
	ends   []int // of lines
}

// keys returns the parts of a dotted key.
func (t *tomlTree) keys(n *unstable.Node) (all []*yaml.Node) {
	for it := n.Key(); it.Next(); {
		part := it.Node()
		k := str(string(part.Data))
		k.Line = 1 + sort.SearchInts(t.ends, int(part.Raw.Offset))
		all = append(all, k)
	}
	return all
}

// below returns the mapping at a key, which it adds if there is none; of a list the last one.
func below(n, key *yaml.Node) *yaml.Node {
	v := get(n, key.Value)
	if v == nil {
		v = mapping()
		v.Line = key.Line
		n.Content = append(n.Content, key, v)
	}
	if v.Kind == yaml.SequenceNode && len(v.Content) > 0 {
		return v.Content[len(v.Content)-1]
	}
	return v
}

// open returns the mapping of a table that begins.
func (t *tomlTree) open(e *unstable.Node) *yaml.Node {
	keys, n := t.keys(e), t.root
	for _, key := range keys[:len(keys)-1] {
		n = below(n, key)
	}
	last := keys[len(keys)-1]
	if e.Kind == unstable.Table {
		return below(n, last)
	}
	own := mapping()
	own.Line = last.Line
	if v := get(n, last.Value); v != nil {
		v.Content = append(v.Content, own)
		return own
	}
	n.Content = append(n.Content, last, list(own))
	return own
}

// put adds a key with its value to a mapping.
func (t *tomlTree) put(n *yaml.Node, e *unstable.Node) {
	keys := t.keys(e)
	for _, key := range keys[:len(keys)-1] {
		n = below(n, key)
	}
	last := keys[len(keys)-1]
	n.Content = append(n.Content, last, t.value(e.Value(), last.Line))
}

func (t *tomlTree) value(v *unstable.Node, line int) *yaml.Node {
	own := raw(string(v.Data))
	switch v.Kind {
	case unstable.String:
		own = str(string(v.Data))
	case unstable.Array:
		own = list()
		for it := v.Children(); it.Next(); {
			own.Content = append(own.Content, t.value(it.Node(), line))
		}
	case unstable.InlineTable:
		own = mapping()
		for it := v.Children(); it.Next(); {
			t.put(own, it.Node())
		}
	}
	own.Line = line
	return own
}
