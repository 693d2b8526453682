package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/tools/tier"
	"hwsagent/remotewrite/config"
)

// TestLongLogInDoubt: after the loss of a savepoint all samples of a long log are in doubt, in any number of shards. A
// limited number of requests resolves them, and soon, at a receiver like Prometheus, with and without an out-of-order
// window.
func TestLongLogInDoubt(t *testing.T) {
	const series, shards = 2000, config.MaxShards
	rounds := 260
	if testing.Short() {
		rounds = 60 // the race detector sees the same goroutines
	}
	for _, window := range []bool{false, true} {
		for _, stored := range []int{0, rounds / 2, rounds} {
			if testing.Short() && (window || stored != 0) || !tier.Nightly() && window != (stored == rounds/2) {
				continue // every second cell
			}
			t.Run(fmt.Sprintf("window=%t/%d of %d rounds are stored", window, stored, rounds), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to := &fakeReceiver{anyOrder: window, latency: time.Millisecond, stored: map[string][]smp{}, has: map[smp]bool{}}
					r := newRig(t, to)
					for range rounds {
						r.round(series)
					}
					r.stored(stored * series)
					r.log.sp.High, r.log.sp.Shards = r.log.head(), 0
					r.start()
					r.drained(2 * time.Minute)
					r.end()
					requests := 0
					for _, q := range to.log() {
						if len(q.samples) > 0 {
							requests++
						}
					}
					t.Logf("%d requests for %d samples", requests, series*rounds)
					if most := shards * (3*rounds + 40); requests > most {
						t.Errorf("%d requests, want at most %d", requests, most)
					}
					if o := r.log.outcome(); o.Lost() != 0 {
						t.Errorf("outcomes %+v, nothing may be lost", o)
					}
					checkStored(t, r)
				})
			})
		}
	}
}
