package wal

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segmenttest"
)

// An orphan whose queue is due to go goes, whichever operations on the disk fail first.
func TestOrphanRemovedAfterFaults(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			d, err := disk.Open(filepath.Join(dir, "d"), disk.SyncPath)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			fail, failed := "", 0 // the operation that fails
			ts, err := openTargets(brokenDir{d, func(op string) error {
				if fail == "" || !strings.HasPrefix(op, fail) {
					return nil
				}
				failed++
				return errDisk
			}}, targetsOptions{OrphanTTL: time.Hour, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			l := newFakeLog(segmenttest.New(0, ID{1}, 0, 0))
			r, err := ts.open(l, "a", ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(r.Close(), ts.save()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Hour)
			fail = op
			if err := ts.save(); !errors.Is(err, errDisk) || failed == 0 || len(ts.all()) != 1 {
				t.Errorf("%s fails: %v, %d targets", op, err, len(ts.all()))
			}
			fail = ""
			if err := ts.save(); err != nil || len(ts.all()) != 0 || len(savedIn(t, d)) != 0 {
				t.Errorf("%s works again: %v, %d targets, in the files %q", op, err, len(ts.all()), savedIn(t, d))
			}
			if err := ts.close(); err != nil {
				t.Error(err)
			}
		})
	}
}
