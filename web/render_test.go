package web

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// render is the page of a status.
func render(t *testing.T, s Status, events []Event) string {
	t.Helper()
	rec := httptest.NewRecorder()
	(&handlers{o: Options{Status: func() Status { return s }, Events: func() []Event { return events }}}).page(rec, nil)
	if rec.Code != 200 {
		t.Fatalf("the page: %d\n%s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// fleet is an agent with targets that all are well.
func fleet(targets int) Status {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := Status{
		Schema: 1, Running: true, Host: "plant-7", Now: now, Started: now.Add(-time.Hour), Config: ConfigStatus{File: "/etc/hwsagent/agent.yaml", LoadedAt: now.Add(-time.Hour)},
		WAL: WALStatus{Dir: "/var/lib/hwsagent/wal", Sync: "1s", Segments: 4, Bytes: 30 << 20, MaxBytes: 4 << 30, FreeBytes: 90 << 30, Appended: 1e6, SamplesPerSec: 400, BytesPerSec: 900, Series: 800},
	}
	for i := range 6 {
		s.Probes = append(s.Probes, ProbeStatus{Name: fmt.Sprintf("probe-%d", i), Type: "snmp", Target: fmt.Sprintf("192.0.2.%d:161", i), State: "ok", Interval: 15 * time.Second, LastRun: now.Add(-3 * time.Second), Took: 40 * time.Millisecond, Samples: 812})
	}
	for i := range targets {
		s.Targets = append(s.Targets, TargetStatus{
			Name: fmt.Sprintf("receiver-%02d", i), URL: fmt.Sprintf("https://mimir-%02d.plant.example/api/v1/push", i), State: StateOK, LagSeconds: 1.2, OldestPending: now.Add(-1200 * time.Millisecond),
			PendingSamples: 412, PendingBytes: 9000, SentPerSec: 400, LastSuccess: now.Add(-time.Second), Shards: 1, MaxShards: 4,
			Ledger: LedgerStatus{Appended: 1e6, Delivered: 1e6 - 412, Pending: 412, Balanced: true},
		})
	}
	return s
}

// breakTarget makes a target take nothing since so long.
func breakTarget(t *TargetStatus, now time.Time, state, why string, since time.Duration, waiting uint64) {
	t.State, t.Why, t.LastError, t.LastErrorAt, t.LagSeconds = state, why, "post to "+t.URL+": "+why, now.Add(-time.Second), since.Seconds()
	t.OldestPending, t.PendingSamples, t.PendingBytes, t.LastSuccess, t.SentPerSec = now.Add(-since), waiting, int64(waiting)*2, now.Add(-since), 0
	t.Ledger.Pending, t.Ledger.Delivered, t.NextTry = waiting, t.Ledger.Appended-waiting, now.Add(30*time.Second)
}

// brokenFleet has three targets of so many that take nothing, each for a reason of its own.
func brokenFleet(targets int) (Status, []Event) {
	s := fleet(targets)
	a, b, c := &s.Targets[7], &s.Targets[21], &s.Targets[targets-1]
	breakTarget(a, s.Now, StateHeld, "401 Unauthorized: the token is not known", 12*time.Minute, 288_000)
	a.Failure, a.Try = "credentials", "renew the token in /etc/hwsagent/seven.token"
	breakTarget(b, s.Now, StateRetrying, "dial tcp 192.0.2.21:443: connect: connection refused", 34*time.Minute, 816_000)
	b.Failure, b.Try = "network", "start the receiver, or correct the URL"
	c.Why, c.LastError = "", ""
	breakTarget(c, s.Now, StatePaused, "paused with hwsagent targets pause", 51*time.Minute, 900_000)
	c.LastError, c.PausedSince = "", s.Now.Add(-51*time.Minute)
	s = Judged(s)
	return s, []Event{
		{s.Now.Add(-25 * time.Hour), "lost", "target receiver-01", "an event of yesterday"},
		{s.Now.Add(-51 * time.Minute), "paused", "target " + c.Name, "somebody has paused it"},
		{s.Now.Add(-34 * time.Minute), "down", "target " + b.Name, b.Why},
		{s.Now.Add(-12 * time.Minute), "held", "target " + a.Name, a.Why},
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
		"receiver-07": {"401 Unauthorized: the token is not known", "Held for 12 min", "288\u202f000 samples wait", "renew the token in /etc/hwsagent/seven.token"},
		"receiver-21": {"dial tcp 192.0.2.21:443: connect: connection refused", "34 min behind; nothing", "816\u202f000 samples wait", "start the receiver, or correct the URL"},
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
	if strings.Contains(body, "an event of yesterday") || !strings.Contains(body, "somebody has paused it") {
		t.Error("the events of the last 24 hours are not those on the page")
	}
}
