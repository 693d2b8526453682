package split

import (
	"cmp"
	"slices"
	"time"
)

// proof takes the turns that show whether a sample is refused for what it is.
type proof struct {
	i        int
	answer   Answer // the last refusal
	turns    string // left; see turnsOf
	failures int    // in a row
}

// turnsOf returns the turns after the first refusal: s is the sample, c the control.
func (m *Machine) turnsOf(a Answer) string {
	switch {
	case a.Kind.aboutTime():
		return "s"
	case a.Kind == Bad && m.facts.known(a.Words):
		return ""
	case a.Kind == Bad:
		return "sc"
	case m.proofs[a.Words] >= enough:
		return "scs"
	}
	return "ccssccssc"
}

func (t *proof) next(m *Machine, now time.Time) Step {
	switch {
	case m.samples[t.i].state != open:
		return Step{Do: over}
	case t.turns == "":
		m.pop()
		m.proven(t.i, t.answer, now)
		return Step{Do: look}
	case t.turns[0] == 's':
		return Step{Do: Send, Samples: []int{t.i}}
	}
	t.turns = t.turns[1:]
	m.push(&control{})
	return Step{Do: look}
}

func (t *proof) tell(m *Machine, a Answer, now time.Time) {
	switch {
	case a.Kind == Taken:
		m.pop()
		if !t.answer.Kind.aboutTime() {
			m.facts.contradicted(now)
		}
	case a.Kind == Failed:
		if t.failures++; t.failures >= partFailures {
			m.pop()
			m.failedPart([]int{t.i}, a, now, false)
		}
	case a.Kind == t.answer.Kind:
		t.answer, t.turns, t.failures = a, t.turns[1:], 0
	default: // other words: the turns begin again
		t.answer, t.turns, t.failures = a, m.turnsOf(a), 0
	}
}

// proven settles a sample that was refused alone in all turns.
func (m *Machine) proven(i int, a Answer, now time.Time) {
	switch one := []int{i}; a.Kind {
	case Late:
		m.settleTime(one, Rejected, a)
	case Duplicate:
		m.settle(one, Rejected, a, false)
	case TooOld:
		m.tooOld(one, a, now)
	case Bad:
		m.settle(one, Rejected, a, true)
		if m.facts.proved(a.Words, m.samples[i].Series, m.samples[i].New) {
			m.muteNew(a)
		}
	default:
		m.settle(one, Rejected, a, m.samples[i].Rejected >= MostRejected-1)
		m.proofs[a.Words]++
	}
}

// muteNew mutes all new series of the batch.
func (m *Machine) muteNew(a Answer) {
	m.settle(slices.DeleteFunc(m.ready(m.all()), func(i int) bool { return !m.samples[i].New }), Rejected, a, true)
}

// spread asks samples of a part that was refused as late: if all are late, the part is.
type spread struct {
	at     []int
	ask    []int
	answer Answer
}

// lateWitnesses is how many samples must be late, so that the part is. Where another sender writes every second series, eight of eight
// are late once in 256 parts, 32 of 32 never.
const lateWitnesses = 32

func newSpread(m *Machine, at []int, a Answer) task {
	if ask := m.firsts(at, lateWitnesses, 0); len(ask) == lateWitnesses {
		return &spread{at, ask, a}
	}
	return &branch{at: at, kind: a.Kind}
}

func (t *spread) next(m *Machine, _ time.Time) Step {
	if len(t.ask) > 0 {
		return Step{Do: Send, Samples: t.ask[:1]}
	}
	m.pop()
	m.settleTime(m.ready(t.at), Rejected, t.answer)
	return Step{Do: look}
}

func (t *spread) tell(m *Machine, a Answer, _ time.Time) {
	if a.Kind == Late {
		t.answer, t.ask = a, t.ask[1:]
		return
	}
	m.pop()
	m.push(&branch{at: t.at, kind: Late})
}

// newest asks the newest samples of a part that was refused as too old: if all are too old, the part is.
type newest struct {
	at     []int
	ask    []int
	asked  bool
	unsent bool // the part was not sent; see Machine.AskNewest
	answer Answer
}

// newestAsked is how many samples are asked.
const newestAsked = 3

func (t *newest) next(m *Machine, now time.Time) Step {
	if !t.asked {
		if t.ask, t.asked = m.newestOf(t.at), true; len(t.ask) == 0 {
			return Step{Do: over}
		}
	}
	if len(t.ask) > 0 {
		return Step{Do: Send, Samples: t.ask[:1]}
	}
	m.facts.old(true)
	m.pop()
	m.tooOld(m.ready(t.at), t.answer, now)
	return Step{Do: look}
}

func (t *newest) tell(m *Machine, a Answer, now time.Time) {
	if a.Kind == TooOld {
		t.answer, t.ask = a, t.ask[1:]
		return
	}
	m.facts.old(false)
	m.pop()
	if t.unsent {
		m.end = Whole
		return
	}
	m.push(&branch{at: t.at, kind: TooOld})
}

// newestOf returns the newest samples of different series.
func (m *Machine) newestOf(at []int) (ask []int) {
	seen := make(map[uint64]bool)
	for _, i := range slices.SortedStableFunc(slices.Values(m.ready(at)), func(i, j int) int { return cmp.Compare(m.samples[j].T, m.samples[i].T) }) {
		if s := m.samples[i].Series; len(ask) < newestAsked && !seen[s] {
			seen[s] = true
			ask = append(ask, i)
		}
	}
	return ask
}

// tooOld settles samples as too old. If the newest may be refused because the receiver's bound is wrong, a control comes first.
func (m *Machine) tooOld(at []int, a Answer, now time.Time) {
	m.push(&old{at, a})
	newest := int64(0)
	for _, i := range at {
		newest = max(newest, m.samples[i].T)
	}
	if a.Date == 0 || m.facts.mayNotBeOld(a.Date-newest, now) {
		m.push(&control{need: notTooOld})
	}
}

// old settles samples as too old.
type old struct {
	at     []int
	answer Answer
}

func (t *old) next(m *Machine, _ time.Time) Step {
	m.settleTime(m.ready(t.at), Old, t.answer)
	return Step{Do: over}
}

func (t *old) tell(*Machine, Answer, time.Time) {}
