package library

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"hwsagent/probes/hw"
)

// Bounds of a file of definitions.
const (
	maxFileBytes = 1 << 20
	maxTables    = 500 // of one definition
	maxValues    = 200 // of one table
	maxIncludes  = 50
)

// Parse parses the definition in a file. The error lists all errors, as file:line: text.
func Parse(file string, text []byte) (*Definition, error) {
	r := &reader{file: file}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("%s: the file has %d bytes, more than %d; split it", file, len(text), maxFileBytes)
	}
	var top yaml.Node
	if err := yaml.Load(text, &top, yaml.WithAllDocuments(false)); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if bytes.Contains(text, []byte("<<:")) {
		return nil, fmt.Errorf("%s: the dialect has no merge keys; write includes", file)
	}
	root := &top
	if top.Kind == yaml.DocumentNode && len(top.Content) == 1 {
		root = top.Content[0]
	}
	d := r.definition(root)
	return d, errors.Join(r.errs...)
}

func (r *reader) definition(n *yaml.Node) *Definition {
	d := &Definition{file: r.file, line: n.Line}
	var mib string
	var tables *yaml.Node
	r.mapping(n, "a definition", fields{
		"definition": func(v *yaml.Node) { d.Name = r.text(v) },
		"vendor":     func(v *yaml.Node) { d.Vendor = r.text(v) },
		"mib":        func(v *yaml.Node) { mib = r.text(v) },
		"detect":     func(v *yaml.Node) { r.list(v, func(i *yaml.Node) { d.detects = append(d.detects, r.detect(i)) }) },
		"replaces":   func(v *yaml.Node) { d.replaces = r.texts(v) },
		"fills":      func(v *yaml.Node) { d.fills = r.flag(v) },
		"one_of":     func(v *yaml.Node) { d.oneOf = r.text(v) },
		"rank":       func(v *yaml.Node) { d.rank = int(min(max(r.number(v), -1e6), 1e6)) },
		"includes":   func(v *yaml.Node) { d.includes = r.texts(v) },
		"tables":     func(v *yaml.Node) { tables = v },
	})
	if d.Name == "" || strings.Trim(d.Name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		r.fail(n, "definition: must be a name of small letters, digits, - and _")
	}
	if (d.oneOf != "" || d.rank != 0) && !d.fills {
		r.fail(n, "one_of and rank are for definitions with fills: true")
	}
	if len(d.includes) > maxIncludes {
		r.fail(n, "a definition includes at most %d others", maxIncludes)
	}
	if tables != nil {
		r.list(tables, func(i *yaml.Node) {
			if len(d.tables) == maxTables {
				r.fail(i, "a definition has at most %d tables", maxTables)
			} else if len(d.tables) < maxTables {
				d.tables = append(d.tables, r.table(i, mib))
			}
		})
	}
	return d
}

func (r *reader) detect(n *yaml.Node) (d detect) { return r.detectEntry(n, true) }

// detectEntry reads an entry of detect, or an entry of its key unless, which cannot have unless itself.
func (r *reader) detectEntry(n *yaml.Node, outer bool) (d detect) {
	known := fields{
		"sysObjectID":         func(v *yaml.Node) { d.objectIDs = r.oids(v) },
		"sysObjectID_pattern": func(v *yaml.Node) { d.pattern = r.pattern(v, "sysObjectID_pattern") },
		"sysDescr":            func(v *yaml.Node) { d.descr = r.pattern(v, "sysDescr") },
		"present":             func(v *yaml.Node) { d.present = r.oid(v) },
		"value":               func(v *yaml.Node) { d.value = r.pattern(v, "value") },
	}
	if outer {
		known["always"] = func(v *yaml.Node) { d.always = r.flag(v) }
		known["family"] = func(v *yaml.Node) { d.family = r.text(v) }
		known["unless"] = func(v *yaml.Node) {
			r.list(v, func(i *yaml.Node) { d.unless = append(d.unless, r.detectEntry(i, false)) })
		}
	}
	r.mapping(n, "an entry of detect", known)
	switch {
	case len(d.objectIDs) == 0 && d.pattern == nil && d.descr == nil && d.present == nil && !d.always:
		r.fail(n, "an entry of detect needs sysObjectID, sysObjectID_pattern, sysDescr, present or always: true")
	case d.value != nil && d.present == nil:
		r.fail(n, "value needs present: the OID of the object that has the value")
	}
	return d
}

