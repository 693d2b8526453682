// Package clock knows what time it is at a target, as its answers tell, and which samples are sent by that time.
//
// This host's clock may be a year off unnoticed, so nothing is dropped by it alone. A [Clock] has no goroutine and asks nothing: its caller
// gives it what answers tell, and asks by a request of its own when AskByEmpty or Reading.Fresh say so.
package clock

import (
	"sync/atomic"
	"time"
)

const (
	// freshFor is for how long samples are dropped for what the target said. While all
	// samples are dropped nothing is sent that would show that its clock is right by now.
	freshFor = 30 * time.Second

	// maxSlip is how far this host's two clocks may run apart meanwhile. When it was
	// suspended the monotonic one stood still, and the target's did not.
	maxSlip = time.Second

	// maxSkew is how far a target's clock may be off that is believed against a synchronised clock.
	maxSkew = 24 * time.Hour

	// askFor is how long samples wait for the time at a target that fails at empty
	// writes. It may take data all the same: after that each dataTurn-th question is data.
	askFor   = 30 * time.Second
	dataTurn = 4
)

// Reading is what a target said about its time once. It goes on by this host's monotonic
// clock, so that a step of this host's wall clock, which may just have been put right,
// does not move it.
type Reading struct {
	date time.Time // the target's time; zero: it was asked, and does not tell
	at   time.Time // when it was that, by both of this host's clocks

	// absurd: it is off by more than a day although this host's clock is synchronised. It is shown, and
	// nothing goes by it.
	absurd bool
}

// Host is a reading of this host's clock, for a target that was not asked yet.
func Host() *Reading {
	now := time.Now()
	return &Reading{date: now, at: now}
}

// Tells reports whether the target tells its time and is believed.
func (r *Reading) Tells() bool { return !r.date.IsZero() && !r.absurd }

// Absurd reports whether the target's time is not believed.
func (r *Reading) Absurd() bool { return r.absurd }

// Age is how long ago the target said so, by the monotonic clock.
func (r *Reading) Age() time.Duration { return time.Since(r.at) }

// Fresh reports whether the target said so lately, as far as this host can know.
func (r *Reading) Fresh() bool { return r.Age() < freshFor && !r.Slipped() }

// Slipped reports whether since then one of this host's clocks was stepped, or the host suspended.
func (r *Reading) Slipped() bool {
	now := time.Now()
	return slipped(now.Round(0).Sub(r.at.Round(0)), now.Sub(r.at))
}

// slipped reports whether in a stretch of time the wall clock and the monotonic one went
// so differently that one was stepped, or the host suspended.
func slipped(wall, monotonic time.Duration) bool { return (wall - monotonic).Abs() > maxSlip }

func (r *Reading) now() time.Time { return r.date.Add(r.Age()) }

// Clock is a target's clock. The zero Clock is one of which nothing is known. Safe for concurrent use.
type Clock struct {
	reading atomic.Pointer[Reading]
	asked   atomic.Pointer[time.Time] // when it was first asked in vain since it told its time
	turn    atomic.Int32
}

// Told notes that the target's clock showed date now. synced says that the kernel calls this host's clock synchronised: then a date that is off by more
// than a day is not believed.
func (c *Clock) Told(date time.Time, synced bool) {
	r := &Reading{date: date, at: time.Now()}
	r.absurd = r.at.Sub(r.date).Abs() > maxSkew && synced
	c.reading.Store(r)
	c.asked.Store(nil)
}

// SaidNothing notes an answer without a time. It tells only where nothing is known yet: other answers may have one.
func (c *Clock) SaidNothing() { c.reading.CompareAndSwap(nil, &Reading{at: time.Now()}) }

// DoesNotTell notes, for as long as a reading is fresh, that the target was asked and does not tell its time.
func (c *Clock) DoesNotTell() { c.reading.Store(&Reading{at: time.Now()}) }

// AskedInVain notes that the target was asked, and did not answer, or not as itself.
func (c *Clock) AskedInVain() {
	now := time.Now()
	c.asked.CompareAndSwap(nil, &now)
}

// AskByEmpty reports whether the next question is an empty write. Each fourth is data once empty writes were in vain for half a minute.
func (c *Clock) AskByEmpty() bool {
	first := c.asked.Load()
	if first == nil || time.Since(*first) < askFor {
		return true
	}
	return c.turn.Add(1)%dataTurn != 0
}

// Reading is what the target said last, nil before it said anything.
func (c *Clock) Reading() *Reading { return c.reading.Load() }

// Known reports whether the target has told its time, or was asked and does not tell.
func (c *Clock) Known() bool { return c.Reading() != nil }

// Skew is this host's clock minus the target's, if that is known.
func (c *Clock) Skew() (d time.Duration, known bool) {
	r := c.Reading()
	if r == nil || r.date.IsZero() || r.Slipped() {
		return 0, false
	}
	return time.Now().Round(0).Sub(r.now().Round(0)), true
}
