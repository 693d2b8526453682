package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestBadNeighboursInABacklog: three or more bad samples next to each other in a backlog are given up as usual: others
// of the same age are accepted, so age is not the reason, and the receiver does not say that order is. The rest of the
// backlog is delivered.
func TestBadNeighboursInABacklog(t *testing.T) {
	for _, first := range []int{0, 7, lateRigSeries - 3} {
		t.Run(fmt.Sprint("from series ", first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLateRig(t)
				var at int64
				r.to.poison = func(s smp) bool {
					return s.t == at && s.series >= fmt.Sprintf("m%02d", first) && s.series < fmt.Sprintf("m%02d", first+3)
				}
				r.start()
				r.collect(time.Minute)
				r.down.Store(true)
				r.collect(10 * time.Minute)
				r.to.set(func() { at = time.Now().UnixMilli() })
				r.collect(10 * time.Minute)
				r.down.Store(false)
				r.collect(20 * time.Minute)
				if g := r.r.Ledger(); g.Lost() != 3 || r.missing() != 3 {
					t.Errorf("%d samples missing; %+v; %+v", r.missing(), g, r.q.Status())
				}
				r.stop()
			})
		})
	}
}

// TestTookAsOldCountsSamples: exemplars do not count as samples: a batch with most samples refused must not count as
// mostly accepted.
func TestTookAsOldCountsSamples(t *testing.T) {
	ss := testSeries(10)
	var batch []point
	for i := range ss {
		batch = append(batch, point{series: ss[i], t: 1}, point{series: ss[i], t: 1, kind: exemplarPoint})
	}
	left := make([]point, 0, len(ss))
	for i := range ss[:8] {
		left = append(left, batch[2*i])
	}
	if tookAsOld(batch, left) {
		t.Error("2 of 10 samples are most of them")
	}
	if !tookAsOld(batch, left[:3]) {
		t.Error("7 of 10 samples are not most of them")
	}
}
