package imports

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// symbol is an object that a profile reads, with its MIB object if known.
type symbol struct {
	oid, name string
	node      node
	known     object
	isKnown   bool
}

func (p *profile) symbol(mib string, x node) (s symbol, ok bool) {
	s = symbol{oid: strings.TrimPrefix(x.get("OID").text(), "."), name: x.get("name").text(), node: x}
	if !dotted.MatchString(s.oid) || s.name == "" {
		return s, false
	}
	// A name may be the profile's invention: if the module lacks such an object, try the last part of the name.
	for _, name := range []string{s.name, s.name[strings.LastIndexByte(s.name, '.')+1:]} {
		if o, ok := p.mibs.lookup(mib, name); ok && o.oid.String() == strings.TrimSuffix(s.oid, ".0") {
			s.known, s.isKnown = o, true
			break
		}
	}
	return s, true
}

// table makes a table of one entry of metrics; ok is false if no part of it can be converted.
func (p *profile) table(m node) (t table, ok bool) {
	mib := m.get("MIB").text()
	if mib == "" {
		mib = "unknown"
	}
	scalar := m.get("symbol")
	if !scalar.there() && m.get("OID").there() {
		scalar = m // the old form
	}
	if p.used++; p.used > maxEntries {
		p.leave("the file has too many entries", "")
		return t, false
	}
	if scalar.there() {
		return p.scalar(mib, scalar)
	}
	name := m.get("table", "name").text()
	r := &rowsOf{words: name + " " + mib}
	for _, x := range m.get("symbols").list() {
		s, ok := p.symbol(mib, x)
		if !ok {
			if x.get("OID").there() { // one without an OID counts rows
				p.leave("a symbol has no valid OID", x.get("name").text())
			}
			continue
		}
		if why := p.use(r, s, false); why != "" {
			p.leave(why, s.name)
		}
	}
	for _, x := range m.get("metric_tags").list() {
		if s, ok := p.symbol(mib, tagSymbol(x)); ok && x.get("table").text() == "" {
			s.node = x
			_ = p.use(r, s, true) // most tags are not states
		}
	}
	if len(r.values) == 0 || strings.Count(r.entry, ".") < 3 {
		return t, false
	}
	t = table{Table: name, MIB: mib, Entry: r.entry, Kind: r.kind, Values: r.values, Name: p.rowName(m, name, r.entry)}
	if t.Table == "" {
		t.Table = "table"
	}
	if len(t.Values) > 1 {
		t.Kind = kindOf(class{kind: "module"}, name)
		for i := range t.Values {
			if t.Values[i].Metric != "" {
				t.Values[i].Sensor = literal(t.Values[i].Object)
			}
		}
	}
	return t, true
}

// rowsOf collects the values of a table.
type rowsOf struct {
	words  string // names that show whether the table is about hardware
	entry  string // the OID of the rows, from the first value
	kind   string // from the first value
	values []value
}

// use adds the value of a symbol unless its column has one already; if the value cannot be used, why is the reason.
func (p *profile) use(r *rowsOf, s symbol, onlyStates bool) (why string) {
	v, kind, why := p.value(s, r.words)
	if why != "" || onlyStates && v.States == nil {
		return why
	}
	i := strings.LastIndexByte(s.oid, '.')
	if r.entry == "" {
		r.entry, r.kind = s.oid[:i], kind
	}
	v.Column = (&rowOf{entry: r.entry}).short(s.oid)
	if !slices.ContainsFunc(r.values, func(o value) bool { return o.Column == v.Column }) {
		r.values = append(r.values, v)
	}
	return ""
}

// scalar converts a single object.
func (p *profile) scalar(mib string, x node) (t table, ok bool) {
	s, ok := p.symbol(mib, x)
	if !ok {
		p.leave("a symbol has no valid OID", x.get("name").text())
		return t, false
	}
	v, kind, why := p.value(s, mib)
	if why != "" {
		p.leave(why, s.name)
		return t, false
	}
	oid, instance := strings.CutSuffix(s.oid, ".0")
	if !instance && s.isKnown && !s.known.scalar {
		p.leave("a single row of a table", s.name)
		return t, false
	}
	i := strings.LastIndexByte(oid, '.')
	if strings.Count(oid[:i], ".") < 3 {
		p.leave("a symbol has no valid OID", s.name)
		return t, false
	}
	v.Column = oid[i+1:]
	return table{Table: s.name, MIB: mib, Entry: oid[:i], Scalar: true, Kind: kind, Name: literal(s.name), Values: []value{v}}, true
}

