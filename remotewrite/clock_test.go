package remotewrite

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
)

// TestFutureEndsWithTheWrongClock: a receiver's clock is wrong for a while. Once it is right again, new samples are
// delivered, and so are the earlier ones that were not dropped.
func TestFutureEndsWithTheWrongClock(t *testing.T) {
	for _, on := range []config.OnFuture{config.FutureWait, config.FutureDrop} {
		t.Run(string(on), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { futureEnds(t, on) }) })
	}
}

func futureEnds(t *testing.T, on config.OnFuture) {
	off := time.Duration(0)
	r := newRig(t, &fakeReceiver{}).timed()
	r.to.script = func(q fakeRequest) (client.Answer, bool) {
		a := r.to.answerPlain(q)
		a.Date = time.Now().Add(off)
		return a, true
	}
	r.cfg.Metadata.Send, r.cfg.Target.OnFuture = false, on
	r.start()
	for i := range 120 {
		switch i {
		case 10:
			r.to.change(func() { off = -time.Hour })
		case 60:
			r.to.change(func() { off = 0 })
		}
		r.time = time.Now().UnixMilli()
		r.round(10)
		time.Sleep(time.Second)
	}
	r.drained(time.Minute)
	r.end()
	o := r.log.outcome()
	if n := o.Dropped[queue.Future]; on == config.FutureDrop && (n < 400 || n > 900) || on == config.FutureWait && (n > 0 || o.Delivered != 1200) {
		t.Errorf("outcomes %+v, on_future: drop wants about 50 to 80 rounds of 10 dropped: the clock was wrong for 50 s", o)
	}
	if n := r.to.empties(); n == 0 || n > 5 {
		t.Errorf("%d empty writes to ask for the time in 120 s", n)
	}
}

// TestWhoTellsTime: the time in a gateway's answer is not the target's. At a target that no longer sends its time, no
// sample counts as ahead.
func TestWhoTellsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		date, status := time.Now().Add(-time.Hour), http.StatusBadGateway
		r := newRig(t, &fakeReceiver{}).timed()
		r.to.script = func(q fakeRequest) (client.Answer, bool) {
			if status != 0 {
				return client.Answer{Status: status, Date: date}, true
			}
			a := r.to.answerPlain(q)
			a.Date = date
			return a, true
		}
		r.cfg.Target.OnFuture = config.FutureDrop
		r.start()
		r.time = time.Now().UnixMilli()
		r.round(10)
		for _, code := range []int{502, 302, 401} {
			r.to.change(func() { status = code })
			time.Sleep(20 * time.Second)
		}
		r.to.change(func() { status, date = 0, time.Now() })
		r.drained(2 * time.Minute)
		if o := r.log.outcome(); o.Delivered != 10 {
			t.Errorf("outcomes %+v, want all delivered", o)
		}
		// Now the target itself tells a wrong time; then it tells none.
		r.to.change(func() { date = time.Now().Add(-time.Hour) })
		r.round(1) // learns it
		r.drained(time.Minute)
		r.time = time.Now().UnixMilli()
		r.round(10)
		time.Sleep(20 * time.Second)
		if o := r.log.outcome(); o.Dropped[queue.Future] != 10 {
			t.Errorf("outcomes %+v, want ten dropped as ahead of the target", o)
		}
		r.to.change(func() { date = time.Time{} })
		time.Sleep(time.Minute)
		r.time = time.Now().UnixMilli()
		r.round(10)
		r.drained(time.Minute)
		r.end()
		if o := r.log.outcome(); o.Delivered != 21 {
			t.Errorf("outcomes %+v, want the last ten delivered", o)
		}
	})
}

// TestAskingForTheTimeEnds: a target fails at empty writes, but accepts data: the questions for its time end.
func TestAskingForTheTimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		off := -time.Hour
		r := newRig(t, &fakeReceiver{}).timed()
		r.to.script = func(q fakeRequest) (client.Answer, bool) {
			a := client.Answer{Status: 503}
			if len(q.samples) > 0 {
				a = r.to.answerPlain(q)
			}
			a.Date = time.Now().Add(off)
			return a, true
		}
		r.time = time.Now().UnixMilli()
		r.start()
		r.round(10)
		time.Sleep(10 * time.Second)
		r.to.change(func() { off = 0 })
		time.Sleep(time.Minute)
		r.time = time.Now().UnixMilli()
		r.round(10)
		r.drained(5 * time.Minute)
		r.end()
		if o := r.log.outcome(); o.Delivered != 20 {
			t.Errorf("outcomes %+v, want all delivered\n%s", o, r.to.dump())
		}
	})
}

// change changes the state that the script uses.
func (r *fakeReceiver) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// empties counts the empty writes.
func (r *fakeReceiver) empties() (n int) {
	for _, q := range r.log() {
		if len(q.samples) == 0 {
			n++
		}
	}
	return n
}

// answerPlain is the answer without the script.
func (r *fakeReceiver) answerPlain(q fakeRequest) client.Answer {
	script := r.script
	r.script = nil
	defer func() { r.script = script }()
	return r.answer(q)
}

