package wal

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/queue"
)

// renamed is a log with a target that has delivered the first of three commits and is no
// longer configured. The new name has no queue, or one of what came since.
func renamed(t *testing.T, saves *memDir, both bool) *Log {
	t.Helper()
	l := openLog(t, memOptions(t, newMemDir(), saves))
	if err := l.Enroll([]Enrolment{{Name: "old"}}); err != nil {
		t.Fatal(err)
	}
	r, err := l.Reader("old", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	commit := func(v float64) {
		if err := commitFloats(l, 3, int64(v), v); err != nil {
			t.Fatal(err)
		}
	}
	commit(1)
	deliver(t, r, 1)
	commit(2)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	list := []Enrolment{}
	if both {
		list = append(list, Enrolment{Name: "new"})
	}
	if err := l.Enroll(list); err != nil {
		t.Fatal(err)
	}
	commit(3)
	if err := l.targets.save(); err != nil {
		t.Fatal(err)
	}
	return l
}

// oneOwner checks what a later process makes of the savepoints that a crash left: the
// queue is there once, whole, and a new target may have the old name.
func oneOwner(t *testing.T, when string, saves *memDir, mark Mark) (owner string) {
	t.Helper()
	ts, err := openTargets(saves, targetsOptions{})
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	defer ts.close()
	owners := 0
	for name, tg := range ts.byName {
		l := tg.ledger(mark)
		if !l.Balanced() {
			t.Errorf("%s: %s has the account %+v", when, name, l)
		}
		if l.Delivered == 3 {
			if owners++; l.Pending != 6 || l.Appended != 9 {
				t.Errorf("%s: %s has the account %+v", when, name, l)
			}
			owner = name
		}
	}
	if owners != 1 {
		t.Errorf("%s: %d targets have the queue: %q", when, owners, savedIn(t, saves))
	}
	if err := ts.save(); err != nil {
		t.Fatal(err)
	}
	if owner == "new" {
		if slices.Contains(savedIn(t, saves), "old") {
			t.Errorf("%s: the old savepoint is still there", when)
		}
		// A target that gets the old name is its own, also for the process after this one.
		if tg, _, err := ts.findLocked(endOfLog{mark: mark}, "old", StartNow); err != nil || tg.save() != nil {
			t.Fatal(err)
		}
		again, err := openTargets(saves.crash(), targetsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer again.close()
		if old := again.byName["old"]; old == nil || old.ledger(mark).Appended != 0 || again.byName["new"] == nil {
			t.Errorf("%s: who got the old name has no place of its own after a power cut", when)
		}
	}
	return owner
}

// endOfLog is a log of which nothing but the end is asked.
type endOfLog struct {
	tail
	mark Mark
}

func (e endOfLog) head() Mark { return e.mark }

// TestAdoptCrashes ends the process, or cuts the power, after each operation on the disk
// that a renaming makes, and while it is being finished by the process after: one of the
// two names has the queue, whole.
func TestAdoptCrashes(t *testing.T) {
	const seed = 7
	for _, both := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			saves := newMemDir()
			l := renamed(t, saves, both)
			defer l.Close()
			type left struct {
				when string
				dir  *memDir
			}
			var lefts []left
			note := func(dir *memDir, before string) {
				n := 0
				dir.struck = func(op, name string) error {
					n++
					when := fmt.Sprintf("%s, operation %d: %s %s", before, n, op, name)
					lefts = append(lefts, left{when + ", killed", dir.kill()}, left{when + ", power cut", dir.crash()}, left{when + ", torn", dir.cut(rng)})
					return nil
				}
			}
			note(saves, fmt.Sprintf("both=%v", both))
			if err := l.Adopt("old", "new"); err != nil {
				t.Fatal(err)
			}
			saves.struck = nil
			if len(lefts) < 9 {
				t.Fatalf("only %d crashes", len(lefts))
			}
			// The processes after these crash, too.
			for _, first := range lefts {
				again := first.dir.kill()
				note(again, first.when)
				ts, err := openTargets(again, targetsOptions{})
				if err == nil {
					err = ts.begin(l.head())
				}
				if err != nil {
					t.Fatal(err)
				}
				again.struck = nil
				if err := ts.close(); err != nil {
					t.Fatal(err)
				}
			}
			owners := map[string]int{}
			for _, c := range lefts {
				owners[oneOwner(t, c.when, c.dir, l.head())]++
			}
			if oneOwner(t, "at last", saves.crash(), l.head()) != "new" || owners["old"] == 0 || owners["new"] == 0 {
				t.Errorf("owners after %d crashes: %v", len(lefts), owners)
			}
			t.Logf("both=%v: %d crashes, seed %d, owners %v", both, len(lefts), seed, owners)
		})
	}
}

