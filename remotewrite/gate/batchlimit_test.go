package gate

import (
	"testing"
	"time"
)

// The limit falls by half at each 413, doubles each 15 s, and never leaves its bounds.
func TestBatchLimit(t *testing.T) {
	b := NewBatchLimit(2000)
	for _, step := range []struct {
		at   time.Duration
		do   string
		n    int
		want int64
	}{
		{0, "grow", 0, 2000},
		{1 * time.Second, "shrink", 2000, 1000},
		{2 * time.Second, "shrink", 2000, 1000}, // another request that was under way
		{3 * time.Second, "shrink", 3, 1},
		{4 * time.Second, "shrink", 1, 1},
		{17 * time.Second, "grow", 0, 1},
		{18 * time.Second, "grow", 0, 2},
		{19 * time.Second, "grow", 0, 2},
		{33 * time.Second, "grow", 0, 4},
		{34 * time.Second, "shrink", 4, 2},
		{48 * time.Second, "grow", 0, 2},
		{49 * time.Second, "grow", 0, 4},
		{50 * time.Second, "restore", 0, 2000},
		{900 * time.Second, "grow", 0, 2000},
	} {
		switch step.do {
		case "grow":
			b.Grow(int64(step.at))
		case "shrink":
			b.Shrink(step.n, int64(step.at))
		case "restore":
			b.Restore()
		}
		if got := b.now.Load(); got != step.want {
			t.Errorf("after %s %s %d: %d, want %d", step.at, step.do, step.n, got, step.want)
		}
		if low := b.Why() != ""; low != (step.want < 2000) {
			t.Errorf("after %s: why %q", step.at, b.Why())
		}
	}
}
