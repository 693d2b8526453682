package wal

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/queue"
)

// timed is a log with one target and a commit of three samples at each of the seconds 1 to
// n.
func timed(t *testing.T, saves *memDir, n int) (*Log, *Reader) {
	t.Helper()
	o := memOptions(t, newMemDir(), saves)
	o.SegmentBytes = 1 // one segment each, nearly
	l := openLog(t, o)
	r, err := l.Reader("a", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := commitFloats(l, 3, int64(i+1)*1000, float64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	return l, r
}

func TestSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saves := newMemDir()
		l, r := timed(t, saves, 10)
		defer l.Close()
		deliver(t, r, 2)
		mustNext(t, r) // second 3 is on its way
		s, err := l.Before(t.Context(), "a", time.UnixMilli(6000), func(_, _ int64) {})
		if err != nil {
			t.Fatal(err)
		}
		if s.Samples != 9 || !s.From.Equal(time.UnixMilli(3000)) || !s.To.Equal(time.UnixMilli(5000)) || !s.Rest.Equal(time.UnixMilli(6000)) || s.Bytes <= 0 {
			t.Errorf("found %+v", s)
		}
		before := saves.kill()
		var crashes []*memDir
		saves.struck = func(string, string) error {
			crashes = append(crashes, saves.kill(), saves.crash())
			return nil
		}
		n, err := l.Skip("a", s.End)
		saves.struck = nil
		if err != nil || n != 9 {
			t.Fatalf("skipped %d, %v", n, err)
		}
		if again, err := l.Skip("a", s.End); again != 0 || err != nil {
			t.Errorf("skipped twice: %d, %v", again, err)
		}
		checkLedger(t, r)
		if g := r.Ledger(); g.Dropped[queue.Skipped] != 9 || g.Pending != 15 || g.GivenUp() != 9 {
			t.Errorf("ledger %+v", g)
		}
		// What was on its way stays counted as skipped, though it has arrived after all.
		r.Advance(Mark{Commit: 3, Total: 9, Log: s.End.Log}, queue.Outcome{Delivered: 3})
		checkLedger(t, r)
		if g := r.Ledger(); g.Dropped[queue.Skipped] != 9 || g.Delivered != 6 {
			t.Errorf("ledger %+v", g)
		}
		values, missing := drain(t, l, r)
		if fmt.Sprint(values) != "[6 7 8 9 10]" || missing.Sum() != 0 {
			t.Errorf("then it read %v, missing %+v", values, missing)
		}
		// A crash at any moment leaves the savepoint from before or the one after.
		if len(crashes) < 4 {
			t.Fatalf("only %d crashes", len(crashes))
		}
		skipped := map[uint64]int{}
		for _, dir := range append(crashes, before, saves.crash()) {
			ts, err := openTargets(dir, targetsOptions{})
			if err != nil {
				t.Fatal(err)
			}
			g := ts.byName["a"].ledger(l.head())
			skipped[g.Dropped[queue.Skipped]]++
			if !g.Balanced() || g.Appended != 30 {
				t.Errorf("after a crash the ledger is %+v", g)
			}
			if err := ts.close(); err != nil {
				t.Error(err)
			}
		}
		if len(skipped) != 2 || skipped[0] == 0 || skipped[9] == 0 {
			t.Errorf("samples skipped after crashes: %v", skipped)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A skip ends in front of the first commit with a sample that is young enough, also if
// older ones follow; and nothing is found where nothing is that old.
func TestSkipStopsAtTheFirstYoungSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := timed(t, newMemDir(), 3)
		defer l.Close()
		for _, at := range []int64{9000, 2000, 10_000} { // the clock was ahead, and set back
			if err := commitFloats(l, 3, at, 0); err != nil {
				t.Fatal(err)
			}
		}
		for before, want := range map[int64]uint64{0: 0, 1000: 0, 1001: 3, 5000: 9, 9000: 9, 9001: 15, 99_000: 18} {
			s, err := l.Before(t.Context(), "a", time.UnixMilli(before), func(_, _ int64) {})
			if err != nil || s.Samples != want || s.Rest.IsZero() != (want == 18) {
				t.Errorf("before %d: %+v, %v, want %d samples", before, s, err, want)
			}
		}
		if _, err := l.Before(t.Context(), "b", time.Now(), func(_, _ int64) {}); !errors.Is(err, ErrNoTarget) {
			t.Errorf("of a target that is not known: %v", err)
		}
		if _, err := l.Skip("a", Mark{Commit: 99}); err == nil {
			t.Error("skipped beyond the log")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestPauseIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saves := newMemDir()
		l, r := timed(t, saves, 1)
		defer l.Close()
		kept := func(dir *memDir) time.Time {
			ts, err := openTargets(dir, targetsOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer ts.close()
			return ts.byName["a"].pausedSince()
		}
		since := time.Now().Truncate(time.Millisecond)
		for range 2 {
			if err := l.Pause("a", true); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // the second one changes nothing
		}
		if got := kept(saves.crash()); !got.Equal(since) {
			t.Errorf("after a power cut it is paused since %v, want %v", got, since)
		}
		if err := l.Pause("a", false); err != nil || !l.PausedSince("a").IsZero() {
			t.Errorf("resume: %v", err)
		}
		if got := kept(saves.crash()); !got.IsZero() {
			t.Errorf("after a power cut it is paused since %v", got)
		}
		saves.fault = func(string) (int, error) { return 0, errDisk }
		if err := l.Pause("a", true); !errors.Is(err, errDisk) {
			t.Errorf("a pause that is not durable: %v", err)
		}
		saves.fault = nil
		if err := l.Pause("b", true); !errors.Is(err, ErrNoTarget) {
			t.Errorf("of a target that is not known: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saves := newMemDir()
		l, r := timed(t, saves, 3)
		defer l.Close()
		deliver(t, r, 1)
		if _, err := l.Forget("a"); !errors.Is(err, ErrWanted) {
			t.Errorf("an open target is dropped: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Enroll([]Enrolment{{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Forget("a"); !errors.Is(err, ErrWanted) {
			t.Errorf("a configured target is dropped: %v", err)
		}
		if err := l.Enroll(nil); err != nil {
			t.Fatal(err)
		}
		if o := l.Orphans(); len(o) != 1 || o[0].Left != 0 {
			t.Errorf("orphans %+v", o)
		}
		l.Reconfigure(Settings{Retain: time.Hour, OrphanTTL: 3 * time.Hour})
		time.Sleep(time.Hour)
		synctest.Wait() // the housekeeping of this very moment
		if o := l.Orphans(); len(o) != 1 || o[0].Left != 2*time.Hour {
			t.Errorf("orphans %+v", o)
		}
		saves.fault = func(op string) (int, error) {
			if op == "sync" {
				return 0, errDisk
			}
			return 0, nil
		}
		if _, err := l.Forget("a"); !errors.Is(err, errDisk) {
			t.Errorf("a removal that is not durable: %v", err)
		}
		saves.fault = nil
		account, err := l.Forget("a")
		if err != nil || account.Pending != 6 || account.Delivered != 3 {
			t.Errorf("%+v, %v", account, err)
		}
		if err := l.targets.save(); err != nil || len(savedIn(t, saves.crash())) != 0 || len(l.Orphans()) != 0 {
			t.Errorf("%v; left: %q", err, savedIn(t, saves.crash()))
		}
		if _, err := l.Forget("a"); !errors.Is(err, ErrNoTarget) {
			t.Errorf("dropped twice: %v", err)
		}
	})
}

// A savepoint that was being saved while its target was removed does not come back.
func TestRemovedStaysRemoved(t *testing.T) {
	saves := newMemDir()
	ts := memTargets(t, saves, targetsOptions{})
	r := openTestReader(t, ts, newPlan(1, 2, 3).log(), "a", ReaderOptions{StartAt: StartOldest})
	deliver(t, r, 1)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	tg := ts.byName["a"]
	if err := ts.removeLocked(tg); err != nil {
		t.Fatal(err)
	}
	raiseHigh(tg, 4)
	if err := tg.save(); err != nil || len(savedIn(t, saves)) != 0 {
		t.Errorf("%v; %q", err, savedIn(t, saves))
	}
	if n, moved := tg.drop(Mark{Commit: 99}, queue.Budget); n != 0 || moved {
		t.Errorf("dropped %d", n)
	}
}
