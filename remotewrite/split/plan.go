package split

import (
	"slices"
)

// unique returns the longest prefix of at with at most one sample per series.
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

// overBudget reports whether the budget is spent, apart from the proof for the remaining samples and n requests. Requests of proofs count until a
// sample is delivered or found stored; after that only those beyond the cost of one proof per rejected sample.
func (m *Machine) overBudget(n int) bool {
	proofs, cost := m.proofs, fullCost
	switch {
	case !m.proves:
		cost = 0
	case m.cfg.Turns == QuickTurns:
		cost = quickCost
	}
	if m.found > 0 {
		proofs = max(proofs-cost*m.rejected, 0)
	}
	// Reserve requests for one more sample sent alone and proven bad, and then for all remaining ones.
	return m.requests+proofs+2*(1+cost)+n > budget+m.free+perDelivered*m.found
}

// request makes a request of a piece and notes it as sent.
func (m *Machine) request(p piece) Request {
	m.sent = p
	m.requests++
	m.withheld = m.withholdsAny(p.at)
	return Request{Samples: p.at, Once: p.once, Withhold: m.withheld}
}

// take prepares a piece from the stack: it returns its request, or false if the piece went back to the stack or vanished.
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
		l.half = p.kind == Bad || p.kind == Opaque
		r.half = l.half
		m.todo = append(m.todo, r, l)
		return Request{}, false
	case p.chunk && m.expect:
		m.begin(p)
		return Request{}, false
	case len(p.at) > m.most(p):
		rest, n := p, m.most(p)
		p.at, rest.at = p.at[:n], p.at[n:]
		rest.left, rest.end, rest.chunk = false, p.chunk || p.end, false
		p.left, p.refused = false, false
		m.todo = append(m.todo, rest)
	}
	return m.request(p), true
}

// most returns how many samples of a piece fit one request. A half gets at most twice the number accepted together last, or
// half the number refused: where many samples are bad, a larger request is certain to be refused and shows nothing.
func (m *Machine) most(p piece) int {
	if p.half && !p.whole && m.run > 0 {
		return min(m.cfg.Limit, m.run)
	}
	return m.cfg.Limit
}

// ready returns those of at that may be sent now: they are open, and no earlier sample of their series blocks them.
// The other open ones go into a new group to wait.
func (m *Machine) ready(at []int) []int {
	ready, wait := m.sift(at)
	if len(wait) > 0 {
		m.groups = append(m.groups, wait)
	}
	return ready
}

// sift divides the open samples of at into those that may be sent now, together, and those that must wait.
func (m *Machine) sift(at []int) (can, wait []int) {
	m.pass++
	for _, i := range at {
		switch {
		case m.samples[i].state != open:
		case m.blocked(i):
			wait = append(wait, i)
		default:
			can = append(can, i)
		}
	}
	return can, wait
}

// blocked reports whether an earlier sample of the series is open and is not sent together with i, because this
// pass did not visit it or found it blocked. It stores the result in i for the later samples of the series.
func (m *Machine) blocked(i int) bool {
	s := &m.samples[i]
	s.pass, s.waits = m.pass, false
	for j := s.prev; j >= 0; j = m.samples[j].prev {
		before := &m.samples[j]
		switch {
		case before.state == open:
			s.waits = before.pass != m.pass || before.waits
			return s.waits
		case before.state == kept:
			s.waits = true
			return true
		case before.state == done, before.state == hidden, before.clear:
			s.clear = true
			return false
		}
	}
	s.clear = true
	return false
}

// refill puts the next samples on the stack. It returns false if none can be sent.
func (m *Machine) refill() bool {
	m.giving = false
	for n, g := range m.groups {
		m.pass++
		first := slices.IndexFunc(g, func(i int) bool { return m.samples[i].state == open && !m.blocked(i) })
		switch {
		case first < 0:
			m.groups[n] = slices.DeleteFunc(g, func(i int) bool { return m.samples[i].state != open })
		case m.mayBeStored(g[first]):
			m.startRound(n)
			return true
		default:
			m.start(n)
			return true
		}
	}
	m.groups = slices.DeleteFunc(m.groups, func(g []int) bool { return len(g) == 0 })
	return false
}

// startRound puts the next round of a group that may be stored on the stack. It looks at that round only, since very many
// samples may follow.
func (m *Machine) startRound(n int) {
	var round, wait []int
	seen := make(map[uint64]bool)
	g := m.groups[n]
	infer := m.rounds > 1 && !m.window // if they are stored, all but the newest of each series are late
	m.pass++
	end := 0
	for ; end < len(g); end++ {
		i := g[end]
		s := &m.samples[i]
		switch {
		case s.state != open:
			continue
		case m.blocked(i):
			wait = append(wait, i)
			continue
		case infer && s.exposed && !s.Sent && m.isExposed(i):
			s.state = inferred
			continue
		}
		if seen[s.Series] {
			break
		}
		seen[s.Series] = true
		round = append(round, i)
	}
	copy(g[end-len(wait):end], wait)
	m.groups[n] = g[end-len(wait):]
	if len(round) == 0 {
		return
	}
	if partition := m.samples[round[0]].Partition; partition != m.partition || m.severalPartitions(round) {
		m.partition, m.expect = partition, false
	}
	m.push(m.withoutSuspects(round), true)
}

// withoutSuspects puts the samples of suspect series on the stack, each by itself, and returns the others.
func (m *Machine) withoutSuspects(round []int) []int {
	return slices.DeleteFunc(round, func(i int) bool {
		if !m.suspects[m.samples[i].Series] {
			return false
		}
		m.todo = append(m.todo, piece{at: []int{i}})
		return true
	})
}

// severalPartitions reports whether the samples marked Sent belong to more than one partition.
func (m *Machine) severalPartitions(at []int) bool {
	first := -1
	for _, i := range at {
		switch s := &m.samples[i]; {
		case !s.Sent:
		case first < 0:
			first = i
		case s.Partition != m.samples[first].Partition:
			return true
		}
	}
	return false
}

// separate sends each partition by itself from here on, beginning with the samples of at, which were refused together.
func (m *Machine) separate(at []int) {
	m.apart = true
	all := slices.Concat(append(m.groups, at)...)
	slices.Sort(all)
	m.groups = m.group(slices.DeleteFunc(slices.Compact(all), func(i int) bool { return m.samples[i].state != open }))
}

// start puts the first samples of a group on the stack and returns the rest to the group.
func (m *Machine) start(n int) {
	can, wait := m.sift(m.groups[n])
	m.groups[n] = wait
	if m.samples[can[0]].Standing >= Refused {
		m.todo = append(m.todo, piece{at: can})
		return
	}
	round := m.unique(can)
	m.groups[n] = append(slices.Clone(can[len(round):]), wait...)
	slices.Sort(m.groups[n])
	m.push(slices.Clone(round), false)
}

// push puts a round on the stack. Samples that follow one given up in their series are likely to be refused too and go last.
func (m *Machine) push(round []int, stored bool) {
	var followers []int
	round = slices.DeleteFunc(round, func(i int) bool {
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
	if len(round) > 0 {
		m.todo = append(m.todo, piece{at: round, chunk: stored})
	}
}
