package remotewrite

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/wal/queue"
)

// slowClock is a receiver whose clock is off by what the test sets.
func slowClock(r *rig, off *time.Duration) {
	r.to.script = func(q fakeRequest) (client.Answer, bool) {
		a := r.to.stores(q)
		a.Date = time.Now().Add(*off)
		return a, true
	}
}

// TestSamplesWaitForASlowReceiversClock: a receiver's clock is eleven minutes slow, one more than future_limit: every
// sample waits until that clock reaches it, in order, and no sample is dropped or sent twice.
func TestSamplesWaitForASlowReceiversClock(t *testing.T) {
	for _, fromStart := range []bool{true, false} {
		t.Run(fmt.Sprintf("from the start=%t", fromStart), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, &fakeReceiver{latency: 5 * time.Millisecond}).timed()
				off := time.Duration(0)
				slowClock(r, &off)
				if fromStart {
					off = -11 * time.Minute
				}
				rounds := func(n int) {
					for range n {
						r.time = time.Now().UnixMilli() - 1000
						r.round(100)
						time.Sleep(15 * time.Second)
					}
				}
				r.start()
				rounds(8)
				r.to.set(func() { off = -11 * time.Minute })
				rounds(40)
				o, s := r.log.outcome(), r.q.Status()
				if o.Lost() != 0 || o.Delivered == 0 {
					t.Errorf("outcomes %+v", o)
				}
				if s.State != StateHeld || !strings.Contains(s.Why, "the receiver's clock is 11m") {
					t.Errorf("state %q, why %q", s.State, s.Why)
				}
				if n := r.log.pending(); n > 700 {
					t.Errorf("%d samples wait: those of more than a minute", n)
				}
				r.to.set(func() { off = 0 })
				r.drained(2 * time.Minute)
				rounds(4)
				if s := r.q.Status(); s.State != StateOK || s.Why != "" {
					t.Errorf("the clock is right: state %q, why %q", s.State, s.Why)
				}
				r.drained(time.Minute)
				r.end()
				r.verify()
				asked := int(13 * time.Minute / askClockEvery) // each time by the last sample that was taken
				if o := r.log.outcome(); o.Lost() != 0 || r.to.again > asked {
					t.Errorf("outcomes %+v, %d samples were sent twice, want at most %d", o, r.to.again, asked)
				}
			})
		})
	}
}

// TestWhichFutureIsDropped: samples that are ahead of this host's present clock, too, are dropped and counted: this
// host's clock was wrong when they were collected. With on_future: drop the receiver's clock decides.
func TestWhichFutureIsDropped(t *testing.T) {
	for _, tc := range []struct {
		name         string
		off          time.Duration // of the receiver's clock
		ahead        time.Duration // of the samples, to this host's present clock
		on           config.OnFuture
		synced       bool
		drop, wait   bool
		why          string
		deliveredAll bool
	}{
		{name: "ahead of both", ahead: time.Hour, drop: true},
		{name: "ahead of both, synchronised", ahead: time.Hour, synced: true, drop: true},
		{name: "ahead of the receiver only", off: -time.Hour, wait: true, why: "the receiver's clock is 1h behind"},
		{name: "ahead of the receiver only, drop", off: -time.Hour, on: config.FutureDrop, drop: true},
		{name: "within the limit", ahead: 9 * time.Minute, deliveredAll: true},
		{name: "a year slow", off: -365 * 24 * time.Hour, wait: true, why: "the receiver's clock is 8760h"},
		{name: "a year slow, this host synchronised", off: -365 * 24 * time.Hour, synced: true, deliveredAll: true, why: "not believed"},
		{name: "a year slow, this host synchronised, drop", off: -365 * 24 * time.Hour, on: config.FutureDrop, synced: true, deliveredAll: true, why: "not believed"},
		{name: "an hour slow, this host synchronised", off: -time.Hour, synced: true, wait: true, why: "the receiver's clock is 1h"},
		{name: "a year fast, this host synchronised", off: 365 * 24 * time.Hour, synced: true, deliveredAll: true, why: "not believed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, &fakeReceiver{anyOrder: true, latency: time.Millisecond}).timed()
				r.cfg.Target.OnFuture = tc.on
				r.synced = func() bool { return tc.synced }
				off := tc.off
				slowClock(r, &off)
				r.time = time.Now().Add(-2 * 365 * 24 * time.Hour).UnixMilli()
				r.round(1) // the answer to this one tells the receiver's time
				r.start()
				r.drained(10 * time.Second)
				r.time = time.Now().Add(tc.ahead).UnixMilli()
				r.round(10)
				time.Sleep(20 * time.Second)
				o, s := r.log.outcome(), r.q.Status()
				want := queue.Outcome{Delivered: 1}
				switch {
				case tc.drop:
					want.Dropped[queue.Future] = 10
				case tc.deliveredAll:
					want.Delivered += 10
				}
				if o != want || !strings.Contains(s.Why, tc.why) || tc.why == "" && s.Why != "" || tc.wait != (s.State == StateHeld) {
					t.Errorf("outcomes %+v, want %+v; state %q, why %q\n%s", o, want, s.State, s.Why, r.to.dump())
				}
				if n := r.to.count(); n > 5 {
					t.Errorf("%d requests in 20 s", n)
				}
				r.end()
			})
		})
	}
}

// TestStopWhileSamplesWaitForAClock: a stop while samples wait for the receiver's clock takes no time and loses no
// sample; earlier samples are delivered.
func TestStopWhileSamplesWaitForAClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{latency: time.Millisecond}).timed()
		off := -time.Hour
		slowClock(r, &off)
		r.time = time.Now().Add(-2 * time.Hour).UnixMilli()
		r.round(10)
		r.time = time.Now().UnixMilli()
		r.round(10)
		r.start()
		time.Sleep(10 * time.Second)
		if o := r.log.outcome(); o.Delivered != 10 || o.Lost() != 0 {
			t.Errorf("outcomes %+v", o)
		}
		if d := r.end(); d > 2*time.Second {
			t.Errorf("the stop took %s", d)
		}
		r.to.set(func() { off = 0 })
		r.start()
		r.drained(time.Minute)
		r.end()
		r.verify()
	})
}

// TestQuestionForTheTimeIsDenied: with on_refusal: drop a 4xx does not hold the target, even if it answers the sample
// that asks for its time.
func TestQuestionForTheTimeIsDenied(t *testing.T) {
	for _, on := range []config.Refusal{config.RefusalHold, config.RefusalDrop} {
		t.Run(string(on), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, slow, asked := newRig(t, &fakeReceiver{latency: 5 * time.Millisecond}).timed(), false, 0
				r.cfg.Target.OnRefusal, r.cfg.Metadata.Send = on, false
				r.to.script = func(q fakeRequest) (client.Answer, bool) {
					if !slow {
						a := r.to.stores(q)
						a.Date = time.Now()
						return a, true
					}
					if len(q.samples) == 1 {
						asked++
					}
					return client.Answer{Status: 403, Date: time.Now().Add(-time.Hour)}, true
				}
				r.start()
				r.time = time.Now().UnixMilli()
				r.round(10)
				r.drained(time.Minute)
				r.to.change(func() { slow = true })
				r.q.clock.Told(time.Now().Add(-time.Hour), false)
				r.time = time.Now().UnixMilli()
				r.round(10)
				time.Sleep(10 * time.Minute)
				if held := r.q.gate.View().State == gate.Held; held != (on == config.RefusalHold) || asked == 0 {
					t.Errorf("held %t after %d questions", held, asked)
				}
				r.end()
			})
		})
	}
}
