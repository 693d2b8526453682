package remotewrite

import (
	"context"
	"math"
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/clock"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/wire"
)

// sawDate records the target's time from an answer, or that the target does not send it.
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

// excludes reports whether any of the points may not be sent now.
func excludes(l clock.Limits, points []point) bool {
	return slices.ContainsFunc(points, func(p point) bool { return !l.Sends(p.t) })
}

// limits returns which samples may be sent: not those older than the age limit, nor those ahead of the target's clock
// by more than the future limit. It uses the target's clock, because this host's clock may be a year off unnoticed.
// Until the target has sent its time recently, or was asked and does not send it, known is false and no sample is
// limited. Samples ahead of the target's clock, but not of this host's, wait.
func (q *Queue) limits() (l clock.Limits, known bool) {
	if r := q.clock.Reading(); r != nil && r.Fresh() {
		return q.times.Limits(r), true
	}
	return clock.Unlimited(), false
}

// newest returns the greatest timestamp that may be sent to the target, as far as is known.
func (q *Queue) newest() int64 {
	if r := q.clock.Reading(); r != nil {
		return q.times.Limits(r).Newest
	}
	return math.MaxInt64
}

// mustAskTime reports whether to ask the target for its time before the parcel is sent: samples of the parcel would be
// dropped or would wait, and the target has not sent its time for long. Before its first answer this host's clock
// decides, so that is rare: for samples that are too old, or that were logged while a clock was ahead. Otherwise the
// answer to the first data has the time.
func (s *shard) mustAskTime(l *parcel) bool {
	c := s.q.clock.Reading()
	if l.again || c != nil && c.Fresh() {
		return false
	}
	if c == nil {
		c = clock.Host()
	}
	return excludes(s.q.times.Limits(c), l.points)
}

// refusedForTime reports whether an answer refuses a parcel and is the first with the target's time, by which some of
// these samples are dropped or wait: their timestamps may be why it was refused. If so, p is given back.
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

// noTime records that the target was asked for its time and did not answer, or that something in front of it answered.
func (q *Queue) noTime(a client.Answer) {
	q.clock.AskedInVain()
	q.noteAnswer(a)
}

// timeUnknown reports whether the future limit needs the target's time, and the target has not answered with it or
// without it.
func (q *Queue) timeUnknown() bool { return !q.clock.Known() && q.cfg.Target.FutureLimit > 0 }

// learnTime asks the target for its time if that is due before the parcel is sent; then it gives p back. It asks with an
// empty write, or in its turn with the last sample that the target accepted. If there is none, the parcel asks.
func (s *shard) learnTime(ctx context.Context, p gate.Pass, l *parcel) (asked bool, err error) {
	if !s.mustAskTime(l) {
		return false, nil
	}
	if s.q.clock.AskByEmpty() {
		return true, s.q.askTime(ctx, s.sending, p)
	}
	taken := s.q.lastGood()
	if !taken.exists() {
		return false, nil
	}
	return true, s.q.askByTaken(s.sending, p, taken)
}

// askTime asks for the target's time with an empty write, and gives p back. If the answer has no time, that is
// remembered for a while. sending is the request's context.
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

// questionFailed reports whether the answer to a request for the time shows that the target fails or refuses every
// request; then it gives p back. The error is ctx's.
func (q *Queue) questionFailed(ctx context.Context, p gate.Pass, a client.Answer) (failed bool, err error) {
	if ctx.Err() != nil && a.Status == 0 {
		q.gate.Release(p)
		return true, ctx.Err()
	}
	switch a.Verdict {
	case client.Retry:
		q.noTime(a)
		q.gate.Failed(p, a.Why(), a.RetryAfter, a.Status != 0)
		return true, nil
	case client.Hold:
		if a.Status == client.StatusUnsupported || a.Status/100 == 4 && q.drops() {
			return false, nil // the version is refused, or the policy does not hold the target for a 4xx
		}
		q.noteAnswer(a)
		q.refused(p, a)
		return true, nil
	}
	return false, nil
}

// questionAnswered records, for a while, that the target does not send its time if the answer has none.
func (q *Queue) questionAnswered(a client.Answer) {
	if !a.TellsTime() {
		q.clock.DoesNotTell()
	}
}

// refusal is an answer and when it arrived.
type refusal struct {
	client.Answer
	at time.Time
}

// emptyAgain sends an empty write, unless one was refused a moment ago: then it returns that answer, so that a target
// that refuses everything does not get a third request.
func (q *Queue) emptyAgain(ctx context.Context, v wire.Version) client.Answer {
	if r := q.emptyRefused.Swap(nil); r != nil && r.Version == v && time.Since(r.at) < moment {
		return r.Answer
	}
	return q.sendEmpty(ctx, v)
}
