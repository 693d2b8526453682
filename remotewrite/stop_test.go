package remotewrite

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/remotewrite/client"
)

// TestStopFlushesOnce: a batch that is not full is sent once when the queue stops, including a commit that was not read
// yet.
func TestStopFlushesOnce(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "read": 200 * time.Millisecond, "after others": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, &fakeReceiver{latency: 20 * time.Millisecond})
				r.cfg.Queue.BatchSendDeadline = model.Duration(5 * time.Second)
				r.cfg.Queue.MinShards = 4
				r.round(10)
				r.start()
				time.Sleep(wait)
				r.round(10)
				before := r.to.count()
				if took := r.end(); took > 100*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				r.verify()
				if p, n := r.log.pending(), r.to.count()-before; p != 0 || n == 0 || n > 2*4 || r.to.again != 0 {
					t.Errorf("%d samples pending, %d requests at the end, %d samples twice\n%s", p, n, r.to.again, r.to.dump())
				}
			})
		})
	}
}

// TestStopIsBounded: a stop sends no further request to a failing receiver, which cannot delay the stop; samples that
// it has not accepted are there after the next start.
func TestStopIsBounded(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  client.Answer
		latency time.Duration
		trouble bool // before the stop
		asks    int  // requests after the stop
	}{
		{name: "server error", answer: client.Answer{Status: 503}, asks: 1},
		{name: "refused", answer: client.Answer{Status: 401}, asks: 1},
		{name: "no connection", answer: client.Answer{Err: errDown}, asks: 1},
		{name: "hangs", latency: time.Hour, asks: 1},
		{name: "server errors since long", answer: client.Answer{Status: 503}, trouble: true},
		{name: "refused since long", answer: client.Answer{Status: 403}, trouble: true},
		{name: "no connection since long", answer: client.Answer{Err: errDown}, trouble: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := false
				r := newRig(t, &fakeReceiver{})
				r.cfg.Queue.BatchSendDeadline = model.Duration(time.Hour)
				r.cfg.Queue.MaxSamplesPerSend = 10
				r.to.script = func(fakeRequest) (client.Answer, bool) { return c.answer, bad && c.latency == 0 }
				r.start()
				r.round(10)
				r.drained(time.Minute)
				r.to.change(func() { bad = true; r.to.latency = c.latency })
				if c.trouble {
					r.round(10)
					time.Sleep(20 * time.Minute)
				}
				r.round(5)
				time.Sleep(time.Millisecond)
				before := r.to.count()
				if took := r.end(); took > flushFor+grace {
					t.Errorf("it took %v", took)
				}
				if n := r.to.count() - before; n != c.asks {
					t.Errorf("%d requests at the end, want %d\n%s", n, c.asks, r.to.dump())
				}
				if r.log.pending() == 0 || r.log.outcome().GivenUp() != 0 {
					t.Errorf("%d pending, outcomes %+v", r.log.pending(), r.log.outcome())
				}
				r.to.change(func() { bad = false; r.to.latency = 0 })
				r.cfg.Queue.BatchSendDeadline = model.Duration(time.Second)
				r.start()
				r.drained(time.Minute)
				r.end()
				r.verify()
			})
		})
	}
}

// TestStopWithBacklog: a backlog does not delay the stop of the queue: as many samples are sent as time allows.
func TestStopWithBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		series, latency := 1000, 50*time.Millisecond
		if testing.Short() {
			series, latency = 200, 250*time.Millisecond // as many goroutines for the race detector, and as much time
		}
		r := newRig(t, &fakeReceiver{latency: latency})
		for range 1000 {
			r.round(series)
		}
		r.start()
		time.Sleep(2 * time.Second)
		before := r.log.pending()
		if took := r.end(); took > flushFor+grace {
			t.Errorf("it took %v", took)
		}
		if now := r.log.pending(); now == 0 || now >= before {
			t.Errorf("%d samples pending before, %d after", before, now)
		}
		r.verify()
		r.start()
		r.drained(10 * time.Minute)
		r.end()
		r.verify()
	})
}
