package split

import (
	"math/bits"
	"slices"
)

// expose notes that a request that was not accepted may have stored some of its samples.
func (m *Machine) expose(at []int, r Reply) {
	in := make(map[uint64]bool, len(at))
	any := false
	for _, i := range slices.Backward(at) {
		s := &m.samples[i]
		s.Sent = s.Sent || r.Doubt || r.Kind == Failed
		s.exposed = s.exposed || in[s.Series]
		any = any || in[s.Series]
		in[s.Series] = true
	}
	if any && (!r.Doubt || r.Kind == Duplicate) {
		m.unwritten(r)
	}
}

// unwritten derives how many samples are not stored, at least, from the refusal of a request with several samples of a series.
func (m *Machine) unwritten(r Reply) {
	n := r.Unwritten
	if r.Doubt {
		n = 1
	}
	if n == 0 && (r.Kind == Bad || r.Kind == Opaque || r.Kind == Late || r.Kind == Duplicate) {
		n = 1
	}
	if n += m.givenUp; n > m.missing {
		m.missing, m.why = n, r.Ref
	}
	m.withhold = m.withhold || r.Unwritten > 0 || r.Kind == Late
	m.contradicts = m.contradicts || r.Kind == Duplicate
}

// withholds reports whether a sample gets no outcome yet if it is accepted now. A receiver that has another value at a sample's time
// refuses the sample only as long as it has nothing newer of the series:
//
//	it has          a=5 at 10:00
//	it is sent      a=4 at 10:00, a=6 at 10:01    400; a receiver that keeps the good part stores a=6
//	it is sent      a=4 at 10:00                  204 where late samples are taken, and a=4 is dropped in silence
//
// So if a request was refused for the order of its samples, or the receiver stored some of them, a 2xx on resending proves nothing
// for a sample that had a later one of its series in that request.
func (m *Machine) withholds(i int) bool {
	s := &m.samples[i]
	return s.exposed && (m.contradicts || m.withhold && !s.Sent)
}

func (m *Machine) withholdsAny(at []int) bool { return slices.ContainsFunc(at, m.withholds) }

// mayBeStored reports whether a sample may be stored already.
func (m *Machine) mayBeStored(i int) bool {
	s := &m.samples[i]
	return s.Sent || m.isExposed(i) || s.prev >= 0 && m.isExposed(int(s.prev))
}

// isExposed reports whether a sample and a later one of its series were in a refused request whose good part may be stored.
func (m *Machine) isExposed(i int) bool {
	s := &m.samples[i]
	return s.exposed && s.Standing < Refused && m.cfg.Receiver != RollsBack && !m.cfg.AnyOrder
}

// successor returns the next sample of the series with a later time, -1 if there is none.
func (m *Machine) successor(i int) int {
	t := m.samples[i].T
	j := m.samples[i].next
	for j >= 0 && m.samples[j].T <= t {
		j = m.samples[j].next
	}
	return int(j)
}

// mayBeLate reports whether the sample's successor may be stored, which would make the sample late.
func (m *Machine) mayBeLate(i int) bool {
	s, j := &m.samples[i], m.successor(i)
	switch {
	case m.cfg.AnyOrder:
		return false
	case j < 0:
		return s.Sent && m.cfg.More
	}
	return s.Sent && m.samples[j].Sent || m.isExposed(i)
}

// accepted gives the samples of an accepted piece their outcome.
func (m *Machine) accepted(p piece) {
	if p.refused {
		m.distrust(p.kind)
	}
	if p.alone {
		m.asked++
	}
	if p.half {
		m.run = 2 * len(p.at)
	}
	m.took(p.at)
	if p.left && len(m.todo) > 0 {
		right := &m.todo[len(m.todo)-1]
		right.refused, right.kind, right.ref = true, p.kind, p.ref
	}
	for _, k := range m.kept { // another sample was accepted, so refusals have a contrast now
		for _, i := range k.at {
			if m.samples[i].state == kept {
				m.samples[i].state = open
			}
		}
	}
	m.todo = append(m.todo, m.kept...)
	m.kept = nil
}

