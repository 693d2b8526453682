package agent

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"hwsagent/agent/events"
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
	if !slices.ContainsFunc(list.Events, func(e events.Event) bool { return e.Kind == events.Lost && e.Subject == "target a" }) {
		t.Errorf("no loss in %+v", list.Events)
	}
}
