package convert

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// operators are those between two values.
var operators = []string{"==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "^", "<", ">"}

// maxOperators bounds how many operators an expression has.
const maxOperators = 1000

// expression reads a value, or several with operators between them: texts are joined, anything else stays as it is written.
func (r *river) expression() (*yaml.Node, error) {
	if err := r.deeper(); err != nil {
		return nil, err
	}
	defer func() { r.depth-- }()
	from := r.at
	v, err := r.operand()
	for n := 0; err == nil; n++ {
		if n > maxOperators {
			return nil, r.fail("an expression has too many operators")
		}
		before := *r
		r.space(false)
		i := slices.IndexFunc(operators, r.take)
		if i < 0 {
			*r = river{r.text, before.at, before.line, before.begin, r.depth, r.nodes}
			return v, nil
		}
		r.space(true)
		var next *yaml.Node
		if next, err = r.operand(); err != nil {
			break
		}
		if joined := *v; operators[i] == "+" && textual(v) && textual(next) {
			joined.Value += next.Value
			if next.Tag == tagVariable && v.Tag != tagVariable {
				joined.Value, joined.Tag = literal(v.Value)+next.Value, tagVariable
			} else if v.Tag == tagVariable && next.Tag != tagVariable {
				joined.Value = v.Value + literal(next.Value)
			}
			v = &joined
			continue
		}
		v = &yaml.Node{Kind: yaml.ScalarNode, Tag: tagOther, Value: r.text[from:r.at], Line: v.Line, Column: v.Column}
	}
	return nil, err
}

func textual(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == tagVariable)
}

// operand reads one value with what follows it: accesses and calls.
func (r *river) operand() (*yaml.Node, error) {
	if r.at == len(r.text) {
		return nil, r.fail("here must be a value")
	}
	switch c := r.text[r.at]; {
	case c == '"':
		return r.quoted()
	case c == '`':
		n := r.node(yaml.ScalarNode, "!!str", "")
		end := strings.IndexByte(r.text[r.at+1:], '`')
		if end < 0 {
			return nil, r.fail("a text has no end")
		}
		n.Value = r.text[r.at+1 : r.at+1+end]
		r.skip(end + 2)
		return n, nil
	case c == '[':
		return r.list(']')
	case c == '{':
		return r.object()
	case c == '(':
		r.skip(1)
		r.space(true)
		n, err := r.expression()
		if err != nil {
			return nil, err
		}
		if r.space(true); !r.take(")") {
			return nil, r.fail("here must be )")
		}
		return n, nil
	case c == '-' || c == '!' || c >= '0' && c <= '9' || c == '.':
		return r.number()
	case letter(c):
		return r.reference()
	}
	return nil, r.fail("here must be a value")
}

func (r *river) number() (*yaml.Node, error) {
	n := r.node(yaml.ScalarNode, tagOther, "")
	from := r.at
	for r.at < len(r.text) && strings.IndexByte("+-!.0123456789eEx", r.text[r.at]) >= 0 {
		r.at++
	}
	n.Value = r.text[from:r.at]
	if _, err := strconv.ParseFloat(n.Value, 64); err == nil {
		n.Tag = "!!float"
		return n, nil
	}
	if name := r.name(); name == "" {
		return nil, riverError{n.Line, "here must be a value"}
	}
	n.Value = r.text[from:r.at]
	return n, nil
}

// quoted reads a text in double quotes.
func (r *river) quoted() (*yaml.Node, error) {
	n := r.node(yaml.ScalarNode, "!!str", "")
	for i := r.at + 1; i < len(r.text) && r.text[i] != '\n'; i++ {
		if r.text[i] == '\\' {
			i++
			continue
		}
		if r.text[i] != '"' {
			continue
		}
		value, err := strconv.Unquote(r.text[r.at : i+1])
		if err != nil {
			return nil, r.fail("the text is not valid: %v", err)
		}
		n.Value = value
		r.at = i + 1
		return n, nil
	}
	return nil, r.fail("a text has no end on its line")
}

