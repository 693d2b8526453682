package convert

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v4"

	"hwsagent/agent/config"
)

// TestEveryKeyIsConvertedOrNamed: the agent takes what each of the files in testdata/cases becomes, and nothing of such a file is lost in
// silence: for each of its values, either a note names it as left out, or the result changes when the value changes.
func TestEveryKeyIsConvertedOrNamed(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*/*")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	further, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, further...) {
		format := filepath.Base(filepath.Dir(file))
		if name := filepath.Base(file); format == "testdata" {
			format, _, _ = strings.Cut(strings.TrimSuffix(name, ".yaml"), "-")
			switch format {
			case "metricshub":
				format = "hws"
			case "grafana":
				format = "grafana-agent"
			}
		}
		seen[format]++
		t.Run(format+"/"+filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			everyValue(t, format, text)
		})
	}
	for _, format := range Formats() {
		if format != "hws" && seen[format] < 5 {
			t.Errorf("%s has %d files", format, seen[format])
		}
	}
}

// input is a configuration whose values can be changed one by one.
type input interface {
	convert() (Result, error)
	values() []value
}

// value is a value of an input: a scalar, or an empty mapping or list.
type value struct {
	path   string
	change func() (restore func())
}

func everyValue(t *testing.T, format string, text []byte) {
	var in input
	switch format {
	case "vmagent":
		in = vmInput(t, text)
	case "alloy":
		in = &riverText{t, string(text)}
	case "telegraf":
		own := &tomlText{t: t}
		if err := toml.Unmarshal(text, &own.root); err != nil {
			t.Fatal(err)
		}
		in = own
	default:
		in = yamlInput(t, format, text)
	}
	all := in.values()
	whole, err := in.convert()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte(whole.Config), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, warns, err := config.LoadWithoutFiles(file, environment); err != nil {
		t.Errorf("the agent does not take it: %v\n%v\n%s", err, warns, whole.Config)
	}
	if len(all) < 10 {
		t.Errorf("there are %d values", len(all))
	}
	for _, v := range all {
		if named(whole, v.path) || format == "hws" && strings.HasSuffix(v.path, ".type") { // one note speaks of all types of hosts
			continue
		}
		restore := v.change()
		other, err := in.convert()
		restore()
		if err == nil && body(other) == body(whole) && texts(other) == texts(whole) {
			t.Errorf("%s is lost in silence", v.path)
		}
	}
	if t.Failed() {
		t.Log(whole.Config)
	}
}

// environment has every variable but those with defaults in the files.
func environment(name string) (string, bool) {
	switch name {
	case "INTERVAL", "REMOTE":
		return "", false
	case "REMOTE_URL":
		return "https://set.example", true
	}
	return "set", true
}

// texts returns the notes without their lines.
func texts(r Result) string {
	var b strings.Builder
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "%s: %s\n", n.Key, n.Text)
	}
	return b.String()
}

// named reports whether a note speaks of the value at a path: it leaves it out, or the mapping around it, or says what differs.
func named(r Result, path string) bool {
	return slices.ContainsFunc(r.Notes, func(n Note) bool {
		rest, below := strings.CutPrefix(path, n.Key)
		return below && (rest == "" || n.LeftOut && (rest[0] == '.' || rest[0] == '['))
	})
}

// body returns the result without the comments at its head.
func body(r Result) string {
	_, text, _ := strings.Cut(r.Config, "\n\n")
	return text
}

// changed returns another value of the same kind.
func changed(s string) string {
	if n, err := strconv.Atoi(s); err == nil {
		return strconv.Itoa(n + 1)
	}
	switch s {
	case "true":
		return "false"
	case "false":
		return "true"
	}
	return s + "x"
}

// tree is an input in YAML.
type tree struct {
	t      *testing.T
	format string
	root   *yaml.Node
	flags  []string // before the file, of a vmagent
}

func yamlInput(t *testing.T, format string, text []byte) *tree {
	root, err := parsed("f.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return &tree{t: t, format: format, root: root}
}

// vmInput reads flags, one in a line, and after a line of --- the file of -promscrape.config.
func vmInput(t *testing.T, text []byte) *tree {
	flags, file, found := strings.Cut(string(text), "\n---\n")
	if !found {
		return yamlInput(t, "vmagent", text)
	}
	in := yamlInput(t, "vmagent", []byte(file))
	for line := range strings.Lines(flags) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			in.flags = append(in.flags, line)
		}
	}
	return in
}

func (in *tree) convert() (Result, error) {
	text, err := yaml.Dump(in.root)
	if err != nil {
		in.t.Fatal(err)
	}
	if in.flags != nil {
		return Flags(append([]string{"-promscrape.config=f.yaml"}, in.flags...), func(string) ([]byte, error) { return text, nil })
	}
	return Convert(in.format, "f.yaml", text)
}

func (in *tree) values() (all []value) {
	for i := range in.flags {
		name, _, _ := strings.Cut(strings.TrimLeft(in.flags[i], "-"), "=")
		all = append(all, value{name, func() func() {
			before := in.flags[i]
			name, text, _ := strings.Cut(before, "=")
			in.flags[i] = name + "=" + changed(text)
			return func() { in.flags[i] = before }
		}})
	}
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		for i, inner := range n.Content {
			switch {
			case len(inner.Content) == 0 && (n.Kind == yaml.SequenceNode || i%2 == 1):
				all = append(all, leaf(n, i, path))
			case n.Kind == yaml.SequenceNode:
				walk(inner, fmt.Sprintf("%s[%d]", path, i))
			case i%2 == 1:
				walk(inner, strings.TrimPrefix(path+"."+n.Content[i-1].Value, "."))
			}
		}
	}
	walk(in.root, "")
	return all
}

// leaf returns the value without further ones below it at a place in a mapping or list. A scalar is changed; a key with an empty value is
// removed.
func leaf(n *yaml.Node, i int, path string) value {
	inner := n.Content[i]
	if n.Kind == yaml.SequenceNode {
		path = fmt.Sprintf("%s[%d]", path, i)
	} else {
		path = strings.TrimPrefix(path+"."+n.Content[i-1].Value, ".")
	}
	scalar := inner.Kind == yaml.ScalarNode && inner.ShortTag() != "!!null"
	return value{path, func() func() {
		if scalar {
			before := inner.Value
			inner.Value = changed(before)
			return func() { inner.Value = before }
		}
		before := n.Content
		if n.Content = slices.Delete(slices.Clone(before), i, i+1); n.Kind == yaml.MappingNode {
			n.Content = slices.Delete(n.Content, i-1, i)
		}
		return func() { n.Content = before }
	}}
}

// riverText is an input in Alloy's syntax, whose literals are changed in the text.
type riverText struct {
	t    *testing.T
	text string
}

func (in *riverText) convert() (Result, error) { return Convert("alloy", "f.alloy", []byte(in.text)) }

func (in *riverText) values() (all []value) {
	root, err := parsedRiver("f.alloy", []byte(in.text))
	if err != nil {
		in.t.Fatal(err)
	}
	lines := strings.SplitAfter(in.text, "\n")
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode {
			all = append(all, value{path, func() func() {
				before := in.text
				in.text = strings.Join(lines[:n.Line-1], "") + changedRiver(in.t, lines[n.Line-1], n.Column) + strings.Join(lines[n.Line:], "")
				return func() { in.text = before }
			}})
		}
		each(n, path, func(_, inner *yaml.Node, at, _ string) { walk(inner, at) })
	}
	walk(root, "")
	return all
}

// changedRiver changes the value that begins at a column of a line: the first letter of a text or a word, or a digit.
func changedRiver(t *testing.T, line string, column int) string {
	before, rest := line[:column-1], line[column-1:]
	for old, other := range map[string]string{"true": "false", "false": "true"} {
		if after, ok := strings.CutPrefix(rest, old); ok {
			return before + other + after
		}
	}
	if i := strings.IndexAny(rest, "\"`"); i >= 0 && !strings.Contains(rest[:i], " ") { // a text, or the argument of a call
		before, rest = before+rest[:i], rest[i:]
		end := 1 + strings.IndexByte(rest[1:], rest[0])
		return before + rest[:1] + changed(rest[1:end]) + rest[end:]
	}
	i := strings.IndexAny(rest, "0123456789")
	if dot := strings.LastIndex(strings.TrimRight(rest, " ,]\n)"), "."); i < 0 && dot > 0 {
		return before + rest[:dot] + "x" + rest[dot:]
	} else if i < 0 {
		t.Fatalf("what is %q?", rest)
	}
	return before + rest[:i] + "9" + rest[i:]
}

// tomlText is an input in TOML.
type tomlText struct {
	t    *testing.T
	root map[string]any
}

func (in *tomlText) convert() (Result, error) {
	text, err := toml.Marshal(in.root)
	if err != nil {
		in.t.Fatal(err)
	}
	return Convert("telegraf", "f.conf", text)
}

func (in *tomlText) values() (all []value) {
	var walk func(v any, path string, put func(any))
	walk = func(v any, path string, put func(any)) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key], strings.TrimPrefix(path+"."+key, "."), func(other any) { v[key] = other })
			}
			if len(v) == 0 {
				all = append(all, value{path, func() func() { put(map[string]any{"other": true}); return func() { put(v) } }})
			}
		case []any:
			for i, item := range v {
				walk(item, fmt.Sprintf("%s[%d]", path, i), func(other any) { v[i] = other })
			}
		default:
			other := v
			switch v := v.(type) {
			case string:
				other = changed(v)
			case bool:
				other = !v
			case int64:
				other = v + 1
			}
			all = append(all, value{path, func() func() { put(other); return func() { put(v) } }})
		}
	}
	walk(in.root, "", nil)
	return all
}
