//go:build linux

package crashlab

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

// place is a system call of a life: its number since the start, or since SIGTERM.
type place struct {
	call   int
	ending bool
	sync   string
}

func (p place) String() string {
	if p.ending {
		return fmt.Sprintf("call %d of the end, sync %s", p.call, p.sync)
	}
	return fmt.Sprintf("call %d, sync %s", p.call, p.sync)
}

// usualLife is long enough for segments to be sealed and removed and savepoints saved.
const usualLife = 1600 * time.Millisecond

// meet runs the agent under a tracer, for twenty seconds at most, until the plan has met the place. A plan with calls of its own keeps
// them. For a place at the agent's end, meet also ends the agent. The agent may be gone then.
func (l *lab) meet(at place, p plan) {
	l.t.Helper()
	if p.Below = l.storage; p.To == 0 {
		p.From, p.To = at.call, at.call
	}
	first := p
	if at.ending {
		first = plan{Below: l.storage}
	}
	tr := l.trace(first)
	for end := time.Now().Add(20 * time.Second); !l.gone() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // the load's own time
		if at.ending && l.witness.lastAcked() > 0 || len(tr.events()) > 0 {
			break
		}
	}
	if at.ending && !l.gone() {
		p.Anew = true
		tr.change(p)
		l.end()
	}
}

// end is SIGTERM for an agent that may be struck this very moment.
func (l *lab) end() {
	l.t.Helper()
	_ = l.tracer.signal(syscall.SIGTERM)
	l.wait()
}

// wait waits until the agent is gone, for ten seconds at most.
func (l *lab) wait() {
	l.t.Helper()
	select {
	case <-l.done:
	case <-time.After(10 * time.Second):
		l.t.Fatalf("the agent did not end within 10 s\n%s", l.tail(20))
	}
	l.faults = append(l.faults, time.Now())
}

// scripted returns a lab whose log seals a segment about once a second.
func scripted(t *testing.T, sync string) *lab {
	return newLab(t, many(options{wal: "sync: " + sync + ", max_bytes: 1MiB, min_free_bytes: 1MiB"}, 100*time.Millisecond))
}

// TestKillAtEverySystemCall kills the agent before, after and in the middle of every
// single system call that changes its files, in its first life on an empty directory and
// again, at the same place, in the life that recovers from that. The short tier takes a
// random sample.
func TestKillAtEverySystemCall(t *testing.T) {
	endToEnd(t)
	every := places(t, "") // while no other test runs
	t.Parallel()
	rnd := seeded(t)
	type strike struct {
		place
		act      string
		fraction float64
	}
	var all []strike
	for _, at := range every {
		for _, act := range []string{actKillBefore, actKillAfter, actTear} {
			all = append(all, strike{at, act, rnd.Float64()})
		}
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:amount(min(len(all), 12), len(all))]
	var fired, missed, lost atomic.Int64
	t.Run("strikes", func(t *testing.T) {
		for _, s := range all {
			t.Run(fmt.Sprintf("%s %s", s.act, s.place), func(t *testing.T) {
				t.Parallel()
				l := scripted(t, s.sync)
				for range 2 {
					l.meet(s.place, plan{Act: s.act, Fraction: s.fraction})
					tr := l.tracer
					if len(tr.events()) == 0 && !l.gone() {
						l.end()
					} else {
						l.wait()
					}
					calls := tr.calls()
					for _, e := range tr.events() {
						fired.Add(1)
						t.Logf("struck at %s of %s", e.Op, e.Path)
					}
					if len(tr.events()) == 0 {
						missed.Add(1) // an end does not always have as many calls
						if !s.ending || calls >= s.call {
							t.Errorf("%s was not struck, of %d calls", s.place, calls)
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
	if int(fired.Load()) < 2*len(all)*9/10 {
		t.Errorf("only %d of %d strikes fired", fired.Load(), 2*len(all))
	}
}

// calls counts the calls of a life by their kind.
type calls map[string]int

// places returns all calls of a scripted life, of some kind or of all, for each sync mode. In
// the short tier they do not depend on the machine, so that it has the same faults each
// time.
func places(t *testing.T, kind string) (all []place) {
	t.Helper()
	for _, sync := range []string{"1s", "always"} {
		life, end := countCalls(t, sync)
		n, m := life.of(kind), end.of(kind)
		if os.Getenv("HWSAGENT_TORTURE") == "" {
			n, m = 40, 4
		}
		for call := range n {
			all = append(all, place{call: call + 1, sync: sync})
		}
		for call := range m {
			all = append(all, place{call: call + 1, ending: true, sync: sync})
		}
	}
	return all
}

// of returns how many there are of a kind, of all kinds for "".
func (c calls) of(kind string) (n int) {
	for k, times := range c {
		if kind == "" || k == kind {
			n += times
		}
	}
	return n
}

// countCalls counts the calls of one scripted life, and those at the end of a shorter one: as short as that of an agent that is struck at
// its end. It proves that the tracer sees all kinds.
func countCalls(t *testing.T, sync string) (life, end calls) {
	t.Helper()
	every := plan{From: 1, To: everCalls, Act: actDelay}
	l := scripted(t, sync)
	every.Below = l.storage
	tr := l.trace(every)
	l.ready()
	time.Sleep(usualLife) // the load's own time
	life = byKind(tr.events())
	l.end()
	l = scripted(t, sync)
	l.meet(place{ending: true, sync: sync}, every)
	l.tracer.calls() // all events are there
	end = byKind(l.tracer.events())
	t.Logf("a scripted life, sync %s: calls %v, and at its end %v", sync, life, end)
	for _, op := range []string{"write", "fsync", "create", "unlink", "mkdir"} {
		if life[op]+end[op] == 0 {
			t.Errorf("the scripted life has no %s", op)
		}
	}
	return life, end
}

// byKind counts events by their calls.
func byKind(events []tracerEvent) calls {
	n := calls{}
	for _, e := range events {
		n[e.Op]++
	}
	return n
}
