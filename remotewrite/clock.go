package remotewrite

import (
	"context"
	"math"
	"net/http"
	"slices"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/wire"
)

// targetClock is what a target said about its time. It goes on by this host's monotonic
// clock, so that a step of this host's wall clock, which may just have been put right,
// does not move it.
type targetClock struct {
	date time.Time // the target's time; zero: it was asked, and does not tell
	at   time.Time // when it was that, by both of this host's clocks

	// absurd: it is off by more than a day although this host's clock is synchronised. It is shown, and
	// nothing goes by it.
	absurd bool
}

const (
	// clockFresh is for how long samples are dropped for what the target said. While all
	// samples are dropped nothing is sent that would show that its clock is right by now.
	clockFresh = 30 * time.Second

	// maxSlip is how far this host's two clocks may run apart meanwhile. When it was
	// suspended the monotonic one stood still, and the target's did not.
	maxSlip = time.Second

	// maxSkew is how far a target's clock may be off that is believed against a synchronised clock.
	maxSkew = 24 * time.Hour
)

func (c *targetClock) tells() bool    { return !c.date.IsZero() && !c.absurd }
func (c *targetClock) now() time.Time { return c.date.Add(time.Since(c.at)) }

// fresh reports whether the target said so lately, as far as this host can know.
func (c *targetClock) fresh() bool { return time.Since(c.at) < clockFresh && !c.slipped() }

func (c *targetClock) slipped() bool {
	now := time.Now()
	return slipped(now.Round(0).Sub(c.at.Round(0)), now.Sub(c.at))
}

// slipped reports whether in a stretch of time the wall clock and the monotonic one went
// so differently that one was stepped, or the host suspended.
func slipped(wall, monotonic time.Duration) bool { return (wall - monotonic).Abs() > maxSlip }

// ofTarget reports whether an answer is the target's own. Others come from whatever
// stands in between, too: gateways, login pages.
func ofTarget(a client.Answer) bool {
	switch a.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType:
		return true
	}
	return a.Accepted()
}

// tellsTime reports whether an answer's Date is the target's.
func tellsTime(a client.Answer) bool { return ofTarget(a) && !a.Date.IsZero() }

// sawDate remembers the time that an answer tells, or that the target does not tell it.
func (q *Queue) sawDate(a client.Answer) {
	switch {
	case tellsTime(a):
		c := &targetClock{date: a.Date.Add(a.Took / 2), at: time.Now()}
		c.absurd = c.at.Sub(c.date).Abs() > maxSkew && q.synced()
		q.clock.Store(c)
		q.timeAsked.Store(0)
		skew, _ := q.skew()
		q.metrics.SetSkew(skew)
	case ofTarget(a):
		q.clock.CompareAndSwap(nil, &targetClock{at: time.Now()})
	}
}

// skew is this host's clock minus the target's, if that is known.
func (q *Queue) skew() (d time.Duration, known bool) {
	c := q.clock.Load()
	if c == nil || c.date.IsZero() || c.slipped() {
		return 0, false
	}
	return time.Now().Round(0).Sub(c.now().Round(0)), true
}

// limits are the bounds of timestamps in milliseconds that are sent now. What is older than oldest or newer
// than future is dropped; what lies between newest and future waits. future is at least newest.
type limits struct{ oldest, newest, future int64 }

// unlimited are the limits of a target whose clock is not known.
func unlimited() limits { return limits{math.MinInt64, math.MaxInt64, math.MaxInt64} }

// exclude reports whether one of the points is not sent now.
func (l limits) exclude(points []point) bool {
	return slices.ContainsFunc(points, func(p point) bool { return p.t < l.oldest || p.t > l.newest })
}

// limits tells which samples are sent: not those older than the age limit, nor those
// ahead of the target's clock by more than the future limit. The clock is the target's,
// since this host's may be a year off unnoticed: nothing is dropped before the target has told
// its time lately, or was asked and does not tell; until then known is false, and nothing is
// limited. What is ahead of the target's clock only, and not of this host's, waits.
func (q *Queue) limits() (l limits, known bool) {
	if c := q.clock.Load(); c != nil && c.fresh() {
		return q.bounds(c), true
	}
	return unlimited(), false
}

