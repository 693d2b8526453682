package remotewrite

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/gate"
)

// Two rules for clocks. A sample that is ahead of this host's clock and of the receiver's by more than future_limit is
// dropped: no clock reaches its time soon. A refusal because of a time too far ahead holds the target until the receiver's
// clock, or this host's, is corrected.

// farAhead is how far a sample must be ahead of the receiver's clock for a refusal to be due to that, whatever its words.
const farAhead = 5 * time.Minute

// receiverClock is the receiver's clock as its answers show it. The zero value knows nothing. Safe for concurrent use.
type receiverClock struct {
	answered atomic.Bool
	last     atomic.Pointer[dateSeen]
}

// dateSeen is a Date and when it was seen. Between answers it goes on with this host's monotonic clock, so a step of this
// host's wall clock does not move it.
type dateSeen struct{ date, at time.Time }

// saw records the time of an answer, if it is the target's.
func (c *receiverClock) saw(a client.Answer) {
	if a.FromTarget() {
		c.answered.Store(true)
	}
	if a.TellsTime() {
		c.last.Store(&dateSeen{a.Date.Add(a.Took / 2), time.Now()})
	}
}

// now returns the receiver's time, if it is known.
func (c *receiverClock) now() (t time.Time, known bool) {
	r := c.last.Load()
	if r == nil {
		return time.Time{}, false
	}
	return r.date.Add(time.Since(r.at)), true
}

// skew returns this host's clock minus the receiver's, if that is known.
func (c *receiverClock) skew() (d time.Duration, known bool) {
	there, known := c.now()
	if !known {
		return 0, false
	}
	return time.Now().Round(0).Sub(there.Round(0)), true
}

// limits bound the times of samples to send, in ms. Older samples are dropped as too old, newer ones as future.
type limits struct{ oldest, newest int64 }

func (l limits) admit(t int64) bool { return l.oldest <= t && t <= l.newest }

// limits returns which samples may be sent. One of two clocks may be a year off unnoticed, so a sample must be out of
// bounds by both to be dropped; before the target's first answer none is.
func (q *Queue) limits() limits {
	l := limits{math.MinInt64, math.MaxInt64}
	if !q.clock.answered.Load() {
		return l
	}
	now := time.Now()
	there, known := q.clock.now()
	if age := time.Duration(q.cfg.Queue.SampleAgeLimit); age > 0 {
		if l.oldest = now.Add(-age).UnixMilli(); known {
			l.oldest = min(l.oldest, there.Add(-age).UnixMilli())
		}
	}
	if ahead := time.Duration(q.cfg.Target.FutureLimit); ahead > 0 && known {
		l.newest = max(now.Add(ahead).UnixMilli(), there.Add(ahead).UnixMilli())
	}
	return l
}

// refusedAsAhead reports whether an answer refuses samples because the receiver's clock is behind their time: its database
// says so, or a sample was refused alone that is far ahead of the answer's Date.
func refusedAsAhead(points []point, a client.Answer) bool {
	if a.Reason == client.ReasonFuture {
		return true
	}
	return a.Verdict == client.Suspect && len(points) == 1 && a.TellsTime() && points[0].t > a.Date.Add(farAhead).UnixMilli()
}

// holdForClock holds the target because it refuses samples as ahead of its clock, and gives p back. The newest of them
// tests it.
func (q *Queue) holdForClock(p gate.Pass, points []point, a client.Answer) {
	newest := points[0]
	for _, s := range points {
		if s.kind != exemplarPoint && s.t >= newest.t {
			newest = s
		}
	}
	q.setLast(&q.ahead, newest)
	words := "it refuses samples as ahead of its clock"
	if skew, known := q.clock.skew(); known {
		words = skewWords(skew)
	}
	q.noteFailure(words, client.WaitsForClock(words))
	q.gate.RefusedData(p, words)
}

// testAhead tests a target that is held for its clock with the sample that it refused as ahead, and gives p back. Once the
// sample is not ahead any more, it is judged as any other.
func (s *shard) testAhead(p gate.Pass, ahead point) error {
	one := parcel{points: []point{ahead}, role: asControl}
	a, sent, err := s.post(p, &one, s.lane.choose(&one))
	switch {
	case err != nil || !sent:
		return err // p was given back
	case refusedAsAhead(one.points, a) && s.lane.limits().admit(ahead.t):
		s.lane.holdForClock(p, one.points, a)
	case a.Verdict == client.Hold, a.Verdict == client.Retry:
		// Something else is wrong, such as the version. The next tests find out what, with other samples and by turns in 1.0.
		s.lane.setLast(&s.lane.ahead, point{})
		s.lane.noteAnswer(a)
		s.lane.refused(p, a)
	default: // it is not ahead any more; or so far ahead of both clocks that it is dropped
		s.lane.setLast(&s.lane.ahead, point{})
		s.lane.gate.Resume(p)
	}
	return nil
}

// skewWords describe how far the receiver's clock is off; skew is this host's clock minus the receiver's.
func skewWords(skew time.Duration) string {
	if skew < 0 {
		return fmt.Sprintf("the receiver's clock is %s ahead of this host's", short(-skew))
	}
	return fmt.Sprintf("the receiver's clock is %s behind this host's", short(skew))
}

// short rounds a duration, to minutes if it is at least ten of them, and omits zero parts at its end: 11m, 1h, 2h5m.
func short(d time.Duration) string {
	if d = d.Round(time.Second); d >= 10*time.Minute {
		d = d.Round(time.Minute)
	}
	switch s := d; {
	case s%time.Hour == 0 && s > 0:
		return fmt.Sprintf("%dh", s/time.Hour)
	case s >= time.Hour:
		return fmt.Sprintf("%dh%dm", s/time.Hour, s%time.Hour/time.Minute)
	case s%time.Minute == 0 && s > 0:
		return fmt.Sprintf("%dm", s/time.Minute)
	default:
		return s.String()
	}
}
