package library

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"hwsagent/probes/hw"
)

// maxMistakes bounds the reported errors of one file.
const maxMistakes = 30

// reader reads values off a tree and collects errors with their lines.
type reader struct {
	file string
	errs []error
}

func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	if len(r.errs) < maxMistakes {
		r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.file, n.Line, fmt.Sprintf(format, args...)))
	}
}

// fields are the functions that read the values of a mapping, by key.
type fields map[string]func(*yaml.Node)

func (r *reader) mapping(n *yaml.Node, what string, known fields) {
	r.entries(n, what, func(k, v *yaml.Node) {
		if read := known[k.Value]; read != nil {
			read(v)
		} else {
			r.fail(k, "%s has no key %.40q; there are %s", what, k.Value, strings.Join(words(known), ", "))
		}
	})
}

func (r *reader) entries(n *yaml.Node, what string, read func(k, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s must be a mapping", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if seen[k.Value] {
			r.fail(k, "%s has the key %.40q twice", what, k.Value)
			continue
		}
		seen[k.Value] = true
		read(k, n.Content[i+1])
	}
}

func (r *reader) list(n *yaml.Node, read func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "a list is expected here")
		return
	}
	for _, i := range n.Content {
		read(i)
	}
}

func (r *reader) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		r.fail(n, "a text is expected here")
		return ""
	}
	return n.Value
}

// texts returns the texts of a list, or a single one.
func (r *reader) texts(n *yaml.Node) (all []string) {
	if n.Kind == yaml.ScalarNode {
		return []string{r.text(n)}
	}
	r.list(n, func(i *yaml.Node) { all = append(all, r.text(i)) })
	return all
}

func (r *reader) set(n *yaml.Node) map[string]bool {
	all := map[string]bool{}
	for _, s := range r.texts(n) {
		all[strings.ToLower(valueOf(s))] = true
	}
	return all
}

func (r *reader) number(n *yaml.Node) float64 {
	v, err := strconv.ParseFloat(r.text(n), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		r.fail(n, "%.40q is not a number", n.Value)
	}
	return v
}

func (r *reader) flag(n *yaml.Node) bool {
	return r.oneOf(n, []string{"true", "false"}) == "true"
}

func (r *reader) oneOf(n *yaml.Node, all []string) string {
	s := r.text(n)
	if !slices.Contains(all, s) {
		r.fail(n, "%.40q is not one of %s", s, strings.Join(all, ", "))
	}
	return s
}

func (r *reader) oid(n *yaml.Node) OID {
	o, err := ParseOID(r.text(n))
	if err == nil && len(o) < 4 {
		err = fmt.Errorf("%s is too short", o)
	}
	if err != nil {
		r.fail(n, "%v", err)
		return nil
	}
	return o
}

func (r *reader) oids(n *yaml.Node) (all []OID) {
	if n.Kind == yaml.ScalarNode {
		return []OID{r.oid(n)}
	}
	r.list(n, func(i *yaml.Node) { all = append(all, r.oid(i)) })
	return all
}

func (r *reader) column(n *yaml.Node) column { return r.columnText(n, r.text(n)) }

func (r *reader) columnText(n *yaml.Node, s string) column {
	c, err := parseColumn(s)
	if err != nil {
		r.fail(n, "a column is its number, or the OID of one of another table: %v", err)
	}
	return c
}

func (r *reader) template(n *yaml.Node) template {
	t, err := parseTemplate(r.text(n))
	if err != nil {
		r.fail(n, "%.60q: %v", n.Value, err)
	}
	return t
}

func (r *reader) kind(n *yaml.Node) hw.Kind {
	k, ok := hw.KindOf(r.text(n))
	if !ok || k == hw.Host || k == hw.Site {
		r.fail(n, "%.40q is not a kind of component; docs/hardware.md has them", n.Value)
	}
	return k
}

func (r *reader) quantity(n *yaml.Node) *quantity {
	q, ok := quantities[r.text(n)]
	if !ok {
		r.fail(n, "%.40q is not a metric; there are %s", n.Value, strings.Join(words(quantities), ", "))
	}
	return &q
}

func (r *reader) status(n *yaml.Node) hw.Status {
	s := r.text(n)
	if s == "none" { // the row does not describe a component
		return 0
	}
	status, ok := statuses[s]
	if !ok {
		r.fail(n, "%.40q is no state; there are none, %s", s, strings.Join(words(statuses), ", "))
	}
	return status
}

