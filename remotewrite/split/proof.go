package split

import (
	"cmp"
	"slices"
)

// proof shows that samples are at fault: in each turn they are refused again, and after that one to three
// controls are accepted, or refused by the receiver's database.
type proof struct {
	piece
	turns, turn int
	controls    int // left to send in this turn
	offset      int
	outcome     Outcome
	asking      bool // the last request had the samples, not a control
	opaque      bool // the refusal has no known reason; see Config.Turns
}

func (p *proof) next() Request {
	if p.controls > 0 {
		p.asking = false
		return Request{Control: true}
	}
	p.asking = true
	return Request{Samples: p.at, Once: p.once}
}

// begin begins a turn. Consecutive turns never have the same number of controls, to detect a balancer that alternates
// between receivers.
func (p *proof) begin() {
	n := 3
	if p.turns == QuickTurns {
		n = 2
	}
	p.controls = 1 + (p.turn+p.offset)%n
}

// prove begins a proof for a piece that was refused.
func (m *Machine) prove(p piece, r Reply) { m.proveTo(p, r, Rejected) }

func (m *Machine) proveTo(p piece, r Reply, o Outcome) {
	x := &proof{piece: p, outcome: o, turns: m.cfg.Turns, offset: m.rnd.IntN(6), opaque: r.Kind == Opaque || r.Kind == TooLarge}
	x.kind, x.ref = r.Kind, r.Ref
	switch {
	case r.Kind == Failed || p.once:
		x.turns = failedTurns
	case !x.opaque:
		x.turns = QuickTurns
	case x.turns > QuickTurns && m.samples[p.at[0]].Standing == Refused && !m.random: // samples of the series were proven bad before
		x.turns = QuickTurns
	}
	if x.turns == 0 {
		m.ended = true
		return
	}
	if x.turns == failedTurns && m.passed == 0 { // the receiver may fail at everything
		m.keepBack(p)
		return
	}
	x.begin()
	m.proof = x
}

// tellProof handles the answer to a request of the proof.
func (m *Machine) tellProof(r Reply) {
	p := m.proof
	switch {
	case !p.asking && r.Kind == None:
		m.proof = nil
		m.keepBack(p.piece)
	case !p.asking && (r.Kind == Took || r.Kind.final()):
		if p.controls--; p.controls > 0 {
			return
		}
		if p.turn++; p.turn < p.turns {
			return
		}
		m.proof = nil
		m.full = (m.full || p.turns == FullTurns) && !m.random
		if p.turns == FullTurns && p.opaque && !m.random {
			m.cfg.Turns = QuickTurns
		}
		m.proven(p)
	case !p.asking:
		m.ended = true // the target refuses a sample that it accepted before
	case r.Kind == Took:
		m.proof = nil
		m.passed++
		m.distrust(p.kind)
		m.accepted(p.piece)
	case len(p.at) == 0: // the target accepted all of them as tests
		m.proof = nil
	case r.Kind == Failed && !p.once:
		m.expose(p.at, r)
		m.proof = nil
		m.refused(p.piece, r)
	case len(p.at) == 1 && r.Kind.final() && !p.kind.final():
		m.proof = nil
		m.refusedAlone(p.at[0], p.piece, r)
	default:
		m.expose(p.at, r)
		p.ref = r.Ref
		p.begin()
	}
}

// distrust notes that the target accepted samples that it had refused: it refuses at random, so a quick proof proves
// nothing.
func (m *Machine) distrust(k Kind) {
	if k == Opaque || k == TooLarge {
		m.random, m.full = true, false
		m.cfg.Turns = max(m.cfg.Turns, FullTurns)
	}
}

// mostKept is how many pieces may be kept back, with no sample accepted and no control known, before the machine ends.
const mostKept = 8

