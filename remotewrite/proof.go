package remotewrite

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/reply"
	"hwsagent/remotewrite/split"
)

// A refusal does not say whether the samples are at fault or whatever answers: a firewall, a proxy
// and a wrong URL refuse every sample, and take empty writes. Two things count as proof against
// samples: the words of the receiver's own database (see fromDatabase), and contrast: they are refused
// again and again while control samples are taken each time in between. Without proof
// no sample is given up: the target is held.

const (
	// vouchFor is for how long after a full proof, in which nothing spoke for the target, a quick one does.
	vouchFor = time.Minute
	// distrustFor is how long no sample is given up without known words after a control sample, of a series that was
	// taken before, was refused, or samples were taken that had been refused.
	distrustFor = time.Minute
	// freshFor is how old a sample is at most that needs contrast although the receiver says that it is
	// too old: it may be the receiver that is wrong about the time.
	freshFor = time.Hour
	// moment is how long ago the target may have taken data to be taken for well, where an
	// empty write does not tell.
	moment = 2 * time.Second
)

// proofTurns is how many turns a proof takes at present; 0: there can be none.
func (q *Queue) proofTurns() int {
	since := func(at int64) time.Duration { return time.Duration(q.sinceBorn() - at) }
	if at := q.distrusted.Load(); at != 0 && since(at) < distrustFor {
		return 0
	}
	if at := q.vouched.Load(); at != 0 && since(at) < vouchFor {
		return split.QuickTurns
	}
	return split.FullTurns
}

// distrust notes that refusals are no evidence at present.
func (q *Queue) distrust() {
	q.distrusted.Store(q.sinceBorn())
	q.vouched.Store(0)
}

// sinceBorn is the age of the queue in ns, never 0.
func (q *Queue) sinceBorn() int64 { return max(1, int64(time.Since(q.born))) }

// control sends a sample that the target took before, or has refused in its database's words, and
// reports whether it answers so again; clean, whether no request failed meanwhile. A target that
// refuses it is held. The error is ctx's.
func (s *shard) control(ctx context.Context, sample point) (taken, clean bool, err error) {
	g := s.q.gate
	before := g.View().Troubles
	f, answer, err := s.try(ctx, &parcel{points: []point{sample}, again: true}, parts)
	switch {
	case errors.Is(err, errHeld):
		return false, false, nil
	case err != nil:
		return false, false, err
	case f == settled, fromDatabase(answer):
		return true, g.View().Troubles == before, nil
	case f == refused, f == tooLarge:
		s.q.distrust()
		return false, false, s.holdForData(ctx, answer)
	}
	return false, false, nil
}

// controlSample picks the sample that control sends. None of its series may wait before it, but in a backlog,
// where the target takes late samples: there it is one of the backlog, which is about as old. Not ok
// with a sample means that another shard has just delivered that one; without one, that the target is
// not known to have taken any. The error is ctx's.
func (s *shard) controlSample(ctx context.Context) (p point, ok bool, err error) {
	if s.hasGood {
		return s.good, true, nil
	}
	// A sample that another shard delivered is its series' newest only while that shard delivers nothing.
	begin := time.Now()
	for time.Since(begin) < moment && !s.q.deliveredSince(begin) {
		if err := sleep(ctx, moment/20); err != nil {
			return point{}, false, err
		}
	}
	if p, ok = s.q.lastGood(); ok {
		return p, !s.q.deliveredSince(begin), nil
	}
	if s.hasLate {
		return s.late, true, nil
	}
	if p, ok = s.q.lastLate(); ok && !s.q.behind {
		return p, true, nil
	}
	return point{}, false, nil
}

// holdForData holds the target because it refuses samples of which nothing shows that they are bad.
func (s *shard) holdForData(ctx context.Context, a client.Answer) error {
	p, err := s.q.enter(ctx)
	if err != nil {
		return err
	}
	if p.Test {
		s.q.gate.Release(p) // it is held already
		return nil
	}
	s.q.gate.RefusedData(p, refusesAll+a.String())
	return nil
}

// awaitOpen waits until the target is not held. Meanwhile it is tested, perhaps with samples of the parcel. The error is ctx's.
func (s *shard) awaitOpen(ctx context.Context, l *parcel) error {
	for len(l.points) > 0 {
		p, err := s.q.enter(ctx)
		if err != nil {
			return err
		}
		if !p.Test {
			s.q.gate.Release(p)
			return nil
		}
		if err := s.test(p, l, patient); err != nil {
			return err
		}
	}
	return nil
}

// refusesAll is why a target is held that refuses samples without contrast.
const refusesAll = "it takes no sample at all: "

// refused gives p back after an answer for which the target is held.
func (q *Queue) refused(p gate.Pass, a client.Answer) {
	if blamesData(a) {
		q.gate.RefusedData(p, a.String())
	} else {
		q.gate.Refused(p, a.String())
	}
}

// blamesData reports whether an answer says that the samples are at fault, or their number.
func blamesData(a client.Answer) bool {
	switch a.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// fromDatabase reports whether the receiver's own database refuses the samples for their place in time: they are
// late, too old, or it has another value at the same time.
func fromDatabase(a client.Answer) bool {
	k := a.Reply().Kind
	return k == reply.Late || k == reply.TooOld
}
