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

// TestRetryGapsNeverShrink: under 5xx, or without an answer, the gap between requests never shrinks below 0.8 of the
// one before, for the target as a whole, with any number of shards, and keeps to max_backoff; also during the division
// of a batch.
func TestRetryGapsNeverShrink(t *testing.T) {
	for _, a := range []client.Answer{{Err: errDown}, {Status: 500}, {Status: 502, Text: "bad gateway"}, {Status: 503}, {Status: 504}, {Status: 599}} {
		for shards := 1; shards <= 8; shards *= 8 {
			for seed := range seedsOf(5) {
				t.Run(fmt.Sprintf("%s/%d shards/seed=%d", a, shards, seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { gaps(t, a, shards, seed) })
				})
			}
		}
	}
}

func gaps(t *testing.T, a client.Answer, shards int, seed uint64) {
	down := time.Time{}
	r := newRig(t, &fakeReceiver{latency: 3 * time.Millisecond, script: func(fakeRequest) (client.Answer, bool) { return a, !down.IsZero() }})
	r.rand = rand.New(rand.NewPCG(seed, 11)).Float64
	r.cfg.Queue.MinShards, r.cfg.Queue.MaxShards = shards, shards
	r.start()
	r.round(100)
	r.drained(time.Minute)
	r.to.change(func() { down = time.Now() })
	for range 120 {
		r.round(100)
		time.Sleep(10 * time.Second)
	}
	r.end()
	// The requests of the first moment were in flight together.
	failed := slices.DeleteFunc(r.to.log(), func(q fakeRequest) bool {
		return down.IsZero() || q.at.Before(down.Add(10*time.Second+100*time.Millisecond))
	})
	var before time.Duration
	for i := 1; i < len(failed); i++ {
		gap := failed[i].at.Sub(failed[i-1].at)
		if gap < before*8/10 || gap > time.Duration(r.cfg.Queue.MaxBackoff)+100*time.Millisecond {
			t.Fatalf("a gap of %v after one of %v before request %d, %s after the beginning\n%s", gap, before, failed[i].n, failed[i].at.Sub(down), r.to.dump())
		}
		before = gap
	}
	if len(failed) < 200 || r.log.outcome().GivenUp() > 0 {
		t.Errorf("%d requests in 20 minutes, outcomes %+v", len(failed), r.log.outcome())
	}
}
