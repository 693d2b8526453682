package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestBrokenNetworkIsNoPoison: a network is broken for hours, but sometimes lets an empty write through, or one request
// in five: no sample is given up, whichever batches are divided meanwhile.
func TestBrokenNetworkIsNoPoison(t *testing.T) {
	for name, through := range map[string]func(*rand.Rand, fakeRequest) bool{
		"empty writes only":    func(_ *rand.Rand, q fakeRequest) bool { return len(q.samples) == 0 },
		"empty writes, rarely": func(r *rand.Rand, q fakeRequest) bool { return len(q.samples) == 0 && r.IntN(10) == 0 },
		"one in five":          func(r *rand.Rand, _ fakeRequest) bool { return r.IntN(5) == 0 },
		"one in thirty":        func(r *rand.Rand, _ fakeRequest) bool { return r.IntN(30) == 0 },
		"small ones only":      func(_ *rand.Rand, q fakeRequest) bool { return len(q.samples) < 8 },
	} {
		for seed := range uint64(4) {
			if testing.Short() && seed > 1 {
				continue // more of the same for the race detector: an odd one has other errors
			}
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rnd, up := rand.New(rand.NewPCG(seed, 7)), time.Now().Add(3*time.Hour)
					broken := 0
					r := newRig(t, &fakeReceiver{latency: time.Millisecond, script: func(q fakeRequest) (client.Answer, bool) {
						if time.Now().After(up) || through(rnd, q) {
							return client.Answer{}, false
						}
						broken++
						if seed%2 == 0 {
							return cut, true
						}
						return client.Answer{Status: 502}, true
					}})
					r.start()
					for time.Now().Before(up.Add(time.Minute)) {
						r.round(20)
						time.Sleep(30 * time.Second)
					}
					r.drained(5 * time.Minute)
					r.end()
					if broken < 100 {
						t.Errorf("%d requests failed only", broken)
					}
					if o := r.log.outcome(); o.GivenUp() != 0 {
						t.Errorf("outcomes %+v\n%v", o, r.letters.all())
					}
					r.verify()
				})
			})
		}
	}
}

// A bad sample in a network that fails at random: it alone is given up.
func TestPoisonInBrokenNetwork(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 8))
				r := newRig(t, &fakeReceiver{latency: time.Millisecond})
				at, series := r.time+3000, 2+rnd.IntN(200)
				bad := smp{"m0001", at, float64(at) + 1}
				failure := []client.Answer{cut, {Status: 500}}[seed%2]
				r.to.script = func(q fakeRequest) (client.Answer, bool) {
					return failure, slices.Contains(q.samples, bad) || rnd.IntN(10) == 0
				}
				r.start()
				for range 120 {
					r.round(series)
					time.Sleep(10 * time.Second)
				}
				r.drained(3 * time.Hour)
				r.end()
				o := r.log.outcome()
				if o.GivenUp() < 1 || o.GivenUp() > 3 { // a probe that fails by chance costs its sample
					t.Errorf("outcomes %+v, want one lost; %v", o, r.letters.all())
				}
				if o.GivenUp() == 1 {
					r.verify(bad)
				}
			})
		})
	}
}
