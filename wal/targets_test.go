package wal

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/wal/internal/segmenttest"
	"hwsagent/wal/queue"
)

// memTargets opens the registry in a directory in memory.
func memTargets(t *testing.T, dir *memDir, o targetsOptions) *targets {
	t.Helper()
	ts, err := openTargets(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ts.close() })
	return ts
}

// deliver reads n entries and advances over them.
func deliver(t *testing.T, r *Reader, n int) Mark {
	t.Helper()
	var end Mark
	for range n {
		e := mustNext(t, r)
		o := e.Missing
		o.Delivered += e.Count()
		end = e.End
		r.Advance(end, o)
		checkLedger(t, r)
	}
	return end
}

func TestNewTargetStarts(t *testing.T) {
	p := newPlan(2, 3, 4)
	last := p.commits[len(p.commits)-1].mark
	dir := newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	now := openTestReader(t, ts, p.log(), "now", ReaderOptions{})
	all := openTestReader(t, ts, p.log(), "all", ReaderOptions{StartAt: StartOldest})
	if got := now.Ledger(); got.Appended != 0 || got.Pending != 0 {
		t.Errorf("a target that starts now: %+v", got)
	}
	if got := all.Ledger(); got.Appended != last.Total || got.Pending != last.Total {
		t.Errorf("a target that starts at the oldest: %+v", got)
	}
	// Both are known after a power cut at this moment.
	after := memTargets(t, dir.crash(), targetsOptions{})
	for _, name := range []string{"now", "all"} {
		if after.byName[name] == nil {
			t.Errorf("savepoint of %q was not durable", name)
		} else if got, want := after.byName[name].savepoint(), ts.byName[name].savepoint(); !cmp.Equal(got, want) {
			t.Errorf("savepoint of %q: %s", name, cmp.Diff(want, got))
		}
	}
	if _, err := ts.open(p.log(), "now", ReaderOptions{}); !errors.Is(err, errReaderOpen) {
		t.Errorf("opened twice: %v", err)
	}
	if top := after.highest(ID{9}); top.Commit != last.Commit || top.Total != last.Total || top.Log != last.Log {
		t.Errorf("highest %+v, want %+v", top, last)
	}
	if at, ok := after.lowest(); !ok || at != 0 {
		t.Errorf("lowest %d, %v", at, ok)
	}
}

// What the budget takes is in every ledger, durable, before dropThrough returns; the
// readers go on behind it and do not count it again.
func TestDropThrough(t *testing.T) {
	p := newPlan(4, 5, 6)
	l := p.log()
	dir := newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	behind := openTestReader(t, ts, l, "behind", ReaderOptions{StartAt: StartOldest})
	middle := openTestReader(t, ts, l, "middle", ReaderOptions{StartAt: StartOldest})
	ahead := openTestReader(t, ts, l, "ahead", ReaderOptions{StartAt: StartOldest})
	orphan := openTestReader(t, ts, l, "orphan", ReaderOptions{StartAt: StartOldest})
	deliver(t, middle, 7)
	deliver(t, ahead, 15)
	if err := orphan.Close(); err != nil {
		t.Fatal(err)
	}

	end := p.commits[9].mark // of segment 1
	if err := ts.dropThrough(end); err != nil {
		t.Fatal(err)
	}
	crashed := memTargets(t, dir.crash(), targetsOptions{})
	l.unlink(1)

	for name, want := range map[string]uint64{"behind": 60, "middle": 18, "ahead": 0, "orphan": 60} {
		sp := crashed.byName[name].savepoint()
		if got := sp.Outcome.Dropped[queue.Budget]; got != want {
			t.Errorf("%s: %d dropped and durable, want %d", name, got, want)
		}
		if want > 0 && sp.Acked() != end {
			t.Errorf("%s: savepoint at %+v", name, sp.Acked())
		}
	}
	for _, r := range []*Reader{behind, middle} {
		e := mustNext(t, r)
		if e.End != p.commits[10].mark || e.Missing.Sum() != 0 {
			t.Fatalf("after the drop: %+v, missing %+v", e.End, e.Missing)
		}
		r.Advance(e.End, queue.Outcome{Delivered: e.Count()})
		deliver(t, r, 9)
		if g := r.Ledger(); !g.Balanced() || g.Pending != 0 {
			t.Errorf("ledger %+v", g)
		}
	}
	if at, _ := ts.lowest(); at != end.Segment {
		t.Errorf("lowest is %d", at)
	}
}

