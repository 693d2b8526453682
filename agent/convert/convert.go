// Package convert makes an agent.yaml from the configuration of another program, and lists everything that it could not
// carry over.
package convert

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Bounds of a file that is read.
const (
	maxBytes = 1 << 20
	maxNodes = 100_000 // with aliases followed
)

// formats returns the programs whose configuration can be read, in the order of [Formats].
func formats() []format {
	return []format{
		{"prometheus", parsed, why, (*converter).prometheus},
		{"vmagent", parsed, why, (*converter).prometheus},
		{"grafana-agent", parsed, whyGrafana, (*converter).grafana},
		{"otelcol", parsed, whyOTel, (*converter).otelcol},
		{"alloy", parsedRiver, whyAlloy, (*converter).alloy},
		{"telegraf", parsedTOML, whyTelegraf, (*converter).telegraf},
		{"hws", parsed, whyHWS, (*converter).hws},
	}
}

// format is a program whose configuration can be read.
type format struct {
	name    string
	parse   func(file string, text []byte) (*yaml.Node, error)
	unknown func(key string) string // what a note says about a key without a counterpart
	convert func(c *converter, root *yaml.Node)
}

// Formats returns the programs whose configuration can be read, as they are named on the command line.
func Formats() (names []string) {
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// Known returns an error unless format is one of [Formats], or "".
func Known(format string) error {
	if format == "" || slices.Contains(Formats(), format) {
		return nil
	}
	return fmt.Errorf("unknown format %q: --from is one of %s", format, strings.Join(Formats(), ", "))
}

// Note describes a setting that was not carried over, or not exactly, and what to do about it.
type Note struct {
	File string `json:"file"`
	Line int    `json:"line"` // from 1
	Key  string `json:"key"`  // the path of the key, such as receivers.otlp
	Text string `json:"text"`
	// LeftOut means that the value, with all below it, is not in the result; else it is, and the note says what differs.
	LeftOut bool `json:"left_out"`
}

// String returns the note in one line.
func (n Note) String() string { return fmt.Sprintf("%s:%d: %s: %s", n.File, n.Line, n.Key, n.Text) }

// Result is the outcome of a conversion.
type Result struct {
	Config string `json:"config"` // agent.yaml, with the notes as comments at its head
	Notes  []Note `json:"notes"`  // in the order of the file; never null
}

// Convert converts the text of a file in one of [Formats]; with "" it detects the format from the keys. It returns an
// error if the file does not have that format.
func Convert(from, file string, text []byte) (Result, error) {
	if err := Known(from); err != nil {
		return Result{}, err
	}
	if from == "" {
		var err error
		if from, err = detect(file, text); err != nil {
			return Result{}, err
		}
	}
	f := formats()[slices.Index(Formats(), from)]
	root, err := f.parse(file, text)
	if err != nil {
		return Result{}, err
	}
	c := &converter{file: file, format: f.name, out: mapping(), account: newAccount(f.unknown)}
	f.convert(c, root)
	c.noteRest(root)
	return c.result()
}

// parsed returns the mapping in the text of a file.
func parsed(file string, text []byte) (*yaml.Node, error) {
	if len(text) > maxBytes {
		return nil, fmt.Errorf("convert %s: the file has more than %d bytes", file, maxBytes)
	}
	var top yaml.Node
	if err := yaml.Load(text, &top); err != nil {
		return nil, fmt.Errorf("convert %s: %w", file, err)
	}
	root := &top
	if top.Kind == yaml.DocumentNode && len(top.Content) > 0 {
		root = top.Content[0]
	}
	left := maxNodes
	root, ok := resolve(root, &left)
	if !ok {
		return nil, fmt.Errorf("convert %s: the file is too large, or endless, once its aliases are followed", file)
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("convert %s: the file holds no keys", file)
	}
	return root, nil
}

// signs are lines that only a file of one format has.
var signs = []struct {
	format  string
	pattern *regexp.Regexp
}{
	{"alloy", regexp.MustCompile(`(?m)^[a-z_]+(\.[a-z_0-9]+)*([ \t]+"[^"\n]*")?[ \t]*\{`)},
	{"telegraf", regexp.MustCompile(`(?m)^[ \t]*(\[(agent|global_tags)\]|\[\[(inputs|outputs|processors|aggregators)\.[A-Za-z0-9_]+\]\])[ \t]*(#.*)?\r?$`)},
}

// detect returns a file's format by its content. The file of -promscrape.config has the keys of prometheus.yml; a vmagent's own keys are
// named under either format.
func detect(file string, text []byte) (string, error) {
	for _, sign := range signs {
		if sign.pattern.Match(text) {
			return sign.format, nil
		}
	}
	root, err := parsed(file, text)
	if err != nil {
		return "", err
	}
	if get(root, "probes") != nil {
		return "", fmt.Errorf("convert %s: its key probes shows that it is a configuration of hwsagent already: run it with --config.file %s", file, file)
	}
	for _, sign := range []struct{ key, format string }{
		{"service", "otelcol"}, {"exporters", "otelcol"}, {"processors", "otelcol"},
		{"resourceGroups", "hws"}, {"resources", "hws"}, {"targets", "hws"}, {"hosts", "hws"},
		{"metrics", "grafana-agent"}, {"prometheus", "grafana-agent"}, {"integrations", "grafana-agent"},
		{"scrape_configs", "prometheus"}, {"scrape_config_files", "prometheus"}, {"remote_write", "prometheus"},
	} {
		if get(root, sign.key) != nil {
			return sign.format, nil
		}
	}
	return "", fmt.Errorf("convert %s: the keys at its top show no format: name it by --from, one of %s", file, strings.Join(Formats(), ", "))
}

// resolve copies a tree without aliases, anchors, merges and comments. It fails if the copy has more than left nodes.
func resolve(n *yaml.Node, left *int) (*yaml.Node, bool) {
	if *left--; *left < 0 {
		return nil, false
	}
	if n.Kind == yaml.AliasNode {
		return resolve(n.Alias, left)
	}
	own := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value, Line: n.Line, Column: n.Column}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Value == "<<" {
			continue
		}
		merge := n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "<<"
		kid, ok := resolve(child, left)
		if !ok {
			return nil, false
		}
		switch {
		case merge && kid.Kind == yaml.MappingNode:
			for j := 0; j+1 < len(kid.Content); j += 2 {
				if get(own, kid.Content[j].Value) == nil && !written(n, kid.Content[j].Value) {
					own.Content = append(own.Content, kid.Content[j:j+2]...)
				}
			}
		case !merge:
			own.Content = append(own.Content, kid)
		}
	}
	return own, true
}

