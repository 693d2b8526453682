package wal

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/value"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// The directory is deleted under the open log: commits fail, and succeed again when it
// is possible to write. No sample is acknowledged in a file that no process can find.
func TestSegmentRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, Options{})
		r := openReader(t, l, "a", ReaderOptions{})
		dir := filepath.Join(l.base.Path(), segmentDir)
		if err := commitFloats(l, 10, 1, 1); err != nil {
			t.Fatal(err)
		}
		e := nextEntry(t, r)
		r.Advance(e.End, queue.Outcome{Delivered: e.Count()})
		time.Sleep(1500 * time.Millisecond) // durable

		// The file only: the log goes on in another one.
		if err := os.Remove(filepath.Join(dir, segment.Name(0))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := commitFloats(l, 10, 2, 2); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, segment.Name(1))); err != nil {
			t.Errorf("the log does not go on: %v", err)
		}
		if e := nextEntry(t, r); e.Count() != 10 || e.Missing != (queue.Outcome{}) {
			t.Errorf("%d samples, missing %+v", e.Count(), e.Missing)
		} else {
			r.Advance(e.End, queue.Outcome{Delivered: e.Count()})
		}

		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := commitFloats(l, 10, 3, 3); err == nil {
			t.Error("a commit into a deleted directory is acknowledged")
		}
		if st := l.Status(); st.Err == nil || !errors.Is(st.Err, disk.ErrNotInPlace) {
			t.Errorf("status %+v", st)
		}
		_ = r.Close()
		_ = l.Close()
	})
}

// The active segment is replaced or truncated under the open log: the log continues in another one, and what the file lost is counted.
func TestSegmentReplacedOrTruncated(t *testing.T) {
	for how, change := range map[string]func(path string, b []byte, kept int64) error{
		"replaced": func(path string, b []byte, _ int64) error {
			return errors.Join(os.WriteFile(path+".copy", b, 0o600), os.Rename(path+".copy", path))
		},
		"truncated": func(path string, _ []byte, kept int64) error { return os.Truncate(path, kept) },
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := openLog(t, Options{})
				r := openReader(t, l, "a", ReaderOptions{})
				path := filepath.Join(l.base.Path(), segmentDir, segment.Name(0))
				if err := commitFloats(l, 10, 1, 1); err != nil {
					t.Fatal(err)
				}
				kept := l.head().Offset
				if err := commitFloats(l, 10, 2, 2); err != nil {
					t.Fatal(err)
				}
				time.Sleep(1500 * time.Millisecond) // durable
				b, err := os.ReadFile(path)
				if err == nil {
					err = change(path, b, kept)
				}
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				if err := commitFloats(l, 10, 3, 3); err != nil {
					t.Fatal(err)
				}
				if n := l.head().Segment; n != 1 {
					t.Errorf("the log continues in segment %d", n)
				}
				_, missing := drain(t, l, r)
				want := map[string]uint64{"replaced": 0, "truncated": 10}[how]
				if g := r.Ledger(); missing.Dropped[queue.Damage] != want || g.Delivered+want != 30 || !g.Balanced() {
					t.Errorf("missing %+v: %+v", missing, g)
				}
				_ = r.Close()
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A commit that is larger than the whole budget does not stop the log for ever.
func TestRejectHugeCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := memOptions(t, newMemDir(), newMemDir())
		o.MaxBytes, o.OnFull, o.Retain = 20_000, Reject, 0
		l := openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{})
		accepted, refused := uint64(0), 0
		for i := range 20 {
			switch err := commitNoise(l, 5000, int64(i)); {
			case err == nil:
				accepted += 5000
			case errors.Is(err, ErrFull):
				refused++
			default:
				t.Fatal(err)
			}
			if i%4 == 3 {
				ackAll(t, l, r)
				time.Sleep(2 * time.Second)
			}
		}
		if refused == 0 || accepted < 5*5000 {
			t.Errorf("%d accepted, %d commits refused: want one or two taken each time that all is delivered", accepted, refused)
		}
		_ = r.Close()
		_ = l.Close()
	})
}

// Series that were marked stale are forgotten soon: what comes and goes must not fill memory.
func TestStaleSeriesAreForgotten(t *testing.T) {
	l := openLog(t, Options{})
	if err := commitFloats(l, 10, 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := commitFloats(l, 9, 2, math.Float64frombits(value.StaleNaN)); err != nil {
		t.Fatal(err)
	}
	l.series.evict(int64(seriesStale/time.Second) + sweepEvery)
	if n := l.series.size(); n != 1 {
		t.Errorf("%d series, want the one that goes on", n)
	}
}
