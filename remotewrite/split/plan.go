package split

import (
	"slices"
)

// unique is the longest beginning of at without two samples of a series.
func (m *Machine) unique(at []int) []int {
	seen := make(map[uint64]bool, len(at))
	for n, i := range at {
		if seen[m.samples[i].Series] {
			return at[:n]
		}
		seen[m.samples[i].Series] = true
	}
	return at
}

// overBudget reports whether no request is left, but for the proof for what is left then. Requests of proofs count until a
// sample is delivered, or found stored, and beyond what one costs for each rejected sample.
func (m *Machine) overBudget() bool {
	proofs, cost := m.proofs, fullCost
	if m.cfg.Turns == QuickTurns {
		cost = quickCost
	}
	if m.found > 0 {
		proofs = max(proofs-cost*m.rejected, 0)
	}
	// One more sample may be asked for alone, and proven bad, and then all that is left.
	return m.requests+proofs+2*(1+cost) > budget+m.free+perDelivered*m.found
}

// request sends a piece.
func (m *Machine) request(p piece) Request {
	m.sent = p
	m.requests++
	return Request{Samples: p.at, Once: p.once, Withhold: m.withholdsAny(p.at)}
}

// take brings a piece from the stack on its way.
func (m *Machine) take(p piece) (Request, bool) {
	if p.after {
		m.afterWitnesses(p)
		return Request{}, false
	}
	p.at = m.ready(p.at)
	switch {
	case len(p.at) == 0:
		return Request{}, false
	case p.refused && len(p.at) > 1:
		half := len(p.at) / 2
		l, r := p, p
		l.at, r.at = p.at[:half], p.at[half:]
		l.refused, r.refused, l.left, r.left = false, false, p.kind != TooLarge, false
		m.todo = append(m.todo, r, l)
		return Request{}, false
	case p.chunk && m.expect:
		m.begin(p)
		return Request{}, false
	case len(p.at) > m.cfg.Limit:
		rest := p
		p.at, rest.at = p.at[:m.cfg.Limit], p.at[m.cfg.Limit:]
		rest.left, rest.end, rest.chunk = false, p.chunk || p.end, false
		p.left, p.refused = false, false
		m.todo = append(m.todo, rest)
	}
	return m.request(p), true
}

// ready returns those of at that may be sent now: they are open, and so is none before them of their series.
// Of the others those that are open wait in a group of their own.
func (m *Machine) ready(at []int) []int {
	var ready, wait []int
	for _, i := range at {
		switch {
		case m.samples[i].state != open:
		case m.blocked(i, at):
			wait = append(wait, i)
		default:
			ready = append(ready, i)
		}
	}
	if len(wait) > 0 {
		m.groups = append(m.groups, wait)
	}
	return ready
}

// blocked reports whether an earlier sample of the series is open, and not sent together with i.
func (m *Machine) blocked(i int, at []int) bool {
	for j := m.samples[i].prev; j >= 0; j = m.samples[j].prev {
		switch m.samples[j].state {
		case done, hidden:
			return false
		case kept:
			return true
		case open:
			if _, with := slices.BinarySearch(at, int(j)); !with {
				return true
			}
		}
	}
	return false
}

// refill puts what comes next on the stack. False means that there is nothing left.
func (m *Machine) refill() bool {
	m.giving = false
	for n, g := range m.groups {
		g = slices.DeleteFunc(g, func(i int) bool { return m.samples[i].state != open })
		m.groups[n] = nil
		if len(g) == 0 {
			continue
		}
		var can, wait []int
		for _, i := range g {
			if m.blocked(i, g) {
				wait = append(wait, i)
			} else {
				can = append(can, i)
			}
		}
		m.groups[n] = wait
		if len(can) == 0 {
			continue
		}
		m.start(n, can)
		return true
	}
	m.groups = slices.DeleteFunc(m.groups, func(g []int) bool { return len(g) == 0 })
	return false
}

// start puts the first samples of a group on the stack, and the others back.
func (m *Machine) start(n int, can []int) {
	first := &m.samples[can[0]]
	switch {
	case m.mayBeStored(can[0]):
		if first.Lane != m.lane {
			m.lane, m.expect = first.Lane, false
		}
	case first.Standing == Stale, first.Standing == Refused:
		m.todo = append(m.todo, piece{at: can})
		return
	case m.rejected > m.restAgain && len(m.unique(can)) < len(can) && m.cfg.Receiver != KeepsGood && m.cfg.Limit >= len(can):
		// Something bad was found: perhaps that was all.
		m.restAgain = m.rejected
		m.groups[n] = append(can, m.groups[n]...)
		slices.Sort(m.groups[n])
		m.todo = append(m.todo, piece{at: slices.Clone(m.groups[n])})
		return
	}
	if m.rounds > 1 && !m.window { // all but the newest of each series are late, if they are stored
		can = slices.DeleteFunc(can, func(i int) bool {
			s := &m.samples[i]
			if s.exposed && !s.Sent && m.isExposed(i) {
				s.state = inferred
			}
			return s.state != open
		})
	}
	chunk := slices.Clone(m.unique(can))
	m.groups[n] = append(slices.Clone(can[len(chunk):]), m.groups[n]...)
	slices.Sort(m.groups[n])
	// What follows a sample that was given up is likely to be refused, too.
	var followers []int
	chunk = slices.DeleteFunc(chunk, func(i int) bool {
		j := m.samples[i].prev
		if j < 0 || m.samples[j].outcome != Rejected && m.samples[j].outcome != Unconfirmed {
			return false
		}
		followers = append(followers, i)
		return true
	})
	if len(followers) > 0 {
		m.todo = append(m.todo, piece{at: followers})
	}
	if len(chunk) > 0 {
		m.todo = append(m.todo, piece{at: chunk, chunk: m.mayBeStored(can[0])})
	}
}
