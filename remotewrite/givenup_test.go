package remotewrite

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/givenup"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// TestGivenUpStaysGivenUp: samples that were given up stay given up when their window is read again, by the same
// process or the next one: they are not sent again, get no second letter, and do not count as stored although later
// samples were.
func TestGivenUpStaysGivenUp(t *testing.T) {
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			bad := func(s smp) bool { return s.series == "m0000" }
			to := &fakeReceiver{poison: bad, latency: 10 * time.Millisecond}
			r := newRig(t, to)
			r.cfg.Queue.MinShards, r.cfg.Queue.MaxShards = 2, 2
			down := true
			var mine []string // series on the shard of the bad sample: delivered; the other shard waits
			to.script = func(q fakeRequest) (client.Answer, bool) {
				if down && mine == nil && slices.ContainsFunc(q.samples, bad) {
					for _, s := range q.samples {
						mine = append(mine, s.series)
					}
				}
				other := slices.ContainsFunc(q.samples, func(s smp) bool { return !slices.Contains(mine, s.series) })
				return client.Answer{Status: 503}, down && other
			}
			r.round(30)
			r.start()
			r.until("the bad sample has its letter", time.Hour, func() bool { return len(r.letters.all()) == 1 })
			if r.log.pending() != 30 {
				t.Fatalf("%d samples wait, want all of the commit", r.log.pending())
			}
			refused := to.count()
			if restart {
				r.end()
				r.start()
			} else {
				r.until("the window is let go", 24*time.Hour, func() bool { return r.q.live.window.Load() == nil })
			}
			to.set(func() { down = false })
			r.drained(2 * time.Hour)
			r.end()
			if n := len(r.letters.all()); n != 1 {
				t.Errorf("restart %v: %d letters", restart, n)
			}
			if o := r.log.outcome(); o.Dropped[queue.Rejected] != 1 || o.Lost() != 1 {
				t.Errorf("restart %v: %+v", restart, o)
			}
			for _, q := range to.log()[refused:] {
				if slices.ContainsFunc(q.samples, bad) {
					t.Errorf("restart %v: the bad sample was sent again: %+v", restart, q)
				}
			}
			r.verify(smp{"m0000", r.time, float64(r.time)})
		})
	}
}

// TestLettersOfAnEarlierProcess: after a start each sample with a letter of its own has the outcome in the letter, and
// not that of its neighbours; a letter for several samples does not say which they were.
func TestLettersOfAnEarlierProcess(t *testing.T) {
	to := func(name string) *series {
		return newSeriesCache(labels.EmptyLabels(), nil).get(&wal.Series{Labels: labels.FromStrings("__name__", name)})
	}
	letter := func(name string, samples int, why queue.Reason) Letter {
		return Letter{Series: to(name).labels().String(), Timestamp: 7, Samples: samples, Reason: why.String()}
	}
	letters := &memLetters{letters: []Letter{
		letter("a", 0, queue.Rejected), letter("b", 1, queue.Unconfirmed), letter("c", 0, queue.Unconfirmed),
		letter("d", 9, queue.Unconfirmed), letter("e", 0, queue.TooOld),
	}}
	l := &lane{Queue: &Queue{letters: letters}}
	l.recall()
	why := func(name string, at int64) (queue.Reason, bool) {
		s := to(name)
		return l.givenUp.Why(1, givenup.Key{Hash: s.hash, T: at}, s.letterLabels, true)
	}
	for name, want := range map[string]queue.Reason{"a": queue.Rejected, "b": queue.Unconfirmed, "c": queue.Unconfirmed} {
		if got, ok := why(name, 7); !ok || got != want {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
	for _, name := range []string{"d", "e", "f"} {
		if got, ok := why(name, 7); ok {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, ok := why("a", 8); ok {
		t.Error("another sample of the series passes for it")
	}
}
