package receivers

import (
	"testing"
	"time"
)

// TestActiveSeries: long labels count by their bytes, and what has been silent makes room.
func TestActiveSeries(t *testing.T) {
	a := newActiveSeries(10)
	now := time.Unix(0, 0)
	admit := func(hash, bytes uint64, want bool) {
		t.Helper()
		if got := a.admit(hash, bytes, now, 1); (got != beyond) != want {
			t.Errorf("%d of %d bytes at %s: %d", hash, bytes, now.Sub(time.Unix(0, 0)), got)
		}
	}
	for i := range uint64(4) {
		admit(i, 100, true)
	}
	admit(4, 5*heavy, true)     // counts six times
	admit(5, 100, false)        // one too many
	admit(4, 5*heavy, true)     // is there
	a.forget([]uint64{4, 4}, 1) // its request was refused
	admit(5, 100, true)
	admit(6, 5*heavy, false)
	now = now.Add(generation)
	admit(0, 100, true) // goes on, the others grow old
	admit(6, 5*heavy, false)
	a.forget([]uint64{1}, 1)
	admit(6, 5*heavy, true)
	admit(7, 0, false)
	if a.size() != 5 || a.weight != 4+6 {
		t.Errorf("%d series that count %d times", a.size(), a.weight)
	}
	now = now.Add(generation)
	admit(6, 5*heavy, true)
	admit(8, 0, true) // those that are old have gone
	if a.size() != 3 || a.weight != 1+6+1 {
		t.Errorf("%d series that count %d times", a.size(), a.weight)
	}
	now = now.Add(3 * generation)
	admit(9, 9*heavy, true)
	if a.size() != 1 || a.weight != 10 {
		t.Errorf("%d series that count %d times", a.size(), a.weight)
	}
}

// TestActiveSeriesOfTwoRequests: the first of two requests with a series is not stored. The second one may have stored it, so it counts.
func TestActiveSeriesOfTwoRequests(t *testing.T) {
	a := newActiveSeries(1)
	now := time.Unix(0, 0)
	for i, step := range []struct {
		by   uint32
		want verdict
	}{{1, fresh}, {1, unsure}, {3, firm}, {1, firm}} {
		if got := a.admit(7, 0, now, step.by); got != step.want {
			t.Errorf("step %d: %d, want %d", i, got, step.want)
		}
	}
	a.forget([]uint64{7}, 1)
	if got := a.admit(8, 0, now, 5); got != beyond {
		t.Error("a further series gets the room of one that is in the log")
	}
	if got := a.admit(7, 0, now, 5); got != firm {
		t.Errorf("the series in the log: %d", got)
	}
}
