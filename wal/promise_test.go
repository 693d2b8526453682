package wal

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// Under sync: always a commit is durable when Commit returns, and no reader sees it before.
func TestAlwaysIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDir()
		o := memOptions(t, d, newMemDir())
		o.Sync, o.SegmentBytes = SyncAlways, 2000
		l := openLog(t, o)
		d.linger = func(op string) {
			if head := l.head(); op == "sync" && head.Commit > 0 && head.Total > l.metrics.appended.Load() {
				t.Errorf("commit %d is readable before it is durable", head.Commit)
			}
		}
		var acked []float64
		for i := range 40 {
			if err := commitFloats(l, 3, int64(i), float64(i)); err != nil {
				t.Fatal(err)
			}
			acked = append(acked, float64(i))
			after := openLog(t, memOptions(t, d.crash(), newMemDir()))
			if got := readOldest(t, after); !slices.Equal(got, acked) {
				t.Fatalf("a power cut after commit %d leaves %v", i+1, got)
			}
			_ = after.Close()
		}
		_ = l.Close()
	})
}

// A start finds damage in an old segment, and deletes nothing for it: what is behind the
// damage is there, all but the page that is hit.
func TestOpenKeepsWhatIsBehindDamage(t *testing.T) {
	o := memOptions(t, newMemDir(), newMemDir())
	o.wrap, o.SegmentBytes = nil, 4*segment.PageSize // real files: whoever deletes them by path is found out
	// A page has 32 KiB, a commit of so much noise takes 8,000 bytes at least: a page is
	// touched by at most six.
	const commits, samples, touched = 60, 1000, 6
	noisyLog(t, o, commits)
	dir := o.Dir + "/" + segmentDir
	before, err := os.ReadDir(dir)
	if err != nil || len(before) < 4 {
		t.Fatalf("%d segments, %v", len(before), err)
	}
	victim := dir + "/" + before[1].Name()
	b, err := os.ReadFile(victim)
	if err != nil {
		t.Fatal(err)
	}
	b[2*segment.PageSize+100] ^= 1
	if err := os.WriteFile(victim, b, 0o600); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, o)
	times, missing := readFirsts(t, l)
	if lost := missing.Dropped[queue.Damage]; lost == 0 || lost > touched*samples || missing.Sum() != lost {
		t.Errorf("missing %+v after one flipped bit", missing)
	}
	if len(times) < commits-touched || times[len(times)-1] != commits-1 {
		t.Errorf("%d of %d commits are left, the last of time %d", len(times), commits, times[len(times)-1])
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadDir(dir); err != nil || len(after) < len(before) {
		t.Errorf("%d segments of %d are left, %v", len(after), len(before), err)
	}
}

// The budget lets no segment go before the ledgers that tell of it are durable: at any
// moment a power cut leaves either the samples or their count. While the ledgers cannot be
// saved the segments stay, beyond the budget if need be.
func TestBudgetCountsBeforeItUnlinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		o := memOptions(t, segments, saves)
		o.MaxBytes, o.Retain = 400_000, 0
		l := openLog(t, o)
		dead := openReader(t, l, "dead", ReaderOptions{})
		removals, broken := 0, false
		// A cut right after an unlink: the worst order, in which the unlink is durable.
		check := func() {
			cut := saves.crash()
			ts, err := openTargets(cut, targetsOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			sp := ts.byName["dead"].savepoint()
			first := l.index.first()
			if acked := sp.Acked(); acked.Segment < first-1 {
				t.Errorf("segments before %d are gone, and the durable savepoint is still in segment %d", first, acked.Segment)
			}
		}
		segments.fault = func(op string) (int, error) {
			if op == "remove" {
				removals++
				check()
				if broken {
					t.Error("a segment goes although no ledger can be saved")
				}
			}
			return 0, nil
		}
		write := func(from int) {
			for i := range 150 {
				if err := commitNoise(l, 500, int64(from+i)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
		write(0)
		if removals == 0 {
			t.Error("the budget took nothing")
		}
		saves.mu.Lock()
		saves.fault = func(string) (int, error) { return 0, syscall.EIO }
		saves.mu.Unlock()
		segments.mu.Lock()
		broken = true
		segments.mu.Unlock()
		write(1000)
		segments.mu.Lock()
		broken = false
		segments.mu.Unlock()
		saves.mu.Lock()
		saves.fault = nil
		saves.mu.Unlock()
		time.Sleep(3 * time.Second)
		if g := dead.Ledger(); !g.Balanced() || g.Dropped[queue.Budget] == 0 {
			t.Errorf("ledger %+v", g)
		}
		if _, used := l.index.usage(); used > o.MaxBytes {
			t.Errorf("%d bytes used of %d when ledgers can be saved again", used, o.MaxBytes)
		}
		_ = dead.Close()
		_ = l.Close()
	})
}

// A savepoint's segment number may belong to another segment by now, of which the target
// has not had the commits before: the log was put back from a copy, or its numbers began
// again. The segment's own name tells.
func TestSavepointOfAnotherSegment(t *testing.T) {
	p := newPlan(2, 4, 5)
	dir := newMemDir()
	acked := p.commits[1].mark // of segment 0 here, of segment 1 where the savepoint is from
	acked.Segment, acked.SegmentID = 1, ID{77}
	st := queue.Stored{}
	st.Start = Mark{Log: ID{9}}
	st.High, st.Done = acked, []queue.Range{{From: st.Start, To: acked}}
	st.Outcome.Delivered = acked.Total
	ts := memTargets(t, dir, targetsOptions{})
	ts.set("a", newTarget(ts.store, "a", st))
	if err := ts.save(); err != nil {
		t.Fatal(err)
	}
	r := openTestReader(t, memTargets(t, dir, targetsOptions{}), p.log(), "a", ReaderOptions{})
	if e := mustNext(t, r); e.End.Commit != acked.Commit+1 || e.Missing.Sum() != 0 {
		t.Errorf("went on with commit %d, missing %+v; want commit %d", e.End.Commit, e.Missing, acked.Commit+1)
	}
}
