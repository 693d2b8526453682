package wal

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
	"hwsagent/wal/queue"
)

// Records that stop short of their fields are refused, wherever they stop, and no more
// comes of them than of their beginning.
func TestShortRecords(t *testing.T) {
	var hs []record.RefHistogramSample
	for i := range 3 {
		hs = append(hs, record.RefHistogramSample{Ref: 1, T: int64(i), ST: int64(i * i), H: tsdbutil.GenerateTestHistogram(int64(i))})
	}
	whole, _ := segmenttest.Encoder.HistogramSamples(hs, nil)
	refused := 0
	for size := 1; size < len(whole); size++ {
		d := newEntryDecoder(newSeriesPool(nil))
		if err := d.decode(segmenttest.Encoder.Series([]record.RefSeries{{Ref: chunks.HeadSeriesRef(1), Labels: segmenttest.Labels(1)}}, nil)); err != nil {
			t.Fatal(err)
		}
		if err := d.decode(whole[:size]); err != nil {
			refused++
		}
		if n := len(d.to.entry.Histograms); n > 2 {
			t.Errorf("%d histograms in %d of %d bytes", n, size, len(whole))
		}
	}
	if refused < len(whole)-5 { // where one ends, and where nothing begins
		t.Errorf("%d of %d beginnings are refused", refused, len(whole))
	}

	table := newEntryDecoder(newSeriesPool(nil)).series
	for what, encoded := range map[string][]byte{"no count": {}, "no name": {1}, "too much": {0, 0}} {
		if table.announce(1, encoded) {
			t.Errorf("labels with %s are taken: %s", what, table.lookup(1).Labels)
		}
	}
}

// A header of a newer format is refused also where damage lies before it.
func TestNewerFormatBehindDamage(t *testing.T) {
	w := writeLog(t)
	var s segmenttest.Builder
	newer := segment.AppendHeader(nil, segment.Header{Version: segment.Version, Log: ID{9}, Number: 3})
	newer[1]++
	s.Record(newer, 0)
	b := append([]byte(nil), w.bytes(3)...)
	clear(b[:segment.PageSize])
	copy(b[segment.PageSize:], s.B)
	segments, saves := w.dirs(harm{segment: map[string][]byte{segment.Name(3): b}})
	l, err := Open(w.options(segments, saves))
	if !errors.Is(err, segment.ErrOtherFormat) || !strings.Contains(err.Error(), segment.Name(3)) {
		t.Errorf("opened: %v", err)
	}
	if err == nil {
		_ = l.Close()
	}
}

// Next ends with its context, also where there is something to read.
func TestNextWithoutTime(t *testing.T) {
	l := openLog(t, Options{})
	r := openReader(t, l, "a", ReaderOptions{})
	if err := commitFloats(l, 1, 1, 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := r.Next(ctx); e != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", e, err)
	}
}

// A segment that the budget would seal early, and that cannot be made durable, is written
// again elsewhere.
func TestRollNowFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDir()
		l := openLog(t, memOptions(t, d, newMemDir()))
		if err := commitFloats(l, 3, 1, 1); err != nil {
			t.Fatal(err)
		}
		ops, fired := faultPlan{from: 1, to: 1, op: "sync", err: syscall.EIO}.inject(d)
		l.writer.rollNow()
		synctest.Wait() // for the fsync
		if fired.Load() != 1 {
			t.Fatalf("%d syncs, none failed", ops.Load())
		}
		if err := commitFloats(l, 3, 2, 2); err != nil {
			t.Error(err)
		}
		if got := readOldest(t, l); len(got) != 2 {
			t.Errorf("read %v", got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A commit for which a new segment would begin is refused like any other when the log is
// full of what is not delivered, and accepted when that is.
func TestRefusedWhereASegmentBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := memOptions(t, newMemDir(), newMemDir())
		o.MaxBytes, o.OnFull, o.Retain = 100_000, Reject, 0
		l := openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{})
		accepted := 0
		for ; accepted < 100; accepted++ {
			// Longer than an eighth of the budget, so each has a segment of its own.
			if err := commitFloats(l, 2000, int64(accepted), 1); errors.Is(err, ErrFull) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if segments, bytes := l.index.usage(); accepted < 2 || accepted == 100 || segments != accepted || bytes > o.MaxBytes {
			t.Fatalf("%d commits in %d segments, %d bytes", accepted, segments, bytes)
		}
		if got, missing := drain(t, l, r); len(got) != accepted || missing != (queue.Outcome{}) {
			t.Errorf("read %d of %d commits, missing %+v", len(got), accepted, missing)
		}
		time.Sleep(2 * time.Second) // savepoints, and what is delivered goes
		if err := commitFloats(l, 2000, 1000, 1); err != nil {
			t.Error(err)
		}
	})
}
