package wal

import (
	"errors"
	"testing"
	"testing/synctest"

	"hwsagent/wal/internal/segment"
)

// The log lets a segment go behind which a power cut took commits 134 to 143. The target had
// read ahead of its backlog, and had sent two of these. All that the segment still had and the
// target had not is added.
func TestSettleBeforePowerCut(t *testing.T) {
	mark := func(commit, total uint64) Mark { return Mark{Commit: commit, Total: total} }
	s := Savepoint{
		High: mark(142, 2612),
		Done: []Range{{To: mark(117, 2323)}, {From: mark(140, 2585), To: mark(142, 2612)}},
	}
	missed := s.missed()
	if n := s.settle(mark(143, 2494)); n < 2494-2323 || n != missed {
		t.Errorf("%d samples are added, of %d that were not done", n, missed)
	}
	if last := s.Last(); last.Total != 2612 || last.Commit != 143 {
		t.Errorf("it ends at %+v", last)
	}
}

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