// pattern reads a regular expression, which ignores case.
func (r *reader) pattern(n *yaml.Node, what string) *regexp.Regexp {
	re, err := regexp.Compile("(?i:" + r.text(n) + ")")
	if err != nil {
		r.fail(n, "%s is not a regular expression: %v", what, err)
	}
	return re
}

// finder reads a regular expression with one group, which is the value.
func (r *reader) finder(n *yaml.Node) *regexp.Regexp {
	re := r.pattern(n, "find")
	if re != nil && re.NumSubexp() != 1 {
		r.fail(n, "find needs exactly one group in parentheses: the value")
	}
	return re
}

func (r *reader) table(n *yaml.Node, mib string) *table {
	t := &table{mib: mib, kind: hw.Module}
	r.mapping(n, "a table", fields{
		"table":  func(v *yaml.Node) { t.object = r.text(v) },
		"mib":    func(v *yaml.Node) { t.mib = r.text(v) },
		"entry":  func(v *yaml.Node) { t.entry = r.oid(v) },
		"scalar": func(v *yaml.Node) { t.scalar = r.flag(v) },
		"kind":   func(v *yaml.Node) { t.kind = r.kind(v) },
		"kind_by": func(v *yaml.Node) {
			t.kindBy = readChoice(r, v, r.kind)
		},
		"name":       func(v *yaml.Node) { t.name = r.template(v) },
		"only":       func(v *yaml.Node) { t.when = append(t.when, r.conditions(v, false)...) },
		"unless":     func(v *yaml.Node) { t.when = append(t.when, r.conditions(v, true)...) },
		"unless_all": func(v *yaml.Node) { t.when = append(t.when, r.group(v)) },
		"facts": func(v *yaml.Node) {
			r.entries(v, "facts", func(k, v *yaml.Node) {
				label := hw.Prefix + k.Value
				if !hw.Info.Allows(t.kind, []string{label, ""}) {
					r.fail(k, "%q is not a label of hw_component_info without its hw_", k.Value)
				}
				t.facts = append(t.facts, fact{label, r.template(v)})
			})
		},
		"values": func(v *yaml.Node) { r.list(v, func(i *yaml.Node) { t.values = append(t.values, r.value(i)) }) },
	})
	switch {
	case t.object == "" || t.mib == "":
		r.fail(n, "a table needs the name that its MIB gives it, and mib: of the table or of the definition")
	case t.entry == nil:
		r.fail(n, "a table needs entry:, the OID of its rows")
	case len(t.values) == 0 || len(t.values) > maxValues:
		r.fail(n, "a table needs 1 to %d values", maxValues)
	}
	for _, v := range t.values {
		r.allowed(n, t, v)
	}
	t.columns, t.objects = t.read()
	return t
}

// allowed checks that the vocabulary allows such a reading for such a component.
func (r *reader) allowed(n *yaml.Node, t *table, v *value) {
	var all []*quantity
	if v.quantity != nil {
		all = append(all, v.quantity)
	}
	all = append(all, v.metricBy.all()...)
	for _, q := range all {
		m, attributes := q.metric, []string(nil)
		if v.limit != "" {
			m, attributes = q.limit, []string{hw.LabelLimitType, v.limit}
		}
		if v.at != "" {
			attributes = append(attributes, hw.LabelLocation, v.at)
		}
		kinds := []hw.Kind{v.kindFor(t, q)}
		if kinds[0] == t.kind {
			kinds = append(kinds, t.kindBy.all()...)
		}
		for _, k := range kinds {
			if m == hw.Info || !m.Allows(k, attributes) {
				r.fail(n, "%s: a component of the kind %s has no such metric with such labels; docs/reference/hardware.md has the table", v.object, k)
			}
		}
	}
}

// all returns the properties to choose from.
func (c *choice[T]) all() (all []T) {
	if c != nil {
		for _, k := range words(c.values) {
			all = append(all, c.values[k])
		}
	}
	return all
}

// kindFor returns the kind of the component that the value belongs to.
func (v *value) kindFor(t *table, q *quantity) hw.Kind {
	switch {
	case v.hasKind:
		return v.kind
	case v.sensor.parts != nil && q != nil, v.metricBy != nil:
		return q.kind
	}
	return t.kind
}

