package hw

import "testing"

// TestSlowFan: a speed that a sensor states in rotations is a reading down to 0, since a slow fan may be a dying one. A device's number
// below 100 may be a percentage, so it is refused.
func TestSlowFan(t *testing.T) {
	same := func(v float64) float64 { return v }
	for _, c := range []struct {
		speed             float64
		plausible, number bool
	}{{0, true, true}, {1, true, false}, {99, true, false}, {100, true, true}, {60_000, true, true}, {60_001, false, false}, {-1, false, false}} {
		if got := FanSpeed.Plausible(c.speed); got != c.plausible {
			t.Errorf("a sensor's %v rpm: %t, want %t", c.speed, got, c.plausible)
		}
		if _, got := FanSpeed.Scaled(c.speed, same); got != c.number {
			t.Errorf("a device's number %v: %t, want %t", c.speed, got, c.number)
		}
	}
}
