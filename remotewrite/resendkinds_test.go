package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestCrashAtReceiverThatTakesNoHistogramLate: Prometheus 2 with an out-of-order window accepts late floats, but no
// late histograms. Samples that are sent again after a kill are all stored there, and do not count as lost.
func TestCrashAtReceiverThatTakesNoHistogramLate(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 9))
			r := newRig(t, &fakeReceiver{anyOrder: true, floatsOnly: true, latency: 7 * time.Millisecond})
			r.cfg.SendNativeHistograms = true
			series := 1 + rnd.IntN(300)
			round := func() {
				r.time += 1000
				var ss []smp
				for i := range series {
					ss = append(ss, smp{fmt.Sprintf("m%04d", i), r.time, float64(r.time)}, smp{fmt.Sprintf("histogram%04d", i), r.time, float64(r.time)})
				}
				r.log.append(ss...)
			}
			for range 20 + rnd.IntN(200) {
				round()
			}
			r.start()
			n := 3 + rnd.IntN(20)
			r.until("some requests", time.Minute, func() bool { return r.to.count() >= n || r.log.pending() == 0 })
			r.end()
			r.log.crash()
			if r.log.sp.High.Total == r.log.sp.Acked().Total {
				t.Fatalf("seed %d: nothing is suspect: the crash did not happen", seed)
			}
			round()
			r.start()
			r.drained(time.Minute)
			r.end()
			if o := r.log.outcome(); o.Lost() != 0 {
				t.Errorf("seed %d: outcomes %+v, nothing may be lost\n%s", seed, o, r.to.dump())
			}
			for _, e := range r.log.entries {
				for _, h := range e.Histograms {
					if name := h.Series.Labels.Get("__name__"); !r.to.has[smp{name, h.T, h.H.Sum}] {
						t.Fatalf("seed %d: the receiver lacks %s at %d", seed, name, h.T)
					}
				}
			}
			checkStored(t, r)
		})
	}
}
