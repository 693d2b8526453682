package pace

import (
	"strings"
	"testing"
	"time"
)

// A text is due once a minute, whatever figures it has, and the texts that are remembered are bounded.
func TestOnceAMinute(t *testing.T) {
	var o OnceAMinute
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
		if got := o.Due(step.of, step.text, now.Add(step.after)); got != step.want {
			t.Errorf("after %s %s %q: %t, want %t", step.after, step.of, step.text, got, step.want)
		}
	}
	for n := range 10 * maxTexts {
		o.Due("400", strings.Repeat("x", n), now)
	}
	if len(o.last) > maxTexts {
		t.Errorf("%d texts are remembered, want at most %d", len(o.last), maxTexts)
	}
}