// A target that has all of a segment stays where it is when that goes: numbers behind the last commit that it has stand for commits
// that a power cut took, and which have no outcome.
func TestDropOfASegmentThatATargetHas(t *testing.T) {
	p := newPlan(2, 3, 4)
	dir := newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	r := openTestReader(t, ts, p.log(), "a", ReaderOptions{StartAt: StartOldest})
	at := deliver(t, r, 3) // segment 0
	end := at
	end.Commit += 5
	if err := ts.dropThrough(end); err != nil {
		t.Fatal(err)
	}
	if sp := r.Savepoint(); sp.Acked() != at || sp.Outcome.Dropped[queue.Budget] != 0 {
		t.Errorf("savepoint %+v, had everything up to %+v", sp, at)
	}
	deliver(t, r, 3)
}

// Samples that were on their way when the budget took them stay counted as dropped, whatever their outcome.
func TestDropOvertakesSender(t *testing.T) {
	p := newPlan(3, 4, 5)
	end := p.commits[3].mark
	for name, tc := range map[string]struct {
		advances  [][2]int // up to which commit, with how many samples
		delivered uint64
	}{
		"one by one": {[][2]int{{1, 10}, {2, 5}, {4, 5}}, 5},
		"across":     {[][2]int{{4, 20}}, 5},
		"mixed":      {[][2]int{{0, 5}, {4, 15}}, 5},
		"nothing":    {},
		"late":       {[][2]int{{1, 10}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := p.log()
			ts := memTargets(t, newMemDir(), targetsOptions{})
			r := openTestReader(t, ts, l, "a", ReaderOptions{StartAt: StartOldest})
			for range 3 {
				mustNext(t, r) // commits 0 to 2 are on their way
			}
			if err := ts.dropThrough(end); err != nil {
				t.Fatal(err)
			}
			l.unlink(0)
			if e := mustNext(t, r); e.End != p.commits[4].mark {
				t.Fatalf("went on at %+v", e.End)
			}
			for _, a := range tc.advances {
				r.Advance(p.commits[a[0]].mark, queue.Outcome{Delivered: uint64(a[1])})
				checkLedger(t, r)
			}
			if g := r.Ledger(); g.Delivered != tc.delivered || g.Dropped[queue.Budget] != 20 {
				t.Errorf("%d delivered: %+v", tc.delivered, g)
			}
		})
	}
}

// An orphan keeps its queue for the time that is set, counted from its last use, which a kill forgets by an hour at most. After a start
// it is kept for some minutes in any case.
func TestOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPlan(3, 4, 5).log()
		dir := newMemDir()
		o := targetsOptions{OrphanTTL: 24 * time.Hour}
		ts, err := openTargets(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"kept", "removed"} {
			deliver(t, openTestReader(t, ts, l, name, ReaderOptions{StartAt: StartOldest}), 1)
		}
		run := func(d time.Duration) {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); {
				time.Sleep(time.Minute)
				if err := ts.save(); err != nil {
					t.Fatal(err)
				}
			}
		}
		reopen := func() {
			t.Helper()
			if dir = dir.kill(); err == nil { // the process is killed, and no reader is closed
				ts, err = openTargets(dir, o)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		run(30 * time.Hour) // open
		reopen()
		run(20 * time.Hour)
		if at, ok := ts.lowest(); !ok || at != 0 || len(ts.all()) != 2 {
			t.Fatalf("an orphan's queue is given up: %d, %v, %d targets", at, ok, len(ts.all()))
		}
		openTestReader(t, ts, l, "kept", ReaderOptions{})
		time.Sleep(6 * time.Hour)
		reopen()
		run(orphanGrace - time.Minute)
		if len(ts.all()) != 2 {
			t.Error("removed before targets had time to be opened")
		}
		run(2 * time.Minute)
		if left := savedIn(t, dir.crash()); len(left) != 1 || left[0] != "kept" {
			t.Errorf("%q are left after 26 hours", left)
		}
		run(24 * time.Hour)
		if left := savedIn(t, dir.crash()); len(left) != 0 {
			t.Errorf("%q are left", left)
		}
	})
}

