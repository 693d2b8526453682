package events

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hwsagent/agent/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// at returns a status with one target that has dropped so much of its samples for a reason.
func at(now time.Time, appended uint64, dropped map[string]uint64) status.Status {
	return status.Status{Running: true, Now: now, Started: start, Targets: []status.TargetStatus{
		{Name: "a", State: status.StateOK, Ledger: status.LedgerStatus{Appended: appended, Delivered: 1, Dropped: dropped, Balanced: true}}}}
}

// TestLossesSurviveKills: whatever happens between saves, the reported losses add up to the ledger's unacknowledged
// losses of the last 24 hours, and losses reported before a kill are reported after it.
func TestLossesSurviveKills(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	kills, acks := 0, 0
	for round := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, round))
		dir := t.TempDir()
		j, now := open(t, dir), start
		ledger, unseen, appended := uint64(0), uint64(0), uint64(1000) // unseen: lost and not acknowledged
		for range 60 {
			now = now.Add(time.Duration(rnd.IntN(600)) * time.Second)
			if rnd.IntN(3) == 0 {
				n := uint64(rnd.IntN(100))
				ledger, unseen, appended = ledger+n, unseen+n, appended+n
			}
			got := uint64(0)
			for _, l := range j.Account(at(now, appended, map[string]uint64{"budget": ledger, "skipped": 9})) {
				if !l.Acknowledged {
					got += l.Samples
				}
				if l.Reason != "budget" || l.LastAt.After(now) {
					t.Fatalf("round %d: loss %+v", round, l)
				}
			}
			if got != unseen {
				t.Fatalf("round %d: %d lost samples are shown, want %d", round, got, unseen)
			}
			switch rnd.IntN(6) {
			case 0:
				if err := j.Save(now); err != nil {
					t.Fatal(err)
				}
			case 1:
				j.Acknowledge(now)
				if err := j.Save(now); err != nil {
					t.Fatal(err)
				}
				unseen = 0
				acks++
			case 2:
				j = open(t, dir) // killed: unsaved losses are in the ledger
				kills++
			}
		}
	}
	if kills < 30 || acks < 30 {
		t.Errorf("%d kills, %d acknowledgements", kills, acks)
	}
}

// TestLossesBeforeAKill: what a killed process had not saved was lost before this one started.
func TestLossesBeforeAKill(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	j.Account(at(start, 10, nil))
	if err := j.Save(start); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir)
	begin := start.Add(time.Minute)
	j.Begin(begin, "v1")
	for i, n := range []uint64{52, 53} {
		s := at(begin.Add(time.Duration(1+i)*time.Second), 100, map[string]uint64{"rejected": n})
		s.Started = begin
		losses := j.Account(s)
		if want := []time.Time{begin, s.Now}[i]; len(losses) != 1 || losses[0].Samples != n || !losses[0].LastAt.Equal(want) {
			t.Errorf("losses %+v, want %d until %s", losses, n, want)
		}
	}
}

// A loss is over after a day; one of an unknown time says so; a new queue of the same name has an account of its own.
func TestLossesEnd(t *testing.T) {
	j := open(t, t.TempDir())
	now := start
	losses := j.Account(at(now, 1000, map[string]uint64{"rejected": 5}))
	if len(losses) != 1 || !losses[0].FirstAt.IsZero() || losses[0].Samples != 5 {
		t.Fatalf("what was lost before anybody looked: %+v", losses)
	}
	now = now.Add(time.Hour)
	losses = j.Account(at(now, 1000, map[string]uint64{"rejected": 8}))
	if len(losses) != 2 || !losses[1].FirstAt.Equal(start) || !losses[1].LastAt.Equal(now) || losses[1].Samples != 3 {
		t.Fatalf("losses %+v", losses)
	}
	if losses = j.Account(at(now.Add(time.Minute), 1000, map[string]uint64{"rejected": 6})); len(losses) != 2 || losses[1].Samples != 1 {
		t.Errorf("after two of them turned out to be delivered: %+v", losses)
	}
	if losses = j.Account(at(now.Add(2*time.Minute), 10, map[string]uint64{"rejected": 2})); len(losses) != 2 || losses[1].Samples != 3 {
		t.Errorf("with another queue of that name: %+v", losses)
	}
	if losses = j.Account(at(now.Add(25*time.Hour), 10, map[string]uint64{"rejected": 2})); len(losses) != 0 {
		t.Errorf("a day later: %+v", losses)
	}
	s := at(now.Add(26*time.Hour), 10, map[string]uint64{"rejected": 2})
	s.WAL.Refused = 4
	if losses = j.Account(s); len(losses) != 1 || losses[0].Target != "" || losses[0].Reason != status.ReasonRefused || losses[0].Samples != 4 {
		t.Errorf("refused by the log: %+v", losses)
	}
}

