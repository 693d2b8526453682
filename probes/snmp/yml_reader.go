package snmp

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"
)

// Note is a message about a place in a file of modules.
type Note struct {
	File         string
	Line, Column int    // 0 if it is about the whole file
	Text         string // the message
	Try          string // the remedy; may be empty
	// Severe marks an error in the file: an unknown key, or a secret that other users can
	// read.
	Severe bool
}

// Error returns place, text and remedy, as file:line:column: text: try.
func (n *Note) Error() string {
	s := n.File
	if n.Line > 0 {
		s += fmt.Sprintf(":%d:%d", n.Line, n.Column)
	}
	s += ": " + n.Text
	if n.Try != "" {
		s += "; " + n.Try
	}
	return s
}

// Bounds of one file. The published file of 53 modules makes 300,000 nodes.
const (
	maxYMLNodes = 2_000_000 // with aliases followed
	maxYMLNotes = 50        // of one kind, of one file
	maxYMLDepth = 40        // the deepest meaningful file has 8
)

// ymlReader reads values off a tree, and collects mistakes with their places.
type ymlReader struct {
	file    string
	broken  []*Note
	unknown []*Note
	nodes   int
	depth   int
}

func (r *ymlReader) fail(n *yaml.Node, try, format string, args ...any) {
	if len(r.broken) < maxYMLNotes {
		r.broken = append(r.broken, &Note{File: r.file, Line: n.Line, Column: n.Column, Text: fmt.Sprintf(format, args...), Try: try})
	}
}

// follow returns the node that an alias stands for. It counts visits, so that aliases of aliases
// end.
func (r *ymlReader) follow(n *yaml.Node) *yaml.Node {
	if r.nodes++; n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// over reports whether the file is too large or too deep, and records that once.
func (r *ymlReader) over(n *yaml.Node) bool {
	if r.nodes < maxYMLNodes && r.depth < maxYMLDepth {
		return false
	}
	if r.nodes < math.MaxInt/2 {
		r.nodes = math.MaxInt / 2
		r.fail(n, "replace the aliases by their values, and use fewer levels", "the file is too large or too deep once its aliases are followed")
	}
	return true
}

// field is a key of a mapping and the function that reads its value.
type field struct {
	key  string
	read func(*yaml.Node)
}

// mapping reads the known fields of n; it notes and skips other keys.
func (r *ymlReader) mapping(n *yaml.Node, what string, known ...field) {
	seen := map[string]bool{}
	r.entries(n, what, func(k, v *yaml.Node) {
		i := slices.IndexFunc(known, func(f field) bool { return f.key == k.Value })
		switch {
		case seen[k.Value]: // the merged one, or a mistake that entries has noted
		case i >= 0:
			known[i].read(v)
		case len(r.unknown) < maxYMLNotes:
			var keys []string
			for _, f := range known {
				keys = append(keys, f.key)
			}
			r.unknown = append(r.unknown, &Note{
				File: r.file, Line: k.Line, Column: k.Column, Severe: true,
				Text: fmt.Sprintf("the key %sof %s is not known and has no effect", keyOf(what, k), what),
				Try:  "take it out, or write one of " + strings.Join(keys, ", "),
			})
		}
		seen[k.Value] = true
	})
}

// entries calls f for each key and value of n, and then for those of merged mappings.
func (r *ymlReader) entries(n *yaml.Node, what string, f func(k, v *yaml.Node)) {
	at := n
	n = r.follow(n)
	if r.depth++; r.over(at) {
		r.depth--
		return
	}
	defer func() { r.depth-- }()
	if empty(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fail(at, "write keys and values below it", "%s must be a mapping", what)
		return
	}
	seen := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := r.follow(n.Content[i]), n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode:
			r.fail(n.Content[i], "write a word", "a key of %s is not a word", what)
		case k.Value == "<<":
			merged = append(merged, v)
		case seen[k.Value]:
			r.fail(n.Content[i], "take one of them out", "the key %sof %s is there twice", keyOf(what, k), what)
		default:
			seen[k.Value] = true
			f(k, v)
		}
	}
	for _, m := range merged {
		for _, from := range r.merges(m) {
			r.entries(from, what, f)
		}
	}
}

