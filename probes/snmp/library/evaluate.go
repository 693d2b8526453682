package library

import (
	"math"
	"slices"
	"strings"

	"hwsagent/probes/hw"
)

// Finding is the result of evaluating one object.
type Finding struct {
	Definition, MIB, Object string
	OID                     OID
	Kind                    hw.Kind   // of the component
	Metric                  hw.Metric // StatusOf for a state
	Value                   float64   // in the metric's unit
	Status                  hw.Status
	Limit                   string // hw_limit_type

	refused bool // the value means no reading, so it is not sent
}

// Result is the evaluation of one round's values.
type Result struct {
	Reports  []hw.Report
	Findings []Finding
}

// Evaluate makes reports of the values that a device returned.
func (d *Device) Evaluate(tree *Tree) Result {
	e := evaluation{tree: tree, ids: map[string]int{}, scalars: map[string]int{}, rows: map[string]int{}, names: map[string]place{}, taken: map[string]bool{}}
	said := 0
	for _, def := range d.definitions {
		if def.fills {
			for ; said < len(e.result.Findings); said++ {
				e.taken[e.result.Findings[said].OID.String()] = true
			}
		}
		for _, t := range def.tables {
			e.table(def, t)
		}
	}
	return e.result
}

type evaluation struct {
	tree *Tree
	ids  map[string]int // how often an ID was used for a kind
	// scalars are the indexes of reports of components that single objects of several groups describe, by kind and ID.
	scalars map[string]int
	// rows are the indexes of reports of rows, by kind, name and index. Two tables that have a component of one kind under one name and one
	// index, such as an entPhysicalIndex, describe the same one.
	rows map[string]int
	// names are those of components of one definition, by kind and name: a component of another definition under both is the same one.
	names  map[string]place
	taken  map[string]bool // dotted OIDs that definitions before a filling one have found
	result Result
}

// place is where a component is among the reports, and whose it is.
type place struct {
	report     int
	definition string
}

// table adds the components of one table, row by row.
func (e *evaluation) table(d *Definition, t *table) {
	var all []row
	called := map[string]int{}
	for _, index := range t.rows(e.tree) {
		if r := (row{e.tree, t, index}); r.passes(t.when) {
			all = append(all, r)
			called[r.called()]++
		}
	}
	for _, r := range all {
		e.row(d, r, called[r.called()] > 1)
	}
}

// called returns the kind and the name of a row's component.
func (r row) called() string {
	name, _ := r.name()
	return r.kind().String() + "/" + name
}

// kind returns the kind of the row's component: by what it measures, by the column that says it, or by the table; a module whose name says
// that it is a fan or a power supply is that, and a power supply whose name says that it is a fan.
func (r row) kind() hw.Kind {
	if q := r.measures(); q != nil {
		return q.kind
	}
	if r.table.kindBy != nil {
		if k, ok := chosen(r.table.kindBy, r); ok {
			return k
		}
	}
	switch in := kindInName(r.table.name.render(r)); {
	case r.table.kind == hw.Module, r.table.kind == hw.PowerSupply && in == hw.Fan: // a tray of fans among the parts that take power
		return in
	}
	return r.table.kind
}

// name returns the name of the row's component, without its state: of one to which the device gives none, kind and index. given reports
// whether the name is the device's.
func (r row) name() (name string, given bool) {
	if name := withoutState(r.table.name.render(r)); name != "" {
		return name, true
	}
	kind := strings.ReplaceAll(r.kind().String(), "_", " ")
	return strings.ToUpper(kind[:1]) + kind[1:] + " " + r.index.String(), false
}

// rows returns the indexes that occur in any column of a value, in order.
func (t *table) rows(tree *Tree) (all []OID) {
	for _, v := range t.values {
		base := v.column.base(t)
		for _, x := range tree.below(base) {
			if len(x.OID) > len(base) {
				all = append(all, x.OID[len(base):])
			}
		}
	}
	slices.SortFunc(all, func(a, b OID) int { return slices.Compare(a, b) })
	return slices.CompactFunc(all, func(a, b OID) bool { return slices.Equal(a, b) })
}

// passes reports whether the row meets all conditions.
func (r row) passes(all []condition) bool {
	for _, c := range all {
		if c.all != nil {
			if r.passes(c.all) == c.not {
				return false
			}
			continue
		}
		text, there := c.ref.value(r)
		has := there && c.values[strings.ToLower(text)]
		if c.values == nil {
			has = !slices.ContainsFunc(c.tests, func(holds func(string, bool) bool) bool { return !holds(text, there) })
		}
		if has == c.not {
			return false
		}
	}
	return true
}