// TestLossesOfAQueueThatReturns: a tenant with losses is forgotten, and comes back with a new queue that has lost nothing. Its losses stay in the
// record however much it gets, and its next ones are added.
func TestLossesOfAQueueThatReturns(t *testing.T) {
	j := open(t, t.TempDir())
	for i, step := range []struct{ appended, dropped, want uint64 }{{100, 5, 5}, {1000, 5, 5}, {200, 0, 5}, {2000, 0, 5}, {3000, 3, 8}} {
		var dropped map[string]uint64
		if step.dropped > 0 {
			dropped = map[string]uint64{"budget": step.dropped}
		}
		var lost uint64
		for _, l := range j.Account(at(start.Add(time.Duration(i)*time.Second), step.appended, dropped)) {
			lost += l.Samples
		}
		if lost != step.want {
			t.Errorf("with %d appended and %d dropped, %d are lost, want %d", step.appended, step.dropped, lost, step.want)
		}
	}
}

// TestDownUntilItAccepts: between two events of one outage there is neither a second one nor "up", whatever reloads and
// restarts came between; it ends with the first accepted request.
func TestDownUntilItAccepts(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	now := start
	for i, step := range []struct {
		state   string // "": a restart
		success bool
		want    string // the kinds of new events
	}{
		{status.StateStarting, false, ""},
		{status.StateOK, true, ""},
		{status.StateRetrying, true, Down},
		{status.StateStarting, false, ""}, // a reload
		{status.StateBehind, false, ""},
		{status.StateRetrying, false, ""},
		{status.StateOrphan, false, ""}, // the reload takes it out, and the next one brings it back
		{"", false, ""},
		{status.StateStarting, false, ""},
		{status.StateRetrying, false, ""},
		{"", false, ""},
		{status.StateBehind, true, Up},
		{status.StateHeld, true, Held},
		{"", false, ""},
		{status.StateHeld, false, ""},
		{status.StateRetrying, false, Down},
		{status.StatePaused, false, Paused},
		{"", false, ""},
		{status.StatePaused, false, ""},
		{status.StateStarting, false, Resumed},
		{status.StateOK, true, ""},
	} {
		now = now.Add(5 * time.Second)
		if step.state == "" {
			if err := j.Save(now); err != nil {
				t.Fatal(err)
			}
			j = open(t, dir)
			continue
		}
		s := at(now, 10, nil)
		s.Targets[0].State, s.Targets[0].LastError = step.state, "connection refused"
		if step.success {
			s.Targets[0].LastSuccess = now
		}
		known := len(j.Events(now))
		j.Observe(s)
		var kinds []string
		for _, e := range j.Events(now)[known:] {
			kinds = append(kinds, e.Kind)
		}
		if got := strings.Join(kinds, " "); got != step.want {
			t.Errorf("step %d, %s: events %q, want %q", i, step.state, got, step.want)
		}
	}
}

