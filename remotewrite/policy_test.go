package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// 413: requests are halved until they fit, and the limit is remembered.
func TestTooLargeIsHalvedAndRemembered(t *testing.T) {
	for _, most := range []int{1, 3, 250, 1999} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, &fakeReceiver{maxSamples: most})
				n := 2000
				if most < 10 {
					n = 100
				}
				for range 4 {
					r.round(n)
				}
				r.start()
				r.drained(time.Minute)
				r.end()
				r.verify()
				large := 0
				for _, q := range r.to.log() {
					if q.status == 413 {
						large++
					}
				}
				if large == 0 || large > 12 {
					t.Errorf("%d requests were too large\n%s", large, r.to.dump())
				}
			})
		})
	}
}

// Retry-After holds for the whole target, not for one shard.
func TestRetryAfterIsTargetWide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var until time.Time
		early, asked := 0, 0
		to := &fakeReceiver{latency: 20 * time.Millisecond}
		to.script = func(q fakeRequest) (client.Answer, bool) {
			if q.at.Before(until) && q.at.After(until.Add(-60*time.Second+25*time.Millisecond)) {
				early++
			}
			if q.n == 30 {
				asked++
				until = time.Now().Add(60 * time.Second)
				return client.Answer{Status: 429, RetryAfter: 60 * time.Second}, true
			}
			return client.Answer{}, false
		}
		r := newRig(t, to)
		r.cfg.Queue.MinShards = 4
		for range 200 {
			r.round(500)
		}
		r.start()
		r.drained(5 * time.Minute)
		r.end()
		r.verify()
		if asked != 1 || early != 0 {
			t.Errorf("asked %d times to wait, %d requests came before the time", asked, early)
		}
	})
}

// TestLong5xxDropsNothing: no sample is given up at a receiver that answers 5xx for hours.
func TestLong5xxDropsNothing(t *testing.T) {
	for _, empties := range []bool{true, false} {
		t.Run(fmt.Sprintf("empty writes pass=%v", empties), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := time.Now().Add(3 * time.Hour)
				r := newRig(t, &fakeReceiver{script: func(q fakeRequest) (client.Answer, bool) {
					return client.Answer{Status: 502}, time.Now().Before(up) && (!empties || len(q.samples) > 0)
				}})
				r.start()
				for time.Now().Before(up.Add(time.Minute)) {
					r.round(20)
					time.Sleep(30 * time.Second)
				}
				r.drained(5 * time.Minute)
				r.end()
				r.verify()
			})
		})
	}
}

// TestReturnsWhileABatchIsTakenApart: a receiver comes back from a long outage of 5xx during the division of a batch:
// samples that failed before do not count as bad.
func TestReturnsWhileABatchIsTakenApart(t *testing.T) {
	apart := 0
	for back := 5 * time.Minute; back < 8*time.Minute; back += 2 * time.Second {
		synctest.Test(t, func(t *testing.T) {
			up := time.Now().Add(back)
			r := newRig(t, &fakeReceiver{})
			parts := false
			r.to.script = func(q fakeRequest) (client.Answer, bool) {
				parts = parts || len(q.samples) == 1
				return client.Answer{Status: 502}, time.Now().Before(up)
			}
			r.start()
			for range 3 {
				r.round(2)
			}
			r.drained(20 * time.Minute)
			r.end()
			if parts {
				apart++
			}
			if o := r.log.outcome(); o.GivenUp() > 0 {
				t.Errorf("back after %s: outcomes %+v", back, o)
			}
			r.verify()
		})
	}
	if apart < 30 {
		t.Errorf("in %d outages a batch was taken apart: the fault did not happen", apart)
	}
}

// TestShardsFollowBacklog: more shards are used during a backlog, and fewer requests after the receiver asked to slow
// down.
func TestShardsFollowBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{latency: 300 * time.Millisecond, anyOrder: true}).old()
		r.cfg.Queue.MaxShards, r.cfg.Queue.MaxSamplesPerSend, r.cfg.Queue.Capacity = 8, 2000, 10_000
		series := 1000
		if testing.Short() { // as many requests for the race detector, of fewer samples
			series, r.cfg.Queue.MaxSamplesPerSend = 200, r.cfg.Queue.MaxSamplesPerSend/5
		}
		for range 500 {
			r.round(series)
		}
		r.start()
		most := 0
		r.until("caught up", 10*time.Minute, func() bool {
			most = max(most, r.q.Status().Shards)
			return r.log.pending() == 0
		})
		if most != 8 || r.to.maxFly != 8 {
			t.Errorf("at most %d shards and %d requests at a time, want 8", most, r.to.maxFly)
		}
		for range 300 {
			r.round(series)
			time.Sleep(time.Second)
		}
		if n := r.q.Status().Shards; n != 1 {
			t.Errorf("%d shards without a backlog, want 1", n)
		}
		r.drained(time.Minute)
		r.end()
		r.verify()
		if n := r.to.again; n > 1 { // one asks whether it takes old samples
			t.Errorf("%d samples were sent again", n)
		}
	})
}
