package imports

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rowOf is the row that an entry reads, and to which its references apply.
type rowOf struct {
	module string // the default module of names
	entry  string
	column string
	scalar bool
	fixed  bool // the row is a single object without an index
}

// short returns an OID as written in the table: its own columns by number.
func (at *rowOf) short(oid string) string {
	if rest, ok := strings.CutPrefix(oid, at.entry+"."); ok && !strings.Contains(rest, ".") {
		return rest
	}
	return oid
}

var (
	subindex = regexp.MustCompile(`^subindex(\d{1,2})$`)
	partly   = regexp.MustCompile(`^(.+?):(\d{1,2})(?:-(\d{1,2}))?$`)
	instance = regexp.MustCompile(`^(.+?)((?:\.\d+)+)$`)
	dotted   = regexp.MustCompile(`^\.?(1(?:\.\d+){5,})$`)
)

// ref converts the text in {{ }} to a reference in a template of package library.
func (c *librenms) ref(s string, at *rowOf) (string, bool) {
	s = strings.TrimPrefix(s, "$")
	if m := dotted.FindStringSubmatch(s); m != nil {
		return m[1] + "[]", true
	}
	if m := subindex.FindStringSubmatch(s); m != nil {
		n, _ := strconv.Atoi(m[1]) // two digits
		return "#" + strconv.Itoa(n+1), true
	}
	switch {
	case s == "index":
		return "#", true
	case s == "index_string", s == "index_string:s":
		return "#text", true
	case s == "", strings.ContainsAny(s, " |"):
		return "", false
	}
	moduleName, name, ok := strings.Cut(s, "::")
	if !ok {
		moduleName, name = at.module, s
	}
	places := ""
	if m := partly.FindStringSubmatch(name); m != nil {
		from, _ := strconv.Atoi(m[2]) // two digits
		name, places = m[1], "["+strconv.Itoa(from+1)+"]"
		if to, err := strconv.Atoi(m[3]); err == nil {
			places = "[" + strconv.Itoa(from+1) + ":" + strconv.Itoa(max(from, to)+1) + "]"
		}
	}
	index := ""
	if m := instance.FindStringSubmatch(name); m != nil {
		name, index = m[1], m[2]
	}
	o, ok := c.mibs.lookup(moduleName, name)
	switch {
	case !ok:
		return "", false
	case index != "":
		return o.oid.String() + index + "[]", true
	case o.scalar && !at.scalar:
		return o.oid.String() + ".0[]", true
	}
	return at.short(o.oid.String()) + places, true
}

// skips reads skip_values, skip_value_lt and skip_value_gt.
func (c *librenms) skips(t *table, v *value, at *rowOf, x, options node) (why string) {
	all := x.get("skip_values").list()
	// Each key of an entry replaces the same key of its class.
	if common := options.get("skip_values").list(); len(common) > len(all) {
		all = append(all, common[len(all):]...)
	}
	for _, s := range all {
		if !s.isMapping() {
			if text := s.text(); text != "" {
				v.Not = append(v.Not, text)
			}
			continue
		}
		keep, key, condition, why := c.condition(s, at)
		switch {
		case why != "":
			return why
		case keep:
			t.Only = append(t.Only, map[string]any{key: condition})
		default:
			t.Unless = append(t.Unless, map[string]any{key: condition})
		}
	}
	v.Not = sortedUnique(v.Not)
	for key, into := range map[string]**float64{"skip_value_lt": &v.Least, "skip_value_gt": &v.Most} {
		said := x.get(key)
		if !said.there() {
			said = options.get(key)
		}
		if n, ok := said.number(); ok {
			*into = &n
		}
	}
	return ""
}

// condition reads {oid, op, value}. Rows that meet it are dropped; if keep is set, all others are.
func (c *librenms) condition(s node, at *rowOf) (keep bool, key string, condition any, why string) {
	if device := s.get("device").text(); device != "" {
		return false, "", nil, "a condition on a fact that only LibreNMS has: " + device
	}
	object := s.get("oid").text()
	if m := braces.FindStringSubmatch(object); m != nil && m[0] == object {
		object = m[1]
	}
	key, ok := c.ref(object, at)
	if !ok {
		return false, "", nil, "a condition on an object that cannot be found"
	}
	op := s.get("op").text()
	if op == "" {
		op = "!="
	}
	said := s.get("value")
	texts := said.texts()
	op, negated := strings.CutPrefix(op, "not_")
	switch op {
	case "!=", "!==":
		op, negated = "=", true
	case "==", "in_array":
		op = "="
	}
	number, isNumber := said.number()
	switch op {
	case "=":
		if len(texts) == 0 {
			condition = map[string]any{"matches": "^$"}
		} else {
			condition = texts
		}
	case "<", "<=", ">", ">=":
		if !isNumber {
			return false, "", nil, "a condition compares with a text"
		}
		condition = map[string]any{map[string]string{"<": "below", "<=": "most", ">": "above", ">=": "least"}[op]: number}
	case "contains", "starts", "ends", "regex":
		pattern, ok := expression(op, texts)
		if !ok {
			return false, "", nil, "a condition has an expression that is not understood"
		}
		condition = map[string]any{"matches": pattern}
	case "exists":
		condition = map[string]any{"exists": said.text() != "false"}
	default:
		return false, "", nil, "a condition has an unknown comparison: " + op
	}
	return negated, key, condition, ""
}

// expression converts a comparison of texts to a regular expression.
func expression(op string, texts []string) (string, bool) {
	if len(texts) == 0 {
		return "", false
	}
	var all []string
	for _, s := range texts {
		switch op {
		case "regex":
			p, ok := perlExpression(s)
			if !ok {
				return "", false
			}
			all = append(all, p)
		case "starts":
			all = append(all, "^"+regexp.QuoteMeta(s))
		case "ends":
			all = append(all, regexp.QuoteMeta(s)+"$")
		case "=":
			all = append(all, "^"+regexp.QuoteMeta(s)+"$")
		default:
			all = append(all, regexp.QuoteMeta(s))
		}
	}
	// Expressions of package library ignore case; LibreNMS' comparisons do not.
	return "(?-i:" + strings.Join(slices.Compact(all), "|") + ")", true
}

// perlExpression removes PHP's delimiters and flags from an expression.
func perlExpression(s string) (string, bool) {
	if len(s) < 3 {
		return "", false
	}
	if open := strings.IndexByte("([{</#~!@%,", s[0]); open >= 0 {
		shut := ")]}>/#~!@%,"[open]
		end := strings.LastIndexByte(s, shut)
		if end < 1 || strings.Trim(s[end+1:], "imsu") != "" {
			return "", false
		}
		flags := strings.ReplaceAll(s[end+1:], "u", "") // Go's expressions always use Unicode
		if s = s[1:end]; flags != "" {
			s = "(?" + flags + ":" + s + ")"
		}
	}
	s = strings.ReplaceAll(s, `\/`, "/")
	_, err := regexp.Compile("(?i:" + s + ")")
	return s, err == nil
}
