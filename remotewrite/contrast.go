package remotewrite

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hwsagent/remotewrite/client"
)

// A refusal does not say whether the samples are at fault or whatever answers: a firewall, a proxy
// and a wrong URL refuse every sample, and take empty writes. Two things count as proof against
// samples: the words of the receiver's own database (see final), and contrast: they are refused
// again and again while other samples of this target are taken each time in between. Without proof
// no sample is given up: the target is held.

// blame says who is at fault for a refusal.
type blame uint8

const (
	blameSamples blame = iota // they were refused each time, and others were taken
	blameNone                 // they were taken after all: they have their outcome
	blameTarget               // others are refused as well, or no other is known: the target is held
)

const (
	// proofTurns is how many times samples are refused for a proof, each time with one to three other
	// samples taken after it. With one of two receivers behind a balancer refusing everything at
	// random, a good sample passes for a bad one in less than one of 8,000 attempts.
	proofTurns = 5
	// quickTurns is the same for vouchFor after a full proof in which nothing spoke for the target.
	quickTurns = 2
	vouchFor   = time.Minute
	// proofCost and quickCost are the most requests that a full proof and a quick one take.
	proofCost = 15
	quickCost = 4
	// distrustFor is how long no sample is given up after another sample, of a series that was
	// taken before, was refused.
	distrustFor = time.Minute
)

// controls is how many other samples are sent in a turn of a proof. Two turns in a row never have the
// same number, so that a balancer that takes its receivers by turns is found out.
func controls(turn, offset, turns int) int {
	if turns == quickTurns {
		return 1 + (turn+offset)%2
	}
	return 1 + (turn+offset)%3
}

// contrast is what came of a proof.
type contrast struct {
	blame    blame
	answer   client.Answer // the last refusal of the samples in question
	requests int           // that it took
}

// contrast finds out who is at fault for the refusal a of the parcel, which was the last answer to it. The
// error is ctx's.
func (s *shard) contrast(ctx context.Context, l *parcel, a client.Answer) (contrast, error) {
	c := contrast{blame: blameTarget, answer: a}
	turns := s.q.proofTurns()
	if turns == 0 {
		return c, s.holdForData(ctx, a)
	}
	offset := int(3 * s.q.gate.random())
	for turn := range turns {
		if turn > 0 {
			c.requests++
			f, again, err := s.try(ctx, l, parts)
			switch {
			case errors.Is(err, errDoubted):
				return c, nil
			case err != nil:
				return c, err
			case f == settled:
				c.blame = blameNone
				return c, nil
			}
			if c.answer = again; f != refused && f != tooLarge {
				return c, nil // it fails otherwise by now
			}
		}
		for range controls(turn, offset, turns) {
			c.requests++
			if taken, _, err := s.control(ctx, c.answer); !taken || err != nil {
				return c, err
			}
		}
	}
	if turns == proofTurns {
		s.q.vouched.Store(s.q.sinceBorn())
	}
	c.blame = blameSamples
	return c, nil
}

// proofTurns is how many turns a proof takes at present; 0: there can be none.
func (q *Queue) proofTurns() int {
	since := func(at int64) time.Duration { return time.Duration(q.sinceBorn() - at) }
	if at := q.distrusted.Load(); at != 0 && since(at) < distrustFor {
		return 0
	}
	if at := q.vouched.Load(); at != 0 && since(at) < vouchFor {
		return quickTurns
	}
	return proofTurns
}

// sinceBorn is the age of the queue in ns, never 0.
func (q *Queue) sinceBorn() int64 { return max(1, int64(time.Since(q.born))) }

// control sends a sample that the target took before, or has refused in its database's words, and
// reports whether it answers so again; clean, whether no request failed meanwhile. A target that
// refuses it, and one that is not known to have taken any sample, is held because of the refusal a.
// The error is ctx's.
func (s *shard) control(ctx context.Context, a client.Answer) (taken, clean bool, err error) {
	g := s.q.gate
	before := g.view().troubles
	sample, ok, err := s.controlSample(ctx)
	switch {
	case err != nil:
		return false, false, err
	case !ok && sample.series != nil: // another shard delivered
		return true, g.view().troubles == before, nil
	case !ok:
		return false, false, s.holdForData(ctx, a)
	}
	f, answer, err := s.try(ctx, &parcel{points: []point{sample}, again: true}, parts)
	switch {
	case errors.Is(err, errDoubted):
		return false, false, nil
	case err != nil:
		return false, false, err
	case f == settled, fromDatabase(answer):
		return true, g.view().troubles == before, nil
	case f == refused, f == tooLarge:
		s.q.distrusted.Store(s.q.sinceBorn())
		s.q.vouched.Store(0)
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
	if p.test {
		s.q.gate.release(p) // it is held already
		return nil
	}
	s.q.gate.refusedData(p, refusesAll+a.String())
	return nil
}

// refusesAll is why a target is held that refuses samples without contrast.
const refusesAll = "it takes no sample at all: "

// refused gives p back after an answer for which the target is held.
func (q *Queue) refused(p pass, a client.Answer) {
	if blamesData(a) {
		q.gate.refusedData(p, a.String())
	} else {
		q.gate.refused(p, a.String())
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

// freshFor is how old a sample is at most that needs contrast although the receiver says that it is
// too old: it may be the receiver that is wrong about the time.
const freshFor = time.Hour

// final reports whether a refusal is the last word on all of the points: the receiver's database says
// that they are late or too old, or that it has other values at their times.
func final(a client.Answer, points ...point) bool {
	if !fromDatabase(a) {
		return false
	}
	if !saysTooOld(a) {
		return true
	}
	fresh := time.Now().Add(-freshFor).UnixMilli()
	for i := range points {
		if points[i].t > fresh {
			return false
		}
	}
	return true
}
