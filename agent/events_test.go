package agent

import (
	"testing"
	"time"

	"hwsagent/agent/events"
)

// TestStopIsNotDown: targets that stop with the agent cause no event.
func TestStopIsNotDown(t *testing.T) {
	a, dir := newSink(t), t.TempDir()
	r := startAgent(t, dir, entry("a", a.URL, ""), entry("paused", a.URL+"/p", ""))
	until(t, "it receives", func() bool { return a.last() > 3 })
	r.end()
	j, err := events.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	for _, e := range j.Events(time.Now()) {
		stopped = stopped || e.Kind == events.Stopped
		if e.Kind == events.Down || e.Kind == events.Held {
			t.Errorf("the stop left the event %+v", e)
		}
	}
	if !stopped {
		t.Error("the stop itself is not noted")
	}
}
