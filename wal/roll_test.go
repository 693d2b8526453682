package wal

import (
	"testing"
	"testing/synctest"
	"time"
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
