package wal

import (
	"errors"
	"testing"
	"testing/synctest"

	"hwsagent/wal/internal/segment"
)

// A log that refuses commits for want of room still gets its mark after a power cut: the
// target that had more than is left would wait for it for ever, and keep the log full.
func TestPowerCutOnAFullLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		l := openLog(t, memOptions(t, segments, saves))
		r := openReader(t, l, "a", ReaderOptions{})
		for i := range 3 {
			if err := commitFloats(l, 20, int64(i), 1); err != nil {
				t.Fatal(err)
			}
		}
		drain(t, l, r)
		if err := r.target.save(); err != nil {
			t.Fatal(err)
		}
		left, leftSaves := segments.kill(), saves.kill()
		first := left.entries[segment.Name(0)]
		first.data.truncate(int(commitEnds(t, 0, first.data.bytes())[1]))
		_ = errors.Join(r.Close(), l.Close()) // of the process that has ended

		o := memOptions(t, left, leftSaves)
		o.OnFull, o.MaxBytes = Reject, int64(first.data.size)+20
		l = openLog(t, o)
		if head := l.head(); head.Commit != 4 || head.Total != 60 {
			t.Errorf("the head is %+v, the target has 60 samples", head)
		}
		if err := commitFloats(l, 20, 10, 1); !errors.Is(err, ErrFull) {
			t.Errorf("a full log took a commit: %v", err)
		}
	})
}