// took notes that the target accepted samples of the last request.
func (m *Machine) took(at []int) {
	var delivered []int
	for _, i := range at {
		if s := &m.samples[i]; s.exposed && !s.Sent && m.samples[s.next].state == open && m.cfg.Receiver == Unknown {
			if m.rolls++; m.rolls > 1 {
				m.cfg.Receiver = RollsBack
			}
		}
		if m.tookOne(i); m.withholds(i) {
			m.samples[i].again = true
		} else if m.withheld {
			delivered = append(delivered, i)
		}
	}
	if len(delivered) > 0 {
		m.verdicts = append(m.verdicts, Verdict{Samples: delivered, Outcome: Delivered})
	}
}

// tookOne notes that the target accepted a sample. Earlier samples of its series that were late are stored.
func (m *Machine) tookOne(i int) {
	if m.samples[i].state == done {
		return
	}
	m.samples[i].state, m.samples[i].outcome = done, Delivered
	m.found++
	delete(m.suspects, m.samples[i].Series)
	if m.samples[i].Blamed {
		m.distrust(Opaque)
	}
	for j := m.samples[i].prev; j >= 0; j = m.samples[j].prev {
		s := &m.samples[j]
		if s.outcome == Delivered { // the samples before that one were settled then
			break
		}
		if s.state == done && s.outcome == Rejected && s.kind == Duplicate {
			break // earlier samples were late because of the other value at that time
		}
		if s.state != late && s.state != inferred {
			continue
		}
		if s.exposed && (m.contradicts || m.missing > 0 && !s.Sent) {
			s.state = hidden
			continue
		}
		m.settle(Resent, int(s.ref), int(j))
	}
}

// settle gives those of the samples an outcome that have none.
func (m *Machine) settle(o Outcome, ref int, at ...int) {
	var open []int
	for _, i := range at {
		if s := &m.samples[i]; s.state != done {
			s.state, s.outcome = done, o
			open = append(open, i)
		}
	}
	if o == Rejected || o == Unconfirmed {
		m.givenUp += len(open)
	}
	if o == Rejected {
		m.rejected += len(open)
	}
	if len(open) > 0 {
		m.verdicts = append(m.verdicts, Verdict{Samples: open, Outcome: o, Ref: ref})
	}
}

// refused decides how to go on with a refused piece.
func (m *Machine) refused(p piece, r Reply) {
	m.window = m.window || r.Kind == TooOld
	m.proves = m.proves || r.Kind != Late && r.Kind != Duplicate
	p.kind, p.ref, p.refused = r.Kind, r.Ref, true
	p.once = p.once || r.Kind == Failed
	if p.once {
		if m.fails++; m.passed == 0 && m.fails > 2*bits.Len(uint(len(m.samples)))+4 {
			m.ended = true // no evidence that the samples are the cause
			return
		}
	}
	if p.whole {
		p.whole, p.refused = false, r.Kind == Bad || r.Kind == Opaque // it is sent again after other answers
		m.swept = append(m.swept, p)
		return
	}
	if len(p.at) == 1 {
		m.refusedAlone(p.at[0], p, r)
		return
	}
	if p.half && !p.once {
		m.run = max(len(p.at)/2, 2)
	}
	first, stored := &m.samples[p.at[0]], m.mayBeStored(p.at[0])
	switch {
	case p.rest:
		m.refusedRest(p, r)
	case stored && r.Kind != TooLarge && m.severalPartitions(p.at):
		m.separate(p.at)
	case first.Standing < Refused && len(m.unique(p.at)) < len(p.at):
		m.groups = slices.Insert(m.groups, 0, slices.Clone(p.at)) // divide it into rounds
	case stored && r.Kind == Late && len(p.at) > 3 && !p.beyond && len(m.unique(p.at)) == len(p.at) && !m.cfg.AnyOrder:
		m.begin(p)
	case r.Kind == TooOld && len(p.at) > 3 && !p.after:
		m.callWitnesses(p, m.newest(p.at))
	case stored || p.after || p.left:
		m.todo = append(m.todo, p)
	case first.Standing == Stale && r.Kind.final():
		m.callWitnesses(p, m.spread(p.at))
	case first.Standing == Refused:
		m.callWitnesses(p, m.refusedWitnesses(p.at, r.Kind))
	default:
		m.todo = append(m.todo, p)
	}
}

