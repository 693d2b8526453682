package snmp

import (
	"context"
	"fmt"
	"slices"

	"github.com/gosnmp/gosnmp"
)

// get reads single objects. It omits objects that the device lacks.
func (s *session) get(ctx context.Context, oids []string, h *harvest) error {
	most := gosnmp.MaxOids // reduced after a genErr, which may mean one object or too many objects
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
			for _, v := range s.buffers.variables(p) {
				if v.oid == nil || !h.accepts(&v) {
					continue
				}
				if err := s.keep(h, v); err != nil {
					return err
				}
			}
		}
		oids = oids[n:]
	}
	return nil
}

// order is the order of OIDs that a walk requires.
type order bool

const (
	increasing order = false
	anyOrder   order = true
)

// walk reads the subtree under root by GETBULK, or by GETNEXT from v1 devices.
func (s *session) walk(ctx context.Context, root oid, order order, h *harvest) error {
	at := root
	var been map[string]bool // the OIDs visited, if the order may be any
	if order == anyOrder {
		been = map[string]bool{root.key(): true}
	}
	most := maxRepetitions // reduced after a genErr: some agents mean that the answer is too large
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
		next, more, err := s.take(root, at, order, s.buffers.variables(p), h)
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

// take adds one answer's variables and returns where to continue, if there is more.
func (s *session) take(root, at oid, order order, vars []variable, h *harvest) (next oid, more bool, err error) {
	for i := range vars {
		v := &vars[i]
		if v.typ == gosnmp.EndOfMibView {
			return at, false, nil
		}
		if v.oid == nil {
			return at, false, fmt.Errorf("walk %s: the device returned an OID that is none, or has more than %d arcs", root, maxArcs)
		}
		if order == increasing && v.oid.compare(at) <= 0 {
			return at, false, fmt.Errorf("walk %s: OID not increasing: after %s the device returned %s; its agent is broken there and would be read for ever (a module of an snmp.yml may set allow_nonincreasing_oids)", root, at, v.oid)
		}
		at = v.oid
		if !at.hasPrefix(root) {
			return at, false, nil
		}
		if !h.accepts(v) {
			continue
		}
		if err := s.keep(h, *v); err != nil {
			return at, false, fmt.Errorf("walk %s: %w", root, err)
		}
	}
	return slices.Clone(at), len(vars) > 0, nil // at points into the answer
}

// keep accepts one variable.
func (s *session) keep(h *harvest, v variable) error {
	if s.read != nil {
		s.read(v.oid)
	}
	s.stats.pdus++
	return h.add(v)
}

// shrink records that the device answers only smaller requests.
func (s *session) shrink(to int, why string) {
	s.log.Info("Asking for fewer variables at once from now on", "device", s.endpoint.String(),
		"max_repetitions", to, "before", s.bulk, "reason", why)
	s.bulk = max(1, to)
	s.learned = s.bulk
}
