package agent

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFailedReloadRestartsNothingLater: a reload that fails because a port is in use changes nothing, so a reload of the former file restarts nothing.
func TestFailedReloadRestartsNothingLater(t *testing.T) {
	a := newSink(t)
	r := startAgent(t, t.TempDir(), entry("a", a.URL, ""))
	before := r.Agent.targets.Get("a")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	r.configure(entry("a", a.URL, ", remote_timeout: 7s"), fmt.Sprintf("\nreceivers: {import: {listen: %q}}\n", busy.Addr()))
	if err := r.Reload(); err == nil {
		t.Fatal("the port is in use")
	}
	if r.Agent.targets.Get("a") != before {
		t.Error("the failed reload changed the target")
	}
	r.configure(entry("a", a.URL, ""))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if r.Agent.targets.Get("a") != before {
		t.Error("the target was stopped and opened again, though nothing has changed since it began")
	}
	r.end()
}

// TestCanaryJournalOfRefusedSamples: a canary of which max_series refuses series does not call its rounds acknowledged.
func TestCanaryJournalOfRefusedSamples(t *testing.T) {
	a, journal := newSink(t), filepath.Join(t.TempDir(), "journal")
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	r.extra = fmt.Sprintf("  - {name: many, type: canary, interval: 20ms, timeout: 20ms, series: 9, max_series: 2, journal_file: %q}\n", journal)
	r.configure(entry("a", a.URL, ""))
	startAgentWith(t, r, t.TempDir(), "")
	until(t, "samples are refused", func() bool {
		for _, in := range r.Status().Inputs {
			if in.Name == "many" && in.Refused > 20 {
				return true
			}
		}
		return false
	})
	r.end()
	if text, _ := os.ReadFile(journal); strings.Contains(string(text), "ack") {
		t.Errorf("the journal says that rounds are acknowledged of which 7 of 9 samples were refused: %.60q", text)
	}
}
