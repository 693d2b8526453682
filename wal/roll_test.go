package wal

import (
	"fmt"
	"math"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
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

// TestSegmentEndsWhereSeriesComeAndGo: announcements of series that have ended do not make a segment larger. A segment
// still has eight times the announcements of the series that stay.
func TestSegmentEndsWhereSeriesComeAndGo(t *testing.T) {
	for _, c := range []struct {
		stay, turn int
		most       int64 // bytes of a segment
	}{
		{stay: 0, turn: 50, most: 300_000},
		{stay: 2000, turn: 0, most: math.MaxInt64},
	} {
		if testing.Short() && c.stay > 0 {
			continue // two million samples of the same for the race detector
		}
		synctest.Test(t, func(t *testing.T) {
			o := memOptions(t, newMemDir(), newMemDir())
			o.SegmentBytes = 100_000
			l := openLog(t, o)
			made := 0
			for range 1000 {
				app := l.AppenderV2(t.Context())
				add := func(i int, v float64) {
					ls := labels.FromStrings(model.MetricNameLabel, "cpu_seconds_total", "pod", fmt.Sprintf("import-%09d-%x", i, i*7919))
					if _, err := app.Append(0, ls, 0, time.Now().UnixMilli(), v, nil, nil, storage.AOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				for i := range c.stay {
					add(-1-i, float64(made))
				}
				for i := range c.turn {
					add(made+i, 1)
					if made > 0 {
						add(made-c.turn+i, math.Float64frombits(value.StaleNaN))
					}
				}
				made += c.turn
				if err := app.Commit(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(30 * time.Second)
			}
			all := l.index.segments()
			if len(all) < 4 {
				t.Fatalf("%d series stay and %d of %d end each time: %d segments", c.stay, c.turn, made, len(all))
			}
			var bytes int64
			for _, s := range all[:len(all)-1] {
				bytes = max(bytes, s.Size)
			}
			if bytes > c.most {
				t.Errorf("%d series stay and %d of %d end each time: a segment has %d bytes, want at most %d", c.stay, c.turn, made, bytes, c.most)
			}
			if c.turn == 0 && bytes < 2*o.SegmentBytes {
				t.Errorf("%d series stay: no segment has more than %d bytes, so most of the log is announcements", c.stay, bytes)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
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
