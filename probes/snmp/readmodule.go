package snmp

import (
	"context"
	"slices"
	"strings"
)

// readModule reads the objects of a module: its filters first, since they restrict the rest,
// then single objects, then subtrees.
func (s *session) readModule(ctx context.Context, m *compiled, h *harvest) error {
	order := order(m.params.nonIncreasing)
	h.nulls = m.exact
	get, walk, err := s.filtered(ctx, m, order)
	if err != nil {
		return err
	}
	if err := s.get(ctx, get, h); err != nil {
		return err
	}
	for _, root := range walk {
		before := len(h.vars)
		if err := s.walk(ctx, root, order, h); err != nil {
			return err
		}
		// A root that is an object itself has nothing below it.
		if len(h.vars) == before && m.columns.find(root) != nil {
			if err := s.get(ctx, []string{root.String()}, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// filtered returns the objects and subtrees to read, restricted to the rows that the module's
// filters allow. If several filters have one target, a row must pass them all.
func (s *session) filtered(ctx context.Context, m *compiled, order order) (get []string, walk []oid, err error) {
	get, walk = m.get, m.walk
	rows := make(map[string][]uint32) // by target
	var targets []string              // in order
	for i := range m.filters {
		f := &m.filters[i]
		h := newHarvest()
		h.nulls = m.exact
		if err := s.walk(ctx, mustOID(f.oid), order, h); err != nil {
			return nil, nil, err
		}
		passed := f.rows(h)
		for _, t := range f.targets {
			known, ok := rows[t]
			if !ok {
				targets, rows[t] = append(targets, t), passed
				continue
			}
			also := make(map[uint32]bool, len(passed))
			for _, row := range passed {
				also[row] = true
			}
			rows[t] = slices.DeleteFunc(slices.Clone(known), func(row uint32) bool { return !also[row] })
		}
	}
	for _, t := range targets {
		at := mustOID(t)
		walk = slices.DeleteFunc(slices.Clone(walk), func(o oid) bool { return slices.Equal(o, at) })
		get = slices.DeleteFunc(slices.Clone(get), func(o string) bool { return o == t || strings.HasPrefix(o, t+".") })
		for _, row := range rows[t] {
			get = append(get, append(slices.Clip(at), row).String())
		}
	}
	return get, walk, nil
}

// rows returns the last arcs of the rows that pass the filter.
func (f *filter) rows(h *harvest) (rows []uint32) {
	for i := range h.vars {
		v := &h.vars[i]
		text := v.text(typeDisplayString)
		for _, re := range f.values {
			if re.MatchString(text) {
				rows = append(rows, v.oid[len(v.oid)-1])
				break
			}
		}
	}
	return rows
}
