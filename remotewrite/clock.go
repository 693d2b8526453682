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
	date time.Time // the target's time
	at   time.Time // when it was that, by the monotonic clock
}

// clockFresh is for how long samples are dropped for what the target said. While all
// samples are dropped nothing is sent that would show that its clock is right by now.
const clockFresh = 30 * time.Second

func (c *targetClock) now() time.Time { return c.date.Add(time.Since(c.at)) }
func (c *targetClock) fresh() bool    { return time.Since(c.at) < clockFresh }

// tellsTime reports whether an answer's Date is the target's. Others come from whatever
// stands in between, too: gateways, login pages.
func tellsTime(a Answer) bool {
	switch a.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return !a.Date.IsZero()
	}
	return a.Status/100 == 2 && !a.Date.IsZero()
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
	if c == nil {
		return 0, false
	}
	return time.Now().Round(0).Sub(c.now().Round(0)), true
}

// limits are the bounds of timestamps in milliseconds that are sent.
type limits struct{ oldest, newest int64 }

// limits tells which samples are sent at this time: not those older than the age limit,
// nor those ahead of the target's clock by more than the future limit. While the target
// has not told its time lately nothing is ahead of it.
func (q *Queue) limits(now time.Time) limits {
	l := limits{math.MinInt64, math.MaxInt64}
	if d := time.Duration(q.cfg.Queue.SampleAgeLimit); d > 0 {
		l.oldest = now.Add(-d).UnixMilli()
	}
	if c := q.clock.Load(); c != nil && c.fresh() {
		l.newest = q.newest(c)
	}
	return l
}

// newest is the greatest timestamp that a target with this clock is sent.
func (q *Queue) newest(c *targetClock) int64 {
	if d := time.Duration(q.cfg.Target.FutureLimit); d > 0 && c != nil {
		return c.now().Add(d).UnixMilli()
	}
	return math.MaxInt64
}

// mustAskTime reports whether the parcel has samples that are ahead of the target, as far
// as is known, but the target has not told its time for long.
func (s *shard) mustAskTime(l *parcel) bool {
	c := s.q.clock.Load()
	if c == nil || c.fresh() || l.again || l.timeAsked >= maxTimeAsked {
		return false
	}
	newest := s.q.newest(c)
	for i := range l.points {
		if l.points[i].t > newest {
			return true
		}
	}
	return false
}

// maxTimeAsked is how often a parcel waits for the time at a target that fails at empty
// writes: it may take data all the same.
const maxTimeAsked = 10

// askTime finds out by an empty write what time it is at the target, and gives p back. If
// the answer does not tell, the time is unknown from now on.
func (s *shard) askTime(ctx context.Context, p pass, l *parcel) error {
	g := s.q.gate
	a := s.q.send(s.sending, Request{Body: s.q.empty})
	if ctx.Err() != nil && a.Status == 0 {
		g.release(p)
		return ctx.Err()
	}
	switch v := Classify(a, Policy{RetryOnRateLimit: true}); {
	case a.Status/100 == 2:
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
		s.q.clock.Store(nil)
	}
	return nil
}
