package remotewrite

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
)

// TestExemplarsAreSentAgain: after a kill while samples with exemplars are in flight, all samples that are sent again
// have their exemplars, whether or not they had arrived. An exemplar is never a control: in 2.0 it would be an empty
// write.
func TestExemplarsAreSentAgain(t *testing.T) {
	for _, message := range []string{config.MessageV1, config.MessageV2} {
		for n := range 8 {
			arrives, anyOrder, several := n&1 > 0, n&2 > 0, n&4 > 0
			t.Run(fmt.Sprintf("%s arrives=%t anyOrder=%t several=%t", message, arrives, anyOrder, several), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to := &fakeReceiver{anyOrder: anyOrder, latency: time.Millisecond}
					r := newRig(t, to)
					r.cfg.SendExemplars, r.cfg.ProtobufMessage = true, message
					r.log.exemplars = true
					r.start()
					r.round(20)
					r.drained(time.Minute)
					if r.q.live.window.Load().shards[0].good.kind == exemplarPoint {
						t.Error("the control is an exemplar")
					}
					var lost atomic.Bool
					to.script = func(fakeRequest) (client.Answer, bool) {
						lost.Store(true)
						return client.Answer{Err: errDown}, !arrives
					}
					to.loseAnswer = func(fakeRequest) bool { return lost.Load() }
					if r.round(20); several {
						r.round(20)
					}
					r.until("a request", time.Minute, lost.Load)
					time.Sleep(100 * time.Millisecond)
					r.end()
					r.log.crash()
					to.script, to.loseAnswer = nil, nil
					if r.log.sp.High.Total == r.log.sp.Acked().Total {
						t.Fatal("nothing is suspect: the crash did not happen")
					}
					r.start()
					r.drained(time.Minute)
					r.end()
					checkExemplars(t, r, arrives)
				})
			})
		}
	}
}

// checkExemplars checks that the exemplar of each sample came in a request that was taken, or whose answer was lost.
func checkExemplars(t *testing.T, r *rig, arrives bool) {
	t.Helper()
	has := map[smp]bool{}
	for _, q := range r.to.log() {
		for _, x := range q.exemplars {
			has[x] = has[x] || q.status == 204 || arrives && q.status == 0
		}
	}
	missing := 0
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			if !has[smpOf(s)] {
				missing++
			}
		}
	}
	if missing > 0 {
		t.Errorf("the exemplars of %d samples are missing\n%s", missing, r.to.dump())
	}
}