// TestAgeIsByTheTargetsClock: the host's clock was set a year ahead or back during an outage: the age of samples logged
// before is judged by the target's clock.
func TestAgeIsByTheTargetsClock(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, tc := range []struct {
		name      string
		host      time.Duration // the host's clock minus the target's
		tells     bool
		delivered uint64
	}{
		{"host a year ahead", year, true, 20},
		{"host right", 0, true, 20},
		{"host in 1970", -30 * year, true, 20},
		{"target does not tell, host a year ahead", year, false, 0},
		{"target does not tell, host right", 0, false, 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := false
				r := newRig(t, &fakeReceiver{}).timed()
				r.to.script = func(q fakeRequest) (client.Answer, bool) {
					if !up {
						return client.Answer{Err: errDown}, true
					}
					a := r.to.answerPlain(q)
					if tc.tells {
						a.Date = time.Now().Add(-tc.host)
					}
					return a, true
				}
				r.cfg.Queue.SampleAgeLimit = model.Duration(10 * time.Minute)
				r.start()
				r.time = time.Now().Add(-tc.host).UnixMilli()
				r.round(10)
				time.Sleep(2 * time.Minute)
				r.round(10)
				if o := r.log.outcome(); o.Sum() != 0 {
					t.Errorf("outcomes %+v of a target that nobody has heard of", o)
				}
				r.to.change(func() { up = true })
				r.drained(time.Minute)
				r.end()
				if o := r.log.outcome(); o.Delivered != tc.delivered || o.Dropped[queue.TooOld] != 20-tc.delivered {
					t.Errorf("outcomes %+v, want %d delivered\n%s", o, tc.delivered, r.to.dump())
				}
			})
		})
	}
}

// TestFutureBacklogOfAnEarlierProcess: a backlog has samples of a future time, after the clock was corrected: a new
// process asks for the time before it sends any of them.
func TestFutureBacklogOfAnEarlierProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &fakeReceiver{}).timed()
		r.to.script = func(q fakeRequest) (client.Answer, bool) {
			for _, s := range q.samples {
				if s.t > time.Now().Add(time.Hour).UnixMilli() {
					t.Errorf("sent %+v", s)
				}
			}
			a := r.to.answerPlain(q)
			a.Date = time.Now()
			return a, true
		}
		r.time = time.Now().Add(365 * 24 * time.Hour).UnixMilli()
		r.round(10)
		r.time = time.Now().UnixMilli()
		r.round(10)
		r.start()
		r.drained(time.Minute)
		r.end()
		if o := r.log.outcome(); o.Delivered != 10 || o.Dropped[queue.Future] != 10 {
			t.Errorf("outcomes %+v, want ten delivered, ten of the future\n%s", o, r.to.dump())
		}
	})
}

// TestFutureIsNotSentByTheShardThatDidNotAsk: all shards have samples of a future time, at a target that has not sent
// its time for minutes. Whichever shard asks for it, with whatever request, no shard sends a future sample. The target
// accepts data again, although its database may refuse a sample that it accepted before.
func TestFutureIsNotSentByTheShardThatDidNotAsk(t *testing.T) {
	const askFor = 30 * time.Second // as in package clock
	for _, shards := range []int{1, 8} {
		for _, away := range []time.Duration{askFor / 2, 2 * askFor, 2*askFor + 7*time.Second, 20 * askFor} {
			for _, emptyFails := range []bool{false, true} {
				for _, again := range []int{204, 400} {
					t.Run(fmt.Sprintf("%d shards, away for %s, empty writes fail=%t, a sample again is answered %d", shards, away, emptyFails, again), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { futureAfterOutage(t, shards, away, emptyFails, again) })
					})
				}
			}
		}
	}
}

func futureAfterOutage(t *testing.T, shards int, away time.Duration, emptyFails bool, again int) {
	r := newRig(t, &fakeReceiver{latency: 20 * time.Millisecond, anyOrder: true}).timed()
	r.cfg.Queue.MinShards, r.cfg.Queue.MaxShards, r.cfg.Queue.MaxSamplesPerSend, r.cfg.Metadata.Send = shards, shards, 10, false
	down, began, ahead := false, time.Now(), 0
	r.to.script = func(q fakeRequest) (client.Answer, bool) {
		if down || emptyFails && len(q.samples) == 0 && time.Since(began) > time.Second {
			return client.Answer{Status: 503}, true
		}
		for _, s := range q.samples {
			if s.t > time.Now().Add(time.Hour).UnixMilli() {
				ahead++
			}
		}
		a := client.Answer{Status: again}
		if len(q.samples) != 1 || again == 204 {
			a = r.to.answerPlain(q)
		}
		a.Date = time.Now()
		return a, true
	}
	r.start()
	r.time = time.Now().UnixMilli()
	r.round(80)
	r.drained(time.Minute)
	r.to.change(func() { down = true })
	time.Sleep(time.Minute)
	r.time = time.Now().Add(365 * 24 * time.Hour).UnixMilli()
	r.round(80)
	r.round(80)
	time.Sleep(away)
	r.to.change(func() { down = false })
	r.drained(20 * time.Minute)
	r.end()
	if o := r.log.outcome(); o.Delivered != 80 || o.Dropped[queue.Future] != 160 || ahead > 0 {
		t.Errorf("outcomes %+v, want 160 dropped as of the future; %d of them were sent", o, ahead)
	}
}