func TestBetween(t *testing.T) {
	base := at(start.Add(time.Hour), 1, nil)
	base.Targets[0].CredentialsAt, base.Targets[0].LastSuccess = start, start
	state := func(s string) func(*status.Status) {
		return func(st *status.Status) { st.Targets[0].State, st.Targets[0].Why = s, "the reason" }
	}
	mute := func(reason string, n int) func(*status.Status) {
		return func(st *status.Status) {
			st.Targets[0].Muted = []status.MuteStatus{{Reason: reason, Text: "the reason", Words: "no\nmore", Series: n, Since: start}}
		}
	}
	both := func(a, b func(*status.Status)) [2]func(*status.Status) { return [2]func(*status.Status){a, b} }
	same := func(*status.Status) {}
	for _, c := range []struct {
		change [2]func(*status.Status)
		want   string // kinds
	}{
		{both(same, same), ""},
		{both(same, state(status.StateRetrying)), Down},
		{both(same, state(status.StateHeld)), Held},
		{both(state(status.StateRetrying), state(status.StateHeld)), Held},
		{both(state(status.StateHeld), same), Up},
		{both(state(status.StateRetrying), state(status.StateBehind)), Up},
		{both(same, state(status.StateBehind)), ""},
		{both(same, state(status.StatePaused)), Paused},
		{both(state(status.StatePaused), same), Resumed},
		{both(state(status.StatePaused), state(status.StateHeld)), Held},
		{both(same, state(status.StateStopped)), Down},
		{both(same, func(s *status.Status) { s.Targets[0].CredentialsAt = start.Add(time.Minute) }), Credentials},
		{both(same, mute("series-limit", 5)), Muted},
		{both(mute("series-limit", 5), mute("series-limit", 7)), ""},
		{both(mute("series-limit", 5), mute("type-conflict", 5)), Muted + " " + Released},
		{both(mute("series-limit", 5), same), Released},
		{both(same, func(s *status.Status) { s.WAL.Error = "disk full" }), Down},
		{both(func(s *status.Status) { s.WAL.Error = "disk full" }, same), Up},
		{both(same, func(s *status.Status) { s.Targets = nil }), ""},
		// The clock was set: every time moves, and nothing has happened.
		{both(same, func(s *status.Status) {
			s.Now, s.Started = s.Now.Add(time.Hour), s.Started.Add(time.Hour)
			s.Targets[0].CredentialsAt = s.Targets[0].CredentialsAt.Add(time.Hour)
		}), ""},
	} {
		before, after := base, base
		before.Targets, after.Targets = []status.TargetStatus{base.Targets[0]}, []status.TargetStatus{base.Targets[0]}
		c.change[0](&before)
		c.change[1](&after)
		var kinds []string
		j := open(t, t.TempDir())
		j.Observe(before)
		known := len(j.Events(base.Now))
		j.Observe(after)
		for _, e := range j.Events(after.Now)[known:] {
			kinds = append(kinds, e.Kind)
			if e.Text == "" || e.Subject == "" || strings.Contains(e.Text, "\n") {
				t.Errorf("event %+v", e)
			}
		}
		if got := strings.Join(kinds, " "); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// The file is for its owner, bounded, and says after a kill that there was no orderly stop.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	j.Begin(start, "v1")
	for i := range 2000 {
		j.Add(Event{start.Add(time.Duration(i) * time.Second), Down, "target a", "no route to host"})
	}
	if err := j.Save(start); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() > 100<<10 {
		t.Errorf("the file is %v, %v", info, err)
	}
	j = open(t, dir)
	j.Begin(start.Add(time.Hour), "v1")
	if all := j.Events(start.Add(time.Hour)); len(all) != maxEvents || !strings.Contains(all[len(all)-1].Text, "not shut down cleanly") {
		t.Errorf("%d events, the last %+v", len(all), all[len(all)-1])
	}
	j.End(start.Add(2 * time.Hour))
	if err := j.Save(start.Add(2 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir)
	j.Begin(start.Add(3*time.Hour), "v1")
	if all := j.Events(start.Add(3 * time.Hour)); strings.Contains(all[len(all)-1].Text, "not shut down cleanly") {
		t.Errorf("after an orderly stop: %+v", all[len(all)-1])
	}
	if all := j.Events(start.Add(48 * time.Hour)); len(all) != 0 {
		t.Errorf("%d events of two days ago", len(all))
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(`{"schema": 1, "losses`), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err = Open(dir)
	losses := j.Account(at(start, 10, map[string]uint64{"budget": 3}))
	if err == nil || len(losses) != 2 || losses[0].Samples+losses[1].Samples != 3 {
		t.Errorf("a damaged file: %v, losses %+v", err, losses)
	}
}

// TestUnreadableFile: no ledger has the samples that the log refused, so a file that cannot be read is a loss itself,
// until it is acknowledged.
func TestUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	s := at(start, 10, nil)
	s.WAL.Refused = 4
	j.Account(s)
	if err := j.Save(start); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, FileName), 40); err != nil {
		t.Fatal(err)
	}
	j, err := Open(dir)
	if err == nil {
		t.Fatal("the damage did not take")
	}
	unread := func(j *Journal) (alarms int) {
		for _, l := range j.Account(at(start.Add(time.Minute), 10, nil)) {
			if l.Reason == status.ReasonUnread && !l.Acknowledged {
				alarms++
			}
		}
		return alarms
	}
	if n := unread(j); n != 1 {
		t.Errorf("%d losses of the record", n)
	}
	if all := j.Events(start.Add(time.Minute)); len(all) != 1 || all[0].Kind != status.OutcomeLost || !strings.Contains(all[0].Text, "could not be read") {
		t.Errorf("events %+v", all)
	}
	if err := j.Save(start); err != nil {
		t.Fatal(err)
	}
	j = open(t, dir)
	if n := unread(j); n != 1 {
		t.Errorf("%d losses of the record after the next start", n)
	}
	j.Acknowledge(start.Add(time.Minute))
	if n := unread(j); n != 0 {
		t.Errorf("%d losses of the record after an acknowledgement", n)
	}
}