// merges returns the mappings of a merge key.
func (r *ymlReader) merges(n *yaml.Node) []*yaml.Node {
	if m := r.follow(n); m.Kind == yaml.SequenceNode {
		return m.Content
	}
	return []*yaml.Node{n}
}

// aLogin is the name of a mapping with secrets: messages do not repeat even its keys.
const aLogin = "a login"

func keyOf(what string, k *yaml.Node) string {
	if what == aLogin {
		return ""
	}
	return short(k.Value) + " "
}

// list calls f for each item of n.
func (r *ymlReader) list(n *yaml.Node, what string, f func(*yaml.Node)) {
	at := n
	n = r.follow(n)
	if r.over(at) || empty(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		r.fail(at, "write - before each of them", "%s must be a list", what)
		return
	}
	r.depth++
	for _, item := range n.Content {
		f(item)
	}
	r.depth--
}

func empty(n *yaml.Node) bool {
	return n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// text returns a scalar as written; if n is not a scalar, ok is false and the mistake is recorded.
func (r *ymlReader) text(n *yaml.Node, what string) (string, bool) {
	at := n
	n = r.follow(n)
	switch {
	case r.over(at):
		return "", false
	case empty(n):
		return "", true
	case n.Kind != yaml.ScalarNode:
		r.fail(at, "write one value", "%s must be a text or number", what)
		return "", false
	}
	return n.Value, true
}

func (r *ymlReader) number(n *yaml.Node, what string) float64 {
	s, ok := r.text(n, what)
	if !ok || s == "" {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		r.fail(n, "write a number such as 0.1", "%s is %s, not a number", what, short(s))
		return 0
	}
	return v
}

func (r *ymlReader) integer(n *yaml.Node, what string, least, most int) int {
	s, ok := r.text(n, what)
	if !ok || s == "" {
		return 0
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < int64(least) || v > int64(most) {
		r.fail(n, "", "%s is %s, not a number from %d to %d", what, short(s), least, most)
		return 0
	}
	return int(v)
}

func (r *ymlReader) flag(n *yaml.Node, what string) bool {
	s, ok := r.text(n, what)
	switch strings.ToLower(s) {
	case "true", "yes", "on", "y":
		return true
	case "false", "no", "off", "n", "":
	default:
		if ok {
			r.fail(n, "write true or false", "%s is %s, not true or false", what, short(s))
		}
	}
	return false
}

func (r *ymlReader) duration(n *yaml.Node, what string) time.Duration {
	s, ok := r.text(n, what)
	if !ok || s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		var long model.Duration
		long, err = model.ParseDuration(s)
		d = time.Duration(long)
	}
	if err != nil || d <= 0 {
		r.fail(n, "write a time such as 5s", "%s is %s, not a time above 0", what, short(s))
		return 0
	}
	return d
}

// oid returns an OID in numbers, without a leading dot.
func (r *ymlReader) oid(n *yaml.Node, what string) string {
	s, ok := r.text(n, what)
	if !ok {
		return ""
	}
	o, err := parseOID(s)
	if err != nil || len(o) < 2 {
		r.fail(n, "write it in numbers, such as 1.3.6.1.2.1.1; names belong to the generator's file, generator.yml, which makes an snmp.yml", "%s is %s, not an OID", what, short(s))
		return ""
	}
	return o.String()
}

func (r *ymlReader) oids(n *yaml.Node, what string) (all []string) {
	r.list(n, what, func(item *yaml.Node) {
		if o := r.oid(item, what); o != "" {
			all = append(all, o)
		}
	})
	return all
}

// short quotes a text of the file for a message.
func short(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return strconv.Quote(strings.ToValidUTF8(s, "\uFFFD"))
}
