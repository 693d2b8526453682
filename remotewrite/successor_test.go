package remotewrite

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/wal/queue"
)

// TestSeriesOfAnotherSenderIsNotStored: after a kill, all samples of a series that has newer ones from another sender
// are refused for their order. None of them is stored, and the next ones do not make them count as stored.
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
			want := uint64(rounds - ceil(stored, series)) // those among stored samples cannot be recognised
			if o := r.log.outcome(); o.Lost() < want || o.Lost() > rounds+1 {
				t.Errorf("%d stored: outcomes %+v, want %d to %d samples lost", stored, o, want, rounds)
			}
			if t.Failed() {
				t.Log(to.dump())
			}
		})
	}
}

// TestNothingStoredIsLostWhereTheOrderIsSaid: after a kill, wherever the stored samples end and wherever in its request
// a bad sample is, no stored sample counts as lost, because the receiver says that the order is the reason.
func TestNothingStoredIsLostWhereTheOrderIsSaid(t *testing.T) {
	const series, rounds = 30, 10
	for _, bad := range []int{-1, 0, 1, series / 2, series - 1} { // -1: none
		for stored := 0; stored <= rounds*series; stored += 1 + (bad+1)%3 {
			synctest.Test(t, func(t *testing.T) {
				to := &fakeReceiver{latency: time.Millisecond, stored: map[string][]smp{}, has: map[smp]bool{}}
				r := newRig(t, to)
				for range rounds {
					r.round(series)
				}
				lost := map[smp]bool{}
				if bad >= 0 {
					lost[smpOf(r.log.entries[4].Samples[bad])] = true
				}
				to.poison = func(s smp) bool { return lost[s] }
				r.stored(stored)
				r.log.sp.High, r.log.sp.Shards = r.log.head(), 1
				r.start()
				r.drained(10 * time.Minute)
				r.end()
				if o := r.log.outcome(); o.Lost() > uint64(len(lost)) {
					t.Errorf("%d stored, sample %d of round 4 is bad: outcomes %+v\n%s", stored, bad, o, to.dump())
				}
				r.verify(slices.Collect(maps.Keys(lost))...)
			})
			if t.Failed() {
				return
			}
		}
	}
}

// TestSuccessorAheadOfTheClockIsNotAskedFor: a sample is refused for its order, because another sender was faster, and
// the next one is ahead of the receiver's clock: the next one is dropped as usual, and not sent to find out which
// samples are stored.
func TestSuccessorAheadOfTheClockIsNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &fakeReceiver{stored: map[string][]smp{}, has: map[smp]bool{}}
		to.script = func(q fakeRequest) (client.Answer, bool) {
			a := to.stores(q)
			a.Date = time.Now()
			return a, true
		}
		r := newRig(t, to).timed()
		r.round(8)
		other := smp{"m0003", r.time + 1, 1}
		to.stored[other.series], to.has[other] = []smp{other}, true
		ahead := smp{other.series, r.time + 2*time.Hour.Milliseconds(), 2}
		r.log.append(ahead)
		r.log.append(smp{"m0000", r.time + 1000, 3}, smp{"m0001", r.time + 1000, 3})
		r.log.sp.High, r.log.sp.Shards = r.log.head(), 1
		r.start()
		r.drained(time.Minute)
		r.end()
		if o := r.log.outcome(); to.has[ahead] || o.Dropped[queue.Future] != 1 || o.Dropped[queue.Rejected] != 1 {
			t.Errorf("outcomes %+v, it was sent: %t, want one rejected and one dropped for the future\n%s", o, to.has[ahead], to.dump())
		}
	})
}
