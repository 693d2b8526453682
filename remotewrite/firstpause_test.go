package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestFirstPauseAfterAStart: after a start the first failure is retried at a random time within half of the splay, so
// that a receiver which fails once costs no seconds. A second failure waits as long as it must in a fleet that starts
// together.
func TestFirstPauseAfterAStart(t *testing.T) {
	for _, splay := range []time.Duration{0, 5 * time.Second} {
		for _, random := range []float64{0, 0.5, 0.999} {
			t.Run(fmt.Sprint(splay, " ", random), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, &fakeReceiver{})
					r.splay, r.rand = splay, func() float64 { return random }
					r.to.script = func(q fakeRequest) (client.Answer, bool) { return client.Answer{Status: 503}, q.n < 2 }
					r.start()
					r.round(10)
					r.drained(time.Minute)
					r.end()
					log := r.to.log()
					first, second := log[1].at.Sub(log[0].at), log[2].at.Sub(log[1].at)
					least := time.Duration(r.cfg.Queue.MinBackoff)
					if first < least || first > 2*least+splay/2 || second < splay*4/5 {
						t.Errorf("pauses of %s and %s", first, second)
					}
				})
			})
		}
	}
}
