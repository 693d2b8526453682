package events

import (
	"testing"
	"time"
)

// A loss that was recorded by a clock far ahead is as old as its first reading, and ends a day later.
func TestTimesInTheFuture(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	ahead := start.AddDate(5, 0, 0)
	j.Account(at(ahead, 10, nil))
	j.Account(at(ahead.Add(time.Minute), 10, map[string]uint64{"budget": 3}))
	j.Add(Event{ahead.Add(time.Minute), Down, "target a", "no route to host"})
	if err := j.Save(ahead.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir)
	losses := j.Account(at(start, 10, map[string]uint64{"budget": 3}))
	if len(losses) != 1 || losses[0].LastAt.After(start) || losses[0].FirstAt.After(losses[0].LastAt) {
		t.Errorf("losses %+v", losses)
	}
	if all := j.Events(start); len(all) != 2 || all[0].Time.After(start) {
		t.Errorf("events %+v", all)
	}
	if all := j.Events(start.Add(25 * time.Hour)); len(all) != 0 {
		t.Errorf("a day later: %+v", all)
	}
}

// TestClockAheadAfterAStart: an unacknowledged loss does not end because the clock is years ahead at a start. It
// ends after a day of that agent, for good; an acknowledged one ends at once.
func TestClockAheadAfterAStart(t *testing.T) {
	for _, acknowledged := range []bool{false, true} {
		dir := t.TempDir()
		j := open(t, dir)
		j.Account(at(start, 10, nil))
		j.Account(at(start.Add(time.Minute), 10, map[string]uint64{"budget": 3}))
		if acknowledged {
			j.Acknowledge(start.Add(time.Minute))
		}
		if err := j.Save(start.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		j = open(t, dir)
		ahead := start.AddDate(5, 0, 0)
		j.Begin(ahead, "v1")
		want := 1
		if acknowledged {
			want = 0
		}
		for _, after := range []time.Duration{time.Second, 23 * time.Hour} {
			losses := j.Account(at(ahead.Add(after), 10, map[string]uint64{"budget": 3}))
			if len(losses) != want || want > 0 && !losses[0].LastAt.Equal(start.Add(time.Minute)) {
				t.Errorf("acknowledged %v, after %v: losses %+v, want %d", acknowledged, after, losses, want)
			}
		}
		over := ahead.Add(25 * time.Hour)
		if losses := j.Account(at(over, 10, map[string]uint64{"budget": 3})); len(losses) != 0 {
			t.Errorf("a day later: %+v", losses)
		}
		if err := j.Save(over); err != nil {
			t.Fatal(err)
		}
		if losses := open(t, dir).Account(at(over, 10, map[string]uint64{"budget": 3})); len(losses) != 0 {
			t.Errorf("at the next start: %+v", losses)
		}
	}
}

// Samples that came back lessen all recorded losses of their kind, the latest first.
func TestRegainOfSeveralLosses(t *testing.T) {
	j := open(t, t.TempDir())
	now := start
	j.Account(at(now, 100, nil))
	for _, n := range []uint64{5, 8} {
		now = now.Add(time.Hour)
		j.Account(at(now, 100, map[string]uint64{"budget": n}))
	}
	now = now.Add(time.Minute)
	if losses := j.Account(at(now, 100, map[string]uint64{"budget": 1})); len(losses) != 1 || losses[0].Samples != 1 {
		t.Errorf("losses %+v; want 1 sample", losses)
	}
}

// The queue that follows a dropped one of the same name has losses of its own, and takes none away from the former.
func TestLossesAfterADrop(t *testing.T) {
	j := open(t, t.TempDir())
	j.Account(at(start, 100, nil))
	j.Account(at(start.Add(time.Minute), 100, map[string]uint64{"budget": 5}))
	j.Forget("a")
	var n uint64
	for _, l := range j.Account(at(start.Add(time.Hour), 200, map[string]uint64{"budget": 3})) {
		n += l.Samples
	}
	if n != 8 {
		t.Errorf("%d samples lost, want 5 of the former queue and 3 of this one", n)
	}
}
