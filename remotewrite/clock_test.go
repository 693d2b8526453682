package remotewrite

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal"
)

// A receiver whose clock is wrong for a while: when it is right again samples go through.
func TestFutureEndsWithTheWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		off := time.Duration(0)
		r := newRig(t, &fakeReceiver{})
		r.to.script = func(q fakeRequest) (Answer, bool) {
			a := r.to.answerPlain(q)
			a.Date = time.Now().Add(off)
			return a, true
		}
		r.cfg.Metadata.Send = false
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
		if n := o.Dropped[wal.Future]; n < 400 || n > 900 {
			t.Errorf("outcomes %+v, want about 50 to 80 rounds of 10 dropped: the clock was wrong for 50 s", o)
		}
		if n := r.to.empties(); n == 0 || n > 5 {
			t.Errorf("%d empty writes to ask for the time in 120 s", n)
		}
	})
}

// What a gateway says about the time is not the target's word; a target that stops telling
// the time has nothing ahead of it.
func TestWhoTellsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		date, status := time.Now().Add(-time.Hour), http.StatusBadGateway
		r := newRig(t, &fakeReceiver{})
		r.to.script = func(q fakeRequest) (Answer, bool) {
			if status != 0 {
				return Answer{Status: status, Date: date}, true
			}
			a := r.to.answerPlain(q)
			a.Date = date
			return a, true
		}
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
		if o := r.log.outcome(); o.Dropped[wal.Future] != 10 {
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

// A target that fails at empty writes, and takes data: asking for the time ends.
func TestAskingForTheTimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		off := -time.Hour
		r := newRig(t, &fakeReceiver{})
		r.to.script = func(q fakeRequest) (Answer, bool) {
			a := Answer{Status: 503}
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

// change changes what the script goes by.
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
func (r *fakeReceiver) answerPlain(q fakeRequest) Answer {
	script := r.script
	r.script = nil
	defer func() { r.script = script }()
	return r.answer(q)
}
