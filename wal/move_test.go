package wal

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/segment"
)

// An fsync fails for three minutes, and then only the fsync of the old files. What was acknowledged goes into a new segment after a
// minute, as soon as the disk takes one; readers meet each commit once, now, after a kill at any moment and after a power cut.
func TestCommitsMoveIntoAnotherSegment(t *testing.T) {
	for _, rolled := range []bool{false, true} {
		for _, forgets := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { moveCommits(t, rolled, forgets) })
		}
	}
}

func moveCommits(t *testing.T, rolled, forgets bool) {
	segments, saves := newMemDir(), newMemDir()
	segments.forgets = forgets
	o := memOptions(t, segments, saves)
	o.SegmentBytes = 2000
	l := openLog(t, o)
	defer l.Close()
	r := openReader(t, l, "a", ReaderOptions{StartAt: StartOldest})
	var want []float64
	commit := func(samples int) error {
		v := float64(len(want))
		err := commitFloats(l, samples, int64(v), v)
		if err == nil {
			want = append(want, v)
		}
		return err
	}
	for range 3 {
		if err := commit(3); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(1500 * time.Millisecond)
	began := time.Now()
	allowed := func() bool { return time.Since(began) > 3*time.Minute }
	var refused atomic.Int32 // fsyncs
	last := 0                // the newest segment when they began to fail
	if rolled {
		last = 1
	}
	segments.onStrike(func(op, name string) error {
		if n, ok := segment.ParseName(name); op == "synced" && ok && (!allowed() || n <= last) {
			refused.Add(1)
			if forgets {
				segments.mu.Lock()
				segments.entries[name].drop(nil, true)
				segments.mu.Unlock()
			}
			return errDisk
		}
		return nil
	})
	for range 5 {
		if err := commit(3); err != nil {
			t.Fatal(err)
		}
	}
	for rolled && l.head().Segment == 0 {
		if err := commit(20); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(30 * time.Second)
	if err := commit(3); !errors.Is(err, errDisk) || refused.Load() == 0 {
		t.Fatalf("the fsync failed %d times, and a commit: %v", refused.Load(), err)
	}
	time.Sleep(4 * time.Minute)
	if st := l.Status(); st.Err != nil || st.Head.Segment != last+1 {
		t.Fatalf("the log does not go on: %+v", st)
	}
	if err := commit(3); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	got, missing := drain(t, l, r)
	if slices.Sort(want); !slices.Equal(got, want) || missing.Sum() > 0 {
		t.Errorf("rolled %t, forgets %t: read %v of %v, missing %+v", rolled, forgets, got, want, missing)
	}
	left := segments.kill()
	if forgets {
		left = segments.crash()
	}
	again := openLog(t, memOptions(t, left, newMemDir()))
	defer again.Close()
	all := openReader(t, again, "all", ReaderOptions{StartAt: StartOldest})
	if got, missing := drain(t, again, all); !slices.Equal(got, want) || missing.Sum() > 0 {
		t.Errorf("rolled %t, forgets %t: the next process reads %v of %v, missing %+v", rolled, forgets, got, want, missing)
	}
}

// A process that ends while it moves commits leaves a segment that does not count: the next one removes it, and finds the commits where
// they were.
func TestKillWhileCommitsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments := newMemDir()
		l := openLog(t, memOptions(t, segments, newMemDir()))
		defer l.Close()
		var want []float64
		for v := range 5 {
			if err := commitFloats(l, 3, int64(v), float64(v)); err != nil {
				t.Fatal(err)
			}
			want = append(want, float64(v))
		}
		var lefts []*memDir
		segments.onStrike(func(op, name string) error {
			lefts = append(lefts, segments.kill())
			if op == "synced" && name == segment.Name(0) {
				return errDisk
			}
			return nil
		})
		time.Sleep(2 * time.Minute)
		segments.onStrike(nil)
		synctest.Wait() // the call under way has ended
		unfinished := 0
		for n, left := range lefts {
			if left.entries[segment.Name(1)] == nil {
				continue
			}
			unfinished++
			l := openLog(t, memOptions(t, left, newMemDir()))
			r := openReader(t, l, "all", ReaderOptions{StartAt: StartOldest})
			if got, missing := drain(t, l, r); !slices.Equal(got, want) || missing.Sum() > 0 {
				t.Errorf("after operation %d it reads %v of %v, missing %+v", n, got, want, missing)
			}
			if err := errors.Join(r.Close(), l.Close()); err != nil {
				t.Error(err)
			}
		}
		if unfinished < 4 {
			t.Errorf("the new segment was there after %d of %d operations", unfinished, len(lefts))
		}
	})
}
