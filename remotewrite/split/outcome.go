package split

import (
	"math/bits"
	"slices"
)

// expose notes that samples may have been stored by a request that was not taken.
func (m *Machine) expose(at []int, r Reply) {
	in := make(map[uint64]bool, len(at))
	for _, i := range slices.Backward(at) {
		s := &m.samples[i]
		s.Sent = s.Sent || r.Doubt || r.Kind == Failed
		s.exposed = s.exposed || in[s.Series]
		in[s.Series] = true
	}
}

// mayBeStored reports whether a sample may be stored already.
func (m *Machine) mayBeStored(i int) bool {
	s := &m.samples[i]
	return s.Sent || m.isExposed(i) || s.prev >= 0 && m.isExposed(int(s.prev))
}

// isExposed reports whether a sample and the one after it were in a refused request whose good part may be stored.
func (m *Machine) isExposed(i int) bool {
	s := &m.samples[i]
	return s.exposed && s.Standing < Refused && m.cfg.Receiver != RollsBack && !m.cfg.AnyOrder
}

// successor returns the first later sample of the series with a later time, -1 if there is none.
func (m *Machine) successor(i int) int {
	t := m.samples[i].T
	j := m.samples[i].next
	for j >= 0 && m.samples[j].T <= t {
		j = m.samples[j].next
	}
	return int(j)
}

// mayBeLate reports whether a sample is late if its successor is stored, and that may be.
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

// accepted gives the samples of a piece their outcome.
func (m *Machine) accepted(p piece) {
	if p.refused {
		m.distrust(p.kind)
	}
	if p.alone {
		m.asked++
	}
	for _, i := range p.at {
		if s := &m.samples[i]; s.exposed && !s.Sent && m.samples[s.next].state == open && m.cfg.Receiver == Unknown {
			if m.rolls++; m.rolls > 1 {
				m.cfg.Receiver = RollsBack
			}
		}
		m.took(i)
	}
	if p.left && len(m.todo) > 0 {
		right := &m.todo[len(m.todo)-1]
		right.refused, right.kind, right.ref = true, p.kind, p.ref
	}
	for _, k := range m.kept { // another sample is taken: there is contrast now
		for _, i := range k.at {
			if m.samples[i].state == kept {
				m.samples[i].state = open
			}
		}
	}
	m.todo = append(m.todo, m.kept...)
	m.kept = nil
}

// took notes that a sample was taken. What came before it of its series, and was late, is stored.
func (m *Machine) took(i int) {
	if m.samples[i].state == done {
		return
	}
	m.samples[i].state, m.samples[i].outcome = done, Delivered
	m.found++
	if m.samples[i].Blamed {
		m.distrust(Opaque)
	}
	for j := m.samples[i].prev; j >= 0; j = m.samples[j].prev {
		s := &m.samples[j]
		if s.state != late && s.state != inferred {
			continue
		}
		if s.exposed && !s.Sent && m.cfg.Receiver == Unknown {
			if m.keeps++; m.keeps > 1 {
				m.cfg.Receiver = KeepsGood
			}
		}
		if m.suspect && s.exposed && !s.Sent {
			s.state = hidden
			continue
		}
		m.settle(Resent, int(s.ref), int(j))
	}
}

// settle decides about samples.
func (m *Machine) settle(o Outcome, ref int, at ...int) {
	var open []int
	for _, i := range at {
		if s := &m.samples[i]; s.state != done {
			s.state, s.outcome = done, o
			open = append(open, i)
		}
	}
	if o == Rejected {
		m.rejected += len(open)
	}
	if len(open) > 0 {
		m.verdicts = append(m.verdicts, Verdict{open, o, ref})
	}
}

// refused decides how a piece that was refused goes on.
func (m *Machine) refused(p piece, r Reply) {
	m.window = m.window || r.Kind == TooOld
	p.kind, p.ref, p.refused = r.Kind, r.Ref, true
	p.once = p.once || r.Kind == Failed
	if p.once {
		if m.fails++; m.passed == 0 && m.fails > 2*bits.Len(uint(len(m.samples)))+4 {
			m.ended = true // nothing shows that the samples are the reason
			return
		}
	}
	if len(p.at) == 1 {
		m.refusedAlone(p.at[0], p, r)
		return
	}
	first, stored := &m.samples[p.at[0]], m.mayBeStored(p.at[0])
	switch {
	case p.rest:
		m.refusedRest(p, r)
	case first.Standing < Refused && len(m.unique(p.at)) < len(p.at):
		m.groups = slices.Insert(m.groups, 0, slices.Clone(p.at)) // cut it by rounds
	case stored && r.Kind == Late && len(p.at) > 3 && len(m.unique(p.at)) == len(p.at) && !m.cfg.AnyOrder:
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
		s.state = kept // the proof comes with those of the others
	default:
		m.prove(p, r)
	}
}

// settleBefore asks again for the sample before one that is not stored, where it was taken for stored.
func (m *Machine) settleBefore(i, ref int) {
	if j := m.samples[i].prev; j >= 0 && m.samples[j].state == inferred {
		m.samples[j].state = open
		m.todo = append(m.todo, piece{at: []int{int(j)}, ref: ref})
	}
}

// end decides what is left at the end.
func (m *Machine) end() {
	if len(m.kept) > 0 {
		m.ended = true
		return // no other sample was taken
	}
	for i := range m.samples {
		s := &m.samples[i]
		switch {
		case s.state != late && s.state != inferred:
		case m.cfg.More && m.lastLate(i), m.isExposed(i) && m.laterIsBad(i):
			m.settle(Resent, int(s.ref), i)
		case s.state == late:
			m.settle(Rejected, int(s.ref), i)
		default:
			m.settle(Unconfirmed, int(s.ref), i)
		}
	}
	// If nothing else was bad, one of the hidden ones is: which one cannot be known.
	o := Resent
	if m.rejected == 0 {
		o = Unconfirmed
	}
	for i := range m.samples {
		if m.samples[i].state == hidden {
			m.settle(o, 0, i)
			o = Resent
		}
	}
	m.ended = true
}

// laterIsBad reports whether the first sample after i in its series that was not late was rejected: then i is
// not late for another sender's samples.
func (m *Machine) laterIsBad(i int) bool {
	for j := m.samples[i].next; j >= 0; j = m.samples[j].next {
		s := &m.samples[j]
		if s.state == done && s.outcome != Resent {
			return s.outcome == Rejected && !s.kind.final()
		}
	}
	return false
}

// lastLate reports whether all later samples of the series are late as well.
func (m *Machine) lastLate(i int) bool {
	for j := m.samples[i].next; j >= 0; j = m.samples[j].next {
		if s := m.samples[j].state; s != late && s != inferred {
			return m.samples[j].outcome == Resent
		}
	}
	return true
}
