package probes

import (
	"context"
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
