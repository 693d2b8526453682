package snmp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gosnmp/gosnmp"
)

// Bounds of what one module may read in a round, against agents that never end a
// table. The largest table seen in the wild had 51,000 variables.
const (
	maxVariables = 200_000
	maxBytes     = 32 << 20
)

// variable is one variable binding.
type variable struct {
	oid   oid
	typ   gosnmp.Asn1BER
	value any // as gosnmp decodes it: int, uint, uint32, uint64, float32, float64, string (an OID or address) or []byte
}

// harvest is what one module read.
type harvest struct {
	vars []variable
	// byOID is the place in vars by the key of the OID; the last one of an OID counts. It is nil while the
	// OIDs increase, as they do in nearly every round: a search in vars then needs no key per variable.
	byOID map[string]int
	bytes int
	// named are the labels of the rows of tables, by [compiledMetric.shape] and the key of the index:
	// a table's columns share them. emit fills it.
	named map[int]map[string]labelSet
	// Limits, set apart from the constants by tests only.
	maxVars, maxBytes int
}

func newHarvest() *harvest { return newHarvestOf(0) }

// newHarvestOf has room for n variables, as many as the device had in the round before.
func newHarvestOf(n int) *harvest {
	return &harvest{vars: make([]variable, 0, n), maxVars: maxVariables, maxBytes: maxBytes}
}

