package split

import (
	"sync/atomic"
	"time"
)

const (
	// vouchFor is how long a full proof, without evidence against the target, allows quick proofs.
	vouchFor = time.Minute
	// distrustFor is how long no sample is given up without a known reason after the target refused a control sample, of a series that
	// it had accepted before, or accepted samples that it had refused.
	distrustFor = time.Minute
)

// Trust is how much a target's refusals prove at present. Times are in ns since a fixed moment in the past; 0 means
// never. The zero Trust has no evidence. Safe for concurrent use.
type Trust struct {
	vouched    atomic.Int64 // when samples were last proven bad in full; 0: never, or refusals proved no evidence since
	distrusted atomic.Int64 // when refusals last proved no evidence; 0: never
}

// Turns returns how many turns a proof takes; 0: no proof is possible.
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

// Distrust notes that refusals are no evidence for distrustFor.
func (t *Trust) Distrust(now int64) {
	t.distrusted.Store(now)
	t.vouched.Store(0)
}

// Vouch notes a full proof.
func (t *Trust) Vouch(now int64) { t.vouched.Store(now) }
