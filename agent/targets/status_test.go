package targets

import (
	"testing"
	"time"
)

// The clock is set back by two hours in an outage of three: the target is three behind.
func TestAge(t *testing.T) {
	now := time.Now()
	oldest := now.Round(0).Add(-time.Hour) // by its timestamp
	for _, tc := range []struct {
		down, stepped time.Time
		want          time.Duration
	}{
		{time.Time{}, time.Time{}, time.Hour},
		{now.Add(-time.Minute), now.Add(-time.Second), time.Hour},
		{now.Add(-3 * time.Hour), now.Add(-time.Second), 3 * time.Hour},
		{now.Add(-3 * time.Hour), now.Add(-4 * time.Hour), time.Hour}, // what is older was let go for the budget
		{now.Add(-3 * time.Hour), time.Time{}, time.Hour},
	} {
		if got := age(oldest, tc.down, tc.stepped, now); got.Round(time.Second) != tc.want {
			t.Errorf("down since %s, set at %s: %s, want %s", tc.down, tc.stepped, got, tc.want)
		}
	}
	if got := age(now.Round(0).Add(time.Hour), time.Time{}, now, now); got != 0 {
		t.Errorf("of a sample that is an hour ahead: %s", got)
	}
}
