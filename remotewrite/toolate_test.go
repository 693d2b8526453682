package remotewrite

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
)

// TestLiveFirstBeyondTheWindow: the receiver's window ends inside the backlog, and inside a batch of it: samples that
// are too old do not count as stored, nor are they given up. They wait, and all arrive when the window is made long
// enough.
func TestLiveFirstBeyondTheWindow(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		t.Run(fmt.Sprint("keepsGood=", keeps), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLateRig(t)
				r.to.keepsGood, r.to.window = keeps, 20*time.Minute
				r.cfg.Target.CatchUpRateLimit = 2 // waiting samples become too old
				r.start()
				r.collect(time.Minute)
				r.down.Store(true)
				r.collect(18 * time.Minute)
				r.down.Store(false)
				r.collect(30 * time.Minute)
				st, g := r.q.Status(), r.r.Ledger()
				if age := r.newest(); age > 8*time.Second || st.Why != allLate || st.State != StateBehind {
					t.Errorf("the newest sample is %v old; %+v", age, st)
				}
				if missed := r.missing(); r.tooOld() == 0 || missed == 0 || missed > int(g.Pending) || g.Lost() > 0 || g.Dropped[queue.Resent] > 0 {
					t.Errorf("%d samples missing, %d found too old; ledger %+v", missed, r.tooOld(), g)
				}
				r.to.set(func() { r.to.window = 2 * time.Hour })
				r.collect(askLateAgain)
				r.delivered(2 * time.Hour)
				r.stop()
			})
		})
	}
}

// TestBackInOrderBeyondTheWindow: after a change to in_order delivery, samples that the receiver finds too old are
// given up and counted as lost, one by one.
func TestBackInOrderBeyondTheWindow(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		t.Run(fmt.Sprint("keepsGood=", keeps), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLateRig(t)
				r.to.keepsGood, r.to.window = keeps, 10*time.Minute
				r.start()
				r.collect(time.Minute)
				r.down.Store(true)
				r.collect(time.Hour)
				r.down.Store(false)
				r.collect(time.Minute)
				r.stop()
				r.cfg.Target.CatchUp = config.InOrder
				r.start()
				for end := time.Now().Add(time.Hour); r.r.Ledger().Pending > 0; time.Sleep(time.Second) {
					if time.Now().After(end) {
						t.Fatalf("%+v; %+v", r.r.Ledger(), r.q.Status())
					}
				}
				g, missed := r.r.Ledger(), r.missing()
				if !g.Balanced() || g.Dropped[queue.Resent] > 0 || missed == 0 || g.Lost() != uint64(missed) {
					t.Errorf("%d samples missing; ledger %+v", missed, g)
				}
				if inside := 9 * 60 / 5 * lateRigSeries; missed > r.rounds*lateRigSeries-inside {
					t.Errorf("%d samples missing of %d, %d of them in the window", missed, r.rounds*lateRigSeries, inside)
				}
				r.stop()
			})
		})
	}
}

// TestWindowEndsInsideABatch: with in_order, too: another sender's samples move the end of the window between the
// rounds of a batch. The older samples of each series are refused and the newest is accepted, as if the good part had
// been stored. It was not, so they do not count as resent.
func TestWindowEndsInsideABatch(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		for inside := range 4 { // rounds within the window
			t.Run(fmt.Sprint("keepsGood=", keeps, " inside=", inside), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to := &fakeReceiver{anyOrder: true, keepsGood: keeps, window: time.Minute}
					r := newRig(t, to)
					r.round(10)
					r.start()
					r.drained(time.Minute)
					to.set(func() {
						to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, true }
					})
					for range 8 {
						r.round(10)
					}
					time.Sleep(10 * time.Second)
					to.set(func() {
						to.newest = r.time + 60_000 + 500 - int64(inside)*1000
						to.script = nil
					})
					r.drained(time.Hour)
					r.end()
					o, missing := r.log.outcome(), uint64(0)
					for _, e := range r.log.entries {
						for _, s := range e.Samples {
							if !to.has[smpOf(s)] {
								missing++
							}
						}
					}
					if want := uint64(8-inside) * 10; missing != want || o.Lost() != want || o.Dropped[queue.Resent] > 0 || to.tooOld == 0 {
						t.Errorf("%d samples missing, %d were too old; %+v\n%s", missing, want, o, to.dump())
					}
				})
			})
		}
	}
}

