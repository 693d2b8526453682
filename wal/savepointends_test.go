package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/queue"
)

// registryOf is a registry of those targets, durable in both files. The n-th has delivered n samples.
func registryOf(t *testing.T, dir *memDir, names ...string) *targets {
	t.Helper()
	ts := memTargets(t, dir, targetsOptions{})
	for i, name := range names {
		ts.set(name, newTarget(ts.store, name, queue.Stored{Savepoint: queue.Savepoint{Outcome: queue.Outcome{Delivered: uint64(i + 1)}}}))
	}
	if err := ts.begin(Mark{}); err != nil {
		t.Fatal(err)
	}
	return ts
}

// A name that a target had before it was renamed or dropped may be that of another one at once: that one stays, whatever crash
// comes while the next files are begun, and so does the one that was renamed.
func TestNameIsUsedAgain(t *testing.T) {
	for _, end := range []string{"rename to b", "rename to 0", "drop"} {
		t.Run(end, func(t *testing.T) {
			dir := newMemDir()
			ts := registryOf(t, dir, "a")
			heir := ""
			var err error
			if end == "drop" {
				err = ts.removeLocked(ts.get("a"))
			} else {
				heir = end[len(end)-1:]
				err = ts.adopt("a", heir)
			}
			if err != nil {
				t.Fatal(err)
			}
			again := newTarget(ts.store, "a", queue.Stored{Savepoint: queue.Savepoint{Outcome: queue.Outcome{Delivered: 77}}})
			ts.set("a", again)
			if err := again.save(); err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(41, 0))
			moments := 0
			judge := func(op string) {
				if t.Failed() {
					return
				}
				lefts := []*memDir{dir.kill(), dir.crash()}
				for range 20 {
					lefts = append(lefts, dir.cut(rng))
				}
				for i, left := range lefts {
					moments++
					got := loadSavepoints(t, left)
					if st := got.byName["a"]; st == nil || st.Outcome.Delivered != 77 {
						t.Errorf("%s, crash %d: the new target is %+v", op, i, st)
					}
					if st := got.byName[heir]; heir != "" && (st == nil || st.Outcome.Delivered != 1) {
						t.Errorf("%s, crash %d: the renamed target is %+v", op, i, st)
					}
					if got.bad > 0 {
						t.Errorf("%s, crash %d: taken for damage", op, i)
					}
				}
			}
			dir.struck = func(op, _ string) error { judge(op); return nil }
			for range 3 {
				beginOther(t, ts)
			}
			dir.struck = nil
			judge("at last")
			if moments < 200 {
				t.Errorf("only %d crashes", moments)
			}
		})
	}
}

// A renaming that the disk refuses has not happened, or has as a whole, after a crash at any moment from then on: the queue is
// there, and so is the one that waits under the new name.
func TestRefusedRenameThenACrash(t *testing.T) {
	moments := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(42, seed))
		dir := newMemDir()
		dir.chance = rng
		ts := registryOf(t, dir, "a", "b")
		for _, name := range []string{"a", "b"} {
			ts.get(name).mu.Lock()
			ts.get(name).sp.Outcome = queue.Outcome{}
			if name == "a" {
				ts.get(name).paused = time.UnixMilli(1)
			}
			ts.get(name).version++
			ts.get(name).mu.Unlock()
		}
		if err := ts.save(); err != nil {
			t.Fatal(err)
		}
		failing(dir, "sync")
		if err := ts.adopt("a", "b"); !errors.Is(err, syscall.EIO) {
			t.Fatalf("the disk refuses: %v", err)
		}
		dir.fault = nil
		dir.struck = func(op, _ string) error {
			for _, left := range []*memDir{dir.kill(), dir.cut(rng), dir.cut(rng), dir.cut(rng)} {
				moments++
				got := loadSavepoints(t, left)
				queue := 0
				for _, st := range got.byName {
					if st.Paused == 1 {
						queue++
					}
				}
				if queue != 1 || got.byName["b"] == nil {
					t.Errorf("seed %d, %s: %d targets have the queue, of %v", seed, op, queue, savedIn(t, left))
				}
			}
			return nil
		}
		if err := ts.save(); err != nil {
			t.Fatal(err)
		}
		dir.struck = nil
	}
	if moments < 500 {
		t.Errorf("only %d crashes", moments)
	}
}

// Dropping and renaming do not wait for ever while targets make reservations without a pause.
func TestEndAmidReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fsync = 20 * time.Millisecond
		dir := &slowSyncs{Directory: newMemDir(), takes: fsync}
		ts, err := openTargets(dir, targetsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l := newPlan(1, 2, 5).log()
		if err := ts.enroll(l, []Enrolment{{Name: "orphan"}}); err != nil {
			t.Fatal(err)
		}
		var stop atomic.Bool
		var all sync.WaitGroup
		for i := range 100 {
			r := openTestReader(t, ts, l, fmt.Sprint(i), ReaderOptions{})
			all.Go(func() {
				for high := uint64(1000); !stop.Load(); high++ {
					time.Sleep(time.Millisecond)
					if err := r.Reserve(Mark{Commit: high, Log: r.Savepoint().Start.Log}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		time.Sleep(time.Second)
		for range 10 {
			began := time.Now()
			if err := ts.adopt("orphan", "renamed"); err != nil {
				t.Fatal(err)
			}
			if err := ts.adopt("renamed", "orphan"); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 2*6*fsync {
				t.Errorf("two renamings took %s", took)
			}
		}
		stop.Store(true)
		all.Wait()
		if err := ts.close(); err != nil {
			t.Error(err)
		}
	})
}
