package targets

import (
	"math/rand/v2"
	"testing"
	"time"

	"hwsagent/wal/queue"
)

// TestLedgersCount: whatever ledgers say, each counter starts at 0, never goes backwards, and is what its figure grew.
func TestLedgersCount(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	corrected, replaced := 0, 0
	for round := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, round))
		var c ledgers
		l := queue.Ledger{Appended: 1000}
		l.Delivered, l.Dropped[queue.Budget] = 900, 100
		c.begin("a", l)
		before := c.count("a", l)
		if before != (queue.Ledger{}) {
			t.Fatalf("round %d: at the start %+v", round, before)
		}
		grown := uint64(0)
		for range 50 {
			switch n := uint64(rnd.IntN(100)); rnd.IntN(8) {
			case 0: // requests that were under way are answered
				n = min(n, l.Dropped[queue.Budget])
				l.Dropped[queue.Budget] -= n
				l.Delivered += n
				corrected++
			case 1:
				l.Appended, l.Dropped[queue.Budget] = l.Appended+n, l.Dropped[queue.Budget]+n
			case 2:
				if rnd.IntN(5) == 0 {
					l = queue.Ledger{} // removed, and made anew
					replaced++
				}
			default:
				l.Appended, l.Delivered, grown = l.Appended+n, l.Delivered+n, grown+n
			}
			after := c.count("a", l)
			if after.Appended < before.Appended || after.Delivered < before.Delivered || after.Dropped[queue.Budget] < before.Dropped[queue.Budget] {
				t.Fatalf("round %d: %+v, then %+v", round, before, after)
			}
			before = after
		}
		if before.Delivered < grown {
			t.Fatalf("round %d: %d delivered, at least %d were", round, before.Delivered, grown)
		}
	}
	if corrected < 100 || replaced < 100 {
		t.Errorf("%d corrections, %d new queues", corrected, replaced)
	}
}