// named matches a value as in MIBs: its name with its number.
var named = regexp.MustCompile(`^[\w-]+\((-?\d+)\)$`)

// valueOf returns the number of name(number), and any other text unchanged.
func valueOf(s string) string {
	if m := named.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return s
}

// states reads normal(1): ok. A key may also be a number or a text, which is compared ignoring case.
func (r *reader) states(n *yaml.Node) map[string]hw.Status {
	all := map[string]hw.Status{}
	r.entries(n, "states", func(k, v *yaml.Node) {
		key := strings.ToLower(valueOf(k.Value))
		if _, twice := all[key]; twice {
			r.fail(k, "states has the value %.40q twice", key)
		}
		all[key] = r.status(v)
	})
	return all
}

// bits reads {name(number): state}: what each bit of BITS means when it is set.
func (r *reader) bits(n *yaml.Node) []hw.Status {
	all := make([]hw.Status, 64)
	for key, status := range r.states(n) {
		number, err := strconv.Atoi(key)
		if err != nil || number < 0 || number >= len(all) {
			r.fail(n, "a bit is name(number), with a number from 0 to %d, and not %.40q", len(all)-1, key)
			continue
		}
		all[number] = status
	}
	return all
}

// conditions reads {COLUMN: [value, …]}, or a list of these.
func (r *reader) conditions(n *yaml.Node, not bool) (all []condition) {
	if n.Kind == yaml.SequenceNode {
		for _, i := range n.Content {
			if i.Kind == yaml.SequenceNode {
				r.fail(i, "only and unless are a mapping, or a list of mappings")
				continue
			}
			all = append(all, r.conditions(i, not)...)
		}
		return all
	}
	r.entries(n, "only and unless", func(k, v *yaml.Node) {
		x, err := parseRef(k.Value)
		if err != nil {
			r.fail(k, "a condition is on a column or another part of the row, as in a template: %v", err)
		}
		c := condition{ref: x, not: not}
		if v.Kind == yaml.MappingNode {
			c.tests = r.tests(v)
		} else {
			c.values = r.set(v)
		}
		all = append(all, c)
	})
	return all
}

// group reads {COLUMN: [value, …], …}: rows that meet all of these are left out.
func (r *reader) group(n *yaml.Node) condition {
	all := r.conditions(n, false)
	if len(all) < 2 {
		r.fail(n, "unless_all needs two or more conditions; for one there is unless")
	}
	return condition{all: all, not: true}
}

// tests reads {above: 5}: the tests of a condition, in place of a list of values.
func (r *reader) tests(n *yaml.Node) (all []func(string, bool) bool) {
	number := func(holds func(v, bound float64) bool) func(*yaml.Node) {
		return func(x *yaml.Node) {
			bound := r.number(x)
			all = append(all, func(text string, there bool) bool {
				v, ok := numberIn(text)
				return there && ok && holds(v, bound)
			})
		}
	}
	r.mapping(n, "a condition", fields{
		"least": number(func(v, bound float64) bool { return v >= bound }),
		"most":  number(func(v, bound float64) bool { return v <= bound }),
		"above": number(func(v, bound float64) bool { return v > bound }),
		"below": number(func(v, bound float64) bool { return v < bound }),
		"exists": func(x *yaml.Node) {
			want := r.flag(x)
			all = append(all, func(_ string, there bool) bool { return there == want })
		},
		"matches": func(x *yaml.Node) {
			if re := r.pattern(x, "matches"); re != nil {
				all = append(all, func(text string, there bool) bool { return there && re.MatchString(text) })
			}
		},
	})
	if len(n.Content) == 0 {
		r.fail(n, "a condition needs a test")
	}
	return all
}

func readChoice[T any](r *reader, n *yaml.Node, read func(*yaml.Node) T) *choice[T] {
	c := &choice[T]{values: map[string]T{}}
	r.mapping(n, "a choice", fields{
		"column": func(v *yaml.Node) { c.column = r.column(v) },
		"is": func(v *yaml.Node) {
			r.entries(v, "is", func(k, v *yaml.Node) { c.values[strings.ToLower(valueOf(k.Value))] = read(v) })
		},
	})
	if c.column.arcs == nil || len(c.values) == 0 {
		r.fail(n, "column and is are missing")
	}
	return c
}
