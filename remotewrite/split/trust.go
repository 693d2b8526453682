package split

import (
	"sync/atomic"
	"time"
)

const (
	// vouchFor is for how long after a full proof, in which nothing spoke for the target, a quick one does.
	vouchFor = time.Minute
	// distrustFor is how long no sample is given up without known words after a control sample, of a series that was
	// taken before, was refused, or samples were taken that had been refused.
	distrustFor = time.Minute
)

// Trust says how much a target's refusals prove at present. Times are ages, in ns, of anything that began before; 0 is no
// time. The zero Trust has seen nothing. Safe for concurrent use.
type Trust struct {
	vouched    atomic.Int64 // when samples were last proven bad in full; 0: never, or refusals were no evidence since
	distrusted atomic.Int64 // when refusals were last no evidence; 0: never
}

// Turns is how many turns a proof takes; 0: there can be none.
func (t *Trust) Turns(now int64) int {
	within := func(at int64, d time.Duration) bool { return at != 0 && time.Duration(now-at) < d }
	switch {
	case within(t.distrusted.Load(), distrustFor):
		return 0
	case within(t.vouched.Load(), vouchFor):
		return QuickTurns
	}
	return FullTurns
}

// Distrust notes that refusals are no evidence for a while.
func (t *Trust) Distrust(now int64) {
	t.distrusted.Store(now)
	t.vouched.Store(0)
}

// Vouch notes a full proof.
func (t *Trust) Vouch(now int64) { t.vouched.Store(now) }
