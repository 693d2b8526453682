package queue

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hwsagent/wal/internal/savefile"
	"hwsagent/wal/internal/segment"
)

func randomMark(rng *rand.Rand, after segment.Mark) segment.Mark {
	m := segment.Mark{
		Position: segment.Position{Segment: after.Segment + rng.IntN(3), Offset: rng.Int64N(1 << 30)},
		Log:      segment.ID{1}, SegmentID: segment.ID{2, byte(rng.Uint32())},
		Commit: after.Commit + 1 + rng.Uint64N(1000),
	}
	m.Total = after.Total + rng.Uint64N(1<<30)
	return m
}

func randomSavepoint(rng *rand.Rand, ranges int) Stored {
	st := Stored{LastOpen: rng.Int64()}
	st.Start = randomMark(rng, segment.Mark{})
	at := st.Start
	for range ranges {
		if n := len(st.Done); n > 0 {
			st.Done[n-1].High = at
		}
		r := Range{From: at, To: randomMark(rng, at)}
		st.Done = append(st.Done, r)
		at = randomMark(rng, r.To)
	}
	st.High = at
	st.Outcome.Delivered, st.Outcome.Filtered = rng.Uint64N(1<<40), rng.Uint64N(1<<40)
	for i := range st.Outcome.Dropped {
		st.Outcome.Dropped[i] = rng.Uint64N(1 << 20)
	}
	if ranges%2 == 1 {
		st.Paused = rng.Int64N(1 << 40)
	}
	return st
}

func TestSavepointRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 0))
	for ranges := range MaxRanges + 1 {
		want := randomSavepoint(rng, ranges)
		got, err := DecodeSavepoint(AppendSavepoint(nil, want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// The largest savepoint that there can be is one record, and not the largest one.
func TestLargestSavepointFits(t *testing.T) {
	m := segment.Mark{Position: segment.Position{Segment: math.MaxInt, Offset: math.MaxInt64}, Log: segment.ID{1}, SegmentID: segment.ID{2}, Commit: math.MaxUint64, Total: math.MaxUint64}
	st := Stored{LastOpen: math.MinInt64, Paused: math.MinInt64}
	st.Start, st.High = m, m
	for range MaxRanges {
		st.Done = append(st.Done, Range{m, m, m})
	}
	if n := len(AppendSavepoint(nil, st)); n > savefile.MaxBody {
		t.Errorf("it takes %d bytes, of %d", n, savefile.MaxBody)
	}
}

// No build writes ranges that are out of order.
func TestRangesOutOfOrder(t *testing.T) {
	var bad Stored
	bad.Done = []Range{{From: segment.Mark{Commit: 2}, To: segment.Mark{Commit: 1}}}
	if _, err := DecodeSavepoint(AppendSavepoint(nil, bad)); err == nil {
		t.Error("they are taken")
	}
}

// FuzzSavepoint: no bytes make the decoder fail otherwise than by an error, and what
// it accepts is encoded to the same again.
func FuzzSavepoint(f *testing.F) {
	f.Add([]byte{})
	f.Add(AppendSavepoint(nil, Stored{}))
	full := Stored{LastOpen: 1_700_000_000_000}
	full.Start = segment.Mark{Position: segment.Position{Segment: 1, Offset: 2}, Log: segment.ID{3}, SegmentID: segment.ID{4}, Commit: 5, Total: 6}
	full.Done = []Range{{From: full.Start, To: segment.Mark{Position: segment.Position{Segment: 2, Offset: 2}, Log: segment.ID{3}, SegmentID: segment.ID{4}, Commit: 15, Total: 60}}}
	full.Outcome.Delivered = 54
	f.Add(AppendSavepoint(nil, full))
	full.Done[0].High = full.Done[0].To
	full.Done = append(full.Done, Range{From: segment.Mark{Position: segment.Position{Segment: 3, Offset: 2}, Log: segment.ID{3}, SegmentID: segment.ID{4}, Commit: 25, Total: 90}, To: segment.Mark{Position: segment.Position{Segment: 3, Offset: 9}, Log: segment.ID{3}, SegmentID: segment.ID{4}, Commit: 26, Total: 90}})
	f.Add(AppendSavepoint(nil, full))
	f.Fuzz(func(t *testing.T, payload []byte) {
		st, err := DecodeSavepoint(payload)
		if err != nil {
			return
		}
		again, err := DecodeSavepoint(AppendSavepoint(nil, st))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(st, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}
