package split

import (
	"cmp"
	"slices"
	"time"
)

// repeat sends a refused batch once more, on a new connection.
type repeat struct {
	at       []int
	failures int
}

func (t *repeat) next(m *Machine, _ time.Time) Step {
	return Step{Do: Send, Samples: t.at, How: Fresh}
}

func (t *repeat) tell(m *Machine, a Answer, now time.Time) {
	switch {
	case a.Kind == Taken:
		m.pop()
		m.facts.contradicted(now)
	case a.Kind == Failed: // it only takes longer
		if t.failures++; t.failures == partFailures {
			m.end = Whole
		}
	default:
		m.pop()
		m.refused(t.at, a, now)
		if !a.Kind.aboutTime() && a.Kind != TooLarge {
			m.push(&control{}) // before the division, which costs more requests
		}
	}
}

// bare sends a failing batch once without exemplars and metadata.
type bare struct{ at []int }

func (t *bare) next(m *Machine, _ time.Time) Step {
	if t.at = m.ready(t.at); len(t.at) == 0 { // they were taken alone, for want of a control
		return Step{Do: over}
	}
	return Step{Do: Send, Samples: t.at, How: Bare}
}

func (t *bare) tell(m *Machine, a Answer, now time.Time) {
	m.pop()
	switch {
	case a.Kind == Taken:
		m.facts.tookBare(now)
	case a.Kind == Failed:
		m.failedPart(t.at, a, now, true)
	default:
		m.refused(t.at, a, now)
	}
}

// send sends a part once. A failure in a search among refused samples is retried, up to partFailures times.
type send struct {
	at       []int
	of       *branch // the part that it is a half of; nil: none
	failures int
}

const partFailures = 3

func (t *send) next(m *Machine, _ time.Time) Step {
	at := m.ready(t.at)
	if len(at) == 0 {
		return Step{Do: over}
	}
	return Step{Do: Send, Samples: at}
}

func (t *send) tell(m *Machine, a Answer, now time.Time) {
	if t.failures++; a.Kind == Failed && m.phase != failing && t.failures < partFailures {
		return
	}
	m.pop()
	switch at := m.asked.Samples; {
	case a.Kind == Taken:
		if t.of != nil && t.failures == 1 {
			t.of.taken++
		}
	case a.Kind == Failed:
		m.failedPart(at, a, now, false)
	default:
		m.refused(at, a, now)
	}
}

// branch halves a part that was not taken. It stays below its halves on the stack.
type branch struct {
	at     []int
	kind   Kind // why it was not taken
	whole  bool // it is the whole batch
	halved bool
	taken  int // halves that were taken at once
}

func (t *branch) next(m *Machine, now time.Time) Step {
	if !t.halved {
		t.halved = true
		at := m.ready(t.at)
		if t.kind == Opaque && m.apart(at) {
			return Step{Do: look}
		}
		if t.kind == TooOld {
			slices.SortStableFunc(at, func(i, j int) int { return int(min(max(m.samples[i].T-m.samples[j].T, -1), 1)) })
		}
		half := len(at) / 2
		m.push(&send{at: at[half:], of: t})
		m.push(&send{at: at[:half], of: t})
		return Step{Do: look}
	}
	if t.kind == Failed && t.taken == 2 {
		m.inHalves = min(cmp.Or(m.inHalves, len(t.at)), len(t.at))
	}
	if t.kind == Failed && t.whole {
		if m.taken >= m.inHalves { // as large a part was taken: it is not the size
			m.inHalves = 0
		}
		m.facts.passedInHalves(m.inHalves, now)
	}
	if (t.kind == Opaque || t.kind == Bad) && !slices.ContainsFunc(t.at, func(i int) bool { return m.samples[i].state != taken }) {
		m.facts.contradicted(now)
	}
	return Step{Do: over}
}

func (t *branch) tell(*Machine, Answer, time.Time) {}

// apart divides a part that was refused in unknown words by what is known: the samples of series whose last sample was rejected are sent
// alone, after the others; all are, if a quarter of the samples with an outcome was rejected, because halves would cost more requests. It
// reports whether there are such.
func (m *Machine) apart(at []int) bool {
	dense := m.rejected >= enough && 4*m.rejected >= m.settled
	suspect := make(map[uint64]bool)
	for _, i := range at {
		if s := &m.samples[i]; dense || s.Rejected > 0 {
			suspect[s.Series] = true
		}
	}
	var others, suspects []int
	for _, i := range at {
		if suspect[m.samples[i].Series] {
			suspects = append(suspects, i)
		} else {
			others = append(others, i)
		}
	}
	if len(suspects) == 0 {
		return false
	}
	for _, i := range slices.Backward(suspects) {
		m.push(&send{at: []int{i}})
	}
	m.push(&send{at: others})
	return true
}

