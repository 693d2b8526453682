package snmp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gosnmp/gosnmp"
)

// Bounds of the data that one module may read in a round, against agents whose tables never
// end. The largest table seen in the wild had 51,000 variables.
const (
	maxVariables = 200_000
	maxBytes     = 32 << 20
)

// harvest holds the variables that one module read. [newHarvest] makes one.
type harvest struct {
	vars []variable
	// nulls means that variables of the type Null are kept.
	nulls bool
	// byOID maps the key of an OID to its index in vars; the last variable of an OID wins. It is nil while the
	// OIDs increase, as in nearly every round: a search in vars then needs no key per variable.
	byOID map[string]int
	bytes int
	// tables are the labels of rows, by [compiledTable.number]. emit fills them.
	tables []rows
	// Limits; only tests change them.
	maxVars, maxBytes int

	// Memory that vars refer to.
	arcs   arena[uint32]
	octets arena[byte]

	labels labelSet // scratch of [emitter.row]
	wanted oid      // scratch of [harvest.setLookup]
}

func newHarvest() *harvest { return &harvest{maxVars: maxVariables, maxBytes: maxBytes} }

// reset empties h but keeps its memory. Earlier contents become invalid.
func (h *harvest) reset() {
	clear(h.vars)
	h.vars, h.byOID, h.bytes, h.nulls = h.vars[:0], nil, 0, false
	for i := range h.tables {
		h.tables[i].reset()
	}
	h.maxVars, h.maxBytes = maxVariables, maxBytes
	h.arcs.reset()
	h.octets.reset()
}

// place returns the index in vars of the variable at o.
func (h *harvest) place(o oid) (int, bool) {
	if h.byOID == nil {
		return slices.BinarySearchFunc(h.vars, o, func(v variable, o oid) int { return v.oid.compare(o) })
	}
	var buf [4 * 32]byte
	i, ok := h.byOID[string(o.appendKey(buf[:0]))]
	return i, ok
}

// counts reports whether no later variable has the OID of vars[i].
func (h *harvest) counts(i int) bool {
	if h.byOID == nil {
		return true
	}
	at, _ := h.place(h.vars[i].oid)
	return at == i
}

// accepts reports whether v has a value to keep.
func (h *harvest) accepts(v *variable) bool { return v.has() || h.nulls && v.typ == gosnmp.Null }

var errTooMuch = errors.New("the device returns more than a module may hold")

// add adds a copy of v.
func (h *harvest) add(v variable) error {
	h.bytes += 64 + 4*len(v.oid) + len(v.octets)
	if len(h.vars) >= h.maxVars || h.bytes > h.maxBytes {
		return fmt.Errorf("%w: %d variables, %d bytes", errTooMuch, len(h.vars), h.bytes)
	}
	v.oid, v.octets = h.arcs.copy(v.oid), h.octets.copy(v.octets)
	if n := len(h.vars); h.byOID == nil && n > 0 && v.oid.compare(h.vars[n-1].oid) <= 0 {
		h.byOID = make(map[string]int, cap(h.vars))
		for i := range h.vars {
			h.byOID[h.vars[i].oid.key()] = i
		}
	}
	if h.byOID != nil {
		h.byOID[v.oid.key()] = len(h.vars)
	}
	h.vars = append(h.vars, v)
	return nil
}

// arena is memory for many small slices with the same lifetime. The zero value is ready for use.
type arena[T any] struct{ free []T }

// arenaStep is the minimum number of elements that an arena allocates.
const arenaStep = 512

// take returns a slice of length zero with room for n elements.
func (a *arena[T]) take(n int) []T {
	if cap(a.free)-len(a.free) < n { // the slices handed out keep the earlier memory alive
		a.free = make([]T, 0, max(n, 2*cap(a.free), arenaStep))
	}
	at := len(a.free)
	a.free = a.free[:at+n]
	return a.free[at : at : at+n]
}

// copy returns a copy of s.
func (a *arena[T]) copy(s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return append(a.take(len(s)), s...)
}

// reset reclaims all slices handed out since the memory last grew.
func (a *arena[T]) reset() {
	clear(a.free)
	a.free = a.free[:0]
}
