package snmp

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// emitter turns the variables of a module into samples of a round. It is kept between rounds
// for the families that become known only from the device.
type emitter struct {
	module  *compiled
	derived map[string]*probes.Family // of module.derive and extracts, by name
	round   *probes.Round             // of the running call
	pairs   []string                  // scratch
	// device, if set, is read instead of the module's lists.
	device *libraryReader
}

func newEmitter(m *compiled) *emitter {
	e := &emitter{module: m, derived: make(map[string]*probes.Family)}
	if m.library != nil {
		e.device = &libraryReader{library: m.library}
	}
	return e
}

// family returns the family of a metric's samples.
func (m *metric) family() probes.Family {
	f := probes.Family{Name: m.name, Help: m.help, Type: model.MetricTypeGauge}
	if !strings.HasSuffix(f.Help, m.oid) { // suffix as written by the generator of snmp.yml
		f.Help += " - " + m.oid
	}
	switch m.typ {
	case typeCounter:
		f.Type = model.MetricTypeCounter
	case typeEnumAsInfo:
		f.Name += "_info"
	}
	return f
}

// emit adds the samples of h to r.
func (e *emitter) emit(h *harvest, r *probes.Round) {
	e.round = r
	defer func() { e.round = nil }()
	var m *compiledMetric
	for i := range h.vars {
		v := &h.vars[i]
		if !h.counts(i) {
			continue // a later variable has the same OID
		}
		if m == nil || !m.contains(v.oid) { // else it is in the column of the variable before
			m = e.module.columns.find(v.oid)
		}
		if m != nil {
			e.sample(h, m, v.oid[len(m.at):], v)
		}
	}
	if e.module.derive != nil {
		e.module.derive(h, e)
	}
}

func (e *emitter) sample(h *harvest, m *compiledMetric, rest oid, v *variable) {
	pairs := e.row(h, m, rest)
	family := &m.family
	switch m.typ {
	case typeGauge, typeCounter, typeInteger32, typeFloat, typeDouble:
		if n, ok := v.number(m.typ); ok || e.module.exact {
			e.round.AddSample(probes.Sample{Family: family, Value: m.scaled(n), Labels: pairs})
		}
	case typeDateAndTime, typeParseDateAndTime, typeNTPTimeStamp:
		if n, ok := v.time(m.typ, m.timePattern, e.module.exact); ok {
			e.round.AddSample(probes.Sample{Family: family, Value: m.scaled(n), Labels: pairs})
		}
	case typeEnumAsInfo:
		if n, ok := e.state(v); ok && place(pairs, m.name) < 0 {
			e.pairs = append(append(e.pairs[:0], pairs...), m.name, m.states.text(n))
			e.round.Add(family, 1, e.pairs...)
		}
	case typeEnumAsStateSet:
		if n, ok := e.state(v); ok && place(pairs, m.name) < 0 {
			e.states(family, m, pairs, func(s int) bool { return int64(s) == n }, int(n))
		}
	case typeBits:
		if b, ok := v.bytes(); ok && place(pairs, m.name) < 0 {
			e.states(family, m, pairs, func(s int) bool { return bit(b, s) })
		}
	default:
		e.text(h, m, rest, v, pairs)
	}
}

// state returns the number of a value of an enumeration.
func (e *emitter) state(v *variable) (int64, bool) {
	if e.module.exact {
		f, _ := v.number(typeGauge)
		return int64(f), true
	}
	return v.integer()
}

// text adds a value that is text: as a label of a series that is always 1, or as the
// numbers found in it.
func (e *emitter) text(h *harvest, m *compiledMetric, rest oid, v *variable, pairs []string) {
	typ := m.typ
	if combined[typ] != nil {
		inner, ok := h.innerType(typ, m.at, rest)
		if typ = inner; !ok {
			typ = typeOctetString
		}
	}
	text := v.hinted(typ, m.displayHint)
	if len(m.extracts) > 0 {
		e.extract(m, text, pairs)
		return
	}
	e.pairs = append(e.pairs[:0], pairs...)
	if place(pairs, m.name) < 0 {
		e.pairs = append(e.pairs, m.name, text)
	}
	e.round.Add(&m.family, m.scaled(1), e.pairs...)
}

