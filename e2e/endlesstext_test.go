package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/tier"
)

// endlessText is a body of OpenMetrics for which Prometheus' parser never returns when it is asked for
// start timestamps.
const endlessText = "# TYPE a counter\na_total 1\na_total 2 # {a=7\n# EOF\n"

// TestEndlessTextHoldsNothing: a body that makes a parser loop for ever, sent to the import receiver as often as it has
// places, and shown by an exporter that a probe scrapes, costs itself only: the receiver takes the next import, the
// other probes go on, nothing burns a core, and SIGTERM ends the agent within 2 s.
func TestEndlessTextHoldsNothing(t *testing.T) {
	shown := make(chan struct{}, 1)
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0")
		fmt.Fprint(w, endlessText)
		select {
		case shown <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(exporter.Close)
	target := receiver.New(receiver.Options{})
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Stop)
	text := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	a := startAgent(t, fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s}
probes:
  - {name: exporter, type: exec, command: [/bin/sleep, "1000"], scrape_url: %q}
  - {name: said, type: exec, command: [/bin/echo, "said 42"]}
receivers:
  import: {listen: %q}
remote_write:
`, exporter.URL, text)+entry("target", target.URL()))
	select {
	case <-shown:
	case <-time.After(20 * time.Second):
		t.Fatal("the exporter was not scraped")
	}
	url := "http://" + text + "/api/v1/import/prometheus"
	const places = 4 // limits.requests
	var wg sync.WaitGroup
	for range 2 * places {
		wg.Go(func() {
			if code, said := send(t, http.MethodPost, url, "application/openmetrics-text", "", []byte(endlessText)); code != http.StatusBadRequest {
				t.Errorf("the endless text: %d %s", code, said)
			}
		})
	}
	wg.Wait()
	if code, said := send(t, http.MethodPost, url, "text/plain", "", []byte("good 1\n")); code != http.StatusNoContent {
		t.Errorf("the next import: %d %s", code, said)
	}
	eventually(t, 20*time.Second, func() string {
		states := map[string]string{}
		for _, p := range a.status().Probes {
			states[p.Name] = p.State
		}
		if states["exporter"] != "failing" || states["said"] != "ok" {
			return fmt.Sprintf("the probes are %v, want exporter failing, said ok", states)
		}
		return ""
	})
	began := a.cpu()
	time.Sleep(3 * time.Second) // what burns a core burns it for good
	if used := a.cpu() - began; used > 1500*time.Millisecond {
		t.Errorf("the agent used %s of CPU in 3 s", used)
	}
	wg.Go(func() { _, _ = send(t, http.MethodPost, url, "application/openmetrics-text", "", []byte(endlessText)) })
	took, code := a.terminate(10 * time.Second)
	wg.Wait()
	if took > tier.Within(2*time.Second) || code != 0 {
		t.Errorf("the agent ended with %d after %s, want 0 within 2 s", code, took)
	}
}
