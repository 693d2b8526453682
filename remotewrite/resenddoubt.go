package remotewrite

import (
	"context"
	"errors"
	"slices"

	"hwsagent/wal"
)

// What was found stored shows by refusals alone, and a proxy may have refused. So nothing of it
// has its outcome before the way to the receiver was found good since, and nothing that comes
// after it is sent before that but single samples, which end with the first trouble.

// errDoubted means that there was trouble since samples were found stored that have no outcome
// yet, so that what comes after them was not sent.
var errDoubted = errors.New("what was found stored may have been refused for another reason")

// trust is what tells whether the way to the receiver was good all the time.
type trust struct {
	troubles, refusals uint64 // of the gate
	despiteFailures    bool   // what passes by itself is no reason for doubt: see maxDoubts
}

func (v gateView) trust() trust { return trust{troubles: v.troubles, refusals: v.refusals} }

// broken reports whether there was trouble since.
func (t trust) broken(v gateView) bool {
	return v.refusals != t.refusals || !t.despiteFailures && v.troubles != t.troubles
}

// maxDoubts is how often what was found out is found out anew because a request failed, and
// requests as such were not refused. After that single requests fail and others do not, as
// where the rate is limited or one of two receivers is down: there is no time without it.
const maxDoubts = 5

// doubt notes that what was found out does not count.
func (r *resender) doubt(v gateView) {
	if r.doubts++; v.refusals != r.trust.refusals {
		r.doubts = 0
	}
}

// trustFrom says since when the way must be good.
func (r *resender) trustFrom(t trust) {
	r.trust, r.trust.despiteFailures = t, r.doubts >= maxDoubts
}

// settle gives the stored samples their outcome, if the way to the receiver was good all
// the time; otherwise they are sent again, and those of then after them.
func (r *resender) settle(ctx context.Context, then []point) (clean bool, err error) {
	v := r.s.q.gate.view()
	if clean = !r.trust.broken(v); clean {
		r.s.w.noteTaken(r.stored)
		r.s.w.settleAll(r.stored, one(wal.Resent))
	} else {
		for _, p := range r.stored {
			r.believed[p.key()] = true
		}
		r.doubt(v)
		r.s.behind = append(r.lanes.sort(inLogOrder(append(r.stored, then...))), r.s.behind...)
	}
	r.stored, r.expect = nil, false
	r.trustFrom(v.trust())
	return clean, nil
}

// startOver puts back all that was found stored and has no outcome, after errDoubted.
func (r *resender) startOver(ctx context.Context) error {
	if r.weak != nil {
		r.s.putBack(inLogOrder(r.weak.open()), true)
		r.weak = nil
	}
	if r.expect = false; len(r.stored) == 0 {
		r.doubt(r.s.q.gate.view())
		return nil
	}
	_, err := r.settle(ctx, nil)
	return err
}

// searchBelieved takes those samples of a chunk that were found stored before for stored, if
// the one whose successor comes last is refused again, and returns the others. Any other one
// may be late and that one not: the chunk is not what it was when they were found. Those whose
// successors have their outcome by now are asked for one by one.
func (r *resender) searchBelieved(ctx context.Context, chunk []point) ([]point, error) {
	var believed, others []point
	for _, p := range chunk {
		if r.believed[p.key()] {
			believed = append(believed, p)
		} else {
			others = append(others, p)
		}
	}
	if len(believed) == 0 {
		return chunk, nil
	}
	order := r.bySuccessor(believed)
	var ask []int
	for i := range believed {
		if !slices.Contains(order, i) {
			ask = append(ask, i)
		}
	}
	if len(order) > 0 {
		ask = append(ask, order[len(order)-1])
	}
	taken, late := make([]bool, len(believed)), make([]bool, len(believed))
	for _, i := range ask {
		var err error
		if taken[i], _, err = r.ask(ctx, believed[i]); err != nil {
			if errors.Is(err, errDoubted) {
				r.s.putBack(inLogOrder(append(others, unmarked(believed, taken)...)), true)
			}
			return nil, err
		}
		late[i] = !taken[i]
	}
	if len(order) > 0 && late[order[len(order)-1]] {
		for _, i := range order {
			late[i] = true
		}
	}
	for i, p := range believed {
		switch {
		case late[i]:
			r.stored, r.expect = append(r.stored, p), true
		case !taken[i]:
			others = append(others, p)
		}
	}
	return inLogOrder(others), nil
}

// unmarked returns those of the points that are not marked.
func unmarked(points []point, marked []bool) (ps []point) {
	for i, p := range points {
		if !marked[i] {
			ps = append(ps, p)
		}
	}
	return ps
}
