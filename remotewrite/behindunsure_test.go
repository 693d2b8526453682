package remotewrite

import (
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/wal/queue"
)

// TestHalfOfABacklogsBatchIsNotResent: an answer to a batch of the backlog is lost, then the batch is too large, and
// its second half is too old when it is sent: no sample of a backlog counts as resent.
func TestHalfOfABacklogsBatchIsNotResent(t *testing.T) {
	for _, says := range []string{"too old sample", "no"} {
		synctest.Test(t, func(t *testing.T) { halfOfABacklogsBatch(t, says) })
	}
}

func halfOfABacklogsBatch(t *testing.T, says string) {
	r := newLateRig(t)
	down, halved, parts := r.to.script, false, 0
	r.to.script = func(q fakeRequest) (client.Answer, bool) {
		if a, is := down(q); is || len(q.samples) == 0 || time.Since(time.UnixMilli(q.samples[0].t)) < 5*time.Minute {
			return a, is
		}
		if halved {
			if parts++; parts == 2 {
				r.to.window, r.to.windowSays = time.Minute, says
			}
			return client.Answer{}, false
		}
		if q.attempt == 0 {
			return client.Answer{Status: 503}, true
		}
		halved = true
		return client.Answer{Status: 413}, true
	}
	r.start()
	r.collect(time.Minute)
	r.down.Store(true)
	r.collect(20 * time.Minute)
	r.down.Store(false)
	r.collect(10 * time.Minute)
	if g := r.r.Ledger(); !halved || g.Dropped[queue.Resent] > 0 || r.missing() > int(g.Pending+g.Lost()) {
		t.Errorf("halved: %t; %d samples missing; %+v; %+v", halved, r.missing(), g, r.q.Status())
	}
	r.stop()
}