// Nor does a step make delivered segments go before their time.
func TestRetainAndTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		o := memOptions(t, segments, saves)
		off := time.Duration(0)
		o.SegmentBytes, o.Retain = 20_000, time.Hour
		o.Now = func() time.Time { return time.Now().Round(0).Add(off) }
		l := openLog(t, o)
		for i := range 100 {
			if err := commitNoise(l, 100, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		had := l.Status().Segments
		off = 365 * 24 * time.Hour
		time.Sleep(50 * time.Minute)
		if has := l.Status().Segments; had < 3 || has != had {
			t.Errorf("%d segments of %d left after a step of the clock", has, had)
		}
		time.Sleep(11 * time.Minute)
		if has := l.Status().Segments; has > 2 {
			t.Errorf("%d segments of %d left after an hour", has, had)
		}
		_ = l.Close()
	})
}

// With an unreadable savepoint, or one of another log, a target gets everything that
// is kept: duplicates, never a loss.
func TestSavepointLost(t *testing.T) {
	p := newPlan(3, 4, 5)
	for _, what := range []string{"garbage", "empty", "other log"} {
		t.Run(what, func(t *testing.T) {
			l := p.log()
			l.unlink(0)
			dir := newMemDir()
			ts := memTargets(t, dir, targetsOptions{})
			r := openTestReader(t, ts, l, "a", ReaderOptions{StartAt: StartOldest})
			deliver(t, r, 5)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			switch what {
			case "garbage":
				for _, name := range savepointNames {
					dir.entries[name].data.edit(func(b []byte) {
						for i := range b {
							b[i] = byte(i * 7)
						}
					})
				}
			case "empty":
				for _, name := range savepointNames {
					dir.entries[name].data = image{}
				}
			case "other log":
				l = newFakeLog()
				for n, s := range p.segments {
					c := segmenttest.New(n, ID{8}, s.Header.Commit, s.Header.Total)
					c.Commit(5, 1, 1, segmenttest.Series(segmenttest.Refs(0, 5)...), segmenttest.Samples(1, segmenttest.Refs(0, 5)...))
					l.put(c)
				}
			}
			ts = memTargets(t, dir, targetsOptions{})
			if err := ts.begin(l.head()); err != nil {
				t.Fatal(err)
			}
			if _, ok := ts.lowest(); !ok {
				t.Error("its segments may be deleted before it is open")
			}
			r = openTestReader(t, ts, l, "a", ReaderOptions{})
			if g := r.Ledger(); !g.Balanced() || g.Pending != g.Appended {
				t.Errorf("ledger %+v", g)
			}
			if r.Savepoint().High != l.head() {
				t.Error("what may have been sent before is not suspect")
			}
			e := mustNext(t, r)
			want := p.commits[4].mark
			if what == "other log" {
				want = Mark{Position: Position{Segment: 0, Offset: e.End.Offset}, Log: ID{8}, SegmentID: e.End.SegmentID, Commit: 1, Total: 5}
			}
			if e.End != want || e.Missing.Sum() != 0 {
				t.Errorf("first entry: %+v, missing %+v", e.End, e.Missing)
			}
		})
	}
}

