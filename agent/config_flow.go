package agent

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// flow writes a part of a configuration's tree as YAML's flow style, which any version of
// YAML reads alike, each token on the line that it has in the file: a parser of another
// program that tells mistakes by line tells the file's own lines.
type flow struct {
	b    strings.Builder
	line int // of what is written next, from 1
	// plain says that a scalar may stand without quotes, so that its reader decides what
	// it means: it was written so, and is not the value of a variable.
	plain func(*yaml.Node) bool
}

// flowText is n as flow style, beginning with the line breaks that bring it to its line.
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
		f.node(n.Alias) // stands on earlier lines, and thus on this one
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

// bareScalar is a scalar that means the same in flow style without quotes.
var bareScalar = regexp.MustCompile(`^(<<|~|[A-Za-z0-9_.+-]*[A-Za-z0-9_.])$`)

func (f *flow) scalar(n *yaml.Node) {
	switch {
	case n.Value == "" && n.ShortTag() == "!!null":
		f.b.WriteString("null")
	case f.plain(n) && bareScalar.MatchString(n.Value):
		f.b.WriteString(n.Value)
	default:
		f.b.WriteString(strconv.Quote(n.Value)) // the escapes are YAML's, too
	}
}
