package remotewrite

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
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

// TestRefusalsAreLoggedOnceAMinute: refusals for the same reason are logged once a minute; another reason is logged at
// once.
func TestRefusalsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		text := "series limit of 5000 is reached"
		r := newRig(t, &fakeReceiver{script: func(q fakeRequest) (client.Answer, bool) {
			return client.Answer{Status: 400, Text: fmt.Sprintf("%s: request %d", text, q.n)}, true
		}})
		r.cfg.Target.OnRefusal = config.RefusalDrop
		r.logger = slog.New(slog.NewTextHandler(&log, nil))
		r.start()
		for range 30 { // five minutes
			r.round(10)
			time.Sleep(10 * time.Second)
		}
		r.to.set(func() { text = "invalid label" })
		r.round(10)
		r.drained(time.Minute)
		r.end()
		if n := strings.Count(log.String(), "series limit"); n < 4 || n > 6 {
			t.Errorf("logged %d times in five minutes\n%s", n, log.String())
		}
		if n := strings.Count(log.String(), "invalid label"); n != 1 {
			t.Errorf("the new reason was logged %d times", n)
		}
		if n := len(r.letters.all()); n != 31 {
			t.Errorf("%d letters, want 31", n)
		}
	})
}
