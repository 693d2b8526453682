package wal

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A disk becomes full under sync: 1s, stays full for a minute, and then the power goes. What
// was acknowledged before the disk was full survives, unless the disk also refused to sync
// it; and nothing is lost if space returns before the cut.
func TestPowerCutOnAFullDisk(t *testing.T) {
	for _, c := range []struct {
		what         string
		refusedSyncs bool   // the disk fails fsyncs from the failed write on
		running      bool   // an fsync runs while the write fails ...
		runningFails bool   // ... and fails
		space        bool   // there is space again before the cut
		survive      uint64 // samples
	}{
		{what: "synced after the failed write", survive: 6},
		{what: "fsync refused, too", refusedSyncs: true, survive: 3},
		{what: "beside a running fsync", running: true, survive: 9},
		{what: "beside a running fsync that fails", running: true, runningFails: true, survive: 3},
		{what: "fsync refused, then space", refusedSyncs: true, space: true, survive: 9},
		{what: "beside a running fsync that fails, then space", running: true, runningFails: true, space: true, survive: 12},
		{what: "synced, then space", space: true, survive: 9},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				segments, saves := newMemDir(), newMemDir()
				l := openLog(t, memOptions(t, segments, saves))
				if err := commitFloats(l, 3, 1, 1); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2200 * time.Millisecond) // it is durable, and a tick was 200 ms ago
				if err := commitFloats(l, 3, 2, 2); err != nil {
					t.Fatal(err)
				}
				var full, refused, inSync atomic.Bool
				var syncs atomic.Int32
				segments.mu.Lock()
				segments.linger = func(op string) {
					if op == "sync" && c.running && syncs.Add(1) == 1 {
						inSync.Store(true)
						time.Sleep(100 * time.Millisecond)
						inSync.Store(false)
						refused.Store(c.runningFails)
					}
				}
				segments.fault = func(op string) (int, error) {
					switch {
					case op == "sync" && refused.Load():
						refused.Store(c.refusedSyncs) // the kernel reports an error of writing back once
						return 0, syscall.EIO
					case full.Load() && (op == "write" || op == "create"):
						return 0, syscall.ENOSPC
					}
					return 0, nil
				}
				segments.mu.Unlock()
				if c.running {
					time.Sleep(850 * time.Millisecond) // into the fsync
					if !inSync.Load() {
						t.Fatal("no fsync runs")
					}
					if err := commitFloats(l, 3, 21, 21); err != nil { // which that fsync does not cover
						t.Fatal(err)
					}
				}
				full.Store(true)
				refused.Store(c.refusedSyncs)
				if err := commitFloats(l, 3, 3, 3); !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("commit on a full disk: %v", err)
				}
				for range 60 {
					time.Sleep(time.Second)
					if err := commitFloats(l, 3, 4, 4); err == nil {
						t.Fatal("a full disk took a commit")
					}
				}
				if c.space {
					full.Store(false)
					refused.Store(false)
					time.Sleep(2 * time.Second)
					if err := commitFloats(l, 3, 5, 5); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Second)
				}

				left, leftSaves := segments.crash(), saves.crash()
				segments.switchOff()
				saves.switchOff()
				_ = l.Close() // of a machine that is off
				again := openLog(t, memOptions(t, left, leftSaves))
				if total := again.head().Total; total != c.survive {
					t.Errorf("%d samples survive the power cut, want %d", total, c.survive)
				}
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