// refused acts on a part that was refused, or too large.
func (m *Machine) refused(at []int, a Answer, now time.Time) {
	switch {
	case m.cfg.Drop:
		m.settle(at, Rejected, a, false)
	case m.phase == last && (len(at) == 1 || a.Kind != TooLarge):
		m.settle(at, Unconfirmed, a, false)
	case len(at) == 1:
		m.push(&proof{i: at[0], answer: a, turns: m.turnsOf(a)})
	case a.Kind == Late:
		m.push(newSpread(m, at, a))
	case a.Kind == TooOld:
		m.push(&newest{at: at, answer: a})
	default:
		m.push(&branch{at: at, kind: a.Kind})
		if s := m.samples[at[0]]; s.New && a.Kind == Bad && m.facts.crowded(a.Words) {
			m.push(&send{at: at[:1]}) // if it is refused alone, all new series are muted
		}
	}
}

// failedPart acts on a part that the receiver fails at.
func (m *Machine) failedPart(at []int, a Answer, now time.Time, whole bool) {
	if len(at) == 1 {
		m.waits[m.samples[at[0]].Series] = &wait{i: at[0], answer: a, since: now, due: now.Add(time.Second)}
	} else {
		m.push(&branch{at: at, kind: Failed, whole: whole})
	}
	m.push(&control{whole: whole})
}

// need is what an answer to a control must show.
type need uint8

const (
	anyWords  need = iota // words of the database do
	notTooOld             // words do, but not that the control is too old
)

// control sends the control. The task ends if the way to the receiver works. Without a control, it becomes ask.
type control struct {
	whole  bool // the batch is whole: a failure ends the machine
	need   need
	failed bool // it failed before it passed
}

func (t *control) next(*Machine, time.Time) Step { return Step{Do: Control} }

func (t *control) tell(m *Machine, a Answer, now time.Time) {
	switch {
	case a.Kind == Taken:
		m.pop()
	case a.Kind == None:
		m.pop()
		m.push(&ask{at: m.firsts(m.ready(m.all()), witnesses, m.facts.nextAsk()), need: t.need})
	case a.Kind == Denied:
		m.end = Hold
	case a.Kind == Failed && t.whole:
		m.end = Whole
	case a.Kind == Failed:
		t.failed = true
	case a.Kind.fromDatabase() && !(t.need == notTooOld && a.Kind == TooOld):
		m.pop()
	case m.cfg.Drop:
		m.end = Whole
	default:
		m.facts.contradicted(now)
		m.end = Hold
	}
}

// witnesses is how many samples are asked alone where there is no control.
const witnesses = 8

// ask asks samples of the batch alone, until one is taken.
type ask struct {
	at     []int
	need   need
	timed  bool // one was refused for its time
	failed bool // the receiver failed at one
}

func (t *ask) next(m *Machine, _ time.Time) Step {
	if t.at = m.ready(t.at); len(t.at) > 0 {
		return Step{Do: Send, Samples: t.at[:1]}
	}
	switch {
	case t.timed && t.need == anyWords:
		return Step{Do: over}
	case t.failed:
		m.end = Whole
	default:
		m.end = Hold
	}
	return Step{Do: look}
}

func (t *ask) tell(m *Machine, a Answer, _ time.Time) {
	if a.Kind == Taken {
		m.pop()
		return
	}
	t.timed = t.timed || a.Kind.aboutTime()
	t.failed = t.failed || a.Kind == Failed
	t.at = t.at[1:]
}

// firsts returns the first sample of up to n series, spread over the part; offset picks others each time.
func (m *Machine) firsts(at []int, n, offset int) (first []int) {
	seen := make(map[uint64]bool, len(at))
	for _, i := range at {
		if s := m.samples[i].Series; !seen[s] {
			seen[s] = true
			first = append(first, i)
		}
	}
	if len(first) <= n {
		return first
	}
	spread := make([]int, n)
	for k := range spread {
		spread[k] = first[(k*len(first)/n+offset)%len(first)]
	}
	return spread
}
