package queue

import "time"

// orphanEvery is the interval at which the time of an orphan is written to its savepoint.
const orphanEvery = time.Hour

// OrphanClock measures how long a target has been an orphan, neither enrolled nor open. It counts only time in which the log
// was open, by the monotonic clock and across restarts, so steps of the wall clock do not affect it.
type OrphanClock struct {
	Last  time.Time     // end of the last time as a non-orphan, by the wall clock; for display only
	Ran   time.Duration // time since then in which the log was open
	saved time.Duration // Ran in the newest record
}

// OrphanClockOf returns the clock of a record.
func OrphanClockOf(st *Stored) OrphanClock {
	ran := time.Duration(st.Orphan) * time.Millisecond
	return OrphanClock{Last: time.UnixMilli(st.LastOpen), Ran: ran, saved: ran}
}

// Store writes the clock into a record.
func (c *OrphanClock) Store(st *Stored) {
	st.LastOpen, st.Orphan = c.Last.UnixMilli(), c.Ran.Milliseconds()
}

// Restart resets the clock: the target is not an orphan, or becomes one now.
func (c *OrphanClock) Restart(now time.Time) { *c = OrphanClock{Last: now} }

// Pass adds time during which the log was open and the target an orphan. It reports whether the clock must be written;
// ending is true in the last call of the process.
func (c *OrphanClock) Pass(passed time.Duration, ending bool) (write bool) {
	c.Ran += passed
	if c.Ran-c.saved < orphanEvery && (!ending || c.Ran <= c.saved) {
		return false
	}
	c.saved = c.Ran
	return true
}
