package wal

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/queue"
)

// Forget fails because the disk refuses savepoints. The target is unchanged: its samples are still in the log, although the log looked for
// segments to remove meanwhile.
func TestForgetThatFailsKeepsTheSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		o := memOptions(t, segments, saves)
		o.SegmentBytes, o.Retain = 20_000, 0
		l := openLog(t, o)
		if err := l.Enroll([]Enrolment{{Name: "gone", StartAt: StartOldest}, {Name: "live", StartAt: StartOldest}}); err != nil {
			t.Fatal(err)
		}
		if err := l.Enroll([]Enrolment{{Name: "live"}}); err != nil {
			t.Fatal(err)
		}
		live := openReader(t, l, "live", ReaderOptions{})
		for i := range 40 {
			if err := commitNoise(l, 200, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		ackAll(t, l, live)
		time.Sleep(2500 * time.Millisecond)
		if n := l.Status().First; n != 0 {
			t.Fatalf("the log begins with segment %d", n)
		}
		var failing atomic.Bool
		failing.Store(true)
		saves.fault = func(op string) (int, error) {
			if failing.Load() && op == "sync" {
				return 0, syscall.EIO
			}
			return 0, nil
		}
		saves.linger = func(op string) { // the housekeeping, or a commit that begins a segment, while Forget waits for the disk
			if op == "sync" && failing.Load() {
				go l.budget.enforce(0)
				for range 1000 {
					runtime.Gosched()
				}
			}
		}
		_, err := l.Forget("gone")
		failing.Store(false)
		if err == nil {
			t.Fatal("Forget says that it is durable")
		}
		r := openReader(t, l, "gone", ReaderOptions{StartAt: StartOldest})
		n, missing := ackAll(t, l, r)
		if n != 40*200 {
			t.Errorf("Forget failed (%v), and of 8000 samples of the target %d are left: %+v, missing %+v", err, n, r.Ledger(), missing.Dropped[queue.Damage])
		}
		_ = r.Close()
		_ = live.Close()
		_ = l.Close()
	})
}

// The disk refuses to remove an orphan whose time is over. The orphan is unchanged: its samples are still in the log, although the log looked
// for segments to remove meanwhile.
func TestExpiryThatFailsKeepsTheSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		o := memOptions(t, segments, saves)
		o.SegmentBytes, o.Retain, o.OrphanTTL = 20_000, 0, time.Hour
		var failing atomic.Bool
		var refused atomic.Int64
		saves.fault = func(op string) (int, error) {
			if failing.Load() && op == "sync" {
				refused.Add(1)
				return 0, syscall.EIO
			}
			return 0, nil
		}
		var l *Log
		saves.linger = func(op string) { // a commit that begins a segment, while the removal waits for the disk
			if op == "sync" && failing.Load() {
				go l.budget.enforce(0)
				for range 1000 {
					runtime.Gosched()
				}
			}
		}
		l = openLog(t, o)
		defer l.Close()
		if err := l.Enroll([]Enrolment{{Name: "gone", StartAt: StartOldest}, {Name: "live", StartAt: StartOldest}}); err != nil {
			t.Fatal(err)
		}
		if err := l.Enroll([]Enrolment{{Name: "live"}}); err != nil {
			t.Fatal(err)
		}
		live := openReader(t, l, "live", ReaderOptions{})
		defer live.Close()
		for i := range 40 {
			if err := commitNoise(l, 200, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		ackAll(t, l, live)
		time.Sleep(59 * time.Minute)
		if n := l.Status().First; n != 0 {
			t.Fatalf("the log begins with segment %d", n)
		}
		failing.Store(true)
		time.Sleep(2 * time.Minute)
		failing.Store(false)
		if refused.Load() == 0 {
			t.Fatal("the disk refused nothing")
		}
		r := openReader(t, l, "gone", ReaderOptions{StartAt: StartOldest})
		defer r.Close()
		if n, missing := ackAll(t, l, r); n != 40*200 {
			t.Errorf("the removal failed, and of 8000 samples of the target %d are left: %+v, missing %+v", n, r.Ledger(), missing.Dropped[queue.Damage])
		}
	})
}

// The savepoints belong to another log. Targets get everything that this log has, so nothing may be removed before they are enrolled.
func TestForeignSavepointsKeepTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saves := newMemDir()
		o := memOptions(t, newMemDir(), saves)
		o.SegmentBytes, o.Retain = 5_000, 0
		l := openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{StartAt: StartOldest})
		for i := range 60 {
			if err := commitNoise(l, 200, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		ackAll(t, l, r)
		_ = r.Close()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}

		segments := newMemDir() // of another log
		o = memOptions(t, segments, newMemDir())
		o.SegmentBytes = 5_000
		l = openLog(t, o)
		for i := range 10 {
			if err := commitNoise(l, 200, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}

		o = memOptions(t, segments.kill(), saves.kill())
		o.SegmentBytes, o.Retain = 5_000, 0
		l = openLog(t, o)
		time.Sleep(1500 * time.Millisecond) // before the agent has enrolled its targets
		if err := l.Enroll([]Enrolment{{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		r = openReader(t, l, "a", ReaderOptions{})
		if n, _ := ackAll(t, l, r); n != 10*200 {
			t.Errorf("the target gets %d of 2000 samples: %+v", n, r.Ledger())
		}
		_ = r.Close()
		_ = l.Close()
	})
}
