package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/split"
)

// TestBatchLeavesTheMachineWithWithheldSamples: a receiver has another value at the time of one sample. The other samples of that request
// are sent again, and accepted, but get no outcome before the end (see [split.Request]). A reason for the quarantine becomes known
// in between, after each number of requests, and the batch leaves the machine. All samples get their outcome all the same.
func TestBatchLeavesTheMachineWithWithheldSamples(t *testing.T) {
	left := 0
	for after := range 12 {
		t.Run(fmt.Sprintf("after %d requests", after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &fakeReceiver{oneValue: true, latency: time.Millisecond}
				r := newRig(t, to)
				r.cfg.Queue.MinShards = 1
				r.start()
				for range 40 { // it finds out that samples of a series may share a request
					r.round(1)
				}
				r.drained(time.Minute)
				for v := range r.q.receiver {
					r.q.receiver[v].Store(int32(split.RollsBack))
				}
				down, refused, n := true, false, 0
				to.set(func() {
					to.script = func(q fakeRequest) (client.Answer, bool) {
						if down {
							return client.Answer{Status: 503}, true
						}
						refused = refused || len(q.samples) > 10 // several rounds
						if n++; refused && n == after+2 {
							r.q.live.quarantine.known.Store(true)
							left++
						}
						return client.Answer{}, false
					}
				})
				to.plant(smp{"m0005", r.time + 1000, 1})
				for range 3 {
					r.round(10)
				}
				time.Sleep(5 * time.Second)
				to.set(func() { down = false })
				r.drained(30 * time.Minute)
				r.end()
				if o := r.log.outcome(); o.Sum() != r.log.Head().Total || o.Lost() > 1 {
					t.Errorf("%d samples, one contradicts: %+v\n%s", r.log.Head().Total, o, to.dump())
				}
			})
		})
	}
	if left == 0 {
		t.Error("no reason became known")
	}
}