// refusedAlone decides about a sample that was refused alone.
func (m *Machine) refusedAlone(i int, p piece, r Reply) {
	s := &m.samples[i]
	s.ref, s.kind, s.alone = int32(r.Ref), r.Kind, true
	switch {
	case r.Kind == Late && m.mayBeLate(i):
		s.state = late
		m.found++
	case r.Kind == Late, r.Kind == Duplicate, r.Kind == TooOld && s.Aged:
		m.settle(Rejected, r.Ref, i)
		m.settleBefore(i, r.Ref)
	case p.alone && !p.rest && s.Standing == Refused:
		s.state = kept // proven together with the other witnesses
	default:
		m.prove(p, r)
	}
}

// settleBefore resends the previous sample of the series if it was inferred to be stored: the sample after it is not.
func (m *Machine) settleBefore(i, ref int) {
	if j := m.samples[i].prev; j >= 0 && m.samples[j].state == inferred {
		m.samples[j].state = open
		for k := i; k >= 0; k = int(m.samples[k].next) {
			m.samples[k].clear = false
		}
		m.todo = append(m.todo, piece{at: []int{int(j)}, ref: ref})
	}
}

// end decides about the samples that are left at the end.
func (m *Machine) end() {
	if len(m.kept) > 0 {
		m.ended = true
		return // no other sample was accepted
	}
	after := m.afterEach()
	for i := range m.samples {
		s := &m.samples[i]
		switch {
		case s.state != late && s.state != inferred:
		case m.cfg.More && after[i].late, m.isExposed(i) && after[i].bad:
			m.settle(Resent, int(s.ref), i)
		case s.state == late:
			m.settle(Rejected, int(s.ref), i)
		default:
			m.settle(Unconfirmed, int(s.ref), i)
		}
	}
	m.ended = true
}

// reveal decides at the end about the samples that count as stored. If more samples are missing than were given up or have no outcome,
// some of these are missing; it is impossible to know which.
func (m *Machine) reveal() {
	var again, late []int
	left := 0
	for i := range m.samples {
		switch s := &m.samples[i]; {
		case s.again:
			again, s.again = append(again, i), false
		case s.state == hidden:
			late, s.state = append(late, i), done
		case s.state != done:
			left++
		}
	}
	all := slices.Concat(late, again)
	slices.Sort(all)
	n := min(m.missing-m.givenUp-left, len(all))
	if n > 0 {
		m.verdicts = append(m.verdicts, Verdict{Samples: all, Outcome: Unconfirmed, Ref: m.why, Bad: n})
		return
	}
	m.verdicts = append(m.verdicts, Verdict{Samples: late, Outcome: Resent, Ref: m.why}, Verdict{Samples: again, Outcome: Delivered})
}

// after describes the outcomes of the later samples of a series.
type after struct {
	late bool // all of them are late
	bad  bool // the first one that was not late was rejected: so the sample is not late because of another sender
}

// afterEach returns the after of each sample.
func (m *Machine) afterEach() []after {
	of := make([]after, len(m.samples))
	for i := range slices.Backward(m.samples) {
		next := int(m.samples[i].next)
		if next < 0 {
			of[i].late = true
			continue
		}
		of[i] = of[next]
		s := &m.samples[next]
		if s.state != late && s.state != inferred {
			of[i].late = s.outcome == Resent
		}
		if s.state == done && s.outcome != Resent {
			of[i].bad = s.outcome == Rejected && !s.kind.final()
		}
	}
	return of
}
