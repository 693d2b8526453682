package remotewrite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/client"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// namesIn returns n names, with a prefix, of series that are sent by the shard i of two.
func namesIn(i uint64, prefix string, n int) (names []string) {
	for k := 0; len(names) < n; k++ {
		name := fmt.Sprintf("%s%04d", prefix, k)
		if newSeriesCache(labels.EmptyLabels(), nil).get(&wal.Series{Labels: labels.FromStrings("__name__", name, "job", "test")}).hash%2 == i {
			names = append(names, name)
		}
	}
	return names
}

// TestProbeTakenBeforeWindowIsThrownAway: a probe that the target accepted counts as delivered, even if a later sample
// of its series was dropped in the same batch, and their window is discarded before the savepoint passes them: the
// later sample stays dropped, and the probe does not count as dropped.
func TestProbeTakenBeforeWindowIsThrownAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, stuck := namesIn(0, "bad", 4), namesIn(1, "stuck", 3)
		names := slices.Concat(bad, namesIn(0, "good", 3), stuck)
		isBad := func(s smp) bool { return strings.HasPrefix(s.series, "bad") }
		to := &fakeReceiver{latency: 10 * time.Millisecond, says: limitWords}
		to.poison = isBad
		waits, down := false, false
		to.script = func(q fakeRequest) (client.Answer, bool) {
			if down {
				return client.Answer{Err: errDown}, true
			}
			return client.Answer{Status: 503}, waits && slices.ContainsFunc(q.samples, func(s smp) bool { return strings.HasPrefix(s.series, "stuck") })
		}
		r := newRig(t, to)
		r.cfg.Queue.MinShards, r.cfg.Queue.MaxShards = 2, 2
		r.start()
		round := func() {
			r.time += 1000
			var ss []smp
			for _, name := range names {
				ss = append(ss, smp{name, r.time, float64(r.time)})
			}
			r.log.append(ss...)
		}
		quarantined := func() bool {
			st := r.q.Status().Quarantined
			return len(st) == 1 && st[0].Series == len(bad)
		}
		for n := 0; !quarantined(); n++ {
			if n == 60 {
				t.Fatalf("not in quarantine: %+v", r.q.Status().Quarantined)
			}
			round()
			time.Sleep(15 * time.Second)
		}
		time.Sleep(2 * time.Minute) // a probe is due
		r.drained(time.Minute)
		if !quarantined() {
			t.Fatalf("in quarantine: %+v", r.q.Status().Quarantined)
		}
		to.set(func() { to.poison, waits = nil, true })
		round()
		round()
		probes := func() (taken []smp) {
			to.set(func() {
				for s := range to.has {
					if isBad(s) {
						taken = append(taken, s)
					}
				}
			})
			return taken
		}
		r.until("a probe is taken", time.Minute, func() bool { return len(probes()) > 0 })
		to.set(func() { down = true })
		if got := probes(); len(got) != 1 || got[0].t != r.time-1000 || r.log.pending() != uint64(2*len(names)) {
			t.Fatalf("%v were taken and %d samples wait: want a probe of the first round of two", got, r.log.pending())
		}
		r.until("the window is let go", time.Hour, func() bool { return r.q.live.window.Load() == nil })
		to.set(func() { down, waits = false, false })
		r.drained(time.Hour)
		r.end()
		o := r.log.outcome()
		if taken := uint64(len(to.has)); o.Delivered+o.Dropped[queue.Resent] != taken || o.Dropped[queue.Rejected] != r.log.Head().Total-taken {
			t.Errorf("%d of %d samples were taken; outcomes %+v", taken, r.log.Head().Total, o)
		}
	})
}