// keepBack keeps a piece until another sample is accepted, because nothing contrasts with its refusal yet. If no other samples
// are left to send, the machine ends.
func (m *Machine) keepBack(p piece) {
	others := slices.ContainsFunc(m.todo, func(q piece) bool { return len(q.at) > 0 }) ||
		slices.ContainsFunc(m.groups, func(g []int) bool { return len(g) > 0 }) || m.search != nil
	if !others || m.passed == 0 && len(m.kept) >= mostKept {
		m.ended = true
		return
	}
	for _, i := range p.at {
		m.samples[i].state = kept
	}
	p.left, p.refused, p.chunk, p.end = false, false, false, false
	m.kept = append(m.kept, p)
}

// proven gives up the samples of a completed proof.
func (m *Machine) proven(p *proof) {
	var asked, others []int
	for _, i := range p.at {
		if m.samples[i].alone {
			asked = append(asked, i)
		} else {
			others = append(others, i)
		}
	}
	if p.outcome == Rejected {
		for _, i := range asked {
			m.settle(Rejected, int(m.samples[i].ref), i)
			m.settleBefore(i, int(m.samples[i].ref))
		}
		m.settle(Unconfirmed, p.ref, others...)
		return
	}
	m.settle(Unconfirmed, p.ref, p.at...)
}

// spread picks some samples of different series, to be sent alone as witnesses for all.
func (m *Machine) spread(at []int) (ask []int) {
	first := m.firsts(at)
	turn := m.rnd.IntN(len(first))
	for n := range min(witnesses, len(first)) {
		ask = append(ask, first[(turn+n*len(first)/witnesses)%len(first)])
	}
	slices.Sort(ask)
	return slices.Compact(ask)
}

// firsts returns the first sample of each series.
func (m *Machine) firsts(at []int) (first []int) {
	seen := make(map[uint64]bool, len(at))
	for _, i := range at {
		if s := m.samples[i].Series; !seen[s] {
			seen[s] = true
			first = append(first, i)
		}
	}
	return first
}

// refusedWitnesses picks samples of refused series: the first sample of each series that has too few proven refusals to
// decide for its other samples, or no refusal within the last minute. It picks at least three, and more for a refusal
// without a known reason if several samples of a series wait.
func (m *Machine) refusedWitnesses(at []int, k Kind) (ask []int) {
	first, least := m.firsts(at), witnesses
	if k == Opaque {
		least += min(len(at)-len(first), opaqueWitnesses)
	}
	slices.SortStableFunc(first, func(i, j int) int {
		a, b := &m.samples[i], &m.samples[j]
		switch {
		case a.Refusals != b.Refusals:
			return int(a.Refusals) - int(b.Refusals)
		case a.Lately == b.Lately:
			return 0
		case b.Lately:
			return -1
		}
		return 1
	})
	for n, i := range first {
		s := &m.samples[i]
		if s.Refusals < RefusalsThatSpeak || n < least || !s.Lately && n < budget/max(m.cfg.Shards, 1) {
			ask = append(ask, i)
		}
	}
	return ask
}

// callWitnesses sends some samples of a refused piece alone, before the others.
func (m *Machine) callWitnesses(p piece, ask []int) {
	m.asked = 0
	p.after, p.left = true, false
	m.todo = append(m.todo, p)
	for _, i := range slices.Backward(ask) {
		m.todo = append(m.todo, piece{at: []int{i}, alone: true, once: p.once})
	}
	m.free += len(ask) // their number is bounded already
}

// newest picks the newest samples of different series: if these are too old, all are.
func (m *Machine) newest(at []int) (ask []int) {
	seen := map[uint64]bool{}
	for _, i := range slices.SortedStableFunc(slices.Values(at), func(i, j int) int { return cmp.Compare(m.samples[j].T, m.samples[i].T) }) {
		if s := m.samples[i].Series; len(ask) < newestAsked && !seen[s] {
			seen[s] = true
			ask = append(ask, i)
		}
	}
	slices.Sort(ask)
	return ask
}

