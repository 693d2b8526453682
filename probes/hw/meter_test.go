package hw

import (
	"math"
	"testing"
	"time"
)

// TestMeterOfNonsense: energy never falls, and stays a number, whatever a source says of the power.
func TestMeterOfNonsense(t *testing.T) {
	for _, watts := range []float64{-1, math.Inf(-1), math.Inf(1), math.NaN(), -0.5e308} {
		var m Meter
		before := m.Add(time.Minute, 10)
		if got := m.Add(time.Minute, watts); got != before {
			t.Errorf("%v watts: %v joules after %v", watts, got, before)
		}
		if got := m.Add(time.Minute, 10); got != 2*before {
			t.Errorf("%v watts: %v joules at last, want %v", watts, got, 2*before)
		}
	}
}
