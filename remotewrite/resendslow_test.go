package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestResendAtAReceiverThatLimitsTheRate: a start after a kill, at a receiver that answers 429 to one in so many
// requests: the queue finds out which samples are stored all the same, and soon.
func TestResendAtAReceiverThatLimitsTheRate(t *testing.T) {
	const series, rounds = 10, 20
	for _, refuseEmpty := range []bool{false, true} {
		for _, every := range []int{10, 5, 4, 3, 2} {
			if refuseEmpty && every == 2 {
				continue // of two requests in a row one always gets 429
			}
			t.Run(fmt.Sprintf("refuses empty writes=%t/each %d", refuseEmpty, every), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to := &fakeReceiver{refuseEmpty: refuseEmpty, latency: 10 * time.Millisecond, stored: map[string][]smp{}, has: map[smp]bool{}}
					r := newRig(t, to)
					to.script = func(q fakeRequest) (client.Answer, bool) {
						return client.Answer{Status: 429, Text: "slow down"}, q.n%every == every-1
					}
					for range rounds {
						r.round(series)
					}
					r.stored((rounds - 3) * series)
					r.log.sp.High, r.log.sp.Shards = r.log.head(), 1
					r.start()
					for end := time.Now().Add(2 * time.Hour); r.log.pending() > 0 && time.Now().Before(end) && r.to.count() < 5000; {
						time.Sleep(10 * time.Millisecond)
					}
					t.Logf("%d requests, %d pending", r.to.count(), r.log.pending())
					if p := r.log.pending(); p > 0 {
						t.Errorf("%d samples wait after %d requests", p, r.to.count())
					}
					r.end()
				})
			})
		}
	}
}
