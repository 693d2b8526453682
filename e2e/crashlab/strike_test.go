//go:build linux

package crashlab

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"hwsagent/e2e/results"
)

// script runs a life of the agent from its start to SIGTERM: long enough for segments
// to be sealed and removed and savepoints saved. A strike may end it at any point.
func (l *lab) script() {
	l.t.Helper()
	for end := time.Now().Add(1600 * time.Millisecond); !l.gone() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // the load's own time
	}
	if l.gone() {
		l.faults = append(l.faults, time.Now())
		return
	}
	_ = l.tracer.signal(15) // it may have been struck this very moment
	select {
	case <-l.done:
	case <-time.After(10 * time.Second):
		l.t.Fatalf("the agent did not end within 10 s of SIGTERM\n%s", l.tail(20))
	}
	l.faults = append(l.faults, time.Now())
}

// scripted is a lab whose log seals a segment about once a second.
func scripted(t *testing.T, sync string) *lab {
	return newLab(t, many(options{wal: "sync: " + sync + ", max_bytes: 1MiB, min_free_bytes: 1MiB"}, 100*time.Millisecond))
}

// TestKillAtEverySystemCall kills the agent before, after and in the middle of every
// single system call that changes its files, in its first life on an empty directory and
// again, at the same place, in the life that recovers from that. The short tier takes a
// random sample.
func TestKillAtEverySystemCall(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	rnd := seeded(t)
	type strike struct {
		call      int
		act, sync string
		fraction  float64
	}
	var all []strike
	for _, sync := range []string{"1s", "always"} {
		for call := range countCalls(t, sync).sum() {
			for _, act := range []string{actKillBefore, actKillAfter, actTear} {
				all = append(all, strike{call + 1, act, sync, rnd.Float64()})
			}
		}
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:tier(min(len(all), 12), len(all))]
	var fired, missed, lost atomic.Int64
	t.Run("strikes", func(t *testing.T) {
		for _, s := range all {
			t.Run(fmt.Sprintf("%s call %d, sync %s", s.act, s.call, s.sync), func(t *testing.T) {
				t.Parallel()
				l := scripted(t, s.sync)
				for range 2 {
					tr := l.trace(plan{Below: l.storage, From: s.call, To: s.call, Act: s.act, Fraction: s.fraction})
					l.script()
					calls := tr.calls()
					for _, e := range tr.events() {
						fired.Add(1)
						t.Logf("struck at %s of %s", e.Op, e.Path)
					}
					if len(tr.events()) == 0 {
						// Lives differ in length. There must have been no such call.
						missed.Add(1)
						if calls >= s.call {
							t.Errorf("call %d of %d was not struck", s.call, calls)
						}
					}
					l.offline()
				}
				l.run()
				l.acked(3)
				r, g := l.settle()
				lost.Add(int64(r.Missing))
				l.complete(r, g)
				l.sound(r, g)
			})
		}
	})
	t.Logf("%d strikes fired, of %d; %d lives ended before", fired.Load(), 2*len(all), missed.Load())
	results.Add(t, results.Line{
		What: "kill -9 before, in and after every system call, twice in a row", Count: int(fired.Load()), Lost: int(lost.Load()), Seed: seed(t),
		Figures: map[string]float64{"lives_that_ended_before": float64(missed.Load())},
	})
	if int(fired.Load()) < 2*len(all)*7/10 {
		t.Errorf("only %d of %d strikes fired", fired.Load(), 2*len(all))
	}
}

// calls counts the calls of a life by their kind.
type calls map[string]int

func (c calls) sum() (n int) {
	for _, k := range c {
		n += k
	}
	return n
}

// countCalls counts the calls of one scripted life, and proves that the tracer sees all
// kinds.
func countCalls(t *testing.T, sync string) calls {
	t.Helper()
	l := scripted(t, sync)
	tr := l.trace(plan{Below: l.storage, From: 1, To: everCalls, Act: actDelay})
	l.script()
	tr.calls()
	kinds := calls{}
	for _, e := range tr.events() {
		kinds[e.Op]++
	}
	t.Logf("a scripted life, sync %s: %d calls, %v", sync, kinds.sum(), kinds)
	for _, op := range []string{"write", "fsync", "create", "rename", "unlink", "mkdir"} {
		if kinds[op] == 0 {
			t.Errorf("the scripted life has no %s", op)
		}
	}
	return kinds
}
