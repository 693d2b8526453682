package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
)

// verdictConfig has a log that an outage of seconds fills.
const verdictConfig = `
global: {scrape_interval: 1s, scrape_timeout: 1s}
wal: {max_bytes: 1MiB, min_free_bytes: 1MiB, warn_full_within: 0s}
probes: [{name: canary, type: canary, series: %d, interval: 200ms, timeout: 200ms, noise: true}]
remote_write:
%s`

// TestVerdict: the built agent's page, JSON, words and exit code say one thing in each state, over outages, a loss, a
// kill -9 and an acknowledgement.
func TestVerdict(t *testing.T) {
	t.Parallel()
	recv, _ := startReceiver(t, receiver.Options{})
	one := entry("good", recv.URL(), "    hwsagent: {max_backlog: 300KiB}\n")
	a := startAgent(t, fmt.Sprintf(verdictConfig, 1000, one))
	said := func(what string, want int, words ...string) {
		t.Helper()
		eventually(t, 40*time.Second, func() string {
			stdout, stderr, code := hwsagent(t, "status", "--storage.path", a.storage)
			asJSON, _, codeJSON := hwsagent(t, "status", "--storage.path", a.storage, "--json")
			var s struct {
				Verdict struct {
					Level, Text string
					ExitCode    int `json:"exit_code"`
				}
			}
			if err := json.Unmarshal([]byte(asJSON), &s); err != nil {
				return fmt.Sprintf("%s: %v\n%s%s", what, err, asJSON, stderr)
			}
			page := ""
			if code != exitNotRunning {
				if _, body, err := a.ask(http.MethodGet, "/"); err == nil {
					page = body
				}
			}
			switch {
			case code != want || codeJSON != want || s.Verdict.ExitCode != want:
				return fmt.Sprintf("%s: exit code %d, with --json %d, in it %d, want %d\n%s", what, code, codeJSON, s.Verdict.ExitCode, want, stdout)
			case (want == exitOK) != (s.Verdict.Level == "ok") || want != exitOK && strings.Contains(stdout, ": All "):
				return fmt.Sprintf("%s: %+v\n%s", what, s.Verdict, stdout)
			}
			for _, w := range words {
				if !strings.Contains(stdout, w) || page != "" && !strings.Contains(page, w) {
					return fmt.Sprintf("%s: %q is not said\n%s", what, w, stdout)
				}
			}
			return ""
		})
	}
	said("all is well", exitOK, "All data")
	a.configure("nonsense: [")
	if _, _, code := hwsagent(t, "reload", "--storage.path", a.storage); code == exitOK {
		t.Fatal("the fault did not take: the reload succeeded")
	}
	said("a reload failed", 5, "configuration: reload failed", "the reload at")
	a.reload(fmt.Sprintf(verdictConfig, 1000, one+entry("never", "http://127.0.0.1:1/")))
	said("a target that nothing ever reached", exitTarget, "it has never received any data", "connection refused", "Try:")
	a.reload(fmt.Sprintf(verdictConfig, 1000, one))
	if _, _, code := hwsagent(t, "targets", "drop", "never", "--yes", "--storage.path", a.storage); code != exitOK {
		t.Fatalf("drop: exit code %d", code)
	}
	said("all is well again", exitOK, "All data")

	recv.Stop()
	said("losing", exitTarget, "are being lost", "was full, and the oldest samples were dropped", "events ack")
	a.kill()
	said("not running", exitNotRunning, "not running")
	if err := recv.Start(); err != nil {
		t.Fatal(err)
	}
	a.run()
	said("after a kill the loss is known", exitTarget, "were dropped", "events ack")
	stdout, stderr, code := hwsagent(t, "events", "--storage.path", a.storage)
	for _, want := range []string{"restart", "it had not shut down cleanly before", "reload_failed", "down", "target good", "lost"} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("events: exit code %d, %q is not there\n%s%s", code, want, stdout, stderr)
		}
	}
	eventually(t, 30*time.Second, func() string { // nothing is lost any more, so what is acknowledged is all
		if stdout, stderr, code := hwsagent(t, "events", "ack", "--storage.path", a.storage); code != exitOK {
			return fmt.Sprintf("ack: exit code %d, %s%s", code, stdout, stderr)
		}
		if _, _, code := hwsagent(t, "status", "--storage.path", a.storage); code != exitOK {
			return fmt.Sprintf("status after the acknowledgement: exit code %d", code)
		}
		return ""
	})
	a.kill()
	a.run()
	said("acknowledged, over a kill", exitOK, "All data")
}