// TestLettersOfWindowThatIsThrownAway: letters stand for every dropped sample, including samples that a discarded
// window had read but not sent.
func TestLettersOfWindowThatIsThrownAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := namesIn(1, "bad", 4)
		names := slices.Concat(bad, namesIn(0, "good", 3), namesIn(1, "stuck", 3))
		to := &fakeReceiver{latency: 10 * time.Millisecond, says: limitWords}
		to.poison = func(s smp) bool { return strings.HasPrefix(s.series, "bad") }
		waits, down := false, false
		to.script = func(q fakeRequest) (client.Answer, bool) {
			if down {
				return client.Answer{Err: errDown}, true
			}
			return client.Answer{Status: 503}, waits && slices.ContainsFunc(q.samples, func(s smp) bool { return strings.HasPrefix(s.series, "stuck") })
		}
		r := newRig(t, to)
		r.cfg.Queue.MinShards, r.cfg.Queue.MaxShards = 2, 2
		r.start()
		round := func() {
			r.time += 1000
			var ss []smp
			for _, name := range names {
				ss = append(ss, smp{name, r.time, float64(r.time)})
			}
			r.log.append(ss...)
		}
		for n := 0; len(r.q.Status().Quarantined) == 0 || r.q.Status().Quarantined[0].Series != len(bad); n++ {
			if n == 60 {
				t.Fatalf("not in quarantine: %+v", r.q.Status().Quarantined)
			}
			round()
			time.Sleep(15 * time.Second)
		}
		r.drained(time.Minute)
		to.set(func() { waits = true })
		round()
		time.Sleep(5 * time.Second) // the shard of the bad series has its batch
		round()
		last := r.time
		r.until("the other shard is past the next round", time.Minute, func() (is bool) {
			to.set(func() {
				for s := range to.has {
					is = is || s.t == last
				}
			})
			return is
		})
		to.set(func() { down = true })
		r.until("the window is let go", time.Hour, func() bool { return r.q.live.window.Load() == nil })
		to.set(func() { down, waits = false, false })
		r.drained(time.Hour)
		r.end()
		stand, dropped := 0, int(r.log.outcome().Dropped[queue.Rejected])
		for _, l := range r.letters.all() {
			stand += max(l.Samples, 1)
		}
		if stand != dropped {
			t.Errorf("letters stand for %d samples, %d were dropped", stand, dropped)
		}
	})
}

// TestProbeWhoseAnswerIsLost: a probe that was accepted, but whose answer was lost, is a sample in doubt like any
// other: it does not count as dropped, whether next its window is discarded, the target is held for refusing samples,
// or the target answers again.
func TestProbeWhoseAnswerIsLost(t *testing.T) {
	for name, next := range map[string]client.Answer{
		"then the target is down":    {Err: errDown},
		"then the target is held":    {Status: 400, Text: "no"},
		"then the target is well":    {},
		"then the target fails once": {Status: 503},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := []string{"bad0", "bad1", "bad2", "bad3", "good0", "good1", "good2"}
				isBad := func(s smp) bool { return strings.HasPrefix(s.series, "bad") }
				to := &fakeReceiver{latency: 10 * time.Millisecond, says: limitWords, poison: isBad, anyOrder: true}
				var lost []smp
				until := time.Time{} // the target answers next
				to.script = func(fakeRequest) (client.Answer, bool) { return next, time.Now().Before(until) }
				r := newRig(t, to)
				r.start()
				round := func() {
					r.time += 1000
					var ss []smp
					for _, name := range names {
						ss = append(ss, smp{name, r.time, float64(r.time)})
					}
					r.log.append(ss...)
				}
				for n := 0; len(r.q.Status().Quarantined) == 0 || r.q.Status().Quarantined[0].Series != 4; n++ {
					if n == 60 {
						t.Fatalf("not in quarantine: %+v", r.q.Status().Quarantined)
					}
					round()
					time.Sleep(15 * time.Second)
				}
				time.Sleep(2 * time.Minute) // a probe is due
				r.drained(time.Minute)
				before := r.log.Head().Total
				refused := r.log.outcome().Dropped[queue.Rejected]
				to.set(func() {
					to.poison = nil
					to.loseAnswer = func(q fakeRequest) bool {
						if len(lost) > 0 || len(q.samples) != 1 || !isBad(q.samples[0]) {
							return false
						}
						lost = q.samples
						if next.Status != 0 || next.Err != nil {
							until = time.Now().Add(10 * time.Minute)
						}
						if next.Status == 503 {
							until = time.Now().Add(time.Second)
						}
						return true
					}
				})
				round()
				round()
				r.until("the answer to a probe is lost", time.Minute, func() (is bool) {
					to.set(func() { is = len(lost) == 1 })
					return is
				})
				r.drained(time.Hour)
				r.end()
				o, taken := r.log.outcome(), uint64(0)
				for s := range to.has {
					if s.t > r.time-2000 {
						taken++
					}
				}
				if rejected := o.Dropped[queue.Rejected] - refused; rejected+taken != r.log.Head().Total-before {
					t.Errorf("%d of %d samples were taken, %v with its answer lost, and %d were rejected", taken, r.log.Head().Total-before, lost, rejected)
				}
			})
		})
	}
}
