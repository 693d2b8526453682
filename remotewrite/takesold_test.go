package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestOldSamplesAskOnce: a target whose backlog is old gets one sample again, alone, which shows whether it takes old ones. A target that
// is late for a moment only gets each sample once: a receiver without a window for old samples would count the repetition as refused.
func TestOldSamplesAskOnce(t *testing.T) {
	for _, anyOrder := range []bool{false, true} {
		for age, again := range map[time.Duration]int{0: 0, 2 * time.Second: 0, 4900 * time.Millisecond: 0, 6 * time.Second: 1, time.Hour: 1} {
			t.Run(fmt.Sprintf("any order %t, %s old", anyOrder, age), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, &fakeReceiver{anyOrder: anyOrder, latency: time.Millisecond})
					begin := time.Now().Add(-age).UnixMilli()
					for n := range int64(40) {
						r.time = begin + n - 1000 // round adds a second
						r.round(500)
					}
					r.start()
					if !r.q.live.isBehind() {
						t.Error("the target has no backlog")
					}
					r.drained(time.Minute)
					r.end()
					r.verify()
					if r.to.again != again {
						t.Errorf("%d samples came again, want %d", r.to.again, again)
					}
				})
			})
		}
	}
}
