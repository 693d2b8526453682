package wal

import "time"

// orphanEvery is the interval at which the time of an orphan is written to its savepoint.
const orphanEvery = time.Hour

// orphanClock measures how long a target has been an orphan, neither enrolled nor open. It counts only time in which the log
// was open, by the monotonic clock and across restarts, so steps of the wall clock do not affect it.
type orphanClock struct {
	last  time.Time     // end of the last time as a non-orphan, by the wall clock; for display only
	ran   time.Duration // time since then in which the log was open
	saved time.Duration // ran in the newest record
}

// orphanClockOf returns the clock of a record.
func orphanClockOf(st *storedSavepoint) orphanClock {
	ran := time.Duration(st.Orphan) * time.Millisecond
	return orphanClock{last: time.UnixMilli(st.LastOpen), ran: ran, saved: ran}
}

// store writes the clock into a record.
func (c *orphanClock) store(st *storedSavepoint) {
	st.LastOpen, st.Orphan = c.last.UnixMilli(), c.ran.Milliseconds()
}

// restart resets the clock: the target is not an orphan, or becomes one now.
func (c *orphanClock) restart(now time.Time) { *c = orphanClock{last: now} }

// pass adds time during which the log was open and the target an orphan. It reports whether the clock must be written;
// ending is true in the last call of the process.
func (c *orphanClock) pass(passed time.Duration, ending bool) (write bool) {
	c.ran += passed
	if c.ran-c.saved < orphanEvery && (!ending || c.ran <= c.saved) {
		return false
	}
	c.saved = c.ran
	return true
}
