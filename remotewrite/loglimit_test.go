package remotewrite

import (
	"strings"
	"testing"
	"time"
)

// A text is due once a minute, whatever figures it has, and few texts are due in a minute.
func TestOnceAMinute(t *testing.T) {
	var o onceAMinute
	now := time.Unix(0, 0)
	for _, step := range []struct {
		after time.Duration
		of    string
		text  string
		want  bool
	}{
		{0, "400", "sample 17 is late", true},
		{59 * time.Second, "400", "sample 18 is late", false},
		{59 * time.Second, "400", "sample 18 is bad", true},
		{59 * time.Second, "409", "sample 18 is late", true},
		{60 * time.Second, "400", "sample 19 is late", true},
	} {
		if got := o.due(step.of, step.text, now.Add(step.after)); got != step.want {
			t.Errorf("after %s %s %q: %t, want %t", step.after, step.of, step.text, got, step.want)
		}
	}
	for range 2 {
		now = now.Add(2 * time.Minute)
		due := 0
		for n := range 10 * maxTexts {
			if o.due("400", strings.Repeat("x", n), now) {
				due++
			}
		}
		if due != maxTexts || len(o.last) != maxTexts {
			t.Errorf("%d of many texts are due in a minute and %d are remembered, want %d", due, len(o.last), maxTexts)
		}
	}
}

func TestHourly(t *testing.T) {
	var h hourly
	for _, step := range []struct {
		now  time.Duration
		want bool
	}{{1, true}, {2, false}, {time.Hour, false}, {time.Hour + 1, true}, {time.Hour + 2, false}} {
		if got := h.due(int64(step.now)); got != step.want {
			t.Errorf("at %v: %v", step.now, got)
		}
	}
}
