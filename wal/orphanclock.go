package wal

import "time"

// orphanEvery is how often it is written for how long a target has not been wanted.
const orphanEvery = time.Hour

// orphanClock measures for how long a target has not been wanted. It counts the time in which an agent ran, by the
// monotonic clock and over all lives of the agent: a step of the wall clock does not change it, and the time in which
// no agent ran is left out.
type orphanClock struct {
	last  time.Time     // when the target was wanted last, by the wall clock, for people: nothing is decided by it
	ran   time.Duration // since then
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

// restart says that the target is, or was until now, wanted.
func (c *orphanClock) restart(now time.Time) { *c = orphanClock{last: now} }

// pass says that an agent ran for so much longer without a wish for the target. It reports whether that is to be written;
// ending says that this process looks no more.
func (c *orphanClock) pass(passed time.Duration, ending bool) (write bool) {
	c.ran += passed
	if c.ran-c.saved < orphanEvery && (!ending || c.ran <= c.saved) {
		return false
	}
	c.saved = c.ran
	return true
}
