// Package clock derives the time at a target from its answers, and decides which samples are sent by that time.
//
// This host's clock may be a year off unnoticed, so it alone is no reason to drop samples. A [Clock] has no goroutine and sends no requests: its caller
// passes it the dates of answers, and sends a request for the time when AskByEmpty or Reading.Fresh ask for one.
package clock

import (
	"sync/atomic"
	"time"
)

const (
	// freshFor is how long samples are dropped because of a reading. While all
	// samples are dropped, no request goes out that would show that the target's clock is right again.
	freshFor = 30 * time.Second

	// maxSlip is how far this host's wall clock and monotonic clock may run apart since a reading. While the host is
	// suspended, its monotonic clock stands still and the target's clock does not.
	maxSlip = time.Second

	// maxSkew is the largest skew at which a target's clock is believed against a synchronised clock of this host.
	maxSkew = 24 * time.Hour

	// askFor is how long samples wait for the time of a target that fails at empty
	// writes. Such a target may still accept data: after that, every dataTurn-th question is data.
	askFor   = 30 * time.Second
	dataTurn = 4
)

// Reading is one report of a target's time. It advances by this host's monotonic
// clock, so that a step of this host's wall clock, which may just have been corrected,
// does not move it.
type Reading struct {
	date time.Time // the target's time; zero: it was asked and does not report its time
	at   time.Time // when the reading was taken, by both of this host's clocks

	// absurd: the date is off by more than a day although this host's clock is synchronised. It is shown but
	// not used.
	absurd bool
}

// Host returns a reading of this host's clock, for a target that was not asked yet.
func Host() *Reading {
	now := time.Now()
	return &Reading{date: now, at: now}
}

// Tells reports whether the target reports its time and is believed.
func (r *Reading) Tells() bool { return !r.date.IsZero() && !r.absurd }

// Absurd reports whether the target's time is not believed.
func (r *Reading) Absurd() bool { return r.absurd }

// Age returns the time since the reading was taken, by the monotonic clock.
func (r *Reading) Age() time.Duration { return time.Since(r.at) }

// Fresh reports whether the reading is recent, as far as this host can know.
func (r *Reading) Fresh() bool { return r.Age() < freshFor && !r.Slipped() }

// Slipped reports whether one of this host's clocks was stepped, or the host suspended, since the reading.
func (r *Reading) Slipped() bool {
	now := time.Now()
	return slipped(now.Round(0).Sub(r.at.Round(0)), now.Sub(r.at))
}

// slipped reports whether the wall clock and the monotonic clock advanced
// so differently that one was stepped, or the host suspended.
func slipped(wall, monotonic time.Duration) bool { return (wall - monotonic).Abs() > maxSlip }

func (r *Reading) now() time.Time { return r.date.Add(r.Age()) }

// Clock is a target's clock. The zero Clock has no reading. Safe for concurrent use.
type Clock struct {
	reading atomic.Pointer[Reading]
	asked   atomic.Pointer[time.Time] // when it was first asked without success since its last reading
	turn    atomic.Int32
}

// Told records that the target's clock shows date now. synced is set if the kernel reports this host's clock as synchronised: then a date that is off by more
// than a day is not believed.
func (c *Clock) Told(date time.Time, synced bool) {
	r := &Reading{date: date, at: time.Now()}
	r.absurd = r.at.Sub(r.date).Abs() > maxSkew && synced
	c.reading.Store(r)
	c.asked.Store(nil)
}

// SaidNothing records an answer without a time. It has an effect only if there is no reading yet, since other answers may have a time.
func (c *Clock) SaidNothing() { c.reading.CompareAndSwap(nil, &Reading{at: time.Now()}) }

// DoesNotTell records, for as long as a reading is fresh, that the target was asked and does not report its time.
func (c *Clock) DoesNotTell() { c.reading.Store(&Reading{at: time.Now()}) }

// AskedInVain records that the target was asked and gave no answer of its own.
func (c *Clock) AskedInVain() {
	now := time.Now()
	c.asked.CompareAndSwap(nil, &now)
}

// AskByEmpty reports whether to ask for the time by an empty write next. After half a minute of failed empty writes, each fourth question is data instead.
func (c *Clock) AskByEmpty() bool {
	first := c.asked.Load()
	if first == nil || time.Since(*first) < askFor {
		return true
	}
	return c.turn.Add(1)%dataTurn != 0
}

// Reading returns the last reading, nil before the first.
func (c *Clock) Reading() *Reading { return c.reading.Load() }

// Known reports whether the target has reported its time, or was asked and does not report it.
func (c *Clock) Known() bool { return c.Reading() != nil }

// Skew returns this host's clock minus the target's, if that is known.
func (c *Clock) Skew() (d time.Duration, known bool) {
	r := c.Reading()
	if r == nil || r.date.IsZero() || r.Slipped() {
		return 0, false
	}
	return time.Now().Round(0).Sub(r.now().Round(0)), true
}