func tagSymbol(x node) node {
	for _, key := range []string{"symbol", "column"} {
		if s := x.get(key); s.there() {
			return s
		}
	}
	return x
}

var nameWords = regexp.MustCompile(`(?i)name|descr|label|location|tag$`)

// rowName makes the template of a row's name from a tag that looks like a name, or else from the index.
func (p *profile) rowName(m node, name, entry string) string {
	at := &rowOf{entry: entry}
	var refs []string
	for _, x := range m.get("metric_tags").list() {
		s := tagSymbol(x)
		oid := strings.TrimPrefix(s.get("OID").text(), ".")
		if !dotted.MatchString(oid) || !nameWords.MatchString(s.get("name").text()+" "+x.get("tag").text()) || x.get("mapping").there() || x.get("match").there() {
			continue
		}
		ref := at.short(oid)
		if change := x.get("index_transform").list(); len(change) == 1 {
			from, ok := change[0].get("start").number()
			to, ok2 := change[0].get("end").number()
			if !ok || !ok2 || from < 0 || to < from || to > 100 {
				continue
			}
			ref = oid + "[" + strconv.Itoa(int(from)+1) + ":" + strconv.Itoa(int(to)+1) + "]"
		} else if len(change) > 1 {
			continue
		}
		if refs = append(refs, ref); len(refs) == 3 {
			break
		}
	}
	return strings.TrimSpace(literal(strings.TrimSuffix(name, "Table")) + " {" + strings.Join(append(refs, "#"), "|") + "}")
}

// value returns the meaning of an object; if it is unknown or not about hardware, why is the reason.
func (p *profile) value(s symbol, words string) (v value, kind, why string) {
	v = value{Object: s.name}
	if conversion := s.node.get("conversion").text(); conversion != "" && conversion != "to_one" {
		return v, "", "a conversion: " + conversion
	}
	for _, key := range []string{"extract_value", "match_value", "match_pattern", "script", "condition", "index_transform", "transform"} {
		if s.node.get(key).there() {
			return v, "", "it needs " + key
		}
	}
	all := s.name + " " + words
	if names := p.namesOf(s); len(names) > 0 {
		if !hardware.MatchString(all) {
			return v, "", "a state that is not of hardware"
		}
		if v.States = statesByName(names); v.States == nil {
			return v, "", "the names of its values do not tell good from bad"
		}
		return v, kindOf(class{kind: "module"}, all), ""
	}
	unit := s.node.get("chart_meta", "unit").text()
	factor, scaled := s.node.get("scale_factor").number()
	switch {
	case unit != "":
		// The profile's unit is that of the scaled value; a MIB's is that of the raw one.
		if !scaled {
			factor = 1
		}
	case s.isKnown && s.known.units != "":
		unit, factor = s.known.units, math.Pow10(-s.known.decimals)
	default:
		return v, "", "its unit is not known"
	}
	v.Metric, kind, v.Scale, why = quantityOf(unit, s.name)
	if v.Scale *= factor; v.Scale == 0 && why == "" {
		return v, "", "its scale is 0"
	}
	v.Scale = to1(v.Scale)
	return v, kind, why
}

// namesOf returns the names of an object's values: the profile's, or else the MIB's.
func (p *profile) namesOf(s symbol) map[string]string {
	all := map[string]string{}
	for _, key := range []string{"mapping", "enum"} {
		m := s.node.get(key)
		if m.get("items").isMapping() {
			m = m.get("items")
		}
		for _, e := range m.entries() {
			// number: name, or name: number.
			if _, err := strconv.Atoi(e.key); err == nil {
				all[e.key] = e.value.text()
			} else if _, err := strconv.Atoi(e.value.text()); err == nil {
				all[e.value.text()] = e.key
			}
		}
	}
	if len(all) == 0 && s.isKnown {
		for name, n := range s.known.enums {
			all[strconv.FormatInt(n, 10)] = name
		}
	}
	return all
}