// TestAdoptEveryFault fails each operation that a renaming makes, or all from some one on: it
// happens, or nothing has; and it can be done again.
func TestAdoptEveryFault(t *testing.T) {
	for n := range 4 {
		both, lasting := n%2 == 0, n/2*1000
		for call := 1; ; call++ {
			fired := int64(0)
			synctest.Test(t, func(t *testing.T) {
				saves := newMemDir()
				l := renamed(t, saves, both)
				defer l.Close()
				_, f := faultPlan{from: call, to: call + lasting, err: syscall.EIO}.inject(saves)
				err := l.Adopt("old", "new")
				fired = f.Load()
				saves.fault = nil
				if err != nil {
					if !errors.Is(err, syscall.EIO) {
						t.Fatalf("call %d: %v", call, err)
					}
					if a, _ := l.Account("old"); a.Pending != 6 || a.Delivered != 3 {
						t.Errorf("call %d failed, the old account is %+v", call, a)
					}
					if err := l.Adopt("old", "new"); err != nil {
						t.Fatal(err)
					}
				}
				if a, _ := l.Account("new"); a.Pending != 6 || a.Delivered != 3 || !a.Balanced() {
					t.Errorf("call %d: the account is %+v", call, a)
				}
				if a, _ := l.Account("old"); a.Appended != 0 {
					t.Errorf("call %d: the old account is %+v", call, a)
				}
				time.Sleep(1100 * time.Millisecond) // the housekeeping
				if oneOwner(t, fmt.Sprint("call ", call), saves.crash(), l.head()) != "new" {
					t.Errorf("call %d: not the new one", call)
				}
			})
			if fired == 0 {
				if call < 3 {
					t.Errorf("only %d calls", call-1)
				}
				break
			}
		}
	}
}

// TestAdoptRefuses: two queues never become one, and the queue of a running target stays its own.
func TestAdoptRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saves := newMemDir()
		l := renamed(t, saves, true)
		defer l.Close()
		refused := func(from, to string, want error) {
			t.Helper()
			before := [2]queue.Ledger{}
			before[0], _ = l.Account("old")
			before[1], _ = l.Account("new")
			if err := l.Adopt(from, to); err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("from %s to %s: %v, want %v", from, to, err, want)
			}
			after := [2]queue.Ledger{}
			after[0], _ = l.Account("old")
			after[1], _ = l.Account("new")
			if before != after {
				t.Errorf("from %s to %s changed %+v to %+v", from, to, before, after)
			}
		}
		refused("old", "old", nil)
		refused("none", "new", ErrNoTarget)
		refused("old", "", nil)
		refused("new", "old", ErrOwnData)
		r, err := l.Reader("new", ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		refused("old", "new", ErrWanted)
		refused("new", "other", ErrWanted)
		deliver(t, r, 1)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		refused("old", "new", ErrOwnData)
		if err := l.Adopt("old", "other"); err != nil {
			t.Error(err)
		}
	})
}

// What was adopted goes on as if nothing had happened: every sample once, the pause too.
func TestAdoptedGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := renamed(t, newMemDir(), true)
		defer l.Close()
		if err := l.Pause("new", true); err != nil {
			t.Fatal(err)
		}
		since := l.PausedSince("new")
		if err := l.Adopt("old", "new"); err != nil {
			t.Fatal(err)
		}
		if got := l.PausedSince("new"); since.IsZero() || !got.Equal(since.Truncate(time.Millisecond)) {
			t.Errorf("paused since %v, was %v", got, since)
		}
		r, err := l.Reader("new", ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		values, missing := drain(t, l, r)
		if fmt.Sprint(values) != "[2 3]" || missing.Sum() != 0 {
			t.Errorf("read %v, missing %+v", values, missing)
		}
		if len(l.Orphans()) != 0 {
			t.Errorf("orphans: %+v", l.Orphans())
		}
	})
}

// TestRenamesInARow: renamed more than once, with files begun in between and afterwards, the queue has one owner after a crash at
// any moment; and when both files have been begun, they do not mention the old names any more.
func TestRenamesInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(8, 0))
		saves := newMemDir()
		l := renamed(t, saves, false)
		defer l.Close()
		moments, when := 0, ""
		saves.struck = func(op, _ string) error {
			for _, left := range []*memDir{saves.kill(), saves.crash(), saves.cut(rng), saves.cut(rng)} {
				moments++
				owners := 0
				saved := loadSavepoints(t, left)
				for _, st := range saved.byName {
					if st.Outcome.Delivered == 3 {
						owners++
					}
				}
				if owners != 1 {
					t.Errorf("%s, %s: %d owners, %q", when, op, owners, slices.Sorted(maps.Keys(saved.byName)))
				}
			}
			return nil
		}
		name := "old"
		for i := range 6 {
			when = fmt.Sprint("rename ", i)
			next := fmt.Sprint("new ", i)
			if err := l.Adopt(name, next); err != nil {
				t.Fatal(err)
			}
			name = next
			if i > 2 {
				when = fmt.Sprint("turn after rename ", i)
				beginOther(t, l.targets)
			}
		}
		when = "turns at the end"
		beginOther(t, l.targets)
		beginOther(t, l.targets)
		saves.struck = nil
		if got := namedIn(t, saves.crash()); !slices.Equal(got, []string{name}) || moments < 100 {
			t.Errorf("%q, after %d moments", got, moments)
		}
		if _, err := l.Forget(name); err != nil {
			t.Fatal(err)
		}
		beginOther(t, l.targets)
		beginOther(t, l.targets)
		if got := namedIn(t, saves.crash()); len(got) != 0 {
			t.Errorf("dropped: %q", got)
		}
	})
}
