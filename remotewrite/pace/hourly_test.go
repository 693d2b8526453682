package pace

import (
	"testing"
	"time"
)

func TestHourly(t *testing.T) {
	var h Hourly
	for _, step := range []struct {
		now  time.Duration
		want bool
	}{{1, true}, {2, false}, {time.Hour, false}, {time.Hour + 1, true}, {time.Hour + 2, false}} {
		if got := h.Due(int64(step.now)); got != step.want {
			t.Errorf("at %v: %v", step.now, got)
		}
	}
}
