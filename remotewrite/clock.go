package remotewrite

import (
	"context"
	"math"
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/clock"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/wire"
)

// sawDate remembers the time that an answer tells, or that the target does not tell it.
func (q *Queue) sawDate(a client.Answer) {
	switch {
	case a.TellsTime():
		q.clock.Told(a.Date.Add(a.Took/2), q.synced())
		skew, _ := q.clock.Skew()
		q.metrics.SetSkew(skew)
	case a.FromTarget():
		q.clock.SaidNothing()
	}
}

// excludes reports whether one of the points is not sent now.
func excludes(l clock.Limits, points []point) bool {
	return slices.ContainsFunc(points, func(p point) bool { return !l.Sends(p.t) })
}

// limits tells which samples are sent: not those older than the age limit, nor those
// ahead of the target's clock by more than the future limit. The clock is the target's,
// since this host's may be a year off unnoticed: nothing is dropped before the target has told
// its time lately, or was asked and does not tell; until then known is false, and nothing is
// limited. What is ahead of the target's clock only, and not of this host's, waits.
func (q *Queue) limits() (l clock.Limits, known bool) {
	if r := q.clock.Reading(); r != nil && r.Fresh() {
		return q.times.Limits(r), true
	}
	return clock.Unlimited(), false
}

// newest is the greatest timestamp that the target is sent, as far as is known.
func (q *Queue) newest() int64 {
	if r := q.clock.Reading(); r != nil {
		return q.times.Limits(r).Newest
	}
	return math.MaxInt64
}

// question is how a target is asked for its time before a parcel is sent.
type question int

const (
	noQuestion question = iota // the parcel is sent
	byEmpty                    // an empty write
	byTaken                    // a sample that the target took before
)

// askTimeBy reports how the target is asked for its time before the parcel is sent. That is so when the
// parcel has samples that would be dropped or wait for their time, but the target has not told its
// time for long. Before it has told it at all this host's clock must do, so that is rare: samples
// that are too old, or that a clock which was ahead has left in the log. Otherwise the answer to the
// first data tells.
func (s *shard) askTimeBy(l *parcel) question {
	c := s.q.clock.Reading()
	switch {
	case l.again, c != nil && c.Fresh():
		return noQuestion
	case c == nil:
		c = clock.Host()
	}
	if !excludes(s.q.times.Limits(c), l.points) {
		return noQuestion
	}
	return s.q.nextQuestion()
}

// refusedForTime reports whether an answer refuses a parcel, and is the first that tells the target's time, by which some of
// these samples are dropped or wait: their time may be what it was refused for. If so, p is given back.
func (s *shard) refusedForTime(p gate.Pass, l *parcel, a client.Answer, clockWasKnown bool) bool {
	if clockWasKnown || l.again || !a.FromTarget() || a.Accepted() {
		return false
	}
	lim, _ := s.q.limits()
	if !excludes(lim, l.points) {
		return false
	}
	s.q.noteAnswer(a)
	s.q.gate.Release(p)
	return true
}

// nextQuestion is how the next request, which depends on the time, asks for it: by an empty write, or by data in its turn, which is the
// last sample that the target took, or a sample that waits at a target that has taken nothing yet.
func (q *Queue) nextQuestion() question {
	if q.clock.AskByEmpty() {
		return byEmpty
	}
	if _, ok := q.lastGood(); ok {
		return byTaken
	}
	return noQuestion
}

// noTime notes that the target was asked and did not answer, or not as itself.
func (q *Queue) noTime(a client.Answer) {
	q.clock.AskedInVain()
	q.noteAnswer(a)
}

// timeUnknown reports whether the target has yet to tell its time, or that it does not.
func (q *Queue) timeUnknown() bool { return !q.clock.Known() && q.cfg.Target.FutureLimit > 0 }

// learnTime asks the target for its time if that is due before the parcel is sent, and gives p back then.
func (s *shard) learnTime(ctx context.Context, p gate.Pass, l *parcel) (asked bool, err error) {
	switch s.askTimeBy(l) {
	case byEmpty:
		return true, s.q.askTime(ctx, s.sending, p)
	case byTaken:
		taken, _ := s.q.lastGood() // there is one: see nextQuestion
		return true, s.q.askByTaken(s.sending, p, taken)
	}
	return false, nil
}

// askTime finds out by an empty write what time it is at the target, and gives p back. If
// the answer does not tell, that is known for a while. sending is the request's context.
func (q *Queue) askTime(ctx, sending context.Context, p gate.Pass) error {
	a := q.sendEmpty(sending, q.proto.ForEmpty(false))
	if failed, err := q.questionFailed(ctx, p, a); failed {
		return err
	}
	if a.Accepted() {
		q.gate.SawEmptyPass()
	} else { // it refuses empty writes
		q.emptyRefused.Store(&refusal{a, time.Now()})
	}
	q.gate.Release(p)
	q.questionAnswered(a)
	return nil
}

// questionFailed reports whether the answer to a request that asked for the time shows that the target
// fails, or refuses every request, and gives p back then. The error is ctx's.
func (q *Queue) questionFailed(ctx context.Context, p gate.Pass, a client.Answer) (failed bool, err error) {
	if ctx.Err() != nil && a.Status == 0 {
		q.gate.Release(p)
		return true, ctx.Err()
	}
	switch client.Classify(a, config.Policy{RetryOnRateLimit: true}) {
	case client.Retry:
		q.noTime(a)
		q.gate.Failed(p, a.String(), a.RetryAfter, a.Status != 0)
		return true, nil
	case client.Hold:
		if a.Status == client.StatusUnsupported || a.Status/100 == 4 && q.cfg.Target.OnRefusal == config.RefusalDrop {
			return false, nil // it is the version that is refused; or the policy holds nothing for a 4xx
		}
		q.noteAnswer(a)
		q.refused(p, a)
		return true, nil
	}
	return false, nil
}

// questionAnswered notes, for a while, that the target does not tell its time if the answer has none.
func (q *Queue) questionAnswered(a client.Answer) {
	if !a.TellsTime() {
		q.clock.DoesNotTell()
	}
}

// refusal is an answer and when it came.
type refusal struct {
	client.Answer
	at time.Time
}

// emptyAgain sends an empty write, unless one was refused a moment ago: then that answer will
// do, and a target that refuses everything is not knocked at a third time.
func (q *Queue) emptyAgain(ctx context.Context, v wire.Version) client.Answer {
	if r := q.emptyRefused.Swap(nil); r != nil && r.Version == v && time.Since(r.at) < moment {
		return r.Answer
	}
	return q.sendEmpty(ctx, v)
}