func (r *reader) value(n *yaml.Node) *value {
	v := &value{scale: 1, other: hw.Unknown, least: math.Inf(-1), most: math.Inf(1)}
	r.mapping(n, "a value", fields{
		"object":     func(x *yaml.Node) { v.object = r.text(x) },
		"column":     func(x *yaml.Node) { v.column = r.column(x) },
		"metric":     func(x *yaml.Node) { v.quantity = r.quantity(x) },
		"states":     func(x *yaml.Node) { v.states = r.states(x) },
		"bits":       func(x *yaml.Node) { v.bits = r.bits(x) },
		"other":      func(x *yaml.Node) { v.other = r.status(x) },
		"scale":      func(x *yaml.Node) { v.scale = r.number(x) },
		"offset":     func(x *yaml.Node) { v.offset = r.number(x) },
		"signed":     func(x *yaml.Node) { v.signed = r.flag(x) },
		"limit":      func(x *yaml.Node) { v.limit = r.oneOf(x, limits) },
		"at":         func(x *yaml.Node) { v.at = r.text(x) },
		"sensor":     func(x *yaml.Node) { v.sensor = r.template(x) },
		"kind":       func(x *yaml.Node) { v.kind, v.hasKind = r.kind(x), true },
		"find":       func(x *yaml.Node) { v.find = r.finder(x) },
		"not":        func(x *yaml.Node) { v.not = r.set(x) },
		"equals":     func(x *yaml.Node) { v.equals = r.set(x) },
		"least":      func(x *yaml.Node) { v.least = r.number(x) },
		"most":       func(x *yaml.Node) { v.most = r.number(x) },
		"from":       func(x *yaml.Node) { v.convert = conversions[r.oneOf(x, words(conversions))] },
		"only":       func(x *yaml.Node) { v.when = append(v.when, r.conditions(x, false)...) },
		"unless":     func(x *yaml.Node) { v.when = append(v.when, r.conditions(x, true)...) },
		"unless_all": func(x *yaml.Node) { v.when = append(v.when, r.group(x)) },
		"metric_by": func(x *yaml.Node) {
			v.metricBy = readChoice(r, x, r.quantity)
		},
		"scale_by": func(x *yaml.Node) {
			v.scaleBy = readChoice(r, x, r.number)
		},
		"precision_by": func(x *yaml.Node) { c := r.column(x); v.precision = &c },
	})
	means := 0
	for _, said := range []bool{v.quantity != nil, v.states != nil, v.bits != nil, v.metricBy != nil} {
		if said {
			means++
		}
	}
	switch {
	case v.object == "" || v.column.arcs == nil:
		r.fail(n, "a value needs object:, its name in the MIB, and column:")
	case means != 1:
		r.fail(n, "%s: write one of metric, metric_by, states and bits", v.object)
	case v.scale == 0:
		r.fail(n, "%s: scale must not be 0", v.object)
	}
	return v
}

// read returns the columns and the single objects that the table needs.
func (t *table) read() (all, objects []OID) {
	seen := map[string]bool{}
	add := func(c column) {
		if o := c.base(t); c.arcs != nil && !seen[o.String()] {
			seen[o.String()] = true
			all = append(all, o)
		}
	}
	reference := func(x ref) {
		if x.noIndex {
			objects = append(objects, x.column.base(t))
			return
		}
		if add(x.column); x.pointer != nil {
			add(*x.pointer)
		}
	}
	fromTemplate := func(m template) {
		for _, p := range m.parts {
			for _, x := range p.refs {
				reference(x)
			}
		}
	}
	conditions := func(all []condition) {
		for _, c := range all {
			for _, part := range c.all {
				reference(part.ref)
			}
			if c.all == nil {
				reference(c.ref)
			}
		}
	}
	fromTemplate(t.name)
	if t.kindBy != nil {
		add(t.kindBy.column)
	}
	conditions(t.when)
	for _, f := range t.facts {
		fromTemplate(f.text)
	}
	for _, v := range t.values {
		add(v.column)
		fromTemplate(v.sensor)
		conditions(v.when)
		if v.metricBy != nil {
			add(v.metricBy.column)
		}
		if v.scaleBy != nil {
			add(v.scaleBy.column)
		}
		if v.precision != nil {
			add(*v.precision)
		}
	}
	return all, objects
}
