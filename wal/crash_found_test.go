package wal

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// What TestCrashes has found, each in as few steps as it takes.

// A write fails and the file cannot be cut; what was acknowledged and not durable is to
// be logged again in the next segment, of which a part gets written; then the process is
// killed, and the power is cut when the next one has opened the log. All that was
// acknowledged is still there, and what had failed is there both times or never.
func TestCrashWhileLoggingAgain(t *testing.T) {
	torn := 0
	for _, written := range []int{0, 100, 1 << 20} { // bytes of the write that fails
		for again := 0; again < 1500; again += 31 { // bytes of the writing again
			synctest.Test(t, func(t *testing.T) {
				d, saves := newMemDir(), newMemDir()
				l := openLog(t, memOptions(t, d, saves))
				r, err := l.Reader("early", ReaderOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				var want []float64
				for v := range 6 {
					if err := commitFloats(l, 3, int64(v), float64(v)); err != nil {
						t.Fatal(err)
					}
					want = append(want, float64(v))
				}
				writes := 0
				d.fault = func(op string) (int, error) {
					switch {
					case op == "truncate":
						return 0, syscall.EIO
					case op != "write":
						return 0, nil
					}
					writes++
					return []int{written, again}[min(writes, 2)-1], syscall.EIO
				}
				if commitFloats(l, 3, 6, 6) == nil || writes != 2 {
					t.Fatalf("no fault in %d writes", writes)
				}

				found := func(d, saves *memDir) []float64 {
					l := openLog(t, memOptions(t, d, saves))
					defer l.Close()
					r, err := l.Reader("early", ReaderOptions{})
					if err != nil {
						t.Fatal(err)
					}
					defer r.Close()
					got, missing := drain(t, l, r)
					if missing != (queue.Outcome{}) {
						t.Errorf("written=%d, again=%d: missing %+v", written, again, missing)
					}
					return got
				}
				left, leftSaves := d.kill(), saves.kill()
				i := left.entries[segment.Name(1)]
				if info, err := segment.Scan(&memFile{d: left, i: i}, 1, int64(i.data.size)); err == nil && info.Commits > 0 && info.Commits < 6 {
					torn++
				}
				got := found(left, leftSaves.kill())
				if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
					t.Errorf("written=%d, again=%d: after the kill %v", written, again, got)
				}
				if later := found(left.crash(), leftSaves.kill()); !slices.Equal(later, got) {
					t.Errorf("written=%d, again=%d: after the kill %v, after the power cut %v", written, again, got, later)
				}
			})
		}
	}
	if torn == 0 {
		t.Error("no segment had a part of what was to be logged again")
	}
}

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
