package wal

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"hwsagent/wal/internal/segment"
)

// What TestCrashes has found, each in as few steps as it takes.

// A process that was killed before its fsync has left a savepoint that a power cut would
// take back: no segment goes because of it until it has been saved again.
func TestUnsyncedSavepointFreesNothing(t *testing.T) {
	p := newPlan(3, 4, 5)
	dir := newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	r := openTestReader(t, ts, p.log(), "a", ReaderOptions{StartAt: StartOldest})
	deliver(t, r, 6)
	dir.fault = func(op string) (int, error) {
		if op == "sync" {
			return 0, errDisk
		}
		return 0, nil
	}
	if ts.save() == nil {
		t.Fatal("the fsync did not fail")
	}
	dir.fault = nil
	left := dir.kill()
	acked := func(d *memDir) uint64 {
		sp := memTargets(t, d, targetsOptions{}).byName["a"].savepoint()
		return sp.Acked().Commit
	}
	if acked(left.crash()) >= acked(left) {
		t.Fatal("the killed process had synced the savepoint")
	}
	ts = memTargets(t, left, targetsOptions{})
	if at, _ := ts.lowest(); at != 0 {
		t.Errorf("the segments before %d may go, and a power cut would want them back", at)
	}
	if err := ts.save(); err != nil {
		t.Fatal(err)
	}
	if at, _ := ts.lowest(); at != 1 {
		t.Errorf("the segments before %d may go, 1 is saved", at)
	}
}

// A start on a disk that refuses the fsync of savepoints goes on, and no segment goes because of those that it found: a power cut may
// take them back, and the target needs the segments then.
func TestStartThatCannotSyncSavepointsFreesNothing(t *testing.T) {
	p := newPlan(3, 4, 5)
	l, dir := p.log(), newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	deliver(t, openTestReader(t, ts, l, "a", ReaderOptions{StartAt: StartOldest}), 6) // in the file, and not synced
	left := dir.kill()
	refused := 0
	left.fault = func(op string) (int, error) {
		if op == "sync" {
			refused++
			return 0, errDisk
		}
		return 0, nil
	}
	ts, err := openTargets(left, targetsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ts.begin(l.head()), ts.enroll(l, []Enrolment{{Name: "a"}})); err != nil || refused == 0 {
		t.Fatalf("the start failed after %d refusals: %v", refused, err)
	}
	if acked := ts.get("a").position(); acked != p.commits[5].mark {
		t.Fatalf("it found %v", acked)
	}
	if at, _ := ts.lowest(); at != 0 {
		t.Errorf("the segments before %d may go", at)
	}
	if at := memTargets(t, left.crash(), targetsOptions{}).get("a").position(); at.Segment != 0 {
		t.Errorf("after a power cut the target is at %v: the test shows nothing", at)
	}
	left.fault = nil
	if err := ts.save(); err != nil {
		t.Fatal(err)
	}
	if at, _ := ts.lowest(); at != 1 {
		t.Errorf("the segments before %d may go, 1 is saved", at)
	}
}

// A file that cannot be opened cannot be cut off; that is reported, and no more happens.
func TestCutOffRefused(t *testing.T) {
	l := openLog(t, memOptions(t, newMemDir(), newMemDir()))
	if err := l.cutOff(&segment.Info{Number: 99}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("cut off a file that is not there: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// commitEnds are the offsets at which the commits of a segment end.
func commitEnds(t *testing.T, number int, file []byte) (ends []int64) {
	t.Helper()
	var c segment.Reader
	c.Reset(bytes.NewReader(file), number, int64(len(file)), true)
	for {
		what, err := c.Next()
		switch {
		case err != nil:
			t.Fatal(err)
		case what == segment.FoundCommit:
			ends = append(ends, c.Offset())
		case what == segment.FoundNothing:
			return ends
		}
	}
}
