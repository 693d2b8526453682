package wal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// The sync setting changes while a commit waits for its fsync, another commit comes behind
// it, and then the disk fails for good. A commit that returns an error is not delivered, and
// one that may be delivered returns none, whichever the change is.
func TestSyncSettingChangesWhileACommitWaits(t *testing.T) {
	settings := map[string]Settings{"always": {Sync: SyncAlways}, "1s": {Sync: time.Second}}
	for from, before := range settings {
		for to, after := range settings {
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					segments, saves := newMemDir(), newMemDir()
					o := memOptions(t, segments, saves)
					o.Settings = before
					l := openLog(t, o)
					r := openReader(t, l, "a", ReaderOptions{})
					if err := commitFloats(l, 1, 1, 1); err != nil {
						t.Fatal(err)
					}
					var broken atomic.Bool
					segments.mu.Lock()
					segments.linger = func(op string) {
						if op == "sync" {
							time.Sleep(100 * time.Millisecond)
							broken.Store(true)
						}
					}
					segments.fault = func(string) (int, error) {
						if broken.Load() {
							return 0, syscall.EIO
						}
						return 0, nil
					}
					segments.mu.Unlock()

					results := map[float64]error{1: nil}
					var mu sync.Mutex
					var wg sync.WaitGroup
					commit := func(v float64) {
						err := commitFloats(l, 1, int64(v), v)
						mu.Lock()
						defer mu.Unlock()
						results[v] = err
					}
					wg.Go(func() { commit(2) })
					time.Sleep(10 * time.Millisecond)
					l.Reconfigure(after)
					wg.Go(func() { commit(3) })
					wg.Wait()
					time.Sleep(2 * time.Second) // the fsync fails at the latest now
					if !broken.Load() {
						t.Error("no fsync failed")
					}

					var delivered []float64
					for {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						e, err := r.Next(ctx)
						cancel()
						if err != nil {
							break
						}
						delivered = append(delivered, e.Samples[0].V)
					}
					for v, err := range results {
						if there := slices.Contains(delivered, v); there != (err == nil) {
							t.Errorf("the commit of %v returned %v; delivered are %v", v, err, delivered)
						}
					}
					_ = r.Close()
					_ = l.Close() // the disk is broken
				})
			})
		}
	}
}
