package wal

import "testing"

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
