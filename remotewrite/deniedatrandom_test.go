package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestDeniedAtRandom: for half an hour, one of two backends answers 403 to everything, so a part of the requests is denied. A denied sample that is
// alone proves nothing, even if others are accepted: nothing is lost.
func TestDeniedAtRandom(t *testing.T) {
	for _, share := range []float64{0, 0.3, 0.5, 0.7} { // 0: every second request
		for _, empties := range []bool{true, false} {
			for seed := range seedsOf(40) {
				t.Run(fmt.Sprintf("share %v, empty writes %t, seed %d", share, empties, seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { deniedAtRandom(t, share, empties, seed) })
				})
			}
		}
	}
}

func deniedAtRandom(t *testing.T, share float64, empties bool, seed uint64) {
	rng, began, denied := rand.New(rand.NewPCG(seed, 1)), time.Now(), 0
	to := &fakeReceiver{latency: 5 * time.Millisecond, refuseEmpty: !empties}
	to.script = func(q fakeRequest) (client.Answer, bool) {
		denies := rng.Float64() < share || share == 0 && q.n%2 == 1
		if denies = denies && time.Since(began) < 30*time.Minute; denies {
			denied++
		}
		return client.Answer{Status: 403, Text: "no"}, denies
	}
	r := newRig(t, to)
	r.start()
	for range 140 {
		r.round(20)
		time.Sleep(15 * time.Second)
	}
	r.drained(30 * time.Minute)
	r.end()
	if denied < 20 {
		t.Errorf("%d requests were denied", denied)
	}
	if o := r.log.outcome(); o.GivenUp() > 0 {
		t.Errorf("outcomes %+v\n%s", o, to.dump())
	}
	r.verify()
}
