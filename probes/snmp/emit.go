package snmp

import (
	"slices"
	"strconv"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// emitter turns what a module read into samples of a round. It is kept between rounds
// for its families.
type emitter struct {
	module   *compiled
	families []probes.Family           // one for each metric, aligned with module.metrics
	derived  map[string]*probes.Family // of module.derive, by name
	round    *probes.Round             // of the running call
}

func newEmitter(m *compiled) *emitter {
	e := &emitter{module: m, derived: make(map[string]*probes.Family), families: make([]probes.Family, len(m.metrics))}
	for i := range m.metrics {
		x := &m.metrics[i]
		f := probes.Family{Name: x.name, Help: x.help + " - " + x.oid, Type: model.MetricTypeGauge}
		switch x.typ {
		case typeCounter:
			f.Type = model.MetricTypeCounter
		case typeEnumAsInfo:
			f.Name += "_info"
		}
		e.families[i] = f
	}
	return e
}

// emit adds everything in h to r.
func (e *emitter) emit(h *harvest, r *probes.Round) {
	e.round = r
	defer func() { e.round = nil }()
	for i := range h.vars {
		v := &h.vars[i]
		if h.byOID[v.oid.key()] != i {
			continue // the device gave it again later
		}
		if m, rest := e.module.tree.find(v.oid); m != nil {
			e.sample(h, m, rest, v)
		}
	}
	if e.module.derive != nil {
		e.module.derive(h, e)
	}
}

func (e *emitter) sample(h *harvest, m *compiledMetric, rest oid, v *variable) {
	ls := h.labels(m, rest)
	family := &e.families[m.family]
	switch m.typ {
	case typeGauge, typeCounter, typeInteger32:
		if n, ok := v.number(m.typ); ok {
			e.round.Add(family, m.scaled(n), ls.pairs...)
		}
	case typeDateAndTime:
		b, _ := v.value.([]byte)
		if n, ok := dateAndTime(b); ok {
			e.round.Add(family, m.scaled(n), ls.pairs...)
		}
	case typeEnumAsInfo:
		if n, ok := v.integer(); ok && ls.place(m.name) < 0 {
			e.round.Add(family, 1, append(ls.pairs, m.name, enumText(n, m.enumValues))...)
		}
	case typeEnumAsStateSet:
		if n, ok := v.integer(); ok && ls.place(m.name) < 0 {
			e.stateSet(family, m, n, ls.pairs)
		}
	default:
		if ls.place(m.name) < 0 {
			ls.pairs = append(ls.pairs, m.name, v.text(m.typ, nil))
		}
		e.round.Add(family, 1, ls.pairs...)
	}
}

func (e *emitter) stateSet(f *probes.Family, m *compiledMetric, current int64, pairs []string) {
	states := make([]int, 0, len(m.enumValues)+1)
	for s := range m.enumValues {
		states = append(states, s)
	}
	if _, ok := m.enumValues[int(current)]; !ok {
		states = append(states, int(current))
	}
	slices.Sort(states)
	for _, s := range states {
		v := 0.0
		if int64(s) == current {
			v = 1
		}
		e.round.Add(f, v, append(slices.Clone(pairs), m.name, enumText(int64(s), m.enumValues))...)
	}
}

func (m *metric) scaled(v float64) float64 {
	if m.scale != 0 {
		v *= m.scale
	}
	return v + m.offset
}

// labels are those of one row: its index, then the lookups in order, as one may use
// what an earlier one found.
func (h *harvest) labels(m *compiledMetric, rest oid) labelSet {
	n := len(m.indexes) + len(m.lookups)
	ls := labelSet{pairs: make([]string, 0, 2*n+2), arcs: make([]oid, 0, n)}
	splitIndex(rest, m.indexes, &ls)
	for i := range m.lookups {
		l := &m.lookups[i]
		if len(l.labels) == 0 {
			ls.delete(l.labelname)
			continue
		}
		row := slices.Clone(m.lookupOIDs[i])
		for _, name := range l.labels {
			if at := ls.place(name); at >= 0 {
				row = append(row, ls.arcs[at/2]...)
			}
		}
		v := h.lookup(row)
		if v == nil {
			ls.set(l.labelname, "", nil)
			continue
		}
		var arcs oid
		if k, ok := v.integer(); ok {
			arcs = oid{uint32(k)}
		}
		ls.set(l.labelname, v.text(l.typ, l.enumValues), arcs)
	}
	return ls
}

// gauge adds a sample of a metric that no table lists.
func (e *emitter) gauge(name, help string, v float64, labels ...string) {
	f := e.derived[name]
	if f == nil {
		f = &probes.Family{Name: name, Help: help, Type: model.MetricTypeGauge}
		e.derived[name] = f
	}
	e.round.Add(f, v, labels...)
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
