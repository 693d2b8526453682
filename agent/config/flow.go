package config

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// flow writes a part of a configuration's tree in YAML's flow style, which all versions of YAML read alike. Each token
// stays on the line that it has in the file, so that the line numbers in another parser's errors are those of the file.
type flow struct {
	b    strings.Builder
	line int // where the next token is written, from 1
	// plain reports whether a scalar may stand without quotes, so that its reader decides on its type: it was written
	// so, and is not the value of a variable.
	plain func(*yaml.Node) bool
}

// flowText returns n in flow style, after the line breaks that bring it to its line.
func (d *document) flowText(n *yaml.Node) string {
	f := flow{line: 1, plain: func(n *yaml.Node) bool {
		_, expanded := d.written[n]
		return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 && (!expanded || n.Tag != "!!str")
	}}
	f.node(n)
	return f.b.String()
}

func (f *flow) node(n *yaml.Node) {
	for ; f.line < n.Line; f.line++ {
		f.b.WriteByte('\n')
	}
	switch n.Kind {
	case yaml.AliasNode:
		f.node(n.Alias) // its tokens are on earlier lines, so all go on this one
	case yaml.SequenceNode:
		f.b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				f.b.WriteByte(',')
			}
			f.node(item)
		}
		f.b.WriteByte(']')
	case yaml.MappingNode:
		f.b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				f.b.WriteByte(',')
			}
			f.node(n.Content[i])
			f.b.WriteString(": ")
			f.node(n.Content[i+1])
		}
		f.b.WriteByte('}')
	case yaml.ScalarNode:
		f.scalar(n)
	}
}

// bareScalar matches scalars that mean the same in flow style without quotes.
var bareScalar = regexp.MustCompile(`^(<<|~|[A-Za-z0-9_.+-]*[A-Za-z0-9_.])$`)

func (f *flow) scalar(n *yaml.Node) {
	switch {
	case n.Value == "" && n.ShortTag() == "!!null":
		f.b.WriteString("null")
	case f.plain(n) && bareScalar.MatchString(n.Value):
		f.b.WriteString(n.Value)
	default:
		f.b.WriteString(strconv.Quote(n.Value)) // YAML has the same escapes
	}
}
