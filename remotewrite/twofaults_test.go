package remotewrite

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/wal"
)

// TestBadAndPoisonousSampleInOneBatch: one sample of a batch is refused with 400, and the receiver fails at another one
// with 500, as Prometheus 2 does for invalid samples and for samples beyond its window: both are given up, in either
// order, and the others are delivered.
func TestBadAndPoisonousSampleInOneBatch(t *testing.T) {
	for _, names := range [][2]string{{"m0080", "m0010"}, {"m0010", "m0080"}, {"m0010", "m0011"}, {"m0099", "m0000"}} {
		t.Run(names[0]+" refused, "+names[1]+" poison", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &fakeReceiver{latency: 5 * time.Millisecond}
				r := newRig(t, to).timed()
				r.round(100)
				first := r.log.entries[0].MaxT
				is := func(i int) func(smp) bool {
					return func(s smp) bool { return s.series == names[i] && s.t == first }
				}
				failed := 0
				to.script = func(q fakeRequest) (client.Answer, bool) {
					switch {
					case slices.ContainsFunc(q.samples, is(0)):
						return client.Answer{Status: 400, Text: "bad sample"}, true
					case slices.ContainsFunc(q.samples, is(1)):
						failed++
						return client.Answer{Status: 500, Text: "boom"}, true
					}
					return client.Answer{}, false
				}
				r.start()
				time.Sleep(10 * time.Second)
				for range 240 {
					r.round(100)
					time.Sleep(15 * time.Second)
				}
				r.drained(5 * time.Minute)
				r.end()
				if o := r.log.outcome(); o.Dropped[wal.Rejected] != 2 || o.Lost() != 2 {
					t.Errorf("outcomes %+v, want two rejected", o)
				}
				if failed < poisonFailures {
					t.Errorf("the receiver failed %d times only", failed)
				}
				var lost []smp
				for _, s := range r.log.entries[0].Samples {
					if x := smpOf(s); is(0)(x) || is(1)(x) {
						lost = append(lost, x)
					}
				}
				r.verify(lost...)
			})
		})
	}
}
