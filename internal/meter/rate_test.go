package meter

import (
	"testing"
	"time"
)

// A round of a probe each 15 s looks like a steady stream, and a counter that begins
// anew gives no negative rate.
func TestRate(t *testing.T) {
	var r Rate
	now := time.Unix(1_800_000_000, 0)
	if got := r.PerSecond(); got != 0 {
		t.Errorf("before anything was seen: %v", got)
	}
	count := uint64(1000)
	for i := range 40 {
		if i%3 == 0 {
			count += 600
		}
		r.Observe(now, count)
		now = now.Add(RateTick)
		if got := r.PerSecond(); i > 12 && got != 40 {
			t.Errorf("at tick %d: %v a second, want 40", i, got)
		}
	}
	r.Observe(now, 5)
	if got := r.PerSecond(); got != 0 {
		t.Errorf("after the counter began anew: %v", got)
	}
	r.Observe(now.Add(RateTick), 55)
	if got := r.PerSecond(); got != 10 {
		t.Errorf("after that: %v, want 10", got)
	}
}

// TestRateSpan: rounds that come once a minute look steady over five.
func TestRateSpan(t *testing.T) {
	r := Rate{Span: 5 * time.Minute}
	now := time.Unix(1_800_000_000, 0)
	for i := range 200 {
		r.Observe(now.Add(time.Duration(i)*RateTick), uint64(i/12*600))
		if got := r.PerSecond(); i > 60 && got != 10 {
			t.Errorf("at tick %d: %v a second, want 10", i, got)
		}
	}
}
