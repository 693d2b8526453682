package split

import (
	"cmp"
	"slices"
)

// search finds out by single samples which part of a round is stored. All of it may be stored already, and
// the receiver's database refuses some samples as late.
//
// The stored samples of a partition are a prefix. A sample is late if its successor, the next one of its series, is
// stored. So ordered by their successors, the late samples of a round are a prefix as well:
//
//	order   a  b  c  d  e  f        by the position of the successor
//	        late     │  not late
//	                 └── the boundary to find
//
// An accepted sample is certain evidence: no sample at its successor's position or behind it is stored. A late sample is
// weaker evidence, because it may be late for another reason: another sender has stored a newer sample of its series. So
// other samples count as stored only if several late ones come behind them in that order, and no accepted one before them:
//
//   - if the stored prefix ends inside the round, and in the first round of a partition: the last ones of the prefix, and one drawn
//     at random at each distance from its end, which doubles each time; all, if the prefix is short;
//   - in a round after a stored one: the last sample, one near it, and others drawn at random: three, or six if the round is short;
//   - in each of these cases three samples of series that have no earlier sample in doubt, if there are any.
//
// A sample that is late behind an accepted one is late for another reason. It is no evidence for others, and neither are
// later ones of its series until one is accepted. If one series in n is late for another reason, and a crash or an outage
// ended at a round, then in one of n³ cases all three samples sent alone for that round are late for that reason:
// TestSeriesOfAnotherSender prints how many good samples wrongly count as stored because of that.
type search struct {
	piece
	order  []int // samples whose successor may be stored, ordered by its position
	rest   []int // the others
	strict bool  // the previous round is not known to be stored
	asked  map[int]bool
}

const (
	// allAsked is the longest stored prefix of which every sample is sent alone.
	allAsked = 12
	// endAsked is how many samples at the end of the stored prefix are sent alone.
	endAsked = 4
	// roundAsked is how many samples of a round after a stored one are sent alone.
	roundAsked = 3
	// fewAsked replaces roundAsked in a round of at most allAsked samples: one or two late ones are a large part of it.
	fewAsked = 6
)

// begin begins a search in the round that starts with p.
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

// bounds returns the bounds of the stored prefix of the order: the samples up to the last late one, lo, may be stored; those from the
// first accepted one, hi, on are not. lates counts the late ones before hi; strange are those behind it.
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

// next returns the sample to send alone, or false at the end of the search.
func (s *search) next(m *Machine) (int, bool) {
	s.order = slices.DeleteFunc(s.order, func(i int) bool { // bad ones are no evidence
		x := &m.samples[i]
		return x.state == kept || x.state == done && x.outcome != Delivered
	})
	lo, hi, lates, _ := s.bounds(m)
	if i, ok := s.boundary(m, lo, hi); ok {
		return i, true
	}
	if i, ok := s.newcomer(m, lo); ok {
		return i, true
	}
	return s.confirm(m, lo, lates)
}

// newcomer returns a random sample before a position of the order, whose series has no earlier sample in doubt, until enough of these were sent alone. A killed process
// may have delivered all good samples of the earlier rounds, so that the late ones alone are left: these are no evidence for the other series.
func (s *search) newcomer(m *Machine, lo int) (int, bool) {
	asked, others := 0, []int{}
	for at, i := range s.order[:lo] {
		switch {
		case m.samples[i].prev >= 0:
		case s.asked[i]:
			asked++
		case m.samples[i].state == open:
			others = append(others, at)
		}
	}
	if asked >= roundAsked || len(others) == 0 {
		return 0, false
	}
	return s.ask(m, others[m.rnd.IntN(len(others))])
}

// ask returns the sample at a position of the order if it is open and was not sent alone before.
func (s *search) ask(m *Machine, at int) (int, bool) {
	if at < 0 || at >= len(s.order) || m.samples[s.order[at]].state != open || s.asked[s.order[at]] {
		return 0, false
	}
	s.asked[s.order[at]] = true
	return s.order[at], true
}

// boundary returns the next sample to send to find the end of the late ones: the last one, the first one, then by bisection.
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

// confirm returns another sample that must be late before the others count as stored: see search.
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

// askWithin returns a random sample between two positions of the order that is open and was not sent alone before.
func (s *search) askWithin(m *Machine, from, to int) (int, bool) {
	for n, first := 0, m.rnd.IntN(max(to-from, 1)); n < to-from; n++ {
		if i, ok := s.ask(m, from+(first+n)%(to-from)); ok {
			return i, true
		}
	}
	return 0, false
}

// concluded ends the search and infers which samples are stored.
func (m *Machine) concluded() {
	s := m.search
	m.search = nil
	lo, hi, lates, strange := s.bounds(m)
	if m.cfg.Receiver != KeepsGood {
		for _, i := range strange {
			m.suspects[m.samples[i].Series] = true
		}
	}
	if lates < lo && lates < roundAsked { // the samples sent alone turned out bad
		lo = 0
	}
	for _, i := range s.order[:lo] {
		if m.samples[i].state == open {
			m.samples[i].state, m.samples[i].ref = inferred, int32(s.ref)
		}
	}
	// A late sample of a series of which the target has something newer than this agent knows looks the same at a receiver
	// that stored nothing. So where some series are known, those count.
	certain := func(i int) bool {
		return m.samples[i].state == late && (m.samples[i].Standing == Fresh || !m.acquainted)
	}
	if m.expect = lo > 0 && lo == len(s.order) && !m.window; m.expect && m.isExposed(s.order[0]) && slices.ContainsFunc(s.order, certain) {
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
