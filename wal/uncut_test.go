package wal

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal/internal/segment"
)

// An fsync fails, and the disk refuses to cut the failed commit off, too. It is cut off once the disk works again, so that a start does not
// depend on the next segment's header: when that is damaged, the refused commit must not be delivered.
func TestWhatFailedIsCutOffLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		o := memOptions(t, segments, saves)
		o.Sync = SyncAlways
		l := openLog(t, o)
		if err := commitFloats(l, 10, 1, 1); err != nil {
			t.Fatal(err)
		}
		var bad atomic.Bool
		bad.Store(true)
		segments.fault = func(op string) (int, error) {
			if bad.Load() && (op == "sync" || op == "truncate") {
				return 0, syscall.EIO
			}
			return 0, nil
		}
		if err := commitFloats(l, 10, 2, 2); err == nil {
			t.Fatal("the commit is acknowledged")
		}
		bad.Store(false)
		time.Sleep(2 * time.Second)
		if err := commitFloats(l, 10, 3, 3); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		segments, saves = segments.kill(), saves.kill()
		_ = l.Close()

		segments.entries[segment.Name(1)].data.edit(func(b []byte) { b[20] ^= 1 })
		o = memOptions(t, segments, saves)
		l = openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{StartAt: StartOldest})
		if err := commitFloats(l, 10, 4, 4); err != nil {
			t.Fatal(err)
		}
		n, _ := ackAll(t, l, r)
		if g := r.Ledger(); !g.Balanced() || n > 30 {
			t.Errorf("30 samples were acknowledged, %d are delivered, and the ledger does not add up: %+v", n, g)
		}
		_ = r.Close()
		_ = l.Close()
	})
}

// A segment that is gone when its failed commit is to be cut off needs no cutting off: that is no error.
func TestWhatFailedIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments := newMemDir()
		o := memOptions(t, segments, newMemDir())
		o.Sync = SyncAlways
		var logged bytes.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		l := openLog(t, o)
		if err := commitFloats(l, 10, 1, 1); err != nil {
			t.Fatal(err)
		}
		var noSync atomic.Bool
		noSync.Store(true)
		segments.fault = func(op string) (int, error) {
			if op == "truncate" || op == "sync" && noSync.Load() {
				return 0, syscall.EIO
			}
			return 0, nil
		}
		if err := commitFloats(l, 10, 2, 2); err == nil {
			t.Fatal("the commit is acknowledged")
		}
		noSync.Store(false)
		time.Sleep(2 * time.Second)
		if err := commitFloats(l, 10, 3, 3); err != nil {
			t.Fatal(err)
		}
		first := l.index.segments()[0]
		if first.End <= 0 || first.End >= first.Size {
			t.Fatalf("the failed commit is cut off already: %+v", first)
		}
		if err := segments.Remove(segment.Name(first.Number)); err != nil {
			t.Fatal(err)
		}
		logged.Reset()
		l.cutAgain()
		if logged.Len() > 0 {
			t.Errorf("a file that is gone is an error: %s", &logged)
		}
		_ = l.Close()
	})
}

// When a series loses its type, or its family becomes its own name, readers learn it with that commit, not with the next segment.
func TestMetadataThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, memOptions(t, newMemDir(), newMemDir()))
		r := openReader(t, l, "a", ReaderOptions{})
		commit := func(ts int64, o storage.AppendV2Options) *Entry {
			app := l.AppenderV2(context.Background())
			if _, err := app.Append(0, sampleOf(1), 0, ts, 1, nil, nil, o); err != nil {
				t.Fatal(err)
			}
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
			return nextEntry(t, r)
		}
		commit(1, storage.AppendV2Options{MetricFamilyName: "fam", Metadata: metadata.Metadata{Type: "counter", Help: "h"}})
		e := commit(2, storage.AppendV2Options{MetricFamilyName: "metric_1"})
		s := e.Samples[0].Series
		if s.Family() == "fam" || !s.Meta().IsEmpty() {
			t.Errorf("the log says family %q, metadata %+v, after an input that said metric_1 and none", s.Family(), s.Meta())
		}
		_ = r.Close()
		_ = l.Close()
	})
}
