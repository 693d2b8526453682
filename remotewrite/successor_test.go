package remotewrite

import (
	"testing"
	"testing/synctest"
	"time"
)

// After a kill: of a series that has newer samples from another sender all are refused for their
// order. None of them is stored, and none counts so for that of them which comes next.
func TestSeriesOfAnotherSenderIsNotStored(t *testing.T) {
	const series, rounds = 20, 8
	for stored := 0; stored <= series*rounds; stored += 7 {
		synctest.Test(t, func(t *testing.T) {
			to := &fakeReceiver{latency: time.Millisecond, stored: map[string][]smp{}, has: map[smp]bool{}}
			r := newRig(t, to)
			for range rounds {
				r.round(series)
			}
			other := smp{"m0003", r.time + 1_000_000, 1}
			mine := func(s smp) bool { return s.series == other.series && s != other }
			to.poison = mine
			r.stored(stored)
			to.poison = nil
			to.stored[other.series], to.has[other] = []smp{other}, true
			r.log.sp.High, r.log.sp.Shards = r.log.head(), 1
			r.start()
			r.drained(time.Minute)
			r.end()
			want := uint64(rounds - ceil(stored, series)) // those among stored ones cannot be told
			if o := r.log.outcome(); o.Lost() < want || o.Lost() > rounds+1 {
				t.Errorf("%d stored: outcomes %+v, want %d to %d samples lost", stored, o, want, rounds)
			}
			if t.Failed() {
				t.Log(to.dump())
			}
		})
	}
}
