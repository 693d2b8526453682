package remotewrite

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// TestBatchLimitHealsAfter413: a receiver accepts one sample per request for five minutes: requests are of full size
// again twelve minutes later, and until then the status says why they are small.
func TestBatchLimitHealsAfter413(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small, large := false, 0
		to := &fakeReceiver{latency: time.Millisecond}
		to.script = func(q fakeRequest) (client.Answer, bool) {
			if small && len(q.samples) > 1 {
				large++
				return client.Answer{Status: 413, Text: "proxy: too large"}, true
			}
			return client.Answer{}, false
		}
		r := newRig(t, to).timed()
		r.start()
		minutes := func(n int) {
			for range 4 * n {
				r.round(200)
				time.Sleep(15 * time.Second)
			}
		}
		minutes(1)
		to.set(func() { small = true })
		minutes(5)
		if s := r.q.Status(); s.BatchSize > 2 || !strings.Contains(s.Why, "413") || large < 5 {
			t.Errorf("at most %d samples in a request, why %q, %d requests were too large", s.BatchSize, s.Why, large)
		}
		to.set(func() { small = false })
		minutes(12)
		if s := r.q.Status(); s.BatchSize != 2000 || s.Why != "" || s.State != StateOK {
			t.Errorf("twelve minutes later: status %+v", s)
		}
		r.drained(time.Minute)
		r.end()
		r.verify()
	})
}
