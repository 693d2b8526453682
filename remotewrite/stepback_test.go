package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal"
)

// The host's clock is set back by ten minutes, more rounds than a window reaches over, at
// a receiver that takes nothing out of order. What it refuses until the clock is past where
// it was is counted and kept as dead letters; all that came before the step and all that
// comes after that moment is delivered, and requests stay within reason.
func TestClockSetBackAtAStrictReceiver(t *testing.T) {
	for _, tc := range []struct{ keepsGood, refuseEmpty bool }{{false, false}, {true, false}, {false, true}} {
		t.Run(fmt.Sprintf("%+v", tc), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const (
					series = 50
					every  = 15 * time.Second
					step   = 10 * time.Minute
					before = 20 // rounds
					stale  = int(step / every)
					rounds = before + stale + 20
				)
				r := newRig(t, &fakeReceiver{keepsGood: tc.keepsGood, refuseEmpty: tc.refuseEmpty, latency: time.Millisecond})
				r.start()
				ahead, late, sent := time.Duration(0), 0, 0
				last := time.Now().UnixMilli() - 1
				for i := range rounds {
					if i == before {
						ahead, sent = -step, r.to.count()
					}
					at := time.Now().Add(ahead).UnixMilli()
					if at <= last {
						late++
					}
					last = max(last, at)
					var round []smp
					for n := range series {
						round = append(round, smp{fmt.Sprintf("m%04d", n), at, float64(i)})
					}
					r.log.append(round...)
					time.Sleep(every)
				}
				r.drained(2 * time.Hour)
				r.end()
				if late < stale {
					t.Fatalf("%d rounds say times that were used: the clock was not set back", late)
				}
				for name, have := range r.to.stored {
					if n := rounds - late; len(have) != n || have[n-1].v != float64(rounds-1) {
						t.Errorf("of %s %d samples are stored, want %d: %v", name, len(have), n, have)
					}
				}
				o := r.log.outcome()
				// Of a stretch that may have been sent before, in a window that was let go,
				// nobody can tell a late sample that is refused from one that is stored.
				unknown := o.Dropped[wal.Resent]
				if !tc.refuseEmpty && unknown > 0 || unknown > series {
					t.Errorf("%d samples count as sent before", unknown)
				}
				if o.Lost()+unknown != uint64(late*series) || len(r.to.stored) != series {
					t.Errorf("outcomes %+v, want %d rounds of %d lost", o, late, series)
				}
				letters := uint64(0)
				for _, l := range r.letters.all() {
					letters += uint64(max(l.Samples, 1))
				}
				if letters != o.Lost() {
					t.Errorf("dead letters of %d samples, want %d", letters, o.Lost())
				}
				perRound := float64(r.to.count()-sent) / float64(rounds-before)
				t.Logf("%.0f requests a round of %d series; outcomes %+v", perRound, series, o)
				if perRound > 2*series {
					t.Errorf("%.0f requests a round of %d series", perRound, series)
				}
			})
		})
	}
}
