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
	Metric                  hw.Metric // StatusOf for a state
	Value                   float64   // in the metric's unit
	Status                  hw.Status
	Limit                   string // hw_limit_type
}

// Result is the evaluation of one round's values.
type Result struct {
	Reports  []hw.Report
	Findings []Finding
}

// Evaluate makes reports of the values that a device returned.
func (d *Device) Evaluate(tree *Tree) Result {
	e := evaluation{tree: tree, ids: map[string]int{}, scalars: map[string]int{}, taken: map[string]bool{}}
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
	taken   map[string]bool // dotted OIDs that definitions before a filling one have found
	result  Result
}

// table adds the components of one table, row by row.
func (e *evaluation) table(d *Definition, t *table) {
	for _, index := range t.rows(e.tree) {
		r := row{e.tree, t, index}
		if !r.passes(t.when) {
			continue
		}
		e.row(d, r)
	}
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

// row adds the component of a row, and those of its sensors.
func (e *evaluation) row(d *Definition, r row) {
	main := hw.Report{Component: hw.Component{Kind: r.table.kind, Name: r.table.name.render(r)}}
	if main.Name == "" {
		main.Name = r.table.object + " " + r.index.String()
	}
	for _, f := range r.table.facts {
		if text := f.text.render(r); text != "" {
			main.Facts = append(main.Facts, f.label, text)
		}
	}
	if q := r.measures(); q != nil {
		main.Kind = q.kind
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
		f.Definition, f.MIB = d.Name, r.table.mib
		e.result.Findings = append(e.result.Findings, f)
		into := &main
		kind := main.Kind
		if v.hasKind || v.sensor.parts != nil {
			kind = v.kindFor(r.table, q)
		}
		if sensor := v.sensor.render(r); sensor != "" || kind != main.Kind {
			name := strings.TrimSpace(main.Name + " " + sensor)
			i := slices.IndexFunc(sensors, func(s hw.Report) bool { return s.Kind == kind && s.Name == name })
			if i < 0 {
				i = len(sensors)
				sensors = append(sensors, hw.Report{Component: hw.Component{Kind: kind, Name: name}})
			}
			into = &sensors[i]
		} else {
			said = true
		}
		take(into, f, v.at)
	}
	if said || len(main.Facts) > 0 && len(others) == 0 {
		main.ID = e.add(d, main, r)
	}
	for _, s := range sensors {
		s.Parent = main.ID
		e.add(d, s, r)
	}
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

// add sets the component's ID and adds it; single objects of several groups may describe one component.
func (e *evaluation) add(d *Definition, p hw.Report, r row) (id string) {
	key := p.Kind.String() + "/" + d.Name + "/" + p.Name
	if i, ok := e.scalars[key]; ok && r.table.scalar {
		first := &e.result.Reports[i]
		first.Status = first.Status.Join(p.Status)
		for _, x := range p.Readings {
			addReading(first, x)
		}
		return first.ID
	}
	p.ID = e.id(d, &p, r.index)
	if r.table.scalar {
		e.scalars[key] = len(e.result.Reports)
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
		attributes = append(attributes, "hw_sensor_location", at)
	}
	if f.Limit != "" {
		attributes = append(attributes, "hw_limit_type", f.Limit)
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
	if v.states != nil {
		f.Metric = hw.StatusOf
		status, known := v.states[strings.ToLower(x.text())]
		if !known {
			status = v.other
		}
		f.Status = status
		return f, nil, status != 0
	}
	if q = v.quantity; v.metricBy != nil {
		if q, ok = chosen(v.metricBy, r); !ok {
			return f, nil, false
		}
	}
	n, ok := x.number()
	if !ok {
		return f, nil, false
	}
	if n < v.least || n > v.most {
		return f, nil, false
	}
	if v.signed && n > math.MaxInt32 && n <= math.MaxUint32 {
		n -= 1 << 32
	}
	factor := v.scale
	if v.scaleBy != nil {
		by, ok := chosen(v.scaleBy, r)
		if !ok {
			return f, nil, false
		}
		factor *= by
	}
	if v.precision != nil {
		if p := r.at(*v.precision); p != nil && p.Numeric && p.Number > 0 {
			factor /= math.Pow10(int(min(p.Number, 9)))
		}
	}
	f.Value = scaled(n, factor) + v.offset
	convert := v.convert
	if convert == nil && q.metric == hw.TemperatureNow && !x.Numeric && strings.HasSuffix(strings.ToUpper(x.text()), "F") {
		convert = conversions["fahrenheit"] // "70 F"
	}
	if convert != nil {
		if f.Value, ok = convert(f.Value); !ok {
			return f, nil, false
		}
	}
	if f.Metric = q.metric; v.limit != "" {
		f.Metric = q.limit
	}
	return f, q, true
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
