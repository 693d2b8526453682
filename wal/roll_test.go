package wal

import (
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/segment"
)

// A commit does not wait for an fsync where a segment ends, however slow the disk is: not
// under `sync: 1s`, and not where nothing else is synced.
func TestRollDoesNotWait(t *testing.T) {
	for _, interval := range []time.Duration{time.Hour, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemDir()
			o := memOptions(t, d, newMemDir())
			o.SegmentBytes, o.Sync = 20_000, interval
			l := openLog(t, o)
			d.linger = func(op string) {
				if op == "sync" {
					time.Sleep(400 * time.Millisecond)
				}
			}
			var longest time.Duration
			for i := range 40 {
				began := time.Now()
				if err := commitNoise(l, 200, int64(i)); err != nil {
					t.Fatal(err)
				}
				longest = max(longest, time.Since(began))
				time.Sleep(100 * time.Millisecond)
			}
			if n, _ := l.index.usage(); n < 3 {
				t.Fatalf("%d segments: none has ended", n)
			}
			if longest > 5*time.Millisecond {
				t.Errorf("sync=%v: a commit took %v", interval, longest)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// endedLog is a log whose segment 0 has ended and is being synced, which takes until that is
// answered, and which has commits in segment 1. Nothing is durable.
type endedLog struct {
	*testing.T
	segments, saves *memDir
	log             *Log
	reader          *Reader
	values          []float64  // of the commits that were acknowledged
	answer          chan error // of the fsync of segment 0
}

func newEndedLog(t *testing.T) *endedLog {
	t.Helper()
	e := &endedLog{T: t, segments: newMemDir(), saves: newMemDir(), answer: make(chan error)}
	o := memOptions(t, e.segments, e.saves)
	o.SegmentBytes = 2000
	e.log = openLog(t, o)
	e.reader = openReader(t, e.log, "live", ReaderOptions{})
	t.Cleanup(func() { close(e.answer) }) // a test that has failed ends, too
	e.segments.mu.Lock()
	var held atomic.Bool
	next := make(chan error, 1) // the error of the fsync that is next
	e.segments.struck = func(op, name string) error {
		if op == "sync" && name == segment.Name(0) && held.CompareAndSwap(false, true) {
			next <- <-e.answer
		}
		return nil
	}
	e.segments.fault = func(op string) (int, error) {
		if op != "sync" {
			return 0, nil
		}
		select {
		case err := <-next:
			return 0, err
		default:
			return 0, nil
		}
	}
	e.segments.mu.Unlock()
	for e.log.head().Segment == 0 {
		e.commit()
	}
	e.commit()
	synctest.Wait()
	if !held.Load() || e.log.index.durable().Commit != 0 {
		t.Fatalf("the fsync of segment 0 began: %v; durable is %+v", held.Load(), e.log.index.durable())
	}
	return e
}

func (e *endedLog) commit() {
	e.Helper()
	v := float64(len(e.values))
	if err := commitFloats(e.log, 20, int64(v), v); err != nil {
		e.Fatal(err)
	}
	e.values = append(e.values, v)
}

// survives demands that everything that was acknowledged is read, once, by a target of this
// process and by the process after a power cut.
func (e *endedLog) survives() {
	e.Helper()
	if got, missing := drain(e, e.log, e.reader); !slices.Equal(got, e.values) || missing != (Outcome{}) {
		e.Errorf("read %v, missing %+v; acknowledged %v", got, missing, e.values)
	}
	left, saves := e.segments.crash(), e.saves.crash()
	e.segments.switchOff()
	e.saves.switchOff()
	_ = errors.Join(e.reader.Close(), e.log.Close()) // of a machine that is off
	l := openLog(e, memOptions(e, left, saves))
	if got := readOldest(e, l); !slices.Equal(got, e.values) {
		e.Errorf("after a power cut: read %v, acknowledged %v", got, e.values)
	}
}

// What a failed fsync of a segment that has ended leaves in doubt is logged again, together
// with what the segment after it has already.
func TestEndedSegmentCannotBeSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndedLog(t)
		e.answer <- syscall.EIO
		synctest.Wait()
		if head := e.log.head(); head.Segment != 2 || e.log.index.durable() != head {
			t.Errorf("the head is %+v, durable is %+v", head, e.log.index.durable())
		}
		h, err := readHeader(new(segment.Reader), e.log, 2, segment.PageSize)
		if err != nil || h.Commit != 0 || h.DurableCommit != 0 {
			t.Errorf("header %+v, %v", h, err)
		}
		e.commit()
		time.Sleep(1100 * time.Millisecond)
		e.survives()
	})
}