// What a power cut took is counted by each target that had not had it, and as nothing
// else.
func TestPowerCut(t *testing.T) {
	a := segmenttest.New(0, ID{9}, 0, 0)
	for i := range 3 {
		a.Commit(5, 1, 1, segmenttest.Series(segmenttest.Refs(0, 5)...), segmenttest.Samples(int64(i), segmenttest.Refs(0, 5)...))
	}
	lost := *a // commits 4 and 5 were acknowledged and read, and are gone
	lost.B, lost.Ends = slices.Clone(a.B), slices.Clone(a.Ends)
	for range 2 {
		lost.Commit(5, 2, 2, segmenttest.Samples(2, segmenttest.Refs(0, 5)...))
	}
	dir := newMemDir()
	before := newFakeLog(&lost)
	ts := memTargets(t, dir, targetsOptions{})
	for name, n := range map[string]int{"slow": 1, "middle": 4, "fast": 5} {
		deliver(t, openTestReader(t, ts, before, name, ReaderOptions{StartAt: StartOldest}), n)
	}
	if err := ts.save(); err != nil {
		t.Fatal(err)
	}

	ts = memTargets(t, dir.crash(), targetsOptions{})
	top := ts.highest(ID{9})
	if top.Commit != 5 || top.Total != 25 {
		t.Fatalf("highest %+v", top)
	}
	b := segmenttest.New(1, ID{9}, top.Commit, top.Total)
	b.Header.Found = 15
	b.Commit(0, 0, 0)
	b.Commit(1, 3, 3, segmenttest.Series(1), segmenttest.Samples(3, 1))
	after := newFakeLog(a)
	after.put(b)
	for name, want := range map[string]uint64{"slow": 10, "middle": 5, "fast": 0} {
		r := openTestReader(t, ts, after, name, ReaderOptions{})
		for r.Savepoint().Done[0].To.Commit < after.head().Commit {
			deliver(t, r, 1)
		}
		g := r.Ledger()
		if g.Dropped[queue.PowerCut] != want || g.Dropped[queue.Damage] != 0 || g.Pending != 0 {
			t.Errorf("%s: %+v, want %d lost", name, g, want)
		}
	}
}

// A power cut that takes a whole segment lets the next process use its number again:
// the savepoint must not be taken for a place in that file.
func TestSegmentReplaced(t *testing.T) {
	p := newPlan(2, 4, 5)
	dir := newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	r := openTestReader(t, ts, p.log(), "a", ReaderOptions{StartAt: StartOldest})
	end := deliver(t, r, 7)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	s := segmenttest.New(1, ID{9}, end.Commit, end.Total)
	s.Header.Segment, s.Header.Found = ID{66}, p.commits[3].mark.Total
	s.Commit(3, 1, 1, segmenttest.Series(1, 2, 3), segmenttest.Samples(1, 1, 2, 3))
	r = openTestReader(t, memTargets(t, dir, targetsOptions{}), newFakeLog(p.segments[0], s), "a", ReaderOptions{})
	e := mustNext(t, r)
	if e.End.Commit != end.Commit+1 || e.Count() != 3 || e.Missing.Sum() != 0 {
		t.Errorf("got %+v, missing %+v", e.End, e.Missing)
	}
}

// A target with a backlog limit lets the oldest segments go for itself only.
func TestMaxBacklog(t *testing.T) {
	p := newPlan(5, 6, 30)
	l := p.log()
	refs := l.segments()
	ts := memTargets(t, newMemDir(), targetsOptions{})
	limited := openTestReader(t, ts, l, "limited", ReaderOptions{StartAt: StartOldest, MaxBacklog: refs[3].End + refs[4].End + 10})
	tiny := openTestReader(t, ts, l, "tiny", ReaderOptions{StartAt: StartOldest, MaxBacklog: 1})
	free := openTestReader(t, ts, l, "free", ReaderOptions{StartAt: StartOldest})
	deliver(t, limited, 8)
	deliver(t, tiny, 3)
	for range 2 {
		ts.enforceBacklog(l)
	}
	for r, want := range map[*Reader]int{limited: 18, tiny: 24, free: 0} {
		checkLedger(t, r)
		if e := mustNext(t, r); e.End != p.commits[want].mark || e.Missing.Sum() != 0 {
			t.Errorf("went on at %+v, want %+v", e.End, p.commits[want].mark)
		}
	}
	if n := limited.Pending(); n != refs[3].End+refs[4].End {
		t.Errorf("pending %d", n)
	}
	if g := limited.Ledger(); g.Dropped[queue.Budget] != 10*30 {
		t.Errorf("ledger %+v", g)
	}
}

