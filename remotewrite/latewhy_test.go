package remotewrite

import (
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
)

// TestStatusWhileALateBacklogIsAccepted: once the target accepts its backlog again, the status no longer says that the target refuses it.
func TestStatusWhileALateBacklogIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		to := &fakeReceiver{anyOrder: true, window: time.Minute, latency: time.Millisecond}
		to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, down }
		r := newRig(t, to)
		r.cfg.Target.CatchUp, r.cfg.Target.CatchUpRateLimit = config.LiveFirst, 2
		r.cfg.Queue.MaxSamplesPerSend = 50
		r.start()
		rounds := func(n int) {
			for range n {
				r.time = max(r.time, time.Now().UnixMilli()-1000)
				r.round(10)
				time.Sleep(5 * time.Second)
			}
		}
		rounds(5)
		to.set(func() { down = true })
		rounds(720) // an hour
		to.set(func() { down = false })
		rounds(60)
		if st := r.q.Status(); st.Why != allLate {
			t.Fatalf("the backlog is not refused: %+v", st)
		}
		to.set(func() { to.window = 0 })
		rounds(180) // 15 minutes: the backlog is tried every five
		before := r.q.Status().Missed
		lies := 0
		for range 120 { // 10 minutes
			rounds(1)
			if st := r.q.Status(); st.Missed > 0 && st.Why == allLate {
				lies++
			}
		}
		if after := r.q.Status().Missed; lies > 0 && after < before-500 {
			t.Errorf("the backlog shrank from %d to %d samples, and in %d of 120 rounds the status says %q", before, after, lies, allLate)
		} else {
			t.Logf("%d, %d, %d", before, after, lies)
		}
		r.end()
	})
}