// written reports whether a mapping itself has a key.
func written(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// converter holds the state of one conversion.
type converter struct {
	file, format string
	out          *yaml.Node
	*account
	types   bool // hws: the note about the types of hosts was added
	secrets bool // hws: the note about encrypted passwords was added
}

func (c *converter) result() (Result, error) {
	slices.SortStableFunc(c.notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Made by `hwsagent config convert --from %s %s`. Relative paths are relative to this file.\n", c.format, c.file)
	for _, n := range c.notes {
		fmt.Fprintf(&b, "# %s\n", strings.ReplaceAll(n.String(), "\n", " "))
	}
	b.WriteByte('\n')
	d, err := yaml.NewDumper(&b, yaml.WithIndent(2))
	if err == nil {
		err = errors.Join(d.Dump(c.out), d.Close())
	}
	if err != nil {
		return Result{}, fmt.Errorf("convert %s: write the result: %w", c.file, err)
	}
	return Result{Config: strings.TrimRight(b.String(), "\n") + "\n", Notes: c.notes}, nil
}

// pairs calls f for each key of a mapping, in order; a nil n has no keys.
func pairs(n *yaml.Node, f func(key string, k, v *yaml.Node)) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		f(n.Content[i].Value, n.Content[i], n.Content[i+1])
	}
}

// get returns the value at a path of keys; nil if there is none.
func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		var found *yaml.Node
		pairs(n, func(k string, _, v *yaml.Node) {
			if k == key {
				found = v
			}
		})
		if n = found; n == nil {
			return nil
		}
	}
	return n
}

// keyOf returns the node of a key, which has the line; the mapping if there is no such key.
func keyOf(n *yaml.Node, key string) *yaml.Node {
	at := n
	pairs(n, func(k string, kn, _ *yaml.Node) {
		if k == key {
			at = kn
		}
	})
	return at
}

// text returns the scalar at a path, "" if there is none.
func text(n *yaml.Node, path ...string) string {
	if n = get(n, path...); n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

// items returns the entries of a list; a nil n has no entries.
func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func list(all ...*yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Content: all} }

// str returns a string, quoted if it would otherwise be read as something else.
func str(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// raw returns a number, a boolean or a duration, as written.
func raw(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// set sets a key of a mapping; an existing key keeps its place.
func set(n *yaml.Node, key string, v *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = v
			return
		}
	}
	n.Content = append(n.Content, str(key), v)
}

// ensure returns the value of a key, which it first creates with empty if it is missing.
func ensure(n *yaml.Node, key string, empty func() *yaml.Node) *yaml.Node {
	if v := get(n, key); v != nil {
		return v
	}
	v := empty()
	set(n, key, v)
	return v
}

// push appends to the list at a key.
func push(n *yaml.Node, key string, v *yaml.Node) {
	l := ensure(n, key, func() *yaml.Node { return list() })
	l.Content = append(l.Content, v)
}

// flow writes a mapping in one line.
func flow(n *yaml.Node) *yaml.Node {
	n.Style |= yaml.FlowStyle
	return n
}

// rewrite applies f to each scalar value below n, except in relabelling, where ${1} is a group.
func rewrite(n *yaml.Node, f func(string) string) {
	if n == nil {
		return
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if strings.Contains(n.Value, "$") || strings.Contains(n.Value, "%{") {
			n.Value = f(n.Value)
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			rewrite(item, f)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !strings.HasSuffix(n.Content[i].Value, "relabel_configs") {
				rewrite(n.Content[i+1], f)
			}
		}
	}
}

// literal escapes text that the agent would take for a variable.
func literal(s string) string { return strings.ReplaceAll(s, "${", "$${") }