// A reservation survives a kill when Reserve returns, and a power cut once savepoints were synced. A disk that refuses savepoints
// does not delay sending, and what was reserved meanwhile is written when the disk is well again.
func TestReserve(t *testing.T) {
	p := newPlan(2, 6, 5)
	dir := newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	r := openTestReader(t, ts, p.log(), "a", ReaderOptions{StartAt: StartOldest})
	var fail error
	dir.fault = func(string) (int, error) { return 0, fail }
	high := func(left *memDir) uint64 {
		return memTargets(t, left, targetsOptions{}).byName["a"].savepoint().High.Commit
	}
	for n := 2; n <= 8; n += 3 { // each time anew
		if err := r.Reserve(p.commits[n-1].mark); err != nil || high(dir.kill()) != uint64(n) {
			t.Fatalf("%d reserved: %d after a kill, %v", n, high(dir.kill()), err)
		}
		if err := ts.save(); err != nil || high(dir.crash()) != uint64(n) {
			t.Fatalf("%d reserved and synced: %d after a power cut, %v", n, high(dir.crash()), err)
		}
		fail = errDisk
		for range 2 {
			if err := r.Reserve(p.commits[n].mark); err != nil {
				t.Fatalf("on a disk that refuses: %v", err)
			}
		}
		fail = nil
		if err := r.Reserve(p.commits[n+1].mark); err != nil || high(dir.kill()) != uint64(n+2) {
			t.Fatalf("on a disk that is well again: %d after a kill, %v", high(dir.kill()), err)
		}
	}
}

// What is unchanged is not written again.
func TestSaveOnlyWhatChanged(t *testing.T) {
	dir := newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	p := newPlan(1, 6, 5)
	a := openTestReader(t, ts, p.log(), "a", ReaderOptions{StartAt: StartOldest})
	openTestReader(t, ts, p.log(), "b", ReaderOptions{StartAt: StartOldest})
	if err := ts.save(); err != nil { // that they were made
		t.Fatal(err)
	}
	writes := 0
	dir.fault = func(op string) (int, error) {
		if op == "write" {
			writes++
		}
		return 0, nil
	}
	for range 3 {
		if err := ts.save(); err != nil {
			t.Fatal(err)
		}
	}
	if writes != 0 {
		t.Errorf("%d writes without a change", writes)
	}
	end := deliver(t, a, 2)
	if err := ts.save(); err != nil {
		t.Fatal(err)
	}
	if writes != 2 {
		t.Errorf("%d writes for two outcomes", writes)
	}
	sp := memTargets(t, dir.crash(), targetsOptions{}).byName["a"].savepoint()
	if sp.Acked() != end || sp.Outcome.Delivered != 10 {
		t.Errorf("durable: %+v", sp)
	}
}

// A segment is needed until the savepoint behind it is durable: after a crash the
// target would look for it.
func TestLowestIsDurable(t *testing.T) {
	p := newPlan(3, 4, 5)
	ts := memTargets(t, newMemDir(), targetsOptions{})
	r := openTestReader(t, ts, p.log(), "a", ReaderOptions{StartAt: StartOldest})
	deliver(t, r, 6)
	if at, ok := ts.lowest(); at != 0 || !ok {
		t.Errorf("before save: %d, %v", at, ok)
	}
	if err := ts.save(); err != nil {
		t.Fatal(err)
	}
	if at, ok := ts.lowest(); at != 1 || !ok {
		t.Errorf("after save: %d, %v", at, ok)
	}
}

func TestNextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPlan(1, 2, 3).log()
		ts, err := openTargets(newMemDir(), targetsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := ts.open(l, "a", ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() {
			_, err := r.Next(ctx)
			result <- err
			_, err = r.Next(context.Background())
			result <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		synctest.Wait()
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Error(err)
		}
		if err := <-result; !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		if err := ts.close(); err != nil {
			t.Error(err)
		}
	})
}
