package gate

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestBackoff: pauses are within their bounds, none is shorter than 0.8 of the one
// before, and those of a target that is not there end at half of the bound.
func TestBackoff(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, tc := range []struct {
		name     string
		min, max time.Duration
		answered func(i int) bool
		last     time.Duration // the longest of the late pauses
	}{
		{"answered", 30 * time.Millisecond, 5 * time.Second, func(int) bool { return true }, 5 * time.Second},
		{"not there", 30 * time.Millisecond, 5 * time.Second, func(int) bool { return false }, 2500 * time.Millisecond},
		{"gone after answers", 30 * time.Millisecond, 5 * time.Second, func(i int) bool { return i < 50 }, 2500 * time.Millisecond},
		{"bounds are near", 4 * time.Second, 5 * time.Second, func(int) bool { return false }, 4 * time.Second},
		{"bounds are equal", time.Second, time.Second, func(i int) bool { return i%2 == 0 }, time.Second},
	} {
		b := Backoff{Min: tc.min, Max: tc.max}
		before, longest := time.Duration(0), time.Duration(0)
		for i := range 200 {
			d := b.Next(r.Float64(), !tc.answered(i))
			if d < tc.min || d > tc.max || d < before*8/10 {
				t.Errorf("%s: pause %d is %s after one of %s", tc.name, i, d, before)
			}
			if i >= 150 {
				longest = max(longest, d)
			}
			before = d
		}
		if longest > tc.last*11/10 || longest < tc.last*8/10 {
			t.Errorf("%s: the longest pause is %s, want about %s", tc.name, longest, tc.last)
		}
	}
}

// TestBackoffEases: one success does not reset the backoff, a few
// do. Meanwhile requests keep a distance, in total at most half the last pause.
func TestBackoffEases(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 100 {
		b := Backoff{Min: 30 * time.Millisecond, Max: 5 * time.Second}
		var last, waits time.Duration
		for range 30 {
			last = b.Next(r.Float64(), false)
		}
		waits += b.Ease(r.Float64())
		again := b.Next(r.Float64(), false)
		if again < last/2 {
			t.Errorf("after %s and a success the next pause is %s", last, again)
		}
		for range 13 {
			waits += b.Ease(r.Float64())
		}
		if d := b.Next(0, false); d != b.Min {
			t.Errorf("first pause after some successes is %v", d)
		}
		if waits > last/6+again/2 {
			t.Errorf("after pauses of %s and %s requests wait %s in all", last, again, waits)
		}
	}
}
