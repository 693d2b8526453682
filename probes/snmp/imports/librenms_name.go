package imports

import (
	"regexp"
	"strings"
)

// name makes the template of the component's name.
func (c *librenms) name(x node, at *rowOf, object string) string {
	descr := c.template(x.get("descr").text(), at)
	group := c.template(x.get("group").text(), at)
	if group != "" && !strings.Contains(descr, group) {
		descr = strings.TrimSpace(group + " " + descr)
	}
	if descr == "" {
		return ""
	}
	return descr
}

var braces = regexp.MustCompile(`\{\{\s*(.*?)\s*\}\}`)

// template converts a text with {{ }} to a template of package library. An unknown reference becomes the index of the row, and
// is counted.
func (c *librenms) template(s string, at *rowOf) string {
	if !strings.Contains(s, "{{") {
		if ref, ok := c.ref(s, at); ok && s != "index" {
			return "{" + ref + "}"
		}
		return strings.TrimSpace(literal(s))
	}
	var b strings.Builder
	for {
		m := braces.FindStringSubmatchIndex(s)
		if m == nil {
			b.WriteString(literal(s))
			return strings.TrimSpace(b.String())
		}
		b.WriteString(literal(s[:m[0]]))
		if ref, ok := c.ref(s[m[2]:m[3]], at); ok {
			b.WriteString("{" + ref + "}")
		} else {
			c.file.leave("in part: a name refers to an object that cannot be found", s[m[2]:m[3]])
			b.WriteString("{#}")
		}
		s = s[m[1]:]
	}
}