// extract adds, for each suffix, the number from the first rule that matches and yields a
// number.
func (e *emitter) extract(m *compiledMetric, text string, pairs []string) {
	for _, x := range m.extracts {
		for _, rule := range x.rules {
			at := rule.regex.FindStringSubmatchIndex(text)
			if at == nil {
				continue
			}
			v, err := strconv.ParseFloat(string(rule.regex.ExpandString(nil, rule.value, text, at)), 64)
			if err == nil {
				e.gauge(m.name+x.suffix, m.family.Help, m.scaled(v), pairs...)
				break
			}
		}
	}
}

// states adds one series for each name of the enumeration, 1 if on reports its number, else 0.
// more are additional numbers, perhaps without a name.
func (e *emitter) states(f *probes.Family, m *compiledMetric, pairs []string, on func(int) bool, more ...int) {
	numbers := more
	for _, s := range m.states {
		numbers = append(numbers, s.number)
	}
	slices.Sort(numbers)
	values := make(map[string]float64, len(numbers)) // two numbers may share a name
	var names []string
	for _, n := range numbers {
		name := m.states.text(int64(n))
		if _, ok := values[name]; !ok {
			names, values[name] = append(names, name), 0
		}
		if on(n) {
			values[name] = 1
		}
	}
	for _, name := range names {
		e.round.Add(f, values[name], append(slices.Clone(pairs), m.name, name)...)
	}
}

// bit returns bit n of a value of the type BITS, where bit 0 is the highest bit of the first
// octet: RFC 2578 section 7.1.4.
func bit(b []byte, n int) bool {
	return n >= 0 && n < 8*len(b) && b[n/8]&(0x80>>(n%8)) != 0
}

func (m *compiledMetric) scaled(v float64) float64 {
	if m.scale != 0 {
		v *= m.scale
	}
	return v + m.offset
}

// row returns the labels of a row, built once for all columns that share them. They are in the memory of the round.
func (e *emitter) row(h *harvest, m *compiledMetric, rest oid) []string {
	for len(h.tables) <= m.table.number {
		h.tables = append(h.tables, rows{})
	}
	table := &h.tables[m.table.number]
	pairs, ok := table.find(rest)
	if !ok {
		h.setLabels(m.table, rest)
		pairs = e.round.Keep(h.labels.pairs...)
		table.add(rest, pairs)
	}
	return pairs
}

// setLabels sets h.labels to the labels of one row: its index, then the lookups in order, as a lookup may
// use the result of an earlier one.
func (h *harvest) setLabels(t *compiledTable, rest oid) {
	ls := &h.labels
	clear(ls.arcs)
	ls.pairs, ls.arcs = ls.pairs[:0], ls.arcs[:0]
	splitIndex(rest, t.indexes, ls)
	for i := range t.lookups {
		h.setLookup(&t.lookups[i], t.lookupOIDs[i], ls)
	}
}

// setLookup sets in ls the label of one lookup in the column at.
func (h *harvest) setLookup(l *lookup, at oid, ls *labelSet) {
	if len(l.labels) == 0 {
		ls.delete(l.labelname)
		return
	}
	h.wanted = append(h.wanted[:0], at...)
	for _, name := range l.labels {
		if i := ls.place(name); i >= 0 {
			h.wanted = append(h.wanted, ls.arcs[i/2]...)
		}
	}
	v := h.lookup(h.wanted)
	if v == nil {
		ls.set(l.labelname, "", nil)
		return
	}
	var arcs oid
	k, whole := v.integer()
	if whole {
		arcs = oid{uint32(k)}
	}
	typ := l.typ
	if combined[typ] != nil {
		if inner, ok := h.innerType(typ, at, h.wanted[len(at):]); ok {
			typ = inner
		}
	}
	text := v.hinted(typ, l.displayHint)
	if whole && typ == typeEnumAsInfo && l.enumValues[int(k)] != "" {
		text = l.enumValues[int(k)]
	}
	ls.set(l.labelname, text, arcs)
}

// gauge adds a sample of a metric that is in no table.
func (e *emitter) gauge(name, help string, v float64, labels ...string) {
	f := e.derived[name]
	if f == nil {
		f = &probes.Family{Name: name, Help: help, Type: model.MetricTypeGauge}
		e.derived[name] = f
	}
	e.round.Add(f, v, labels...)
}