// TestFutureIsNeverSentFirst: the host's clock is two hours ahead from the start. If the target sends its time, no
// sample of that time is ever sent, however the target answers empty writes. When the clock is corrected, and at
// targets that do not send their time, all samples are delivered.
func TestFutureIsNeverSentFirst(t *testing.T) {
	const ahead = 2 * time.Hour
	for _, tc := range []struct {
		name  string
		tells bool
		drop  bool                                                // on_refusal: drop
		empty func(n int, at time.Duration) (client.Answer, bool) // to the nth empty write
		all   func(at time.Duration) (client.Answer, bool)        // to everything
		safe  bool                                                // the target's time can be known
		begin time.Duration                                       // latest time of the first sample, where the time can be known
	}{
		{name: "takes empty writes", tells: true, safe: true},
		{name: "does not tell", begin: time.Second},
		{name: "refuses empty writes", tells: true, safe: true,
			empty: func(int, time.Duration) (client.Answer, bool) { return client.Answer{Status: 400}, true }},
		{name: "refuses empty writes, does not tell", begin: time.Second,
			empty: func(int, time.Duration) (client.Answer, bool) { return client.Answer{Status: 400}, true }},
		{name: "forbids empty writes", tells: true, begin: 15 * time.Second,
			empty: func(int, time.Duration) (client.Answer, bool) { return client.Answer{Status: 403}, true }},
		{name: "forbids empty writes, drops", tells: true, drop: true, begin: time.Second,
			empty: func(int, time.Duration) (client.Answer, bool) { return client.Answer{Status: 403}, true }},
		{name: "fails at empty writes", tells: true, begin: time.Minute,
			empty: func(int, time.Duration) (client.Answer, bool) { return client.Answer{Status: 500}, true }},
		{name: "fails at the first", tells: true, safe: true,
			empty: func(n int, _ time.Duration) (client.Answer, bool) { return client.Answer{Status: 503}, n == 0 }},
		{name: "hangs up on empty writes", begin: 5 * time.Minute,
			empty: func(int, time.Duration) (client.Answer, bool) { return client.Answer{Err: errDown}, true }},
		{name: "is away at first", tells: true, safe: true,
			all: func(at time.Duration) (client.Answer, bool) { return client.Answer{Err: errDown}, at < 5*time.Minute }},
		{name: "is busy at first", tells: true, safe: true,
			all: func(at time.Duration) (client.Answer, bool) { return client.Answer{Status: 503}, at < 10*time.Second }},
		{name: "token expired at first", tells: true, safe: true,
			all: func(at time.Duration) (client.Answer, bool) { return client.Answer{Status: 401}, at < 50*time.Second }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, n, begin, first := newRig(t, &fakeReceiver{anyOrder: true}).timed(), 0, time.Now(), time.Duration(-1)
				r.to.script = func(q fakeRequest) (client.Answer, bool) {
					at := time.Since(begin)
					if tc.all != nil {
						if a, ok := tc.all(at); ok {
							return a, true
						}
					}
					if len(q.samples) == 0 && tc.empty != nil {
						if a, ok := tc.empty(n, at); ok {
							n++
							if tc.tells {
								a.Date = time.Now()
							}
							return a, true
						}
					}
					a := r.to.answerPlain(q)
					if tc.tells {
						a.Date = time.Now()
					}
					if len(q.samples) > 0 && first < 0 {
						first = at
					}
					for _, s := range q.samples {
						if tc.safe && s.t > time.Now().Add(10*time.Minute).UnixMilli() {
							t.Errorf("after %s %+v is sent", at, s)
						}
					}
					return a, true
				}
				r.cfg.Metadata.Send = false
				if tc.drop {
					r.cfg.Target.OnRefusal = config.RefusalDrop
				}
				r.start()
				for i := range 90 {
					r.time = time.Now().UnixMilli()
					if i < 80 {
						r.time += ahead.Milliseconds()
					}
					r.round(10)
					time.Sleep(5 * time.Second)
				}
				r.drained(10 * time.Minute)
				r.end()
				o := r.log.outcome()
				if tc.safe && (o.Dropped[queue.Future] != 800 || o.Delivered != 100) {
					t.Errorf("outcomes %+v, want 800 dropped as ahead, 100 delivered", o)
				}
				if !tc.safe && (first < 0 || first > tc.begin+2*time.Second) {
					t.Errorf("the first samples are sent after %s, want at most %s; outcomes %+v\n%s", first, tc.begin, o, r.to.dump()[:min(3000, len(r.to.dump()))])
				}
				if !tc.tells && o.Dropped[queue.Future] > 0 {
					t.Errorf("outcomes %+v at a target that does not tell the time", o)
				}
			})
		})
	}
}