// list reads values up to a bracket, after the one that is next.
func (r *river) list(end byte) (*yaml.Node, error) {
	own := r.node(yaml.SequenceNode, "!!seq", "")
	r.skip(1)
	for {
		if r.space(true); r.take(string(end)) {
			return own, nil
		}
		v, err := r.expression()
		if err != nil {
			return nil, err
		}
		own.Content = append(own.Content, v)
		if r.space(true); !r.take(",") && (r.at == len(r.text) || r.text[r.at] != end) {
			return nil, r.fail("here must be a comma or %c", end)
		}
	}
}

// object reads keys and values in braces.
func (r *river) object() (*yaml.Node, error) {
	own := r.node(yaml.MappingNode, "!!map", "")
	r.skip(1)
	for {
		if r.space(true); r.take("}") {
			return own, nil
		}
		key := r.node(yaml.ScalarNode, "!!str", "")
		if strings.HasPrefix(r.text[r.at:], `"`) {
			quoted, err := r.quoted()
			if err != nil {
				return nil, err
			}
			key.Value = quoted.Value
		} else if key.Value = r.name(); key.Value == "" {
			return nil, r.fail("here must be a key")
		}
		if r.space(true); !r.take("=") {
			return nil, r.fail("here must be =")
		}
		r.space(true)
		v, err := r.expression()
		if err != nil {
			return nil, err
		}
		own.Content = append(own.Content, key, v)
		if r.space(true); !r.take(",") && (r.at == len(r.text) || r.text[r.at] != '}') {
			return nil, r.fail("here must be a comma or }")
		}
	}
}

// reference reads a word, a reference to a value of another component, or a call.
func (r *river) reference() (*yaml.Node, error) {
	from, n := r.at, r.node(yaml.ScalarNode, tagReference, "")
	r.name()
	switch n.Value = r.text[from:r.at]; n.Value {
	case "true", "false":
		n.Tag = "!!bool"
		return n, nil
	case "null":
		n.Tag = "!!null"
		return n, nil
	}
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case '.':
			r.at++
			if r.name() == "" {
				return nil, r.fail("here must be a name")
			}
		case '[':
			if _, err := r.list(']'); err != nil {
				return nil, err
			}
			n.Tag = tagOther
		case '(':
			function := r.text[from:r.at]
			args, err := r.list(')')
			if err != nil {
				return nil, err
			}
			if v := called(function, args.Content); v != nil {
				v.Line, v.Column = n.Line, n.Column
				return v, nil
			}
			n.Tag = tagOther
		default:
			n.Value = r.text[from:r.at]
			return n, nil
		}
	}
	n.Value = r.text[from:r.at]
	return n, nil
}

// called returns the value of a call for functions that have one here, else nil.
func called(function string, args []*yaml.Node) *yaml.Node {
	switch {
	case (function == "sys.env" || function == "env") && len(args) == 1 && args[0].Tag == "!!str" && otelVariable.MatchString("${"+args[0].Value+"}"):
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tagVariable, Value: "${" + args[0].Value + "}"}
	case function == "coalesce" && len(args) == 2 && args[0].Tag == tagVariable && args[1].Tag == "!!str" && !strings.ContainsAny(args[1].Value, "}"):
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tagVariable, Value: strings.TrimSuffix(args[0].Value, "}") + ":-" + args[1].Value + "}"}
	case (function == "nonsensitive" || function == "convert.nonsensitive") && len(args) == 1:
		own := *args[0]
		return &own
	case function == "concat" || function == "array.concat":
		own := list()
		own.Tag = "!!seq"
		for _, arg := range args {
			if arg.Kind == yaml.SequenceNode {
				own.Content = append(own.Content, arg.Content...)
			} else {
				own.Content = append(own.Content, arg)
			}
		}
		return own
	}
	return nil
}
