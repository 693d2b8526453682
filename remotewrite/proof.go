package remotewrite

import (
	"context"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/pace"
	"hwsagent/remotewrite/split"
)

// A refusal does not say whether the samples are at fault, or the program that answered: a firewall, a proxy and a
// wrong URL refuse every sample, and accept empty writes. Two things prove that samples are bad: the words of the
// receiver's own database (see [client.Answer.FromDatabase]), and contrast: the samples are refused repeatedly, while
// control samples in between are accepted each time. Without proof no sample is given up, and the target is held.

const (
	// freshFor is the age below which a sample needs contrast even if the receiver calls it too old: the receiver's
	// time may be wrong.
	freshFor = time.Hour
	// moment is how recently a target must have accepted data to count as healthy where an empty write cannot show it.
	moment = 2 * time.Second
)

// distrust records that refusals are no evidence at present.
func (q *Queue) distrust() { q.trust.Distrust(q.sinceBorn()) }

// sinceBorn returns the age of the queue in ns, never 0.
func (q *Queue) sinceBorn() int64 { return max(1, int64(time.Since(q.born))) }

// drops reports whether the entry says to give up all refused samples: then no refusal holds the target.
func (q *Queue) drops() bool { return q.cfg.Target.OnRefusal == config.RefusalDrop }

// control sends a sample that the target accepted before, or that its database refused. The kind is split.Took if the
// target answers the same way again; clean says that no request failed meanwhile. It is split.None if the target is not
// known to have accepted any sample, and split.Opaque otherwise: a target that refuses the sample is held, unless the
// entry drops what is refused. The error is ctx's, or errHeld.
func (s *shard) control(ctx context.Context) (k split.Kind, clean bool, err error) {
	sample, delivered, err := s.controlSample(ctx)
	switch {
	case err != nil:
		return split.None, false, err
	case delivered:
		return split.Took, true, nil
	case !sample.exists():
		return split.None, false, nil
	}
	g := s.q.gate
	before := g.View().Troubles
	f, answer, err := s.try(ctx, &parcel{points: []point{sample}, again: true}, parts)
	switch {
	case err != nil:
		return split.Opaque, false, err
	case f == settled, answer.AboutTime():
		return split.Took, g.View().Troubles == before, nil
	case f == refused, f == tooLarge:
		s.q.distrust()
		if !s.q.drops() {
			err = s.holdForData(ctx, answer)
		}
	}
	return split.Opaque, false, err
}

// controlSample picks the sample for control, if there is one; delivered says that another shard has just delivered
// data, which will do. No other sample of its series may wait before it. In a backlog that does not matter, because the
// target accepts late samples there: the control is a backlog sample of about the same age. The error is ctx's.
func (s *shard) controlSample(ctx context.Context) (p point, delivered bool, err error) {
	if s.good.exists() {
		return s.good, false, nil
	}
	// A sample that another shard delivered is the newest of its series only while that shard delivers nothing.
	begin := time.Now()
	for time.Since(begin) < moment && !s.q.deliveredSince(begin) {
		if err := pace.Sleep(ctx, moment/20); err != nil {
			return point{}, false, err
		}
	}
	if p = s.q.lastGood(); p.exists() {
		return p, s.q.deliveredSince(begin), nil
	}
	if p = s.late; !p.exists() && !s.q.behind {
		p = s.q.last(&s.q.refusedAsLate)
	}
	return p, false, nil
}

// holdForData holds the target because it refuses samples, without proof that they are bad.
func (s *shard) holdForData(ctx context.Context, a client.Answer) error {
	p, err := s.q.enter(ctx)
	if err != nil {
		return err
	}
	if p.Test {
		s.q.gate.Release(p) // it is held already
		return nil
	}
	s.q.gate.RefusedData(p, refusesAll+a.Why())
	return nil
}

// awaitOpen waits until the target is not held. Meanwhile it tests the target, perhaps with samples of the parcel. The
// error is ctx's.
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

// refusesAll explains why a target is held that refuses samples without contrast.
const refusesAll = "not one sample is accepted, even alone: "

// refused gives p back after an answer that holds the target.
func (q *Queue) refused(p gate.Pass, a client.Answer) {
	if a.BlamesData() || a.FromDatabase() {
		q.gate.RefusedData(p, a.Why())
	} else {
		q.gate.Refused(p, a.Why())
	}
	q.gate.Wait(a.RetryAfter)
}
