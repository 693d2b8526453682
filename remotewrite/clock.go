package remotewrite

import (
	"context"
	"math"
	"net/http"
	"time"
)

// targetClock is what a target said about its time. It goes on by this host's monotonic
// clock, so that a step of this host's wall clock, which may just have been put right,
// does not move it.
type targetClock struct {
	date time.Time // the target's time; zero: it was asked, and does not tell
	at   time.Time // when it was that, by both of this host's clocks
}

const (
	// clockFresh is for how long samples are dropped for what the target said. While all
	// samples are dropped nothing is sent that would show that its clock is right by now.
	clockFresh = 30 * time.Second

	// maxSlip is how far this host's two clocks may run apart meanwhile. When it was
	// suspended the monotonic one stood still, and the target's did not.
	maxSlip = time.Second
)

func (c *targetClock) tells() bool    { return !c.date.IsZero() }
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

// tellsTime reports whether an answer's Date is the target's. Others come from whatever
// stands in between, too: gateways, login pages.
func tellsTime(a Answer) bool {
	switch a.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return !a.Date.IsZero()
	}
	return a.took() && !a.Date.IsZero()
}

// sawDate remembers the time that an answer tells.
func (q *Queue) sawDate(a Answer) {
	if !tellsTime(a) {
		return
	}
	q.clock.Store(&targetClock{date: a.Date.Add(a.Took / 2), at: time.Now()})
	skew, _ := q.skew()
	q.metrics.SetSkew(skew)
}

// skew is this host's clock minus the target's, if that is known.
func (q *Queue) skew() (d time.Duration, known bool) {
	c := q.clock.Load()
	if c == nil || !c.tells() || c.slipped() {
		return 0, false
	}
	return time.Now().Round(0).Sub(c.now().Round(0)), true
}

// limits are the bounds of timestamps in milliseconds that are sent.
type limits struct{ oldest, newest int64 }

// limits tells which samples are sent: not those older than the age limit, nor those
// ahead of the target's clock by more than the future limit. The clock is the target's,
// since this host's may be a year off without anybody's having noticed: nothing is dropped
// before the target has told its time lately, or was asked and does not tell.
func (q *Queue) limits() limits {
	if c := q.clock.Load(); c != nil && c.fresh() {
		return q.bounds(c)
	}
	return limits{math.MinInt64, math.MaxInt64}
}

// bounds are the limits at a target with this clock. Where it does not tell its time the
// age is by this host's clock, and nothing is ahead.
func (q *Queue) bounds(c *targetClock) limits {
	l, now := limits{math.MinInt64, math.MaxInt64}, time.Now()
	if c.tells() {
		now = c.now()
		if d := time.Duration(q.cfg.Target.FutureLimit); d > 0 {
			l.newest = now.Add(d).UnixMilli()
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

// mustAskTime reports whether the parcel has samples that would be dropped for their
// time, as far as is known, but the target has not told its time for long, or never: then
// what this host's clock says must do.
func (s *shard) mustAskTime(l *parcel) bool {
	c := s.q.clock.Load()
	if l.again || l.timeAsked >= maxTimeAsked || c != nil && c.fresh() {
		return false
	}
	if c == nil {
		now := time.Now()
		c = &targetClock{date: now, at: now}
	}
	b := s.q.bounds(c)
	for i := range l.points {
		if t := l.points[i].t; t < b.oldest || t > b.newest {
			return true
		}
	}
	return false
}

// maxTimeAsked is how often a parcel waits for the time at a target that fails at empty
// writes: it may take data all the same.
const maxTimeAsked = 10

// askTime finds out by an empty write what time it is at the target, and gives p back. If
// the answer does not tell, that is known for a while.
func (s *shard) askTime(ctx context.Context, p pass, l *parcel) error {
	g := s.q.gate
	a := s.q.sendEmpty(s.sending, s.q.proto.forEmpty(false))
	if ctx.Err() != nil && a.Status == 0 {
		g.release(p)
		return ctx.Err()
	}
	switch v := Classify(a, Policy{RetryOnRateLimit: true}); {
	case a.took():
		g.sawEmptyPass()
		g.release(p)
	case v == Retry:
		if a.Status != 0 {
			l.timeAsked++
		}
		s.q.noteAnswer(a)
		g.failed(p, a.String(), a.RetryAfter, a.Status != 0)
		return nil
	case v == Hold:
		s.q.noteAnswer(a)
		g.refused(p, a.String())
		return nil
	default: // it refuses empty writes
		g.release(p)
	}
	if !tellsTime(a) {
		s.q.clock.Store(&targetClock{at: time.Now()})
	}
	return nil
}