// row adds the component of a row, and those of its sensors. If several rows of the table have the name, all get their index.
func (e *evaluation) row(d *Definition, r row, shared bool) {
	name, given := r.name()
	main := hw.Report{Component: hw.Component{Kind: r.kind(), Name: name}}
	if !given { // two tables with a row 4 do not describe one component
		name = r.table.object
	}
	if shared {
		main.Name += " " + r.index.String()
	}
	for _, f := range r.table.facts {
		if text := f.text.render(r); text != "" {
			main.Facts = append(main.Facts, f.label, text)
		}
	}
	var sensors []hw.Report
	said := false
	var others []hw.Metric // readings that another definition reports; it reports their limits, too
	for _, v := range r.table.values {
		x := r.at(v.column)
		if x == nil || v.not[strings.ToLower(x.text())] || !r.passes(v.when) {
			continue
		}
		f, q, ok := v.finding(r, x)
		if !ok || v.limit != "" && slices.Contains(others, q.metric) {
			continue
		}
		if d.fills && e.taken[f.OID.String()] {
			others = append(others, f.Metric)
			continue
		}
		into, kind := &main, main.Kind
		if v.hasKind || v.sensor.parts != nil {
			kind = v.kindFor(r.table, q)
		}
		sensor := v.sensor.render(r)
		if k := kindInName(sensor); q == nil && !v.hasKind && k != hw.Module {
			kind = k
		}
		if sensor != "" || kind != main.Kind {
			into = sensorOf(&sensors, kind, withoutState(strings.TrimSpace(main.Name+" "+sensor)))
		} else if !f.refused {
			said = true
		}
		if f.refused {
			into.Refused = append(into.Refused, hw.Reading{Metric: f.Metric, Value: f.Value})
			continue
		}
		f.Definition, f.MIB, f.Kind = d.Name, r.table.mib, kind
		e.result.Findings = append(e.result.Findings, f)
		take(into, f, v.at)
	}
	if said || len(main.Refused) > 0 || len(main.Facts) > 0 && len(others) == 0 {
		main.ID = e.add(d, main, r, name, given)
	}
	for _, s := range sensors {
		s.Parent = main.ID
		e.add(d, s, r, name+"/"+s.Name, given)
	}
}

// sensorOf returns the sensor of that kind and name, which it adds if it is new.
func sensorOf(sensors *[]hw.Report, kind hw.Kind, name string) *hw.Report {
	i := slices.IndexFunc(*sensors, func(s hw.Report) bool { return s.Kind == kind && s.Name == name })
	if i < 0 {
		i = len(*sensors)
		*sensors = append(*sensors, hw.Report{Component: hw.Component{Kind: kind, Name: name}})
	}
	return &(*sensors)[i]
}

// measures returns the quantity of a row whose metric is in the row, nil for other rows.
func (r row) measures() *quantity {
	for _, v := range r.table.values {
		if v.metricBy != nil && v.sensor.parts == nil && !v.hasKind {
			if q, ok := chosen(v.metricBy, r); ok {
				return q
			}
		}
	}
	return nil
}

// add sets the component's ID and adds it; single objects of several groups may describe one component, and so may rows of several
// tables. name is the component's, without the index that a shared name gets; given reports whether it is the device's.
func (e *evaluation) add(d *Definition, p hw.Report, r row, name string, given bool) (id string) {
	seen, key := e.rows, p.Kind.String()+"/"+r.index.String()+"/"+name
	if r.table.scalar {
		seen, key = e.scalars, p.Kind.String()+"/"+d.Name+"/"+p.Name
	}
	i, ok := seen[key]
	if other, there := e.names[p.Kind.String()+"/"+p.Name]; !ok && there && given && other.definition != d.Name {
		i, ok = other.report, true
	}
	if ok {
		first := &e.result.Reports[i]
		first.Status = first.Status.Join(p.Status)
		for _, x := range p.Readings {
			addReading(first, x)
		}
		first.Refused = append(first.Refused, p.Refused...)
		seen[key] = i
		return first.ID
	}
	p.ID = e.id(d, &p, r.index)
	seen[key] = len(e.result.Reports)
	if given {
		e.names[p.Kind.String()+"/"+p.Name] = place{len(e.result.Reports), d.Name}
	}
	e.result.Reports = append(e.result.Reports, p)
	return p.ID
}

// take adds a finding to a report.
func take(p *hw.Report, f Finding, at string) {
	if f.Metric == hw.StatusOf {
		p.Status = p.Status.Join(f.Status)
		return
	}
	var attributes []string
	if at != "" {
		attributes = append(attributes, hw.LabelLocation, at)
	}
	if f.Limit != "" {
		attributes = append(attributes, hw.LabelLimitType, f.Limit)
	}
	addReading(p, hw.Reading{Metric: f.Metric, Value: f.Value, Attributes: attributes})
}

// addReading adds a reading unless an earlier object supplied the same reading of the component.
func addReading(p *hw.Report, x hw.Reading) {
	same := func(y hw.Reading) bool { return x.Metric == y.Metric && slices.Equal(x.Attributes, y.Attributes) }
	if !slices.ContainsFunc(p.Readings, same) {
		p.Readings = append(p.Readings, x)
	}
}