// bounds are the limits at a target with this clock. Where it does not tell its time the
// age is by this host's clock, and nothing is ahead.
func (q *Queue) bounds(c *targetClock) limits {
	l, now := unlimited(), time.Now()
	if c.tells() {
		now = c.now()
		if d := time.Duration(q.cfg.Target.FutureLimit); d > 0 {
			l.newest = now.Add(d).UnixMilli()
			if l.future = l.newest; q.cfg.Target.OnFuture == config.FutureWait {
				l.future = max(l.future, time.Now().Add(d).UnixMilli())
			}
		}
	}
	if d := time.Duration(q.cfg.Queue.SampleAgeLimit); d > 0 {
		l.oldest = now.Add(-d).UnixMilli()
	}
	return l
}

// newest is the greatest timestamp that the target is sent, as far as is known.
func (q *Queue) newest() int64 {
	if c := q.clock.Load(); c != nil {
		return q.bounds(c).newest
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
	c := s.q.clock.Load()
	switch {
	case l.again, c != nil && c.fresh():
		return noQuestion
	case c == nil:
		now := time.Now()
		c = &targetClock{date: now, at: now}
	}
	if !s.q.bounds(c).exclude(l.points) {
		return noQuestion
	}
	return s.q.nextQuestion()
}

// refusedForTime reports whether an answer refuses a parcel, and is the first that tells the target's time, by which some of
// these samples are dropped or wait: their time may be what it was refused for. If so, p is given back.
func (s *shard) refusedForTime(p gate.Pass, l *parcel, a client.Answer, clockWasKnown bool) bool {
	if clockWasKnown || l.again || !ofTarget(a) || a.Accepted() {
		return false
	}
	lim, _ := s.q.limits()
	if !lim.exclude(l.points) {
		return false
	}
	s.q.noteAnswer(a)
	s.q.gate.Release(p)
	return true
}

const (
	// askTimeFor is how long samples wait for the time at a target that fails at empty
	// writes. It may take data all the same: after that each dataTurn-th request is data, the
	// last sample that it took, or what waits at a target that has taken nothing yet.
	askTimeFor = 30 * time.Second
	dataTurn   = 4
)

// asksTime reports whether the next request, if it depends on the time, is to ask for it by an empty write.
func (q *Queue) asksTime() bool {
	first := q.timeAsked.Load()
	if first == 0 || time.Since(q.born)-time.Duration(first) < askTimeFor {
		return true
	}
	return q.timeTurn.Add(1)%dataTurn != 0
}

// nextQuestion is how the next request, which depends on the time, asks for it.
func (q *Queue) nextQuestion() question {
	if q.asksTime() {
		return byEmpty
	}
	if _, ok := q.lastGood(); ok {
		return byTaken
	}
	return noQuestion
}

// noTime notes that the target was asked and did not answer, or not as itself.
func (q *Queue) noTime(a client.Answer) {
	q.timeAsked.CompareAndSwap(0, max(1, int64(time.Since(q.born))))
	q.noteAnswer(a)
}

// timeUnknown reports whether the target has yet to tell its time, or that it does not.
func (q *Queue) timeUnknown() bool { return q.clock.Load() == nil && q.cfg.Target.FutureLimit > 0 }

// learnTime asks the target for its time if that is due before the parcel is sent, and gives p back then.
func (s *shard) learnTime(ctx context.Context, p gate.Pass, l *parcel) (asked bool, err error) {
	switch s.askTimeBy(l) {
	case byEmpty:
		return true, s.askTime(ctx, p)
	case byTaken:
		taken, _ := s.q.lastGood() // there is one: see nextQuestion
		return true, s.q.askByTaken(s.sending, p, taken)
	}
	return false, nil
}

// askTime finds out by an empty write what time it is at the target, and gives p back. If
// the answer does not tell, that is known for a while.
func (s *shard) askTime(ctx context.Context, p gate.Pass) error {
	return s.q.askTime(ctx, s.sending, p)
}

// askTime is the same; sending is the request's context.
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
	if !tellsTime(a) {
		q.clock.Store(&targetClock{at: time.Now()})
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
