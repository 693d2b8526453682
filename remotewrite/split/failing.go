package split

import (
	"slices"
	"time"
)

// wait is a sample that the receiver fails at, although it takes others. It is sent again in rounds.
type wait struct {
	i        int
	answer   Answer // the last failure
	since    time.Time
	due      time.Time // of its next round
	failures int       // that count: a control passed after each
}

const (
	giveUpAfter = 20               // failures
	waitFor     = 10 * time.Minute // if nothing like it was given up before
	waitKnown   = time.Minute      // if a sample of its type, or with its words, was given up
	steps       = 15               // the longest pause between rounds is the whole time divided by it
)

// patience returns how long a sample must fail before it is given up.
func (m *Machine) patience(w *wait, now time.Time) time.Duration {
	if m.facts.gaveUp(m.samples[w.i].Type, w.answer.Words, now) {
		return waitKnown
	}
	return waitFor
}

// round sends the waiting samples that are due, then the control.
type round struct {
	ask    []*wait
	failed []*wait
	vouch  *control // nil until it is asked
}

func newRound(m *Machine, now time.Time) *round {
	t := &round{}
	for i := range m.samples { // in log order
		if w := m.waits[m.samples[i].Series]; w != nil && w.i == i && !w.due.After(now) {
			t.ask = append(t.ask, w)
		}
	}
	return t
}

func (t *round) next(m *Machine, now time.Time) Step {
	for len(t.ask) > 0 {
		if w := t.ask[0]; m.samples[w.i].state == open {
			return Step{Do: Send, Samples: []int{w.i}}
		}
		t.ask = t.ask[1:]
	}
	switch {
	case len(t.failed) > 0 && t.vouch == nil:
		t.vouch = &control{}
		m.push(t.vouch)
		return Step{Do: look}
	case len(t.failed) > 0:
		m.pop()
		m.count(t.failed, !t.vouch.failed, now)
		return Step{Do: look}
	}
	m.pop()
	if due, any := m.nextRound(); any && due.After(now) {
		m.push(&pause{due})
	}
	return Step{Do: look}
}

// nextRound returns when the next round is due, if a sample waits.
func (m *Machine) nextRound() (due time.Time, any bool) {
	for _, w := range m.waits {
		if !any || w.due.Before(due) {
			due, any = w.due, true
		}
	}
	return due, any
}

func (t *round) tell(m *Machine, a Answer, now time.Time) {
	w := t.ask[0]
	t.ask = t.ask[1:]
	switch {
	case a.Kind == Failed:
		w.answer = a
		t.failed = append(t.failed, w)
	case a.Kind != Taken:
		delete(m.waits, m.samples[w.i].Series)
		m.refused([]int{w.i}, a, now)
	}
}

// pause waits for the next round.
type pause struct{ until time.Time }

func (t *pause) next(_ *Machine, now time.Time) Step {
	if now.Before(t.until) {
		return Step{Do: Wait, Until: t.until}
	}
	return Step{Do: over}
}

func (t *pause) tell(*Machine, Answer, time.Time) {}

// count counts the failures of a round, and gives up what has failed long enough. The later samples of its series go with it, unless the
// failures were refusals: these may be due to this sample alone.
func (m *Machine) count(failed []*wait, vouched bool, now time.Time) {
	for _, w := range failed {
		longest := m.patience(w, now) / steps
		if m.samples[w.i].state != open {
			continue
		}
		if w.due = now.Add(min(time.Second<<min(w.failures, 10), longest)); !vouched {
			continue
		}
		if w.failures++; w.failures < giveUpAfter || now.Sub(w.since) < m.patience(w, now) {
			continue
		}
		s := m.samples[w.i]
		m.facts.giveUp(s.Type, w.answer.Words, now)
		at := []int{w.i}
		if !w.answer.Refusal {
			at = slices.DeleteFunc(m.Open(), func(i int) bool { return m.samples[i].Series != s.Series })
		}
		m.settle(at, Unconfirmed, w.answer, true)
	}
}