// place is where in vars the variable at o is.
func (h *harvest) place(o oid) (int, bool) {
	if h.byOID == nil {
		return slices.BinarySearchFunc(h.vars, o, func(v variable, o oid) int { return v.oid.compare(o) })
	}
	var room [4 * 32]byte
	i, ok := h.byOID[string(o.appendKey(room[:0]))]
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

var errTooMuch = errors.New("the device returns more than a module may hold")

func (h *harvest) add(v variable) error {
	h.bytes += 64 + 4*len(v.oid)
	switch x := v.value.(type) {
	case []byte:
		h.bytes += len(x)
	case string:
		h.bytes += len(x)
	}
	if len(h.vars) >= h.maxVars || h.bytes > h.maxBytes {
		return fmt.Errorf("%w: %d variables, %d bytes", errTooMuch, len(h.vars), h.bytes)
	}
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

// get reads single objects. What the device does not have is left out.
func (s *session) get(ctx context.Context, oids []string, h *harvest) error {
	most := gosnmp.MaxOids // less after a genErr, which may be about one object or too many
	for len(oids) > 0 {
		n := min(len(oids), s.bulk, most)
		if s.auth.version() == 1 {
			n = 1 // one missing object would fail the others
		}
		p, n, err := s.request(ctx, n, func(g *gosnmp.GoSNMP, size int) (*gosnmp.SnmpPacket, error) {
			return g.Get(oids[:size])
		})
		if err != nil {
			return err
		}
		switch {
		case p.Error == gosnmp.TooBig && n > 1:
			s.shrink(n/2, "tooBig")
			continue
		case p.Error == gosnmp.GenErr && n > 1:
			most = n / 2
			continue
		case p.Error == gosnmp.NoSuchName:
		case p.Error != gosnmp.NoError:
			return fmt.Errorf("get %s: %s", oids[0], statusText(p.Error))
		default:
			for _, pdu := range p.Variables {
				if v, ok := decode(pdu); ok {
					if err := s.keep(h, v); err != nil {
						return err
					}
				}
			}
		}
		oids = oids[n:]
	}
	return nil
}

// order is what a walk demands of the OIDs that it is given.
type order bool

const (
	increasing order = false
	anyOrder   order = true
)

// walk reads the subtree under root by GETBULK, or by GETNEXT from v1 devices.
func (s *session) walk(ctx context.Context, root oid, order order, h *harvest) error {
	at := root
	been := map[string]bool{root.key(): true} // in any order, where the walk has been
	most := maxRepetitions                    // less after a genErr: some agents mean that it is too much
	for {
		wanted := min(s.bulk, most)
		p, size, err := s.request(ctx, wanted, func(g *gosnmp.GoSNMP, size int) (*gosnmp.SnmpPacket, error) {
			if g.Version == gosnmp.Version1 {
				return g.GetNext([]string{at.String()})
			}
			return g.GetBulk([]string{at.String()}, 0, uint32(size))
		})
		if err != nil {
			return err
		}
		if size < wanted {
			s.shrink(size, "timeouts")
		}
		switch p.Error {
		case gosnmp.NoError:
		case gosnmp.NoSuchName: // the end of the tree in v1: RFC 1157 section 4.1.3
			return nil
		case gosnmp.TooBig:
			if size > 1 {
				s.shrink(size/2, "tooBig")
				continue
			}
			return fmt.Errorf("walk %s at %s: %s", root, at, statusText(p.Error))
		case gosnmp.GenErr:
			if size > 1 && p.Version != gosnmp.Version1 {
				most = size / 2
				continue
			}
			return fmt.Errorf("walk %s at %s: %s", root, at, statusText(p.Error))
		default:
			return fmt.Errorf("walk %s at %s: %s", root, at, statusText(p.Error))
		}
		next, more, err := s.take(root, at, order, p.Variables, h)
		if err != nil || !more {
			return err
		}
		if order == anyOrder {
			if been[next.key()] {
				return fmt.Errorf("walk %s: the device leads back to %s; its agent is broken there and would be read for ever", root, next)
			}
			been[next.key()] = true
		}
		at = next
	}
}

// take adds one answer's variables and says where to go on, if there is more.
func (s *session) take(root, at oid, order order, pdus []gosnmp.SnmpPDU, h *harvest) (next oid, more bool, err error) {
	for _, pdu := range pdus {
		if pdu.Type == gosnmp.EndOfMibView {
			return at, false, nil
		}
		name, err := parseOID(pdu.Name)
		if err != nil {
			return at, false, fmt.Errorf("walk %s: the device returned an %w", root, err)
		}
		if order == increasing && name.compare(at) <= 0 {
			return at, false, fmt.Errorf("walk %s: OID not increasing: after %s the device returned %s; its agent is broken there and would be read for ever (a module of an snmp.yml may set allow_nonincreasing_oids)", root, at, name)
		}
		at = name
		if !name.hasPrefix(root) {
			return at, false, nil
		}
		v, ok := decodeAs(name, pdu)
		if !ok {
			continue
		}
		if err := s.keep(h, v); err != nil {
			return at, false, fmt.Errorf("walk %s: %w", root, err)
		}
	}
	return at, len(pdus) > 0, nil
}

// keep takes over one variable.
func (s *session) keep(h *harvest, v variable) error {
	if s.read != nil {
		s.read(v.oid)
	}
	s.stats.pdus++
	return h.add(v)
}

// shrink remembers that the device takes only smaller requests.
func (s *session) shrink(to int, why string) {
	s.log.Info("Asking for fewer variables at once from now on", "device", s.endpoint.String(),
		"max_repetitions", to, "before", s.bulk, "reason", why)
	s.bulk = max(1, to)
	s.learned = s.bulk
}

// decode takes over one variable; ok is false where the device has no value.
func decode(pdu gosnmp.SnmpPDU) (variable, bool) {
	name, err := parseOID(pdu.Name)
	if err != nil {
		return variable{}, false
	}
	return decodeAs(name, pdu)
}

// decodeAs is decode of a variable whose name was parsed before.
func decodeAs(name oid, pdu gosnmp.SnmpPDU) (variable, bool) {
	switch pdu.Type {
	case gosnmp.NoSuchObject, gosnmp.NoSuchInstance, gosnmp.EndOfMibView, gosnmp.Null, gosnmp.UnknownType:
		return variable{}, false
	}
	if pdu.Value == nil {
		return variable{}, false
	}
	value := pdu.Value
	if b, ok := value.([]byte); ok {
		value = bytes.Clone(b) // over TCP gosnmp hands out its receive buffer
	}
	return variable{oid: name, typ: pdu.Type, value: value}, true
}