// id builds an ID from the definition and the component's name, which survive a restart that renumbers the
// rows; components that share a name also get the index of their row.
func (e *evaluation) id(d *Definition, p *hw.Report, index OID) string {
	id := d.Name + "/" + p.Name
	key := p.Kind.String() + "/" + id
	if e.ids[key]++; e.ids[key] == 1 {
		return id
	}
	id += "#" + index.String()
	key = p.Kind.String() + "/" + id
	if e.ids[key]++; e.ids[key] > 1 {
		id += "#" + string(rune('0'+min(e.ids[key], 9)))
	}
	return id
}

// finding returns the meaning of a variable; ok is false if it has none.
func (v *value) finding(r row, x *Variable) (f Finding, q *quantity, ok bool) {
	f = Finding{Object: v.object, OID: x.OID, Limit: v.limit}
	if x, ok = v.found(x); !ok {
		return f, nil, false
	}
	if v.states != nil {
		f.Metric = hw.StatusOf
		status, known := v.states[strings.ToLower(x.text())]
		if !known {
			status = v.other
		}
		f.Status = status
		return f, nil, status != 0
	}
	if v.bits != nil {
		f.Metric, f.Status = hw.StatusOf, statusOfBits(x.Octets, v.bits)
		return f, nil, x.Octets != nil
	}
	if q = v.quantity; v.metricBy != nil {
		if q, ok = chosen(v.metricBy, r); !ok {
			return f, nil, false
		}
	}
	if v.equals != nil {
		if f.Metric = q.metric; v.equals[strings.ToLower(x.text())] {
			f.Value = 1
		}
		return f, q, true
	}
	n, ok := x.number()
	if !ok || n < v.least || n > v.most {
		return f, nil, false
	}
	if v.signed && n > math.MaxInt32 && n <= math.MaxUint32 && n != math.MaxUint32 {
		n -= 1 << 32
	}
	scale, ok := v.scaling(r, x, q)
	if !ok {
		return f, nil, false
	}
	if f.Metric = q.metric; v.limit != "" {
		f.Metric = q.limit
	}
	f.Value, ok = f.Metric.Scaled(n, scale)
	if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) || !ok && v.limit != "" {
		return f, nil, false // no power, which has no logarithm; a limit that is not set
	}
	f.refused = !ok
	return f, q, true
}

// statusOfBits is the worst of the states that the set bits mean, ok without any. The first bit of BITS is the highest one of the first octet.
func statusOfBits(octets []byte, means []hw.Status) hw.Status {
	status := hw.OK
	for i, s := range means[:min(len(means), 8*len(octets))] {
		if octets[i/8]&(0x80>>(i%8)) != 0 {
			status = status.Join(s)
		}
	}
	return status
}

// scaling returns the conversion of the row's number to the metric's unit; ok is false if the row does not say it.
func (v *value) scaling(r row, x *Variable, q *quantity) (scale func(float64) float64, ok bool) {
	factor := v.scale
	if v.scaleBy != nil {
		by, ok := chosen(v.scaleBy, r)
		if !ok {
			return nil, false
		}
		factor *= by
	}
	if v.precision != nil {
		if p := r.at(*v.precision); p != nil && p.Numeric && p.Number > 0 {
			factor /= math.Pow10(int(min(p.Number, 9)))
		}
	}
	convert := v.convert
	if convert == nil && q.metric == hw.TemperatureNow && !x.Numeric && strings.HasSuffix(strings.ToUpper(x.text()), "F") {
		convert = conversions["fahrenheit"] // "70 F"
	}
	return func(n float64) float64 {
		n = scaled(n, factor) + v.offset
		if convert != nil {
			n = convert(n)
		}
		return n
	}, true
}

// found returns x, or the part of its text that find selects; ok is false if there is none.
func (v *value) found(x *Variable) (part *Variable, ok bool) {
	if v.find == nil {
		return x, true
	}
	m := v.find.FindStringSubmatch(x.text())
	if len(m) != 2 {
		return nil, false
	}
	return &Variable{OID: x.OID, Text: m[1]}, true
}

// scaled returns n times by. If 1/by is a whole number it divides, which rounds once: 235 / 10 is 23.5.
func scaled(n, by float64) float64 {
	if inverse := math.Round(1 / by); math.Abs(by) < 1 && inverse != 0 && math.Abs(inverse*by-1) < 1e-12 {
		return n / inverse
	}
	return n * by
}

func chosen[T any](c *choice[T], r row) (v T, ok bool) {
	x := r.at(c.column)
	if x == nil {
		return v, false
	}
	v, ok = c.values[strings.ToLower(x.text())]
	return v, ok
}
