package web

import (
	"bytes"
	"fmt"
	"html"
	"reflect"
	"strings"
)

// A page is text with actions in double braces, which name a field of the present value, or
// "." for the value itself:
//
//	{{.Name.Of}}            its text, escaped
//	{{if .A}} … {{else if .B}} … {{else}} … {{end}}
//	{{with .A}} … {{end}}   as if; inside, .A is the present value
//	{{range .A}} … {{end}}  for each element of a slice; an else is for none
//
// A value is true unless it is the zero value or an empty slice. There are no functions, no
// methods and no variables: what a page shows is a field of its view.
//
// That is the part of html/template that the pages need. The whole of it calls methods by
// names that it learns at run time, so whoever links it links every exported method of every
// type in the program: a fifth of the binary. See docs/adr/0027-what-is-linked.md.
//
// Text is escaped for the two places where an action may stand: between tags, and within
// double quotes of an attribute that is not a script, a style, or the beginning of a URL.
type page []node

// node is a piece of text, or an action.
type node struct {
	text string

	kind        string   // "", show, if, with or range
	path        []string // none is "."
	then, other page
}

// mustParse reads a page. It panics where that is not well-formed: pages are part of the
// program.
func mustParse(text string) page {
	p, end, rest := parse(text)
	if end != "" {
		panic(fmt.Sprintf("{{%s}} without a beginning before %.40q", end, rest))
	}
	return p
}

// parse reads up to the end of text, or to the action that ends the block: end or else.
func parse(text string) (p page, end, rest string) {
	for {
		before, after, found := strings.Cut(text, "{{")
		p = append(p, node{text: before})
		if !found {
			return p, "", ""
		}
		action, after, found := strings.Cut(after, "}}")
		if !found {
			panic(fmt.Sprintf("{{%.40s is not closed", action))
		}
		word, argument, _ := strings.Cut(action, " ")
		switch word {
		case "end", "else":
			return p, action, after
		case "if", "with", "range":
			n, rest := block(word, argument, after)
			p, text = append(p, n), rest
		default:
			p, text = append(p, node{kind: "show", path: fields(action)}), after
		}
	}
}

// block reads a block whose beginning has been read.
func block(kind, argument, text string) (node, string) {
	n := node{kind: kind, path: fields(argument)}
	var end string
	n.then, end, text = parse(text)
	switch {
	case strings.HasPrefix(end, "else if "):
		var inner node
		inner, text = block("if", strings.TrimPrefix(end, "else if "), text)
		n.other = page{inner}
		return n, text // the inner one's end ends both
	case end == "else":
		n.other, end, text = parse(text)
	}
	if end != "end" {
		panic(fmt.Sprintf("{{%s %s}} ends with %q", kind, argument, end))
	}
	return n, text
}

func fields(path string) []string {
	name, ok := strings.CutPrefix(path, ".")
	if !ok {
		panic(fmt.Sprintf("{{%s}} names no field", path))
	}
	if name == "" {
		return nil
	}
	return strings.Split(name, ".")
}

// write appends the page of a value to b. It panics where the value has no such field.
func (p page) write(b *bytes.Buffer, v reflect.Value) {
	for i := range p {
		p[i].write(b, v)
	}
}

func (n *node) write(b *bytes.Buffer, v reflect.Value) {
	if n.kind == "" {
		b.WriteString(n.text)
		return
	}
	at := v
	for _, name := range n.path {
		if at = at.FieldByName(name); !at.IsValid() {
			panic(fmt.Sprintf("%s has no field %s", v.Type(), strings.Join(n.path, ".")))
		}
	}
	switch {
	case n.kind == "show":
		b.WriteString(html.EscapeString(fmt.Sprint(at.Interface())))
	case at.IsZero() || at.Kind() == reflect.Slice && at.Len() == 0:
		n.other.write(b, v)
	case n.kind == "if":
		n.then.write(b, v)
	case n.kind == "with":
		n.then.write(b, at)
	default:
		for i := range at.Len() {
			n.then.write(b, at.Index(i))
		}
	}
}
