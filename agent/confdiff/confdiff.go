// Package confdiff returns the differences between two configurations, key by key. Its input is the redacted form, so
// it cannot reveal secrets.
package confdiff

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Kind says what happened to a key.
type Kind string

// The kinds.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Change is the change of one key, or of one entry of a list.
type Change struct {
	Path   string `json:"path"` // as remote_write "mimir".queue_config.max_shards
	Change Kind   `json:"change"`
	// Before and After are the values in one line of YAML; empty for an entry of a list, and if only a hidden value
	// changed.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Hidden bool   `json:"hidden,omitempty"` // the changed value is a secret and not shown
	// AtStart: the change takes effect at the next start of the agent.
	AtStart bool `json:"at_start,omitempty"`
}

// maxValue bounds the length of a shown value, in characters.
const maxValue = 200

// String returns the change in one line.
func (c Change) String() string {
	text := map[Kind]string{Added: "+ ", Removed: "- ", Changed: "~ "}[c.Change] + c.Path
	switch {
	case c.Hidden:
		text += ": <secret> changed"
	case c.Before != "" && c.After != "":
		text += ": " + c.Before + " → " + c.After
	case c.Before != "" || c.After != "":
		text += ": " + c.Before + c.After
	}
	if c.AtStart {
		text += " (at the next start)"
	}
	return text
}

// Of returns the differences between before and after, in the order of before, then that of after. Entries of a list
// are the same if they have the same name (name or job_name). Either may be nil: empty.
func Of(before, after *yaml.Node) []Change {
	return compare(nil, "", content(before), content(after))
}

// content returns n without the document around it.
func content(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		return n.Content[0]
	}
	return n
}

func compare(found []Change, path string, before, after *yaml.Node) []Change {
	switch {
	case empty(before) && empty(after):
		return found
	case kind(before, after) == yaml.MappingNode:
		return compareItems(found, items(before, path, byKey), items(after, path, byKey))
	case kind(before, after) == yaml.SequenceNode && named(before) && named(after):
		return compareItems(found, items(before, path, byName), items(after, path, byName))
	case empty(before):
		return append(found, Change{Path: path, Change: Added, After: shown(after)})
	case empty(after):
		return append(found, Change{Path: path, Change: Removed, Before: shown(before)})
	case flow(before) != flow(after):
		return append(found, Change{Path: path, Change: Changed, Before: shown(before), After: shown(after)})
	}
	return found
}

// item is a key of a mapping or a named entry of a list.
type item struct {
	path  string
	entry bool // of a list
	value *yaml.Node
}

func compareItems(found []Change, before, after []item) []Change {
	at := map[string]*yaml.Node{}
	for _, a := range after {
		at[a.path] = a.value
	}
	had := map[string]bool{}
	for _, b := range before {
		had[b.path] = true
		switch a := at[b.path]; {
		case a == nil && b.entry:
			found = append(found, Change{Path: b.path, Change: Removed})
		default:
			found = compare(found, b.path, b.value, a)
		}
	}
	for _, a := range after {
		switch {
		case had[a.path]:
		case a.entry:
			found = append(found, Change{Path: a.path, Change: Added})
		default:
			found = compare(found, a.path, nil, a.value)
		}
	}
	return found
}

func items(n *yaml.Node, path string, list func(*yaml.Node, string) []item) []item {
	if empty(n) {
		return nil
	}
	return list(n, path)
}

func byKey(n *yaml.Node, path string) (list []item) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		list = append(list, item{strings.TrimPrefix(path+"."+n.Content[i].Value, "."), false, n.Content[i+1]})
	}
	return list
}

func byName(n *yaml.Node, path string) (list []item) {
	seen := map[string]int{}
	for _, entry := range n.Content {
		name := Named(path, nameOf(entry))
		if seen[name]++; seen[name] > 1 {
			name += fmt.Sprintf("#%d", seen[name])
		}
		list = append(list, item{name, true, entry})
	}
	return list
}

// Named returns the path of the entry of that name in the list at path.
func Named(path, name string) string { return fmt.Sprintf("%s %q", path, name) }

// named reports whether n is empty, or a list whose entries all have names.
func named(n *yaml.Node) bool {
	return n == nil || !slices.ContainsFunc(n.Content, func(e *yaml.Node) bool { return nameOf(e) == "" })
}

// nameOf returns the name of an entry; for a target without one, its address.
func nameOf(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	for _, key := range []string{"name", "job_name", "url"} {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key && n.Content[i+1].Value != "" {
				return n.Content[i+1].Value
			}
		}
	}
	return ""
}

// kind returns the common kind of a and b, 0 if they differ; an empty node has any kind.
func kind(a, b *yaml.Node) yaml.Kind {
	switch {
	case empty(a):
		return b.Kind
	case empty(b) || a.Kind == b.Kind:
		return a.Kind
	}
	return 0
}

// empty reports whether n is null, or a list or mapping without entries.
func empty(n *yaml.Node) bool {
	return n == nil || n.ShortTag() == "!!null" || n.Kind != yaml.ScalarNode && len(n.Content) == 0
}

// shown returns n in one line, shortened.
func shown(n *yaml.Node) string {
	r := []rune(flow(n))
	if len(r) > maxValue {
		return string(r[:maxValue-1]) + "…"
	}
	return string(r)
}

// flow returns n in one line.
func flow(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		var parts []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			parts = append(parts, n.Content[i].Value+": "+flow(n.Content[i+1]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		var parts []string
		for _, c := range n.Content {
			parts = append(parts, flow(c))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case yaml.AliasNode:
		return flow(n.Alias)
	}
	if n.Value == "" || strings.ContainsAny(n.Value, "\n\r\t\x1b,]}") {
		return fmt.Sprintf("%q", n.Value)
	}
	return n.Value
}
