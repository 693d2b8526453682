package events

import (
	"testing"
	"time"

	"hwsagent/agent/status"
)

// TestOutageGoesOnOverRestarts: a target is down since it last accepted data, whatever restarts came between, and whatever
// happened to its name.
func TestOutageGoesOnOverRestarts(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	clock := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
	// see returns the minute since which the target is said to be down; success is the minute of the last success of this process, 0: none.
	see := func(minute int, name, state string, down, success int) int {
		t.Helper()
		s := status.TargetStatus{Name: name, State: state}
		if down > 0 {
			s.DownSince = clock(down)
		}
		if success > 0 {
			s.LastSuccess = clock(success)
		}
		all := []status.TargetStatus{{Name: "other", State: status.StateOK}, s}
		j.Outages(clock(minute), all)
		if all[1].DownSince.IsZero() {
			return 0
		}
		return int(all[1].DownSince.Sub(start) / time.Minute)
	}
	restart := func(minute int) {
		t.Helper()
		if err := j.Save(clock(minute)); err != nil {
			t.Fatal(err)
		}
		j = open(t, dir)
	}
	for i, step := range []struct {
		minute        int
		name, state   string
		down, success int
		want          int
	}{
		{1, "a", status.StateRetrying, 1, 0, 1},
		{9, "a", status.StateHeld, 1, 0, 1},
		{-10, "", "", 0, 0, 0}, // a restart
		{11, "a", status.StateStarting, 0, 0, 1},
		{12, "a", status.StateRetrying, 12, 0, 1},
		{13, "a", status.StatePaused, 12, 0, 12},
		{-20, "", "", 0, 0, 0},
		{21, "a", status.StateRetrying, 21, 0, 1},
		{22, "a", status.StateOK, 0, 22, 0}, // accepted
		{23, "a", status.StateRetrying, 23, 22, 23},
		{24, "a", status.StateRetrying, 24, 24, 24}, // it accepted something in between
		{-30, "", "", 0, 0, 0},
		{31, "a", status.StateRetrying, 31, 0, 24},
		{32, "a", status.StateOrphan, 0, 0, 0},
		{33, "a", status.StateRetrying, 33, 0, 33},
		{-2000, "", "", 0, 0, 0}, // events are forgotten by then
		{2001, "a", status.StateRetrying, 2001, 0, 33},
	} {
		if step.minute < 0 {
			restart(-step.minute)
			continue
		}
		if got := see(step.minute, step.name, step.state, step.down, step.success); got != step.want {
			t.Errorf("step %d, minute %d: down since minute %d, want %d", i, step.minute, got, step.want)
		}
	}
	j.Rename("a", "b")
	if got := see(2002, "b", status.StateHeld, 2002, 0); got != 33 {
		t.Errorf("with another name: down since minute %d", got)
	}
	if got := see(2003, "a", status.StateHeld, 2003, 0); got != 2003 {
		t.Errorf("another target with the former name: down since minute %d", got)
	}
	j.Forget("b")
	if got := see(2004, "b", status.StateHeld, 2004, 0); got != 2004 {
		t.Errorf("after its queue was dropped: down since minute %d", got)
	}
}

// An outage that was recorded by a clock far ahead begins at the first look of the next process.
func TestOutageInTheFuture(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	ahead := start.AddDate(5, 0, 0)
	down := func(now time.Time) time.Duration {
		s := at(now, 10, nil)
		s.Targets[0].State, s.Targets[0].DownSince = status.StateRetrying, now
		j.Account(s)
		j.Outages(now, s.Targets)
		return now.Sub(s.Targets[0].DownSince)
	}
	down(ahead)
	if err := j.Save(ahead); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir)
	for _, want := range []time.Duration{0, time.Minute} {
		if got := down(start.Add(want)); got != want {
			t.Errorf("down for %s, want %s", got, want)
		}
	}
}
