package clock

import (
	"fmt"
	"math"
	"time"
)

// Rules are the configured limits on the time of samples.
type Rules struct {
	AgeLimit    time.Duration // older samples are dropped; 0: no limit
	FutureLimit time.Duration // samples further ahead are not sent; 0: no limit
	Wait        bool          // samples ahead of the target's clock wait for it instead of being dropped
}

// Limits bound the timestamps, in ms, of samples to send now. Samples older than Oldest or newer
// than Future are dropped; samples between Newest and Future wait. Future is at least Newest.
type Limits struct{ Oldest, Newest, Future int64 }

// Unlimited returns the limits for a target whose clock is unknown.
func Unlimited() Limits { return Limits{math.MinInt64, math.MaxInt64, math.MaxInt64} }

// Sends reports whether a sample of time t, in ms, is sent now.
func (l Limits) Sends(t int64) bool { return l.Oldest <= t && t <= l.Newest }

// Waits reports whether a sample of time t, in ms, waits for the target's clock.
func (l Limits) Waits(t int64) bool { return l.Newest < t && t <= l.Future }

// Limits returns the limits for a target with this reading. If the reading has no usable time,
// ages are measured by this host's clock, and no sample counts as ahead.
func (r Rules) Limits(at *Reading) Limits {
	l, now := Unlimited(), time.Now()
	if at.Tells() {
		now = at.now()
		if r.FutureLimit > 0 {
			l.Newest = now.Add(r.FutureLimit).UnixMilli()
			if l.Future = l.Newest; r.Wait {
				l.Future = max(l.Future, time.Now().Add(r.FutureLimit).UnixMilli())
			}
		}
	}
	if r.AgeLimit > 0 {
		l.Oldest = now.Add(-r.AgeLimit).UnixMilli()
	}
	return l
}

// Words describe how far the receiver's clock is off; skew is this host's clock minus the receiver's.
func Words(skew time.Duration) string {
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