// TestLiveFirstBacklogFails: answers to the backlog slow down only the backlog while fresh samples are accepted. If no
// old sample is accepted from the start, fresh ones wait until that is clear.
func TestLiveFirstBacklogFails(t *testing.T) {
	for _, tc := range []struct {
		a      client.Answer
		before bool // the two part
	}{
		{client.Answer{Status: 503}, false},
		{client.Answer{Status: 500}, true},
		{client.Answer{Status: 429, RetryAfter: 2 * time.Minute}, false},
	} {
		t.Run(fmt.Sprint(tc.a.Status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLateRig(t)
				fails, failed := tc.before, 0
				r.to.script = func(q fakeRequest) (client.Answer, bool) {
					switch {
					case r.down.Load():
						return client.Answer{Err: errDown}, true
					case fails && len(q.samples) > 0 && q.at.Sub(time.UnixMilli(q.samples[0].t)) > time.Minute:
						failed++
						return tc.a, true
					}
					return client.Answer{}, false
				}
				r.start()
				r.collect(time.Minute)
				r.down.Store(true)
				r.collect(time.Hour)
				r.down.Store(false)
				r.collect(15 * time.Second)
				if tc.before {
					r.collect(10 * time.Minute)
				}
				r.to.set(func() { fails, failed = true, 0 })
				for range 60 {
					r.collect(10 * time.Second)
					if age, st := r.newest(), r.q.Status(); age > 8*time.Second || st.State != StateBehind || st.Missed == 0 {
						t.Errorf("the newest sample is %v old; %+v", age, st)
						break
					}
				}
				r.to.set(func() {
					if fails = false; failed < 3 || failed > 61 {
						t.Errorf("%d requests failed in ten minutes", failed)
					}
				})
				r.delivered(time.Hour)
				r.stop()
			})
		})
	}
}

// TestOutOfBoundsInsideABatch: a Prometheus without a window calls samples out of bounds that are an hour older than
// its newest one. The order matters there, so the newer part is not sent first; but samples that were never stored do
// not count as resent either.
func TestOutOfBoundsInsideABatch(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		for n := range 8 {
			inside, aged := n%4, time.Duration(n/4)*2*time.Hour // samples under an hour old need more proof
			t.Run(fmt.Sprint("keepsGood=", keeps, " inside=", inside, " aged=", aged), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to := &fakeReceiver{keepsGood: keeps, window: time.Hour, windowSays: "out of bounds"}
					r := newRig(t, to)
					r.time -= aged.Milliseconds()
					r.round(5)
					r.start()
					r.drained(time.Minute)
					to.set(func() {
						to.script = func(fakeRequest) (client.Answer, bool) { return client.Answer{Err: errDown}, true }
					})
					for range 8 {
						r.round(5)
					}
					time.Sleep(10 * time.Second)
					to.set(func() {
						to.newest = r.time + time.Hour.Milliseconds() + 500 - int64(inside)*1000
						to.script = nil
					})
					r.drained(time.Hour)
					r.end()
					o, missing := r.log.outcome(), uint64(0)
					for _, e := range r.log.entries {
						for _, s := range e.Samples {
							if !to.has[smpOf(s)] {
								missing++
							}
						}
					}
					if want := uint64(8-inside) * 5; missing < want || o.Lost() < missing || o.Dropped[queue.Resent] > uint64(inside)*5 || to.tooOld == 0 {
						t.Errorf("%d samples missing, %d were out of bounds; %+v\n%s", missing, want, o, to.dump())
					}
				})
			})
		}
	}
}
