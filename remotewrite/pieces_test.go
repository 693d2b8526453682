package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestLargeRequestInPieces: a request of 10,000 samples that is refused for one of them, or that fails three times, is sent again in pieces of
// 2,000. For an hour requests are no larger. That holds with exemplars too, of which a piece may have some more.
func TestLargeRequestInPieces(t *testing.T) {
	for _, status := range []int{400, 500} {
		for _, exemplars := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d exemplars=%t", status, exemplars), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const series = 10_000
					r := newRig(t, &fakeReceiver{latency: time.Millisecond}).timed()
					r.cfg.SendExemplars, r.log.exemplars = exemplars, exemplars
					if status == 400 {
						r.to.poison = func(s smp) bool { return s.series == "m4321" }
					} else {
						r.to.script = func(q fakeRequest) (client.Answer, bool) {
							return client.Answer{Status: status, Text: "request too complex"}, len(q.samples) > 3000
						}
					}
					r.start()
					rounds, from, large := 0, 0, 0
					for began := time.Now(); time.Since(began) < 4*time.Hour; rounds++ {
						r.round(series)
						time.Sleep(10 * time.Minute)
						for _, q := range r.to.log()[from:] {
							if from++; len(q.samples) <= mostDivided {
								continue
							}
							if large++; rounds > 0 && time.Since(began) < time.Hour {
								t.Fatalf("a request of %d samples after %s", len(q.samples), time.Since(began))
							}
						}
					}
					r.drained(time.Minute)
					r.end()
					o := r.log.outcome()
					t.Logf("%d requests in %d rounds, %d of them large; %+v", from, rounds, large, o)
					if status == 400 && o.GivenUp() != uint64(rounds) || status == 500 && o.GivenUp() > 0 || o.Sum() != uint64(rounds*series) {
						t.Errorf("outcomes %+v", o)
					}
					if large == 0 {
						t.Error("no request was large: nothing was tested")
					}
					if most := 12*rounds + 100; from > most {
						t.Errorf("%d requests, want at most %d", from, most)
					}
				})
			})
		}
	}
}
