package split

import (
	"cmp"
	"slices"
)

// search finds out how much of a round of samples is stored, by single samples. All may be stored already, and
// the receiver's database says that some are late.
//
// What is stored of a lane is a prefix. A sample is late if the next one of its series, its successor, is
// stored. So in the order of their successors the late samples of a round are a prefix as well:
//
//	order   a  b  c  d  e  f        by the place of the successor
//	        late     │  not late
//	                 └── what is searched for
//
// A single sample may be late, or bad, for another reason. So two that are late, different ones for each round, must
// agree, and if what is found contradicts itself, the round is halved as any other refused piece.
type search struct {
	piece
	order  []int // those with a successor that may be stored, by its place
	rest   []int // the others
	want   int   // how many late ones must agree
	asked  map[int]bool
	broken bool
}

// begin begins a search in a round, of which p is the beginning.
func (m *Machine) begin(p piece) {
	if !m.apart {
		m.separate(nil)
	}
	if n := len(m.todo); n > 0 && m.todo[n-1].end && !m.severalLanes(append(slices.Clone(p.at), m.todo[n-1].at...)) {
		p.at = append(slices.Clone(p.at), m.ready(m.todo[n-1].at)...)
		m.todo = m.todo[:n-1]
	}
	s := &search{piece: p, want: 2, asked: map[int]bool{}}
	if !m.expect {
		s.want = 3
	}
	for _, i := range p.at {
		if m.mayBeLate(i) {
			s.order = append(s.order, i)
		} else {
			s.rest = append(s.rest, i)
		}
	}
	if len(s.order) < 3 && !p.chunk {
		m.todo = append(m.todo, p)
		return
	}
	if len(s.order) == 0 {
		p.chunk, p.end, m.expect = false, false, false
		m.todo = append(m.todo, p)
		return
	}
	place := func(i int) int {
		if j := m.successor(i); j >= 0 {
			return j
		}
		return len(m.samples) + i
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(place(a), place(b)) })
	m.search = s
}

// bounds returns how many of the order are known to be late, from the beginning, and from where on none is; lates is
// how many were late.
func (s *search) bounds(m *Machine) (lo, hi, lates int, contradicts bool) {
	hi = len(s.order)
	for n, i := range s.order {
		switch x := &m.samples[i]; {
		case x.state == late:
			lo, lates = n+1, lates+1
		case x.state == done && x.outcome == Delivered:
			hi = min(hi, n)
		}
	}
	return lo, hi, lates, lo > hi
}

// next returns the sample to ask for, or false when the search has ended.
func (s *search) next(m *Machine) (int, bool) {
	s.order = slices.DeleteFunc(s.order, func(i int) bool { // bad ones tell nothing
		x := &m.samples[i]
		return x.state == kept || x.state == done && x.outcome != Delivered
	})
	lo, hi, lates, contradicts := s.bounds(m)
	if contradicts {
		s.broken = true
		return 0, false
	}
	if i, ok := s.boundary(m, lo, hi); ok {
		return i, true
	}
	if lo == 0 || lates >= s.want {
		return 0, false
	}
	return s.confirm(m, lo)
}

// ask returns the sample at a place of the order, if that is open and was not asked for.
func (s *search) ask(m *Machine, at int) (int, bool) {
	if at < 0 || at >= len(s.order) || m.samples[s.order[at]].state != open || s.asked[s.order[at]] {
		return 0, false
	}
	s.asked[s.order[at]] = true
	return s.order[at], true
}

// boundary returns the sample to ask for to find where the late ones end: the last one, the first one, then by halves.
func (s *search) boundary(m *Machine, lo, hi int) (int, bool) {
	n := len(s.order)
	if len(s.asked) == 0 {
		return s.ask(m, n-1)
	}
	if hi == 0 || lo >= hi {
		return 0, false
	}
	if lo == 0 && hi < n {
		if i, ok := s.ask(m, 0); ok {
			return i, true
		}
	}
	if i, ok := s.ask(m, lo+(hi-lo)/2); ok {
		return i, true
	}
	for at := lo; at < hi; at++ {
		if i, ok := s.ask(m, at); ok {
			return i, true
		}
	}
	return 0, false
}

// confirm returns another sample that must be late: one near the end of the late ones, or any of them.
func (s *search) confirm(m *Machine, lo int) (int, bool) {
	if i, ok := s.ask(m, lo-2-m.rnd.IntN(max(lo/32, 1))); ok {
		return i, true
	}
	for range 8 {
		if i, ok := s.ask(m, m.rnd.IntN(lo)); ok {
			return i, true
		}
	}
	return 0, false
}

// concluded ends the search.
func (m *Machine) concluded() {
	s := m.search
	m.search = nil
	lo, _, lates, contradicts := s.bounds(m)
	var left []int
	switch {
	case s.broken || contradicts:
		m.expect = false
		left = append(left, s.order...)
	default:
		if lates >= min(s.want, 2) || lates == lo {
			for _, i := range s.order[:lo] {
				if m.samples[i].state == open {
					m.free += perDelivered
					m.samples[i].state, m.samples[i].ref = inferred, int32(s.ref)
				}
			}
			left = append(left, s.order[lo:]...)
		} else {
			left = append(left, s.order...)
		}
		if m.expect = lo > 0 && lo == len(s.order) && !m.window; m.expect && m.isExposed(s.order[0]) {
			if m.rounds++; m.rounds > 1 {
				m.cfg.Receiver = KeepsGood
			}
		}
	}
	left = append(left, s.rest...)
	slices.Sort(left)
	left = slices.DeleteFunc(left, func(i int) bool { return m.samples[i].state != open })
	if len(left) > 0 {
		m.todo = append(m.todo, piece{at: left, refused: s.broken || contradicts || lo == 0 && s.refused, kind: Late, ref: s.ref})
	}
}
