//go:build linux

package crashlab

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

// everCalls is a plan's To that no run reaches.
const everCalls = 1 << 30

// TestStickyErrors has the operating system refuse calls for a while: a quota, a disk
// that became read-only, one that does not keep what it takes, one that does nothing.
func TestStickyErrors(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	for _, c := range []struct {
		name, ops string
		errno     syscall.Errno
	}{
		{"quota", "write truncate create", syscall.EDQUOT},
		{"read-only", "", syscall.EROFS},
		{"fsync fails", "fsync", syscall.EIO},
		{"everything fails", "", syscall.EIO},
	} {
		for _, sync := range []string{"1s", "always"} {
			t.Run(c.name+",sync="+sync, func(t *testing.T) {
				t.Parallel()
				rnd := seeded(t)
				l := newLab(t, options{wal: "sync: " + sync + ", max_bytes: 1MiB, min_free_bytes: 1MiB"})
				tr := l.trace(plan{Below: l.storage})
				l.ready()
				l.arrived()
				faults := amount(1, 20)
				for range faults {
					time.Sleep(between(rnd, 0, 600)) // where in a segment it happens
					before := len(tr.events())
					l.suffer(func() {
						tr.change(plan{Below: l.storage, Ops: c.ops, From: 1, To: everCalls, Act: actFail, Errno: int(c.errno)})
					}, func() { tr.change(plan{Below: l.storage}) })
					if fired := len(tr.events()) - before; fired == 0 {
						t.Error("no call was refused")
					}
				}
				l.acked(3)
				r, g := l.settle()
				l.exact(r, g)
				results.Add(t, results.Line{
					What: c.name + " for a while, sync " + sync, Count: faults, Lost: int(r.Missing), Seed: seed(t), Figures: l.figures.values(l),
				})
			})
		}
	}
}

// TestEveryErrorOnce fails every single call that changes a file once, or cuts a write
// short. An agent that cannot start says why; one that runs goes on and loses nothing.
// The short tier takes a random sample.
func TestEveryErrorOnce(t *testing.T) {
	endToEnd(t)
	every, writes := places(t, ""), places(t, "write") // while no other test runs
	t.Parallel()
	rnd := seeded(t)
	type fault struct {
		place
		ops, act string
	}
	var all []fault
	for _, at := range every {
		all = append(all, fault{at, "", actFail})
	}
	for _, at := range writes {
		all = append(all, fault{at, "write", actShort})
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:amount(min(len(all), 8), len(all))]
	var fired, refusedToStart, lost atomic.Int64
	t.Run("faults", func(t *testing.T) {
		for _, f := range all {
			t.Run(fmt.Sprintf("%s %s %s", f.act, f.ops, f.place), func(t *testing.T) {
				t.Parallel()
				l := scripted(t, f.sync)
				l.meet(f.place, plan{Ops: f.ops, Act: f.act, Errno: int(syscall.EIO), Fraction: 0.6})
				for _, e := range l.tracer.events() {
					fired.Add(1)
					t.Logf("%s: %s of %s", f.act, e.Op, e.Path)
				}
				l.goesOn(f.ending, &refusedToStart)
				l.acked(3)
				r, g := l.settle()
				lost.Add(int64(r.Missing))
				l.complete(r, g)
				l.sound(r, g)
				if r.Unacknowledged != 0 && !f.ending {
					t.Errorf("%d samples arrived that the log had refused", r.Unacknowledged)
				}
			})
		}
	})
	results.Add(t, results.Line{
		What: "every system call fails once, every write is cut short", Count: int(fired.Load()), Lost: int(lost.Load()), Seed: seed(t),
		Figures: map[string]float64{"agents_that_refused_to_start": float64(refusedToStart.Load())},
	})
	t.Logf("%d faults fired, of %d; %d agents refused to start and said why", fired.Load(), len(all), refusedToStart.Load())
	if int(fired.Load()) < len(all)*9/10 {
		t.Errorf("only %d of %d faults fired", fired.Load(), len(all))
	}
}

// goesOn has the agent run after one error: it did not end for it, unless it could not
// even start and said why, or was told to.
func (l *lab) goesOn(told bool, refused *atomic.Int64) {
	l.t.Helper()
	switch {
	case told:
		l.run()
	case l.began():
		l.ready()
	case strings.Contains(l.tail(3), "input/output error"):
		refused.Add(1)
		l.run()
	default:
		l.t.Fatalf("the agent ended for one error:\n%s", l.tail(20))
	}
}

// began waits until the agent works, or is gone without ever having worked.
func (l *lab) began() bool {
	l.t.Helper()
	eventually(l.t, 20*time.Second, func() string {
		if l.gone() || l.witness.lastAcked() > 0 {
			return ""
		}
		return "the agent neither works nor ends"
	})
	return l.witness.lastAcked() > 0
}

// TestSlowDisk has every fsync take five seconds. Under `sync: 1s` no probe waits for
// it; under `sync: always` a probe waits with one round, and those that it misses
// meanwhile are counted.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"1s", "always"} {
		t.Run("sync="+sync, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, options{wal: "sync: " + sync + ", min_free_bytes: 1MiB"})
			tr := l.trace(plan{Below: l.storage})
			l.ready()
			l.arrived()
			from, acked, tried := time.Now(), l.witness.lastAcked(), l.journal().Tried
			tr.change(plan{Below: l.storage, Ops: "fsync", From: 1, To: everCalls, Act: actDelay, Delay: 5 * time.Second})
			time.Sleep(7 * time.Second) // longer than one fsync, so that the next is met too
			end := time.Now()
			rounds, began := l.witness.lastAcked()-acked, l.journal().Tried-tried
			tr.change(plan{Below: l.storage})
			if len(tr.events()) == 0 {
				t.Fatal("no fsync was slow")
			}
			if sync == "1s" {
				l.figures.slip = l.witness.gap(from, end) - l.interval
				if slip, limit := l.figures.slip, l.slipLimit(); slip > limit {
					t.Errorf("a round began %s late, more than %s", slip, limit)
				}
				if rounds+3 < began { // how many begin is the machine's doing too
					t.Errorf("only %d of the %d rounds that began were acknowledged", rounds, began)
				}
			}
			l.healed(end.Add(5 * time.Second)) // the last slow one ends then
			due, skipped := uint64(time.Since(from)/l.interval), l.canary().Skipped
			if began = l.journal().Tried - tried; began+skipped+3 < due {
				t.Errorf("%d rounds were due, %d began and %d were counted as skipped", due, began, skipped)
			}
			t.Logf("%d rounds acknowledged while fsync was slow; of %d due in all, %d were skipped and counted", rounds, due, skipped)
			l.acked(3)
			r, g := l.settle()
			l.exact(r, g)
			f := l.figures.values(l)
			f["acknowledged_meanwhile"], f["due"] = float64(rounds), float64(due)
			results.Add(t, results.Line{What: "every fsync takes 5 s, sync " + sync, Count: len(tr.events()), Lost: int(r.Missing), Figures: f})
		})
	}
}
