package remotewrite

import (
	"context"
	"errors"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
)

// A refusal does not say whether the samples are at fault or whatever answers: a firewall, a proxy
// and a wrong URL refuse every sample, and take empty writes. Two things count as proof against
// samples: the words of the receiver's own database (see [client.Answer.FromDatabase]), and contrast: they are refused
// again and again while control samples are taken each time in between. Without proof
// no sample is given up: the target is held.

const (
	// freshFor is how old a sample is at most that needs contrast although the receiver says that it is
	// too old: it may be the receiver that is wrong about the time.
	freshFor = time.Hour
	// moment is how long ago the target may have taken data to be taken for well, where an
	// empty write does not tell.
	moment = 2 * time.Second
)

// distrust notes that refusals are no evidence at present.
func (q *Queue) distrust() { q.trust.Distrust(q.sinceBorn()) }

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
	case f == settled, answer.FromDatabase():
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
	if a.BlamesData() {
		q.gate.RefusedData(p, a.String())
	} else {
		q.gate.Refused(p, a.String())
	}
}
