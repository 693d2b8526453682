package wal

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

// What TestCrashes has found about commits that are logged twice, because a write or an
// fsync failed before they were durable.

// What was logged again after an error is read from there if the first place has lost the
// announcement of its series: that one was never made durable.
func TestAnnouncementLostBeforeLoggingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, saves := newMemDir(), newMemDir()
		l := openLog(t, memOptions(t, d, saves))
		r, err := l.Reader("a", ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := commitFloats(l, 3, 1, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond) // it is durable
		from := l.head().Offset
		if err := commitFloats(l, 9, 2, 2); err != nil { // announces six more series
			t.Fatal(err)
		}
		to := l.head().Offset
		for range 2 {
			e, err := r.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.Advance(e.End, queue.Outcome{Delivered: e.Count()})
		}
		if err := commitFloats(l, 9, 3, 3); err != nil {
			t.Fatal(err)
		}
		commitOverFailedWrite(t, l, d, 9, 4)
		if err := r.target.save(); err != nil {
			t.Fatal(err)
		}

		left := d.kill()
		left.entries[segment.Name(0)].data.edit(func(b []byte) { clear(b[from+20 : to-60]) }) // as a power cut may
		l = openLog(t, memOptions(t, left, saves.kill()))
		if r, err = l.Reader("a", ReaderOptions{}); err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got, missing := drain(t, l, r)
		if g := r.Ledger(); !slices.Equal(got, []float64{3, 4}) || missing != (queue.Outcome{}) || g.Delivered != 30 {
			t.Errorf("read %v, missing %+v: %+v", got, missing, g)
		}
	})
}

// What the budget or max_backlog takes counts as that, even if the next segment could not
// be begun: its header names a commit before the last one that was acknowledged. That must
// not outlast the process after, which logs behind that segment.
func TestTakenBesideLoggingAgain(t *testing.T) {
	for _, tc := range []struct {
		by    string
		lives int // of the log since that error
	}{{"budget", 1}, {"budget", 2}, {"max_backlog", 1}, {"max_backlog", 2}} {
		t.Run(fmt.Sprintf("by=%s,lives=%d", tc.by, tc.lives), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, r := headerOnly(t, tc.lives, nil)
				switch tc.by {
				case "budget":
					if seg, end, ok := l.index.oldest(); !ok || l.budget.drop(seg, end) != nil {
						t.Fatal("the first segment does not go")
					}
				default:
					limit := r.Pending() - 1
					r.target.mu.Lock()
					r.target.maxBacklog = limit
					r.target.mu.Unlock()
					l.targets.enforceBacklog(l)
				}
				drain(t, l, r)
				if g := r.Ledger(); g.Dropped[queue.Budget] != 9 || g.Lost() != 9 {
					t.Errorf("%s took the first segment, which has 9 samples: %+v", tc.by, g)
				}
			})
		})
	}
}

// What stands behind damage is read, even if the next segment could not be begun: that was
// to have it once more, and has not.
func TestDamageBesideLoggingAgain(t *testing.T) {
	for lives := 1; lives <= 2; lives++ {
		synctest.Test(t, func(t *testing.T) {
			l, r := headerOnly(t, lives, func(file []byte) {
				file[commitEnds(t, 0, file)[0]+12] ^= 1 // in the second commit
			})
			if got, missing := drain(t, l, r); !slices.Equal(got[:2], []float64{0, 2}) || missing.Dropped[queue.Damage] != 3 || missing.Lost() != 3 {
				t.Errorf("lives=%d: read %v, missing %+v", lives, got, missing)
			}
		})
	}
}

// headerOnly is a log of which the first segment has three commits of three samples, of
// which one was durable when a write failed; of the next segment, which was to have the
// others once more, the header was written only. In each life since there was a commit.
// damage, if there is one, comes to the first segment before the last life.
func headerOnly(t *testing.T, lives int, damage func([]byte)) (*Log, *Reader) {
	t.Helper()
	d, saves := newMemDir(), newMemDir()
	l := openLog(t, memOptions(t, d, saves))
	r, err := l.Reader("a", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // of a process that has ended
	for v := range 3 {
		if err := commitFloats(l, 3, int64(v), float64(v)); err != nil {
			t.Fatal(err)
		}
		if v == 0 {
			time.Sleep(1100 * time.Millisecond) // it is durable
		}
	}
	writes := 0
	d.fault = func(op string) (int, error) {
		switch op {
		case "truncate":
			return 0, syscall.EIO
		case "write":
			writes++
			return []int{0, 120}[min(writes, 2)-1], syscall.EIO // the header, and no commit
		}
		return 0, nil
	}
	if commitFloats(l, 3, 3, 3) == nil || writes != 2 {
		t.Fatalf("no fault in %d writes", writes)
	}
	for n := range lives {
		d, saves = d.kill(), saves.kill()
		if damage != nil && n == lives-1 {
			d.entries[segment.Name(0)].data.edit(damage)
		}
		l = openLog(t, memOptions(t, d, saves))
		if r, err = l.Reader("a", ReaderOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := commitFloats(l, 3, int64(10+n), float64(10+n)); err != nil {
			t.Fatal(err)
		}
	}
	return l, r
}

// commitOverFailedWrite makes a commit whose first write fails, which the log gets over. Its
// samples have that time and value.
func commitOverFailedWrite(t *testing.T, l *Log, d *memDir, samples, at int) {
	t.Helper()
	failed := false
	d.fault = func(op string) (int, error) {
		if op == "write" && !failed {
			failed = true
			return 0, syscall.EIO
		}
		return 0, nil
	}
	if err := commitFloats(l, samples, int64(at), float64(at)); err != nil || !failed {
		t.Fatalf("a commit over a failed write: %v", err)
	}
}

// TestFailureOfALateFsync: an fsync is still running when a write fails and the segment begins anew in the same file. It then fails,
// and the kernel drops commits that were written since. They are logged again before they are acknowledged.
func TestFailureOfALateFsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, saves := newMemDir(), newMemDir()
		o := memOptions(t, d, saves)
		o.Sync = SyncAlways
		l := openLog(t, o)
		var late chan struct{} // ends the first fsync, which then fails
		d.linger = func(op string) {
			if op == "sync" && late == nil {
				late = make(chan struct{})
				<-late
			}
		}
		errs := make(chan error)
		commit := func(v int) {
			go func() { errs <- commitFloats(l, 3, int64(v), float64(v)) }()
			synctest.Wait()
		}
		commit(1)
		commitOverFailedWrite(t, l, d, 3, 2)
		commit(3)
		failed := false
		d.fault = func(op string) (int, error) {
			if op == "sync" && !failed {
				failed = true
				return 0, syscall.EIO
			}
			return 0, nil
		}
		close(late)
		if a, b := <-errs, <-errs; a != nil || b != nil || !failed {
			t.Fatalf("commits over a failed fsync: %v, %v", a, b)
		}
		l = openLog(t, memOptions(t, d.crash(), saves.crash()))
		if got, missing := drain(t, l, openReader(t, l, "a", ReaderOptions{StartAt: StartOldest})); !slices.Equal(got, []float64{1, 2, 3}) || missing != (queue.Outcome{}) {
			t.Errorf("read %v after a power cut, missing %+v", got, missing)
		}
	})
}