// The disk is full while a segment that has ended is being synced: what both segments have is
// durable afterwards, without any space.
func TestEndedSegmentOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndedLog(t)
		e.segments.mu.Lock()
		fault := e.segments.fault
		e.segments.fault = func(op string) (int, error) {
			if op == "write" || op == "create" {
				return 0, syscall.ENOSPC
			}
			return fault(op)
		}
		e.segments.mu.Unlock()
		failed := make(chan error)
		go func() { failed <- commitFloats(e.log, 20, 1000, 1000) }()
		time.Sleep(10 * time.Second)
		e.answer <- nil
		if err := <-failed; !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a full disk took a commit: %v", err)
		}
		e.survives()
	})
}

// A segment that is full while the one before it is being synced waits for that.
func TestSecondEndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndedLog(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e.log.head().Segment == 1 {
				e.commit()
			}
		}()
		time.Sleep(time.Minute)
		if head, files := e.log.head(), e.segments.files(); head.Segment != 1 || files != 2 {
			t.Errorf("the head is %+v, with %d files", head, files)
		}
		e.answer <- nil
		<-done
		time.Sleep(1100 * time.Millisecond)
		e.survives()
	})
}

// A commit under `sync: always` returns when both its segment and the one before are durable.
func TestAlwaysWaitsForEndedSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndedLog(t)
		e.log.Reconfigure(Settings{Sync: SyncAlways, Retain: time.Hour})
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.commit()
		}()
		time.Sleep(time.Minute)
		select {
		case <-done:
			t.Error("it returned before the segment before was durable")
		default:
		}
		e.answer <- nil
		<-done
		e.survives()
	})
}

// A power cut takes the end of a segment that is being synced, and leaves of the next one the
// header. What targets may have had counts as lost to the power cut, not as damage.
func TestPowerCutWhileSegmentEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndedLog(t)
		got, _ := drain(t, e.log, e.reader)
		if err := e.reader.target.save(); err != nil {
			t.Fatal(err)
		}
		left, saves := e.segments.kill(), e.saves.kill()
		first := left.entries[segment.Name(0)]
		ends := commitEnds(t, 0, first.data.bytes())
		first.data.truncate(int(ends[len(ends)-2]))
		second := left.entries[segment.Name(1)]
		second.data.truncate(int(commitEnds(t, 1, second.data.bytes())[0]) - 1)
		e.answer <- nil
		_ = errors.Join(e.reader.Close(), e.log.Close()) // of the process that has ended

		l := openLog(t, memOptions(t, left, saves))
		r := openReader(t, l, "live", ReaderOptions{})
		if again, missing := drain(t, l, r); len(again) > 0 || missing != (Outcome{}) {
			t.Errorf("read %v, missing %+v, of what was delivered before", again, missing)
		}
		all := openReader(t, l, "oldest", ReaderOptions{StartAt: StartOldest})
		kept, missing := drain(t, l, all)
		lost := uint64(20 * (len(got) - len(kept)))
		if len(kept) != len(ends)-1 || lost == 0 || missing.Dropped[PowerCut] != lost || missing.Lost() != lost {
			t.Errorf("read %v of %v, missing %+v", kept, got, missing)
		}
	})
}
