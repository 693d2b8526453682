package wal

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/wal/internal/savefile"
)

func randomMark(rng *rand.Rand, after Mark) Mark {
	m := Mark{
		Position: Position{Segment: after.Segment + rng.IntN(3), Offset: rng.Int64N(1 << 30)},
		Log:      ID{1}, SegmentID: ID{2, byte(rng.Uint32())},
		Commit: after.Commit + 1 + rng.Uint64N(1000),
	}
	m.Total = after.Total + rng.Uint64N(1<<30)
	return m
}

func randomSavepoint(rng *rand.Rand, ranges int) storedSavepoint {
	st := storedSavepoint{LastOpen: rng.Int64()}
	st.Start = randomMark(rng, Mark{})
	at := st.Start
	for range ranges {
		if n := len(st.Done); n > 0 {
			st.Done[n-1].High, st.Done[n-1].Shards = at, rng.IntN(16)
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
		st.Orphan, st.Paused = rng.Int64N(1<<40), rng.Int64N(1<<40)
		st.Control = bytes.Repeat([]byte{7}, 1+rng.IntN(MaxControl))
	}
	return st
}

func TestSavepointRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 0))
	for ranges := range maxRanges + 1 {
		want := randomSavepoint(rng, ranges)
		got, err := decodeSavepoint(appendSavepoint(nil, want))
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
	m := Mark{Position: Position{Segment: math.MaxInt, Offset: math.MaxInt64}, Log: ID{1}, SegmentID: ID{2}, Commit: math.MaxUint64, Total: math.MaxUint64}
	st := storedSavepoint{LastOpen: math.MinInt64, Orphan: int64(maxOrphan), Paused: math.MinInt64}
	st.Start, st.High, st.Control = m, m, make([]byte, MaxControl)
	for range maxRanges {
		st.Done = append(st.Done, Range{m, m, m, 1 << 16})
	}
	if n := len(appendSavepoint(nil, st)); n > savefile.MaxBody {
		t.Errorf("it takes %d bytes, of %d", n, savefile.MaxBody)
	}
}

// No build writes ranges that are out of order.
func TestRangesOutOfOrder(t *testing.T) {
	var bad storedSavepoint
	bad.Done = []Range{{From: Mark{Commit: 2}, To: Mark{Commit: 1}}}
	if _, err := decodeSavepoint(appendSavepoint(nil, bad)); err == nil {
		t.Error("they are taken")
	}
}

func targetNames(n int) (names []string) {
	for i := range n {
		names = append(names, "e/"+crashIndex(i))
	}
	slices.Sort(names)
	return names
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "Prod", "a.b/c d", "ü", "nul", strings.Repeat("x", maxNameBytes)} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", maxNameBytes+1), strings.Repeat("X", 100)} {
		if CheckName(name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}
