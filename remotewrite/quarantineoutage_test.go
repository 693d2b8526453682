package remotewrite

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
)

// A series in quarantine counts once, however often its target goes down and comes back.
func TestOutageKeepsTheQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := namesIn(1, "bad", 4)
		names := slices.Concat(bad, namesIn(0, "good", 3))
		to := &fakeReceiver{latency: 10 * time.Millisecond, says: limitWords}
		to.poison = func(s smp) bool { return strings.HasPrefix(s.series, "bad") }
		down := false
		to.script = func(q fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, down }
		r := newRig(t, to)
		r.start()
		round := func() {
			r.time += 1000
			var ss []smp
			for _, name := range names {
				ss = append(ss, smp{name, r.time, float64(r.time)})
			}
			r.log.append(ss...)
			time.Sleep(15 * time.Second)
		}
		for range 30 {
			round()
		}
		if st := r.q.Status().Quarantined; len(st) != 1 || st[0].Series != len(bad) {
			t.Fatalf("before the outages: %+v", st)
		}
		for n := range 3 {
			to.set(func() { down = true })
			for range 20 {
				round()
			}
			to.set(func() { down = false })
			for range 20 {
				round()
			}
			r.drained(time.Hour)
			st := r.q.Status().Quarantined
			if len(st) != 1 || st[0].Series != len(bad) {
				t.Errorf("after outage %d: %d series exist, status says %+v", n+1, len(bad), st)
			}
		}
		r.end()
	})
}
