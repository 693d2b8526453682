package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
)

// TestStartWhereRequestsFailAndEmptyWritesAreRefused: after a kill, a target that refuses empty writes and fails at
// three of ten requests has all samples within ten minutes.
func TestStartWhereRequestsFailAndEmptyWritesAreRefused(t *testing.T) {
	for _, status := range []int{0, 500, 503} {
		for _, message := range []string{config.MessageV1, config.MessageV2} {
			for _, anyOrder := range []bool{false, true} {
				for seed := range seedsOf(6) {
					t.Run(fmt.Sprintf("%d %s anyOrder=%t seed=%d", status, message, anyOrder, seed), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							dice, failed, fails := rand.New(rand.NewPCG(seed, 107)), 0, false
							to := &fakeReceiver{anyOrder: anyOrder, refuseEmpty: true, latency: 5 * time.Millisecond}
							to.script = func(fakeRequest) (client.Answer, bool) {
								if !fails || failed > 0 && dice.IntN(10) > 2 { // the first one fails for sure
									return client.Answer{}, false
								}
								if failed++; status == 0 {
									return cut, true
								}
								return client.Answer{Status: status}, true
							}
							r := newRig(t, to).timed()
							r.cfg.ProtobufMessage = message
							for range 10 {
								r.round(300)
							}
							r.start()
							r.until("a part has its outcome", time.Minute, func() bool { return r.log.pending() < 3000 })
							r.end()
							r.log.crash()
							to.set(func() { fails = true })
							for range 20 {
								r.round(300)
							}
							r.start()
							r.drained(10 * time.Minute)
							r.end()
							if o := r.log.outcome(); o.GivenUp() > 0 || failed == 0 {
								t.Errorf("outcomes %+v, %d requests failed", o, failed)
							}
							checkStored(t, r)
						})
					})
				}
			}
		}
	}
}

// checkStored checks that the receiver has every sample of the log.
func checkStored(t *testing.T, r *rig) {
	t.Helper()
	missing := 0
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			if !r.to.has[smp{s.Series.Labels().Get("__name__"), s.T, s.V}] {
				missing++
			}
		}
	}
	if missing > 0 {
		t.Errorf("receiver lacks %d samples; %s", missing, fmt.Sprint(r.log.outcome()))
	}
	for name, ss := range r.to.stored {
		for i := 1; i < len(ss); i++ {
			if ss[i].t <= ss[i-1].t && !r.to.anyOrder {
				t.Errorf("series %s is out of order", name)
			}
		}
	}
}
