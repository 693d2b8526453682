package wal

import "time"

// orphanEvery is the interval at which the time of an orphan is written to its savepoint.
const orphanEvery = time.Hour

// orphanClock measures for how long a target has been an orphan, neither configured nor open. It counts only the time in which an agent
// ran, by the monotonic clock and over restarts, so a step of the wall clock does not change it.
type orphanClock struct {
	last  time.Time     // when the target was last no orphan, by the wall clock; it is shown, and decides nothing
	ran   time.Duration // how long agents have run since then
	saved time.Duration // ran, as the newest record has it
}

// orphanClockOf is the clock of a record.
func orphanClockOf(st *storedSavepoint) orphanClock {
	ran := time.Duration(st.Orphan) * time.Millisecond
	return orphanClock{last: time.UnixMilli(st.LastOpen), ran: ran, saved: ran}
}

// store writes the clock into a record.
func (c *orphanClock) store(st *storedSavepoint) {
	st.LastOpen, st.Orphan = c.last.UnixMilli(), c.ran.Milliseconds()
}

// restart sets the clock to zero: the target is no orphan, or was none until now.
func (c *orphanClock) restart(now time.Time) { *c = orphanClock{last: now} }

// pass adds time in which an agent ran and the target was an orphan. It reports whether the clock is to be written;
// ending says that this is the last call of the process.
func (c *orphanClock) pass(passed time.Duration, ending bool) (write bool) {
	c.ran += passed
	if c.ran-c.saved < orphanEvery && (!ending || c.ran <= c.saved) {
		return false
	}
	c.saved = c.ran
	return true
}
