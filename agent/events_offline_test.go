package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/events"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/remotewrite/deadletter"
)

// TestOfflineEventsHaveTheLedgersLosses: a loss that a kill kept out of the journal's file is listed while the agent is down.
func TestOfflineEventsHaveTheLedgersLosses(t *testing.T) {
	storage := t.TempDir()
	a := newSink(t)
	r := startAgent(t, storage, entry("a", a.URL, ", hwsagent: {tenant: {label: nosuch, header: X-Scope-OrgID}}"))
	until(t, "samples without a tenant are lost", func() bool { s, ok := r.target("a"); return ok && s.Ledger.Lost > 0 })
	r.end()
	if err := os.Remove(filepath.Join(storage, events.FileName)); err != nil { // as a kill before it was saved
		t.Fatal(err)
	}
	list, err := FetchEvents(t.Context(), storage)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list.Events, func(e events.Event) bool { return e.Kind == status.OutcomeLost && e.Subject == "target a" }) {
		t.Errorf("no loss in %+v", list.Events)
	}
}

// TestOfflineAdoptMovesLosses: acknowledged losses stay acknowledged if a queue gets its new name while the agent is down.
func TestOfflineAdoptMovesLosses(t *testing.T) {
	storage := t.TempDir()
	a := newSink(t)
	r := startAgent(t, storage, entry("a", a.URL, ", hwsagent: {tenant: {label: nosuch, header: X-Scope-OrgID}}"))
	until(t, "samples without a tenant are lost", func() bool { s, ok := r.target("a"); return ok && s.Ledger.Lost > 0 })
	r.end()
	if ack, err := AcknowledgeEvents(t.Context(), storage); err != nil || ack.Samples == 0 {
		t.Fatalf("%+v, %v", ack, err)
	}
	if _, err := (queues.Manager{Storage: storage, Config: r.file}).Adopt(t.Context(), "a", "b"); err != nil {
		t.Fatal(err)
	}
	ack, err := AcknowledgeEvents(t.Context(), storage)
	if err != nil || ack.Samples > 0 {
		t.Errorf("losses reported anew: %+v, %v", ack, err)
	}
}

// TestAdoptWithoutLettersIsTakenBack: if the dead letters cannot move, the queue keeps its name as well.
func TestAdoptWithoutLettersIsTakenBack(t *testing.T) {
	storage := t.TempDir()
	a := newSink(t)
	r := startAgent(t, storage, entry("a", a.URL, ""))
	until(t, "it receives", func() bool { return a.last() > 3 })
	r.end()
	if err := os.WriteFile(deadletter.Dir(storage, "b"), []byte("no directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (queues.Manager{Storage: storage, Config: r.file}).Adopt(t.Context(), "a", "b"); err == nil {
		t.Fatal("adopted")
	}
	s, err := queues.OfflineStatus(storage, time.Now())
	if err != nil || len(s.Targets) != 1 || s.Targets[0].Name != "a" {
		t.Errorf("queues %+v, %v", s.Targets, err)
	}
}

// TestOfflineEventsWithADamagedFile: the losses are still listed and acknowledged, and the error says what helps.
func TestOfflineEventsWithADamagedFile(t *testing.T) {
	storage := t.TempDir()
	a := newSink(t)
	r := startAgent(t, storage, entry("a", a.URL, ", hwsagent: {tenant: {label: nosuch, header: X-Scope-OrgID}}"))
	until(t, "samples without a tenant are lost", func() bool { s, ok := r.target("a"); return ok && s.Ledger.Lost > 0 })
	r.end()
	if err := os.WriteFile(filepath.Join(storage, events.FileName), []byte(`{"schema": 1, "losses`), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := FetchEvents(t.Context(), storage)
	if err == nil || !strings.Contains(err.Error(), "events ack") || len(list.Events) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if ack, err := AcknowledgeEvents(t.Context(), storage); err != nil || ack.Samples == 0 {
		t.Errorf("acknowledged: %+v, %v", ack, err)
	}
	if list, err = FetchEvents(t.Context(), storage); err != nil {
		t.Errorf("afterwards: %+v, %v", list, err)
	}
}
