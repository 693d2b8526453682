package convert

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Tags of values in a tree of Alloy's syntax that are no literals.
const (
	tagReference = "!reference" // such as prometheus.remote_write.default.receiver
	tagVariable  = "!variable"  // text with ${VAR}, for the agent to expand
	tagOther     = "!expression"
)

// maxStatements bounds, times two, how many parts a block has.
const maxStatements = 10_000

// maxDepth bounds how deep blocks and expressions of Alloy's syntax may be nested.
const maxDepth = 50

// river reads Alloy's syntax: blocks, attributes and expressions. Grammar: grafana.com/docs/alloy, "Configuration syntax".
type river struct {
	text  string
	at    int // the next byte
	line  int // of at, from 1
	begin int // where that line begins
	depth int
	nodes int
}

// riverError is a mistake at a line.
type riverError struct {
	line int
	text string
}

func (e riverError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.text) }

// parsedRiver returns a file in Alloy's syntax as a tree. A block is a mapping under its name, and under its label if it has one; blocks
// of one name, or of one label, are a list.
func parsedRiver(file string, text []byte) (*yaml.Node, error) {
	if len(text) > maxBytes || !utf8.Valid(text) {
		return nil, fmt.Errorf("convert %s: the file has more than %d bytes, or is not UTF-8", file, maxBytes)
	}
	r := &river{text: string(text), line: 1}
	root, err := r.body(false)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", file, err)
	}
	return root, nil
}

func (r *river) fail(format string, args ...any) error {
	return riverError{r.line, fmt.Sprintf(format, args...)}
}

// node returns a node at the present place.
func (r *river) node(kind yaml.Kind, tag, value string) *yaml.Node {
	r.nodes++
	return &yaml.Node{Kind: kind, Tag: tag, Value: value, Line: r.line, Column: r.at - r.begin + 1}
}

// deeper counts one more level; leave with depth--.
func (r *river) deeper() error {
	if r.depth++; r.depth > maxDepth || r.nodes > maxNodes {
		return r.fail("the file is nested too deep, or too large")
	}
	return nil
}

// space skips blanks and comments, and line ends if lines is set. It reports whether a line ended.
func (r *river) space(lines bool) (ended bool) {
	for r.at < len(r.text) {
		rest := r.text[r.at:]
		switch {
		case rest[0] == '\n' && !lines:
			return true
		case rest[0] == '\n':
			ended = true
			r.skip(1)
		case rest[0] == ' ', rest[0] == '\t', rest[0] == '\r':
			r.skip(1)
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			r.skip(n)
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest, "*/")
			if n < 0 {
				n = len(rest) - 2
			}
			r.skip(n + 2)
		default:
			return ended
		}
	}
	return true
}

// skip passes n bytes and counts their lines.
func (r *river) skip(n int) {
	for range n {
		if r.text[r.at] == '\n' {
			r.line++
			r.begin = r.at + 1
		}
		r.at++
	}
}

// take passes a text if it comes next.
func (r *river) take(s string) bool {
	if strings.HasPrefix(r.text[r.at:], s) {
		r.skip(len(s))
		return true
	}
	return false
}

func letter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// name passes an identifier, "" if none comes next.
func (r *river) name() string {
	from := r.at
	for r.at < len(r.text) && (letter(r.text[r.at]) || r.at > from && r.text[r.at] >= '0' && r.text[r.at] <= '9') {
		r.at++
	}
	return r.text[from:r.at]
}

// body reads attributes and blocks up to the end of the file, or up to a brace.
func (r *river) body(inner bool) (*yaml.Node, error) {
	if err := r.deeper(); err != nil {
		return nil, err
	}
	defer func() { r.depth-- }()
	own := r.node(yaml.MappingNode, "!!map", "")
	for {
		r.space(true)
		switch {
		case inner && r.take("}"):
			return own, nil
		case r.at == len(r.text) && !inner:
			return own, nil
		case r.at == len(r.text):
			return nil, r.fail("a block has no end")
		}
		if len(own.Content) > maxStatements {
			return nil, r.fail("a block has too many parts")
		}
		if err := r.statement(own); err != nil {
			return nil, err
		}
	}
}

// statement reads an attribute or a block into a mapping.
func (r *river) statement(own *yaml.Node) error {
	key := r.node(yaml.ScalarNode, "!!str", "")
	for {
		part := r.name()
		if part == "" {
			return r.fail("here must be the name of a block or an attribute")
		}
		if key.Value += part; !r.take(".") {
			break
		}
		key.Value += "."
	}
	r.space(false)
	if r.take("=") {
		r.space(false)
		v, err := r.expression()
		if err != nil {
			return err
		}
		own.Content = append(own.Content, key, v)
		if !r.space(false) && !strings.HasPrefix(r.text[r.at:], "}") {
			return r.fail("the attribute %s must end with the line", key.Value)
		}
		return nil
	}
	label := ""
	if strings.HasPrefix(r.text[r.at:], `"`) {
		v, err := r.quoted()
		if err != nil {
			return err
		}
		label = v.Value
		r.space(false)
	}
	if !r.take("{") {
		return r.fail("after %s must be = or {", key.Value)
	}
	block, err := r.body(true)
	if err != nil {
		return err
	}
	if label != "" {
		labelled := *key
		labelled.Value = label
		at := get(own, key.Value)
		if at == nil || at.Kind != yaml.MappingNode {
			at = r.node(yaml.MappingNode, "!!map", "")
			own.Content = append(own.Content, key, at)
		}
		own, key = at, &labelled
	}
	addBlock(own, key, block)
	return nil
}

// addBlock adds a block under a key; several are a list.
func addBlock(own, key, block *yaml.Node) {
	for i := 0; i+1 < len(own.Content); i += 2 {
		if own.Content[i].Value != key.Value {
			continue
		}
		if before := own.Content[i+1]; before.Kind != yaml.SequenceNode {
			own.Content[i+1] = list(before)
		}
		own.Content[i+1].Content = append(own.Content[i+1].Content, block)
		return
	}
	own.Content = append(own.Content, key, block)
}
