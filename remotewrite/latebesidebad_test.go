package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/tools/tier"
)

// TestLateBesideBad: a backlog is partly older than the receiver's window, and the receiver also refuses one series for
// a known reason. The backlog waits until the window is widened, and only samples of the bad series are lost.
func TestLateBesideBad(t *testing.T) {
	for _, bad := range []string{"", "m00", "m03"} {
		for _, from := range []bool{false, true} { // bad since the outage, or since the beginning
			for _, keeps := range []bool{false, true} {
				if !tier.Nightly() && (bad == "m03" || from != (bad == "")) {
					continue
				}
				t.Run(fmt.Sprintf("bad=%q since the beginning=%t keeps=%t", bad, from, keeps), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { lateBesideBad(t, bad, from, keeps) })
				})
			}
		}
	}
}

func lateBesideBad(t *testing.T, bad string, from, keeps bool) {
	r := newLateRig(t)
	r.to.keepsGood, r.to.window, r.to.says = keeps, 20*time.Minute, limitWords
	on := from
	r.to.poison = func(s smp) bool { return on && s.series == bad }
	r.start()
	r.collect(time.Minute)
	r.to.set(func() { on = true })
	before := r.rounds
	if from {
		before = 0
	}
	r.down.Store(true)
	r.collect(90 * time.Minute)
	r.down.Store(false)
	r.collect(30 * time.Minute)
	if g := r.r.Ledger(); g.Pending == 0 {
		t.Errorf("nothing waits, although most of the backlog is beyond the window: %+v", g)
	}
	r.to.set(func() { r.to.window = 6 * time.Hour })
	r.collect(2 * askLateAgain)
	for end := time.Now().Add(3 * time.Hour); r.r.Ledger().Pending > 0 && time.Now().Before(end); {
		time.Sleep(time.Second)
	}
	want := 0
	if bad != "" {
		want = r.rounds - before
	}
	g := r.r.Ledger()
	if missing := r.missing(); missing != want || g.Lost() != uint64(want) || g.Pending != 0 { // #nosec G115 -- a count
		t.Errorf("the receiver misses %d samples, %d are counted as lost, %d wait; %d are of the bad series", missing, g.Lost(), g.Pending, want)
	}
	r.stop()
}
