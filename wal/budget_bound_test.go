package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// checkBudget checks the bound that docs/adr/0005 states: the log has no more bytes than
// the budget, unless its two newest segments alone are larger. Under Reject a segment that
// began after an error may come on top. It says whether the two are larger.
func checkBudget(t *testing.T, l *Log, budget int64, afterError bool) (larger bool) {
	t.Helper()
	l.index.mu.Lock()
	defer l.index.mu.Unlock()
	within := func(list []segment.Info) bool {
		used, newest := sizes(list)
		return used <= max(budget, newest)
	}
	list := l.index.list
	used, newest := sizes(list)
	if !within(list) && !(afterError && within(list[:len(list)-1])) {
		t.Fatalf("%d bytes used, of %d; the two newest of %d segments have %d", used, budget, len(list), newest)
	}
	return newest > budget
}

// sizes are the bytes of all segments and of the two newest.
func sizes(list []segment.Info) (all, newest int64) {
	for i, s := range list {
		all += s.Size
		if i >= len(list)-2 {
			newest += s.Size
		}
	}
	return all, newest
}

// TestBudgetIsABound drives logs with budgets, loads, faults and settings of all kinds.
// None ever goes beyond its budget but for commits that take half of it.
func TestBudgetIsABound(t *testing.T) {
	seed := testSeed(t)
	rounds := uint64(60)
	if testing.Short() {
		rounds = 20
	}
	var total budgetRun
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := driveBudget(t, rand.New(rand.NewPCG(seed, round)), round%4 == 0)
				total.giants += r.giants
				total.failed += r.failed
				total.dropped += r.dropped
				total.refused += r.refused
			})
		})
	}
	t.Logf("%+v", total)
	if total.giants == 0 || total.failed == 0 || total.dropped == 0 || total.refused == 0 {
		t.Errorf("something never happened: %+v", total)
	}
}

// budgetRun says what happened in a run: how often the newest segments alone were larger
// than the budget, how many calls failed, samples were dropped, commits refused.
type budgetRun struct{ giants, failed, dropped, refused int }

// driveBudget is one run. giants says whether some of its commits are about as large as the budget.
func driveBudget(t *testing.T, rnd *rand.Rand, giants bool) (run budgetRun) {
	segments, saves := newMemDir(), newMemDir()
	o := memOptions(t, segments, saves)
	o.MaxBytes = 50_000 + rnd.Int64N(250_000)
	o.SegmentBytes = 2_000 + rnd.Int64N(30_000)
	o.Retain = time.Duration(rnd.IntN(2)) * time.Hour
	if rnd.IntN(2) == 0 {
		o.Sync = SyncAlways
	}
	if rnd.IntN(3) == 0 {
		o.OnFull = Reject
	}
	faults := rnd.IntN(3) == 0
	t.Logf("budget %d, segments %d, sync %v, %s, giants %v, faults %v", o.MaxBytes, o.SegmentBytes, o.Sync, o.OnFull, giants, faults)
	for _, d := range []*memDir{segments, saves} {
		d.linger = func(string) { runtime.Gosched() }
	}
	disk := rand.New(rand.NewPCG(rnd.Uint64(), 0)) // the log's goroutines draw from it, one at a time
	segments.fault = func(op string) (int, error) {
		if faults && (op == "write" || op == "sync") && disk.IntN(50) == 0 {
			run.failed++
			return disk.IntN(5000), syscall.EIO
		}
		return 0, nil
	}
	l := openLog(t, o)
	defer l.Close()
	if err := l.Enroll([]Enrolment{{Name: "dead"}, {Name: "live"}}); err != nil {
		t.Fatal(err)
	}
	live := openReader(t, l, "live", ReaderOptions{})
	series := 0
	for i := range 100 {
		n := 1 + rnd.IntN(200)
		if giants && rnd.IntN(20) == 0 {
			n = int(o.MaxBytes / 12) // about as many bytes as the budget
		}
		if rnd.IntN(3) == 0 {
			series += rnd.IntN(200) // others than before: to be announced
		}
		switch err := commitFrom(l, series, n, int64(i)); {
		case errors.Is(err, ErrFull) && o.OnFull == Reject:
			run.refused++
		case err != nil && !errors.Is(err, syscall.EIO):
			t.Fatal(err)
		}
		if checkBudget(t, l, o.MaxBytes, faults && o.OnFull == Reject) {
			if run.giants++; !giants {
				t.Fatalf("ordinary commits take more than half of %d bytes", o.MaxBytes)
			}
		}
		if rnd.IntN(2) == 0 {
			if _, missing := ackAll(t, l, live); missing != (queue.Outcome{}) {
				t.Fatalf("missing %+v", missing)
			}
		}
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
		checkBudget(t, l, o.MaxBytes, faults && o.OnFull == Reject)
	}
	for _, name := range []string{"dead", "live"} {
		a, _ := l.Account(name)
		run.dropped += int(a.Dropped[queue.Budget])
		if !a.Balanced() || o.OnFull == Reject && a.GivenUp() > 0 {
			t.Errorf("account of %s: %+v", name, a)
		}
	}
	segments.mu.Lock()
	faults = false
	segments.mu.Unlock()
	if err := errors.Join(live.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	return run
}

// commitFrom commits a sample of each of n series, which do not compress.
func commitFrom(l *Log, first, n int, at int64) error {
	app := l.AppenderV2(context.Background())
	rnd := rand.New(rand.NewPCG(uint64(at), 0))
	for i := range n {
		ls := labels.FromStrings("__name__", fmt.Sprintf("m%d", first+i), "id", fmt.Sprintf("%x", rnd.Uint64()>>60))
		if _, err := app.Append(0, ls, 0, at, rnd.Float64(), nil, nil, storage.AppendV2Options{}); err != nil {
			return err
		}
	}
	return app.Commit()
}

// Delivered segments that are kept for wal.retain are no reason to refuse anything.
func TestRejectLetsDeliveredGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := memOptions(t, newMemDir(), newMemDir())
		o.MaxBytes, o.OnFull, o.Retain = 1_000_000, Reject, time.Hour
		l := openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{})
		for i := range 10 {
			if err := commitNoise(l, 16000, int64(i)); err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
			ackAll(t, l, r)
			checkBudget(t, l, o.MaxBytes, false)
			time.Sleep(1100 * time.Millisecond) // savepoints become durable
		}
		_ = r.Close()
		_ = l.Close()
	})
}
