package probes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// After a step back by exactly one interval a round would have the timestamp of the one
// before.
func TestStamp(t *testing.T) {
	at := time.UnixMilli(1_790_000_000_000)
	for _, tc := range []struct {
		name         string
		before, want int64
	}{
		{"first", 0, at.UnixMilli()},
		{"later", at.UnixMilli() - 10_000, at.UnixMilli()},
		{"stepped back by an interval", at.UnixMilli(), at.UnixMilli() + 1},
		{"stepped back by more", at.UnixMilli() + 7_200_000, at.UnixMilli()},
	} {
		if got := stamp(at, tc.before); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// Committed gets an error for a round of which a sample was refused.
func TestCommittedTellsOfRefusedSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probeFunc{f: func(_ context.Context, n int, r *Round) error {
			r.Add(famA, 1, "x", "1")
			if n == 2 {
				r.Add(famA, 2, "x", "1") // twice in one round: refused
			}
			return nil
		}}
		runFor(t, &recorder{}, 30*time.Second, spec("p", p))
		if len(p.committed) != 3 || p.committed[0] != nil || p.committed[1] == nil || p.committed[2] != nil {
			t.Errorf("the probe was told %v", p.committed)
		}
	})
}

// A series may have several samples in one round if they have different times, in whatever order; not two of one time.
func TestSeveralTimesInOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probeFunc{f: func(_ context.Context, _ int, r *Round) error {
			for i, at := range []int64{7, 5, 6, 5, 0, 0} {
				r.AddSample(Sample{Family: famA, Value: float64(i + 1), Labels: []string{"x", "1"}, T: at})
			}
			return nil
		}}
		_, all := runFor(t, &recorder{}, 5*time.Second, spec("p", p))
		var got []string
		for _, l := range all {
			if strings.HasPrefix(l, `{__name__="a"`) {
				got = append(got, l[len(l)-1:])
			}
		}
		if want := []string{"1", "2", "3", "5"}; !slices.Equal(got, want) {
			t.Errorf("%q are stored, want %q", got, want)
		}
	})
}