// afterWitnesses decides about the other samples once the witnesses have their answers.
func (m *Machine) afterWitnesses(p piece) {
	if m.samples[p.at[0]].Standing == Refused && p.kind != TooOld {
		m.afterRefused(p)
		return
	}
	p.at = m.ready(p.at)
	switch {
	case len(p.at) == 0:
	case m.asked > 0:
		m.todo = append(m.todo, p)
		m.todo[len(m.todo)-1].after = false
	default:
		m.refusedRest(p, Reply{Kind: p.kind, Ref: p.ref})
	}
}

// afterRefused proves samples of refused series bad, together: the witnesses and the samples for which they decide. If
// several samples of a series wait and the receiver gives no known reason, the witnesses decide for no others as long as
// the budget allows sending more samples alone.
func (m *Machine) afterRefused(p piece) {
	var at, again []int
	several := slices.ContainsFunc(p.at, func(i int) bool { return m.samples[i].prev >= 0 })
	more := m.asked > 0 || several && p.kind == Opaque && m.requests+m.proofs+2*(1+fullCost) <= budget
	for i := range m.samples {
		switch s := &m.samples[i]; {
		case s.state == kept && s.Standing == Refused:
			s.state = open
			at = append(at, i)
		case s.state != open || s.Standing != Refused:
		case more || s.Refusals < RefusalsThatSpeak:
			again = append(again, i)
		default:
			at = append(at, i)
		}
	}
	if len(again) > 0 {
		m.groups = append(m.groups, again)
	}
	if len(at) > 0 && len(at) <= min(len(p.at), m.cfg.Limit) { // these were refused together
		m.proveTo(piece{at: at, rest: true, alone: true}, Reply{Kind: p.kind, Ref: p.ref}, Rejected)
		return
	}
	for len(at) > 0 {
		n := min(len(at), m.cfg.Limit)
		m.todo = append(m.todo, piece{at: at[:n], rest: true, alone: true})
		at = at[n:]
	}
}

// sweep sends the other parts of a refused request, each once and undivided, before the budget is spent: the bad samples of its first part may
// have used the budget up, and the other parts be good. Delivered samples add to the budget, and then the search continues in the refused
// parts. It returns false if not all that is left are such parts, or if nothing was delivered since the last sweep.
func (m *Machine) sweep() bool {
	if m.found < m.sweepFrom || len(m.todo) == 0 || slices.ContainsFunc(m.todo, func(p piece) bool { return !p.half || p.refused || p.once }) {
		return false
	}
	for i := range m.todo {
		m.todo[i].left, m.todo[i].whole = false, true
	}
	m.giving, m.sweepFrom = true, m.found+1
	return true
}

// giveUpRest sends remaining samples together because the budget is spent; those refused then are unconfirmed. As long as the budget can be
// renewed, it takes only the samples being searched, at most one batch: later ones may be good.
func (m *Machine) giveUpRest() {
	m.giving = true
	searched := make(map[int]bool)
	for _, p := range m.todo {
		for _, i := range p.at {
			searched[i] = true
		}
	}
	var left, others []int
	for i := range m.samples {
		s := &m.samples[i]
		if s.state == kept && s.Standing == Refused {
			s.state = open
		}
		switch {
		case s.state != open:
		case m.renewals > 0 && (!searched[i] || len(left) == m.batch):
			others = append(others, i)
		default:
			left = append(left, i)
		}
	}
	m.todo, m.groups, m.expect = nil, m.group(others), false
	if len(others) > 0 {
		m.renewals--
		m.free += budget
	}
	for len(left) > 0 {
		n := min(len(left), m.cfg.Limit)
		m.todo = append(m.todo, piece{at: left[:n], rest: true})
		left = left[n:]
	}
	slices.Reverse(m.todo)
}

// refusedRest decides about refused samples after the budget is spent.
func (m *Machine) refusedRest(p piece, r Reply) {
	aged := !slices.ContainsFunc(p.at, func(i int) bool { return !m.samples[i].Aged })
	switch {
	case p.alone:
		m.proveTo(p, r, Rejected)
	case r.Kind.final() && (r.Kind != TooOld || aged):
		m.settle(Unconfirmed, r.Ref, p.at...)
	default:
		m.proveTo(p, r, Unconfirmed)
	}
}