// TestRefusedSamplesAreSavedSoon: no ledger has the samples that the log refused, so a kill may hide those since the last
// Save only.
func TestRefusedSamplesAreSavedSoon(t *testing.T) {
	dir := t.TempDir()
	j, now := open(t, dir), start
	for n := range uint64(3) {
		s := at(now, 10, nil)
		s.WAL.Refused = n + 1
		j.Account(s)
		if err := j.Save(now); err != nil {
			t.Fatal(err)
		}
		if losses := open(t, dir).Account(at(now, 10, nil)); len(losses) != 1 || losses[0].Samples != n+1 {
			t.Errorf("saved %+v, want %d samples", losses, n+1)
		}
		now = now.Add(5 * time.Second)
	}
}

// A save that fails leaves the former file, and the next one has everything.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	j.Add(Event{start, Down, "target a", "first"})
	if err := j.Save(start); err != nil {
		t.Fatal(err)
	}
	blocked := filepath.Join(dir, FileName+".new")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	j.Add(Event{start.Add(time.Second), Up, "target a", "second"})
	if err := j.Save(start); err == nil {
		t.Fatal("the fault did not take")
	}
	if n := len(open(t, dir).Events(start)); n != 1 {
		t.Errorf("%d events in the former file", n)
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	if err := j.Save(start); err != nil || fmt.Sprint(len(open(t, dir).Events(start))) != "2" {
		t.Errorf("the next save: %v", err)
	}
}

// TestLossesOfARenamedQueue: the losses of a queue follow it to its new name, and none is reported twice.
func TestLossesOfARenamedQueue(t *testing.T) {
	j, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	status := func(name string, at time.Time) status.Status {
		ledger := status.LedgerStatus{Appended: 100, Dropped: map[string]uint64{"budget": 40}}
		return status.Status{Now: at, Running: true, Targets: []status.TargetStatus{{Name: name, Ledger: ledger}}}
	}
	j.Account(status("old", now))
	j.Acknowledge(now)
	j.Rename("old", "new")
	got := j.Account(status("new", now.Add(time.Minute)))
	if len(got) != 1 || got[0].Target != "new" || got[0].Samples != 40 || !got[0].Acknowledged {
		t.Errorf("losses after the rename: %+v; want the 40 acknowledged ones, of new", got)
	}
}
