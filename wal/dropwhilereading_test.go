package wal

import (
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/queue"
)

// hookDir calls hook before it opens a file for reading.
type hookDir struct {
	*memDir
	hook func(name string)
}

func (d *hookDir) Open(name string, flag int) (disk.File, error) {
	if h := d.hook; h != nil && flag == 0 {
		h(name)
	}
	return d.memDir.Open(name, flag)
}

// The log drops segments while a lane is between two of them. Their samples count as dropped for the budget, or as skipped, and not as
// damage, as the invariant of Entry.Missing says.
func TestDropWhileALaneReads(t *testing.T) {
	for _, skip := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			segments := &hookDir{memDir: newMemDir()}
			o := memOptions(t, nil, newMemDir())
			saves := newMemDir()
			o.wrap = func(name string, real disk.Directory) disk.Directory {
				_ = real.Close()
				if name == segmentDir {
					return segments
				}
				return saves
			}
			o.SegmentBytes = 20_000
			l := openLog(t, o)
			r := openReader(t, l, "a", ReaderOptions{StartAt: StartOldest})
			for i := range 40 {
				if err := commitNoise(l, 200, int64(i)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			e := nextEntry(t, r)
			r.Advance(e.End, queue.Outcome{Delivered: e.Count()})
			done := false
			segments.hook = func(name string) {
				if done || name != "00000001" {
					return
				}
				done = true
				if skip {
					s, err := l.Before(t.Context(), "a", time.UnixMilli(30), func(_, _ int64) {})
					if err == nil {
						_, err = l.Skip("a", s.End)
					}
					if err != nil {
						t.Error(err)
					}
					return
				}
				s := o.Settings
				s.MaxBytes = 60_000
				l.Reconfigure(s)
				l.budget.enforce(0)
			}
			_, missing := ackAll(t, l, r)
			if !done {
				t.Fatal("the hook was not called")
			}
			g := r.Ledger()
			t.Logf("skip %v: missing %+v: %+v", skip, missing, g)
			if !g.Balanced() || g.Dropped[queue.Damage] > 0 {
				t.Errorf("skip %v: %d samples count as damage of an undamaged log; %d for the budget, %d as skipped", skip, g.Dropped[queue.Damage], g.Dropped[queue.Budget], g.Dropped[queue.Skipped])
			}
			_ = r.Close()
			_ = l.Close()
		})
	}
}
