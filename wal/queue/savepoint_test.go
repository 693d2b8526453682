package queue

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/wal/internal/segment"
)

// Settling with several ranges, as a sender that delivers the newest data first
// leaves them, neither counts twice nor forgets.
func TestSettleRanges(t *testing.T) {
	m := func(n uint64) segment.Mark {
		return segment.Mark{Position: segment.Position{Segment: 0, Offset: int64(n)}, Commit: n, Total: n * 10}
	}
	for _, tc := range []struct {
		end   uint64
		added uint64
		done  []Range
	}{
		{2, 0, []Range{{From: m(1), To: m(3)}, {From: m(5), To: m(7)}, {From: m(9), To: m(10)}}},
		{4, 10, []Range{{From: m(1), To: m(4)}, {From: m(5), To: m(7)}, {From: m(9), To: m(10)}}},
		{5, 20, []Range{{From: m(1), To: m(7)}, {From: m(9), To: m(10)}}},
		{6, 20, []Range{{From: m(1), To: m(7)}, {From: m(9), To: m(10)}}},
		{8, 30, []Range{{From: m(1), To: m(8)}, {From: m(9), To: m(10)}}},
		{12, 60, []Range{{From: m(1), To: m(12)}}},
	} {
		sp := Savepoint{Start: m(1), Done: []Range{{From: m(1), To: m(3)}, {From: m(5), To: m(7)}, {From: m(9), To: m(10)}}}
		if added := sp.Settle(m(tc.end)); added != tc.added {
			t.Errorf("settle %d adds %d, want %d", tc.end, added, tc.added)
		}
		if diff := cmp.Diff(tc.done, sp.Done); diff != "" {
			t.Errorf("settle %d: %s", tc.end, diff)
		}
	}
}

// The log lets a segment go behind which a power cut took commits 134 to 143. The target had
// read ahead of its backlog, and had sent two of these. All that the segment still had and the
// target had not is added.
func TestSettleBeforePowerCut(t *testing.T) {
	mark := func(commit, total uint64) segment.Mark { return segment.Mark{Commit: commit, Total: total} }
	s := Savepoint{
		High: mark(142, 2612),
		Done: []Range{{To: mark(117, 2323)}, {From: mark(140, 2585), To: mark(142, 2612)}},
	}
	missed := s.missed()
	if n := s.Settle(mark(143, 2494)); n < 2494-2323 || n != missed {
		t.Errorf("%d samples are added, of %d that were not done", n, missed)
	}
	if last := s.Last(); last.Total != 2612 || last.Commit != 143 {
		t.Errorf("it ends at %+v", last)
	}
}

// A power cut takes commits 19 to 23 and brings a refused commit 19 back, with 11 samples. The gap before commit 20 had 5.
func TestSettleAfterPowerCut(t *testing.T) {
	mark := func(commit, total uint64) segment.Mark { return segment.Mark{Commit: commit, Total: total} }
	s := Savepoint{
		High: mark(24, 228),
		Done: []Range{{To: mark(18, 153)}, {From: mark(20, 158), To: mark(24, 228)}},
	}
	if n := s.Settle(mark(19, 164)); n != 5 {
		t.Errorf("%d samples are added, want 5", n)
	}
	if n := s.Settled(); n != 228 {
		t.Errorf("%d samples have an outcome, of 228", n)
	}
}

// The account adds up whatever the totals of the marks: a power cut may take samples away, and bring others back.
func TestSavepointAddsUp(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		var s Savepoint
		head := segment.Mark{}
		for step := range 40 {
			some := segment.Mark{Commit: rng.Uint64N(head.Commit + 1)}
			some.Total = some.Commit*10 + rng.Uint64N(60)
			var added uint64
			switch rng.IntN(4) {
			case 0:
				head.Commit += rng.Uint64N(4)
				head.Total = max(head.Total, head.Commit*10+rng.Uint64N(60))
			case 1:
				s.Split(some)
			case 2:
				added = s.Settle(some)
			case 3:
				added = s.SettleLast(some)
			}
			s.Outcome.Add(Outcome{Delivered: 1 << 20}.AtMost(added))
			last := segment.Mark{}
			for _, r := range s.Done {
				for _, m := range []segment.Mark{r.From, r.To} {
					if m.Commit < last.Commit || m.Total < last.Total {
						t.Fatalf("seed %d, step %d: the ranges overlap: %+v", seed, step, s.Done)
					}
					last = m
				}
			}
			if l := s.Ledger(head); !l.Balanced() {
				t.Fatalf("seed %d, step %d: %+v, %+v", seed, step, l, s.Done)
			}
		}
	}
}
