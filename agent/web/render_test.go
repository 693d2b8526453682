package web

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/agent/status"
)

// render returns the page of a status.
func render(t *testing.T, s status.Status, events []status.Event) string {
	t.Helper()
	rec := httptest.NewRecorder()
	(&handlers{o: Options{Status: func() status.Status { return s }, Events: func() []status.Event { return events }}}).page(rec, nil)
	if rec.Code != 200 {
		t.Fatalf("the page: %d\n%s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// fleet returns an agent with targets that all are well.
func fleet(targets int) status.Status {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := status.Status{
		Schema: 1, Running: true, Host: "plant-7", Now: now, Started: now.Add(-time.Hour), Config: status.ConfigStatus{File: "/etc/hwsagent/agent.yaml", LoadedAt: now.Add(-time.Hour)},
		WAL: status.WALStatus{Dir: "/var/lib/hwsagent/wal", Sync: "1s", Segments: 4, Bytes: 30 << 20, MaxBytes: 4 << 30, FreeBytes: 90 << 30, Appended: 1e6, SamplesPerSec: 400, BytesPerSec: 900, Series: 800},
	}
	for i := range 6 {
		s.Probes = append(s.Probes, status.ProbeStatus{Name: fmt.Sprintf("probe-%d", i), Type: "snmp", Target: fmt.Sprintf("192.0.2.%d:161", i), State: "ok", Interval: 15 * time.Second, LastRun: now.Add(-3 * time.Second), Took: 40 * time.Millisecond, Samples: 812})
	}
	for i := range targets {
		s.Targets = append(s.Targets, status.TargetStatus{
			Name: fmt.Sprintf("receiver-%02d", i), URL: fmt.Sprintf("https://mimir-%02d.plant.example/api/v1/push", i), State: status.StateOK, LagSeconds: 1.2, OldestPending: now.Add(-1200 * time.Millisecond),
			PendingSamples: 412, PendingBytes: 9000, SentPerSec: 400, LastSuccess: now.Add(-time.Second), Shards: 1, MaxShards: 4,
			Ledger: status.LedgerStatus{Appended: 1e6, Delivered: 1e6 - 412, Pending: 412, Balanced: true},
		})
	}
	return s
}

// breakTarget makes a target take nothing since so long.
func breakTarget(t *status.TargetStatus, now time.Time, state, why string, since time.Duration, waiting uint64) {
	t.State, t.Why, t.LastError, t.LastErrorAt, t.LagSeconds = state, why, "post to "+t.URL+": "+why, now.Add(-time.Second), since.Seconds()
	t.OldestPending, t.PendingSamples, t.PendingBytes, t.LastSuccess, t.SentPerSec = now.Add(-since), waiting, int64(waiting)*2, now.Add(-since), 0
	t.Ledger.Pending, t.Ledger.Delivered, t.NextTry = waiting, t.Ledger.Appended-waiting, now.Add(30*time.Second)
}

// brokenFleet has three targets of so many that take nothing, each for a reason of its own.
func brokenFleet(targets int) (status.Status, []status.Event) {
	s := fleet(targets)
	a, b, c := &s.Targets[7], &s.Targets[21], &s.Targets[targets-1]
	breakTarget(a, s.Now, status.StateHeld, "401 Unauthorized: the token is not known", 12*time.Minute, 288_000)
	a.Failure, a.Try = "credentials", "renew the token in /etc/hwsagent/seven.token"
	breakTarget(b, s.Now, status.StateRetrying, "dial tcp 192.0.2.21:443: connect: connection refused", 34*time.Minute, 816_000)
	b.Failure, b.Try = "network", "start the receiver, or correct the URL"
	c.Why, c.LastError = "", ""
	breakTarget(c, s.Now, status.StatePaused, "paused with hwsagent targets pause", 51*time.Minute, 900_000)
	c.LastError, c.PausedSince = "", s.Now.Add(-51*time.Minute)
	s = status.Judge(s)
	return s, []status.Event{
		{Time: s.Now.Add(-25 * time.Hour), Kind: "lost", Subject: "target receiver-01", Text: "an event of yesterday"},
		{Time: s.Now.Add(-51 * time.Minute), Kind: "paused", Subject: "target " + c.Name, Text: "paused by command"},
		{Time: s.Now.Add(-34 * time.Minute), Kind: "down", Subject: "target " + b.Name, Text: b.Why},
		{Time: s.Now.Add(-12 * time.Minute), Kind: "held", Subject: "target " + a.Name, Text: a.Why},
	}
}

// Of 50 targets of which 3 are broken, the page says once each what is wrong, since when, what it costs and what to
// do; and it is small.
func TestPageOfManyTargets(t *testing.T) {
	s, events := brokenFleet(50)
	body := render(t, s, events)
	total := len(body)
	for _, asset := range []string{"page.css", "page.js"} {
		text, err := assets.ReadFile("assets/" + asset)
		if err != nil {
			t.Fatal(err)
		}
		total += len(text)
	}
	if total > 100<<10 {
		t.Errorf("the page has %d bytes with its style and script, more than 100 KiB", total)
	}
	for name, words := range map[string][]string{
		"receiver-07": {"401 Unauthorized: the token is not known", "Down since 11:48:00 (12 min)", "288\u202f000 samples wait", "renew the token in /etc/hwsagent/seven.token"},
		"receiver-21": {"dial tcp 192.0.2.21:443: connect: connection refused", "Down since 11:26:00 (34 min); nothing", "816\u202f000 samples wait", "start the receiver, or correct the URL"},
		"receiver-49": {"is paused: nothing is sent", "Paused since 11:09:00", "900\u202f000 samples wait", "hwsagent targets resume receiver-49"},
	} {
		for _, w := range words {
			if n := strings.Count(body, w); n != 1 {
				t.Errorf("%s: %q is said %d times", name, w, n)
			}
		}
	}
	if n := strings.Count(body, "<details"); n != 50 {
		t.Errorf("%d rows", n)
	}
	if n := strings.Count(body, " open>"); n != 3 {
		t.Errorf("%d rows are open, want those of the broken targets", n)
	}
	if first := body[strings.Index(body, "<details"):]; !strings.HasPrefix(first, `<details class="error" open>`) {
		t.Errorf("the first row is %.200s", first)
	}
	if strings.Contains(body, "an event of yesterday") || !strings.Contains(body, "paused by command") {
		t.Error("the events of the last 24 hours are not those on the page")
	}
}

// What several have is said once, with all names: failures that differ by the address only, and losses for one reason.
func TestEqualProblemsAreSaidOnce(t *testing.T) {
	s := fleet(6)
	for i := range 3 {
		why := fmt.Sprintf("dial tcp mimir-%02d.plant.example: connect: connection refused", i)
		breakTarget(&s.Targets[i], s.Now, status.StateRetrying, why, time.Duration(i+5)*time.Minute, 1000)
		s.Targets[i].Try = "start it"
	}
	s.Targets[2].Try = "start the third"
	for i := range 2 {
		s.Probes[i].State, s.Probes[i].Failures, s.Probes[i].LastError = "failing", i+3, s.Probes[i].Target+": timeout"
		s.Losses = append(s.Losses, status.LossStatus{Target: s.Targets[4+i].Name, Reason: "rejected", Samples: 40, FirstAt: s.Now.Add(-time.Hour), LastAt: s.Now.Add(-time.Hour)})
	}
	s = status.Judge(s)
	var got []string
	for _, f := range status.Findings(s) {
		text := f.Severity + " " + f.Kind + " " + strings.Join(f.Names, ",") + ": " + f.Text
		for _, a := range f.Tries {
			text += " | " + a.For + ": " + a.Text
		}
		got = append(got, text)
	}
	want := []string{
		"error targets receiver-00,receiver-01,receiver-02: dial tcp its address: connect: connection refused. Down since 11:53:00 (7 min); nothing is lost; 3\u202f000 samples wait on disk, all targets added up" +
			" | receiver-00, receiver-01: start it | receiver-02: start the third",
		"warning targets receiver-04,receiver-05: 80 samples were lost at 11:00:00: the receiver refused them (all targets added up) | : `hwsagent targets rejected NAME` shows them with the receiver's words; `hwsagent events ack` ends this warning",
		"warning probes probe-0,probe-1: fail: its address: timeout | : `hwsagent probe NAME` runs it once and prints its samples",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(status.Findings(s), s.Findings); diff != "" {
		t.Errorf("JSON has others (-want +got):\n%s", diff)
	}
	var words strings.Builder
	if err := status.WriteText(&words, s); err != nil || strings.Count(words.String(), "connection refused.") != 1 ||
		!strings.Contains(words.String(), "Error targets receiver-00, receiver-01, receiver-02: dial tcp") || !strings.Contains(words.String(), "    Try (receiver-02): start the third\n") {
		t.Errorf("in words (%v):\n%s", err, words.String())
	}
	body := render(t, s, nil)
	for _, w := range []string{"connection refused", "timeout", "the receiver refused them"} {
		if n := strings.Count(body, w); w != "connection refused" && n != 1 {
			t.Errorf("%q is said %d times", w, n)
		}
	}
	if strings.Contains(body, "<details class=\"error\" open>") {
		t.Error("a row is open whose trouble others share")
	}
}

// Equal events that follow each other are one line; what stands among the problems is not repeated; old ones are left out.
func TestEventsOfThePage(t *testing.T) {
	s := fleet(3)
	breakTarget(&s.Targets[0], s.Now, status.StateHeld, "401 Unauthorized", time.Minute, 9)
	s = status.Judge(s)
	at := func(d time.Duration) time.Time { return s.Now.Add(-d) }
	events := []status.Event{{Time: at(25 * time.Hour), Kind: "restart", Subject: "agent", Text: "of yesterday"}}
	for i := range maxEvents {
		events = append(events, status.Event{Time: at(time.Duration(20-i) * time.Hour), Kind: "reload", Subject: "config", Text: fmt.Sprintf("loaded %d", i)})
	}
	events = append(events, status.Event{Time: at(9 * time.Minute), Kind: "down", Subject: "target receiver-01", Text: "no such host"}, status.Event{Time: at(9 * time.Minute), Kind: "down", Subject: "target receiver-02", Text: "no such host"},
		status.Event{Time: at(time.Minute), Kind: "held", Subject: "target receiver-00", Text: "401 Unauthorized"})
	v := newEvents(s, events)
	if len(v.Lines) != maxEvents || v.More != 2 {
		t.Fatalf("%d lines and %d more", len(v.Lines), v.More)
	}
	want := []eventLine{
		{At: "11:59:00", Kind: "held", Level: status.SeverityError, Subjects: []string{"target receiver-00"}},
		{At: "11:51:00", Kind: "down", Level: status.SeverityError, Subjects: []string{"target receiver-02", "target receiver-01"}, Text: "no such host"},
	}
	if diff := cmp.Diff(want, v.Lines[:2]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
