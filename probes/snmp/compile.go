package snmp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hwsagent/probes"
	"hwsagent/probes/snmp/library"
)

// compiled is a module ready for use. It is immutable: several devices share it. It has no memory in common with the tree of the file
// that the module is from: its many small parts would keep the memory around them from being used again.
type compiled struct {
	name string
	// exact means that the samples are those of snmp_exporter: NULL and a text in place of a number are 0, and a fraction as a state is its integer part.
	exact   bool
	walk    []oid
	get     []string
	filters []filter
	params  walkParams
	columns columns
	derive  func(*harvest, *emitter)
	metrics []compiledMetric
	library *library.Library // of the module hardware, which has nothing else
}

// compiledMetric has the fields of [metric] that are needed after the start.
type compiledMetric struct {
	name   string
	typ    metricType
	at     oid
	family probes.Family
	table  *compiledTable
	states enum

	scale, offset float64
	extracts      []extract
	timePattern   string
	displayHint   string
}

// compiledTable is what the metrics of a module with the same indexes and lookups share.
type compiledTable struct {
	number     int // in the module, from 0
	indexes    []index
	lookups    []lookup
	lookupOIDs []oid
}

// enum is an enumeration, by number.
type enum []enumName

type enumName struct {
	number int
	name   string
}

// text returns the name of a number, or the number itself.
func (e enum) text(v int64) string {
	if i, ok := slices.BinarySearchFunc(e, int(v), func(n enumName, v int) int { return cmp.Compare(n.number, v) }); ok {
		return e[i].name
	}
	return enumText(v, nil)
}

// columns are metrics in the order of their OIDs. None contains another.
type columns []*compiledMetric

// newColumns returns all as columns. Of nested metrics the outermost remains, of equal OIDs the last one.
func newColumns(all []*compiledMetric) (c columns) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y *compiledMetric) int { return x.at.compare(y.at) })
	for _, m := range all {
		switch n := len(c) - 1; {
		case n < 0 || !c[n].contains(m.at):
			c = append(c, m)
		case len(m.at) == len(c[n].at):
			c[n] = m
		}
	}
	return slices.Clip(c)
}

// find returns the metric that contains o, or nil.
func (c columns) find(o oid) *compiledMetric {
	i, found := slices.BinarySearchFunc(c, o, func(m *compiledMetric, o oid) int { return m.at.compare(o) })
	if !found {
		i--
	}
	if i < 0 || !c[i].contains(o) {
		return nil
	}
	return c[i]
}

// contains reports whether o is the metric's OID or below it.
func (m *compiledMetric) contains(o oid) bool {
	return len(o) >= len(m.at) && slices.Equal(o[:len(m.at)], m.at)
}

// compile parses a module's OIDs. It panics on a bad one: modules are tables of this package,
// which a test compiles, or come from a file whose OIDs were checked.
func compile(name string, m module) *compiled {
	k := keeper{known: map[string]string{}}
	c := &compiled{
		name: name, get: k.texts(m.get), filters: m.filters, params: m.params, derive: m.derive,
		metrics: make([]compiledMetric, len(m.metrics)),
	}
	for _, w := range m.walk {
		c.walk = append(c.walk, mustOID(w))
	}
	tables := map[string]*compiledTable{} // by indexes and lookups
	all := make([]*compiledMetric, 0, len(m.metrics))
	for i := range m.metrics {
		from := &m.metrics[i]
		same := fmt.Sprintf("%#v %#v", from.indexes, from.lookups)
		if tables[same] == nil {
			tables[same] = k.table(from, len(tables))
		}
		c.metrics[i] = k.metric(from)
		c.metrics[i].table = tables[same]
		all = append(all, &c.metrics[i])
	}
	c.columns = newColumns(all)
	return c
}

// compileExact is compile for a module of a file, whose samples are those of snmp_exporter.
func compileExact(name string, m module) *compiled {
	c := compile(name, m)
	c.exact = true
	return c
}

// keeper copies the parts of a module. Equal texts are one, and texts and OIDs are together in a few pieces of memory.
type keeper struct {
	known map[string]string
	piece strings.Builder
	arcs  arena[uint32]
}

// textPiece is the size of a piece of texts, in bytes.
const textPiece = 2048

// text returns a copy of s.
func (k *keeper) text(s string) string {
	if kept, ok := k.known[s]; ok {
		return kept
	}
	if k.piece.Cap()-k.piece.Len() < len(s) {
		k.piece = strings.Builder{}
		k.piece.Grow(max(textPiece, len(s)))
	}
	at := k.piece.Len()
	k.piece.WriteString(s)
	kept := k.piece.String()[at:]
	k.known[kept] = kept
	return kept
}

func (k *keeper) texts(all []string) []string {
	all = slices.Clone(all)
	for i := range all {
		all[i] = k.text(all[i])
	}
	return all
}

// oid is mustOID.
func (k *keeper) oid(s string) oid { return slices.Clip(oid(k.arcs.copy(mustOID(s)))) }

// names returns a copy of an enumeration, nil if it is empty.
func (k *keeper) names(names map[int]string) map[int]string {
	if len(names) == 0 {
		return nil
	}
	all := make(map[int]string, len(names))
	for n, name := range names {
		all[n] = k.text(name)
	}
	return all
}

// metric copies all but the table.
func (k *keeper) metric(m *metric) compiledMetric {
	c := compiledMetric{
		name: k.text(m.name), typ: metricType(k.text(string(m.typ))), at: k.oid(m.oid), family: m.family(),
		scale: m.scale, offset: m.offset, extracts: m.extracts, timePattern: k.text(m.timePattern), displayHint: k.text(m.displayHint),
	}
	c.family.Name, c.family.Help = k.text(c.family.Name), k.text(c.family.Help)
	if len(m.enumValues) > 0 {
		c.states = make(enum, 0, len(m.enumValues))
		for _, n := range slices.Sorted(maps.Keys(m.enumValues)) {
			c.states = append(c.states, enumName{n, k.text(m.enumValues[n])})
		}
	}
	return c
}

// table copies the indexes and lookups of m.
func (k *keeper) table(m *metric, number int) *compiledTable {
	t := &compiledTable{number: number, indexes: slices.Clone(m.indexes), lookups: slices.Clone(m.lookups)}
	for i := range t.indexes {
		x := &t.indexes[i]
		x.labelname, x.typ, x.enumValues = k.text(x.labelname), metricType(k.text(string(x.typ))), k.names(x.enumValues)
	}
	for i := range t.lookups {
		l := &t.lookups[i]
		var at oid
		if len(l.labels) > 0 {
			at = k.oid(l.oid)
		}
		t.lookupOIDs = append(t.lookupOIDs, at)
		l.labels, l.labelname, l.oid = k.texts(l.labels), k.text(l.labelname), ""
		l.typ, l.enumValues, l.displayHint = metricType(k.text(string(l.typ))), k.names(l.enumValues), k.text(l.displayHint)
	}
	return t
}
