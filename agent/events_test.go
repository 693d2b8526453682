package agent

import (
	"testing"
	"time"

	"hwsagent/agent/events"
	"hwsagent/agent/status"
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

// TestOutageGoesOnOverARestart: a restart of the agent does not end the outage of a receiver.
func TestOutageGoesOnOverARestart(t *testing.T) {
	storage := t.TempDir()
	var since time.Time
	for range 3 {
		r := startAgent(t, storage, entry("down", "http://127.0.0.1:1/", ""))
		var down status.TargetStatus
		until(t, "the target is down", func() bool { down, _ = r.target("down"); return down.State == status.StateRetrying })
		if since.IsZero() {
			since = down.DownSince
		}
		if moved := down.DownSince.Round(0).Sub(since.Round(0)); moved.Abs() > 10*time.Millisecond {
			t.Errorf("the outage begins %s later after a restart", moved)
		}
		r.end()
	}
}
