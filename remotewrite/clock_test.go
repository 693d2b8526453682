package remotewrite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/remotewrite/client"
	"hwsagent/wal/queue"
)

// dates adds the time of a receiver's clock to each answer. Samples that are ahead of it by more than ten minutes are refused, in
// Prometheus' words or in unknown ones.
func dates(r *rig, off *time.Duration, words string) {
	r.to.script = func(q fakeRequest) (client.Answer, bool) {
		at := time.Now().Add(*off)
		a := client.Answer{Status: 400, Text: words}
		if !slices.ContainsFunc(q.samples, func(s smp) bool { return s.t > at.Add(10*time.Minute).UnixMilli() }) {
			a = r.to.answerPlain(q)
		}
		a.Date = at
		return a, true
	}
}

// TestSlowReceiverClock: a receiver's clock is eleven minutes slow, from the start or later: the target is held and says why, no sample is
// dropped, and all arrive when the clock is right again.
func TestSlowReceiverClock(t *testing.T) {
	for _, words := range []string{"out of bounds: timestamp is too far in the future", "bad time"} {
		for _, fromStart := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, from the start %t", words, fromStart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, &fakeReceiver{latency: 5 * time.Millisecond}).timed()
					off := time.Duration(0)
					dates(r, &off, words)
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
					if o.GivenUp() != 0 || s.State != StateHeld || !s.AwaitsClock || !strings.Contains(s.Why, "the receiver's clock is 11m behind") || s.Failure.Kind != client.AwaitsClock {
						t.Errorf("outcomes %+v, state %q, why %q, %+v", o, s.State, s.Why, s.Failure)
					}
					r.to.set(func() { off = 0 })
					r.drained(2 * time.Minute)
					if s := r.q.Status(); s.State != StateOK || s.Why != "" || s.AwaitsClock {
						t.Errorf("the clock is right: state %q, why %q", s.State, s.Why)
					}
					r.end()
					r.everySampleIsStored()
				})
			})
		}
	}
}

// TestRightedHostClock: this host's clock was ahead, and the target is held for the samples of then. Once the clock is right, they are
// ahead of both clocks: they are dropped as future, and the target gets the others.
func TestRightedHostClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{}).timed()
		off := 2 * time.Hour // the receiver's clock is wrong instead: the bubble's cannot be set
		r.to.script = func(q fakeRequest) (client.Answer, bool) {
			a := client.Answer{Status: 400, Text: "out of bounds: timestamp is too far in the future"}
			if !slices.ContainsFunc(q.samples, func(s smp) bool { return s.t > time.Now().Add(10*time.Minute).UnixMilli() }) {
				a = r.to.answerPlain(q)
			}
			a.Date = time.Now().Add(off)
			return a, true
		}
		r.log.append(smp{"first", time.Now().UnixMilli(), 1})
		r.start()
		r.drained(time.Minute)
		r.log.append(smp{"first", time.Now().Add(2 * time.Hour).UnixMilli(), 2}, smp{"second", time.Now().Add(2 * time.Hour).UnixMilli(), 2})
		time.Sleep(time.Minute)
		if s := r.q.Status(); s.State != StateHeld || !s.AwaitsClock {
			t.Errorf("state %q, why %q", s.State, s.Why)
		}
		r.to.set(func() { off = 0 })
		r.log.append(smp{"first", time.Now().UnixMilli(), 3}, smp{"second", time.Now().UnixMilli(), 3})
		r.drained(5 * time.Minute)
		if s, o := r.q.Status(), r.log.outcome(); s.State != StateOK || o.Dropped[queue.Future] != 2 || o.Delivered != 3 || o.Sum() != 5 {
			t.Errorf("state %q, why %q, outcomes %+v", s.State, s.Why, o)
		}
		r.end()
	})
}

// TestWhichTimesAreDropped: a sample is dropped for its time if it is out of bounds by this host's clock and by the receiver's; before the first answer none
// is, and without a Date no sample is ahead.
func TestWhichTimesAreDropped(t *testing.T) {
	for _, tc := range []struct {
		name        string
		at          time.Duration // the sample's time minus this host's clock
		off         time.Duration // the receiver's clock minus this host's
		silent      bool          // the answers have no date
		future, old uint64
	}{
		{name: "ahead of both", at: 2 * time.Hour, future: 1},
		{name: "ahead of this host's clock only", at: 2 * time.Hour, off: 2 * time.Hour},
		{name: "ahead of the receiver's only", at: 0, off: -time.Hour},
		{name: "ahead, a silent receiver", at: 2 * time.Hour, silent: true},
		{name: "old by both", at: -2 * time.Hour, old: 1},
		{name: "old by this host's clock only", at: -2 * time.Hour, off: -2 * time.Hour},
		{name: "old by the receiver's only", at: 0, off: 2 * time.Hour},
		{name: "old, a silent receiver", at: -2 * time.Hour, silent: true, old: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, &fakeReceiver{}).timed()
				r.cfg.Queue.SampleAgeLimit = model.Duration(time.Hour)
				r.to.script = func(q fakeRequest) (client.Answer, bool) {
					a := r.to.answerPlain(q)
					if !tc.silent {
						a.Date = time.Now().Add(tc.off)
					}
					return a, true
				}
				far := func(series string) smp { return smp{series, time.Now().Add(tc.at).UnixMilli(), 1} }
				r.log.append(far("first"))
				r.start()
				r.drained(time.Minute)
				if o := r.log.outcome(); o.Delivered != 1 {
					t.Errorf("before the first answer: %+v", o)
				}
				r.log.append(far("second"))
				r.drained(time.Minute)
				r.end()
				if o := r.log.outcome(); o.Dropped[queue.Future] != tc.future || o.Dropped[queue.TooOld] != tc.old || o.Sum() != 2 {
					t.Errorf("outcomes %+v", o)
				}
			})
		})
	}
}

// TestSkewWords: the difference is in minutes if it is long, without zero parts.
func TestSkewWords(t *testing.T) {
	for skew, want := range map[time.Duration]string{
		11 * time.Minute:             "the receiver's clock is 11m behind this host's",
		-time.Hour:                   "the receiver's clock is 1h ahead of this host's",
		2*time.Hour + 5*time.Minute:  "the receiver's clock is 2h5m behind this host's",
		90*time.Second + time.Second: "the receiver's clock is 1m31s behind this host's",
		0:                            "the receiver's clock is 0s behind this host's",
	} {
		if got := skewWords(skew); got != want {
			t.Errorf("%s: %q, want %q", skew, got, want)
		}
	}
}
