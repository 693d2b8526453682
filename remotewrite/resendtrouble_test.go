package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestProxyRefusesWhileItIsFoundOutWhatIsStored: after a kill a proxy answers 400 to everything for some seconds while
// the queue finds out which samples are stored: samples that the proxy refused need not be stored. Later samples are
// not delivered before they are.
func TestProxyRefusesWhileItIsFoundOutWhatIsStored(t *testing.T) {
	const series, rounds = 6, 8
	for _, refuseEmpty := range []bool{false, true} {
		for _, stored := range []int{0, 2 * series, 3*series + 2} {
			t.Run(fmt.Sprintf("refuses empty writes=%t/%d stored", refuseEmpty, stored), func(t *testing.T) {
				for from, more := 0, true; more && !t.Failed(); from++ {
					synctest.Test(t, func(t *testing.T) {
						to := &fakeReceiver{refuseEmpty: refuseEmpty, latency: 10 * time.Millisecond, stored: map[string][]smp{}, has: map[smp]bool{}}
						r := newRig(t, to)
						r.cfg.Queue.MinShards, r.cfg.Queue.MaxShards = 2, 2
						var began time.Time
						to.script = func(q fakeRequest) (client.Answer, bool) {
							if q.n == from {
								began = time.Now()
							}
							return client.Answer{Status: 400, Text: "<html>"}, !began.IsZero() && time.Since(began) < 10*time.Second
						}
						for range rounds {
							r.round(series)
						}
						r.stored(stored)
						r.log.sp.High, r.log.sp.Shards = r.log.head(), 1
						r.start()
						r.drained(time.Hour)
						r.end()
						if o := r.log.outcome(); o.Lost() != 0 {
							t.Errorf("refused from request %d on: outcomes %+v, nothing may be lost", from, o)
						}
						r.verify()
						if t.Failed() {
							t.Log(to.dump())
						}
						more = !began.IsZero()
					})
				}
			})
		}
	}
}
