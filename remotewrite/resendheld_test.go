package remotewrite

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/config"
)

// stored makes the first n samples of the log, in its order, stored ones without an outcome, as after the kill of an
// earlier process.
func (r *rig) stored(n int) {
	for _, e := range r.log.entries {
		for _, s := range e.Samples {
			if n--; n < 0 {
				r.log.sp.High, r.log.sp.Shards = e.End, 1
				return
			}
			if r.to.has[smpOf(s)] || r.to.poison != nil && r.to.poison(smpOf(s)) {
				continue
			}
			r.to.has[smpOf(s)] = true
			r.to.stored[smpOf(s).series] = append(r.to.stored[smpOf(s).series], smpOf(s))
		}
	}
}

// TestStartAtReceiverThatRefusesEmptyAndLate: a start after a kill, at a receiver that refuses empty writes and late
// samples. It refuses all the first requests, so single samples are sent until one is accepted, alternately in both
// versions of the protocol. That ends; no good sample is skipped, and no stored sample counts as lost, however slowly
// the log is read.
func TestStartAtReceiverThatRefusesEmptyAndLate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		speaks speech
		newer  bool
		every  int  // only every so many rounds has a sample of every second series
		again  bool // the memory of an earlier process is kept, with a sample that was accepted then
	}{
		{name: "1.0", every: 1},
		{name: "1.0, two intervals", every: 3},
		{name: "both", newer: true, every: 1},
		{name: "400 to 2.0", speaks: speaksOne400, newer: true, every: 1},
		{name: "500 to 2.0", speaks: speaksOne500, newer: true, every: 1},
		{name: "400 to 2.0, not the first start", speaks: speaksOne400, newer: true, every: 1, again: true},
		{name: "415 to 1.0, not the first start", speaks: speaksTwo, newer: true, every: 1, again: true},
	} {
		for _, slow := range []time.Duration{0, 30 * time.Millisecond} {
			for _, stored := range []int{205, 211, 229, 230, 250, 275} {
				t.Run(fmt.Sprintf("%s/read in %v/%d stored", tc.name, slow, stored), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						to := &fakeReceiver{refuseEmpty: true, speaks: tc.speaks, latency: 8 * time.Millisecond, stored: map[string][]smp{}, has: map[smp]bool{}}
						r := newRig(t, to)
						if tc.newer {
							r.cfg.ProtobufMessage = config.MessageV2
						}
						r.cfg.Queue.Capacity, r.cfg.Queue.MaxSamplesPerSend = 200, 70
						r.log.slow = func() time.Duration { return slow }
						if tc.again {
							r.start()
							r.round(20)
							r.drained(time.Hour)
							r.end()
						}
						for i := range 30 {
							r.time += 1000
							var ss []smp
							for j := range 20 {
								if j%2 == 0 || i%tc.every == 0 {
									ss = append(ss, smp{fmt.Sprintf("m%04d", j), r.time, float64(r.time + int64(j))})
								}
							}
							r.log.append(ss...)
						}
						r.stored(stored)
						r.start()
						r.drained(2 * time.Hour)
						r.end()
						if o := r.log.outcome(); o.Lost() != 0 {
							t.Errorf("outcomes %+v\n%s", o, r.to.dump())
						}
						r.verify()
					})
				})
			}
		}
	}
}

// TestBadSamplesDoNotMakeOthersPassForStored: after a kill, bad samples are where single samples are sent: at the
// beginning and the end of the samples sent again at once, and between. No good sample counts as stored.
func TestBadSamplesDoNotMakeOthersPassForStored(t *testing.T) {
	const series, rounds = 60, 12
	step := 7
	if testing.Short() {
		step = 49
	}
	for name, bad := range map[string]func(i, j int) bool{ // in round i, of series j
		"the last of a round":           func(i, j int) bool { return i == 4 && j == series-1 },
		"the last three":                func(i, j int) bool { return i == 4 && j >= series-3 },
		"first, middle and last":        func(i, j int) bool { return i == 4 && (j == 0 || j == series-1 || j == 1+(series-2)/2) },
		"first, middle and last series": func(_, j int) bool { return j == 0 || j == series-1 || j == 1+(series-2)/2 },
	} {
		t.Run(name, func(t *testing.T) {
			missed := 0
			for stored := 0; stored <= rounds*series; stored += step {
				synctest.Test(t, func(t *testing.T) {
					to := &fakeReceiver{latency: time.Millisecond, stored: map[string][]smp{}, has: map[smp]bool{}}
					r := newRig(t, to)
					lost := map[smp]bool{}
					for i := range rounds {
						r.round(series)
						for j, s := range r.log.entries[i].Samples {
							if bad(i, j) {
								lost[smpOf(s)] = true
							}
						}
					}
					to.poison = func(s smp) bool { return lost[s] }
					r.stored(stored)
					r.log.sp.High, r.log.sp.Shards = r.log.head(), 1 // and some were sent without success
					r.start()
					r.drained(10 * time.Minute)
					r.end()
					r.verify(slices.Collect(maps.Keys(lost))...)
					missed += len(lost) - int(r.log.outcome().Lost())
					if t.Failed() {
						t.Log(to.dump())
					}
				})
				if t.Failed() {
					return
				}
			}
			t.Logf("%d bad samples in all counted as stored", missed)
		})
	}
}
