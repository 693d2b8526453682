package split

import (
	"cmp"
	"slices"
)

// search finds out how much of a round of samples is stored, by single samples. All may be stored already, and
// the receiver's database says that some are late.
//
// What is stored of a partition is a prefix. A sample is late if the next one of its series, its successor, is
// stored. So in the order of their successors the late samples of a round are a prefix as well:
//
//	order   a  b  c  d  e  f        by the place of the successor
//	        late     │  not late
//	                 └── what is searched for
//
// A sample that is taken shows for certain where the prefix ends: nothing at its successor or behind that is stored. A sample that is
// late shows less. It may be late for another reason: another sender has stored something newer of its series. So others count as stored
// only if several late ones come behind them in that order, and none that was taken before them:
//
//   - where the stored ones end inside the round, and in the first round of a partition, those at their end and one drawn at random at each
//     distance from it, which doubles each time; if they are few, all;
//   - in a round after one that is stored, the last one, one near it, and others drawn at random: three, or six of a few.
//
// A late sample behind one that was taken is late for another reason. It does not speak for others, and no later one of its series does until one is taken.
// If one series in n is late for another reason, all that are asked for in the name of a round are in one of n³ cases, where a crash or an outage ended at
// that round: TestSeriesOfAnotherSender prints how many good samples count as stored for that, and are not.
type search struct {
	piece
	order  []int // those with a successor that may be stored, by its place
	rest   []int // the others
	strict bool  // the round before is not known to be stored
	asked  map[int]bool
}

const (
	// allAsked is of how many samples, that would count as stored, each is asked for.
	allAsked = 12
	// endAsked is how many are asked for where the stored ones end.
	endAsked = 4
	// roundAsked is how many are asked for of a round after one that is stored.
	roundAsked = 3
	// fewAsked is how many are, if it has no more than allAsked: there one or two late ones are a large part.
	fewAsked = 6
)

// begin begins a search in a round, of which p is the beginning.
func (m *Machine) begin(p piece) {
	if !m.apart {
		m.separate(nil)
	}
	if n := len(m.todo); n > 0 && m.todo[n-1].end && !m.severalPartitions(append(slices.Clone(p.at), m.todo[n-1].at...)) {
		p.at = append(slices.Clone(p.at), m.ready(m.todo[n-1].at)...)
		m.todo = m.todo[:n-1]
	}
	s := &search{piece: p, strict: !m.expect, asked: map[int]bool{}}
	for _, i := range p.at {
		if m.mayBeLate(i) && !m.suspects[m.samples[i].Series] {
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

// bounds returns how many of the order may be stored, from the beginning, as the last one of them is late, and from where on none is,
// because that one was taken; lates is how many of the former were late, and strange is those that were late behind the taken one.
func (s *search) bounds(m *Machine) (lo, hi, lates int, strange []int) {
	hi = slices.IndexFunc(s.order, func(i int) bool { return m.samples[i].state == done && m.samples[i].outcome == Delivered })
	if hi < 0 {
		hi = len(s.order)
	}
	for n, i := range s.order {
		switch {
		case m.samples[i].state != late:
		case n < hi:
			lo, lates = n+1, lates+1
		default:
			strange = append(strange, i)
		}
	}
	return lo, hi, lates, strange
}

// next returns the sample to ask for, or false when the search has ended.
func (s *search) next(m *Machine) (int, bool) {
	s.order = slices.DeleteFunc(s.order, func(i int) bool { // bad ones tell nothing
		x := &m.samples[i]
		return x.state == kept || x.state == done && x.outcome != Delivered
	})
	lo, hi, lates, _ := s.bounds(m)
	if i, ok := s.boundary(m, lo, hi); ok {
		return i, true
	}
	return s.confirm(m, lo, lates)
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

// confirm returns another sample that must be late, if there are to be more: see search.
func (s *search) confirm(m *Machine, lo, lates int) (int, bool) {
	switch {
	case lo <= allAsked && (s.strict || lo < len(s.order)):
		return s.askWithin(m, 0, lo)
	case !s.strict && lo == len(s.order):
		if lates >= roundAsked && (lo > allAsked || lates >= fewAsked) {
			return 0, false
		}
		from := 0
		if lates == 1 {
			from = max(lo-max(lo/32, 2*endAsked), 0)
		}
		return s.askWithin(m, from, lo)
	}
	for at := lo - 1; at >= lo-endAsked; at-- {
		if i, ok := s.ask(m, at); ok {
			return i, true
		}
	}
	for far := endAsked; far < lo; far *= 2 {
		from, to := max(lo-2*far, 0), lo-far
		if slices.ContainsFunc(s.order[from:to], func(i int) bool { return s.asked[i] }) {
			continue
		}
		if i, ok := s.askWithin(m, from, to); ok {
			return i, true
		}
	}
	return 0, false
}

// askWithin returns a sample between two places of the order, drawn at random, that is open and was not asked for.
func (s *search) askWithin(m *Machine, from, to int) (int, bool) {
	for n, first := 0, m.rnd.IntN(max(to-from, 1)); n < to-from; n++ {
		if i, ok := s.ask(m, from+(first+n)%(to-from)); ok {
			return i, true
		}
	}
	return 0, false
}

// concluded ends the search.
func (m *Machine) concluded() {
	s := m.search
	m.search = nil
	lo, hi, lates, strange := s.bounds(m)
	if m.cfg.Receiver != KeepsGood {
		for _, i := range strange {
			m.suspects[m.samples[i].Series] = true
		}
	}
	if lates < lo && lates < roundAsked { // those that were asked for turned out bad
		lo = 0
	}
	for _, i := range s.order[:lo] {
		if m.samples[i].state == open {
			m.free += perDelivered
			m.samples[i].state, m.samples[i].ref = inferred, int32(s.ref)
		}
	}
	if m.expect = lo > 0 && lo == len(s.order) && !m.window; m.expect && m.isExposed(s.order[0]) {
		if m.rounds++; m.rounds > 1 {
			m.cfg.Receiver = KeepsGood
		}
	}
	left := slices.Concat(s.order[lo:], s.rest)
	slices.Sort(left)
	left = slices.DeleteFunc(left, func(i int) bool { return m.samples[i].state != open })
	if len(left) > 0 {
		m.todo = append(m.todo, piece{
			at: left, refused: s.refused && lates == 0 && len(strange) == 0, kind: Late, ref: s.ref,
			beyond: hi < len(s.order) && m.cfg.Receiver != KeepsGood,
		})
	}
}
