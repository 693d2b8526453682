package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLimitsAndDuplicates: an input with a label that never repeats is held at its limit without affecting others, and
// two inputs with the same series are named, in the log, in the metrics, in the status and on the page.
func TestLimitsAndDuplicates(t *testing.T) {
	p := startPrometheus(t, "")
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "twin.prom"), "twin 1\n")
	// Each round has ten series that go on and ten new ones.
	const script = `i=0; while [ $i -lt 10 ]; do echo "steady{n=\"$i\"} 1"; i=$((i+1)); done; read up rest </proc/uptime; i=0; while [ $i -lt 10 ]; do echo "wild{at=\"$up.$i\"} 1"; i=$((i+1)); done`
	a := startAgent(t, `
global: {scrape_interval: 500ms}
probes:
  - {name: wild, type: exec, command: [/bin/sh, -c, '`+script+`'], max_series: 15}
  - {name: one, type: textfile, directory: `+dir+`, labels: {job: files}}
  - {name: two, type: textfile, directory: `+dir+`, labels: {job: files}}
  - {name: hwsagent, type: self}
remote_write:
`+entry("p", p.writeURL()))
	p.wait(time.Minute, `hwsagent_input_refused_samples_total{input="probe wild"} > 20 and on() hwsagent_input_series{input="probe wild"} <= 17`)
	p.wait(time.Minute, `sum(hwsagent_duplicate_series) >= 1`)
	if r := p.query(`count(steady{job="wild"}) == 10`); len(r) != 1 {
		t.Errorf("series within the limit do not go on: %v", p.query(`count(steady)`))
	}
	if r := p.query(`up{job="wild"} == 1`); len(r) != 1 {
		t.Error("the probe fails because of its limit")
	}
	_, text, err := a.ask(http.MethodGet, "/api/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	_, page, err := a.ask(http.MethodGet, "/")
	if err != nil {
		t.Fatal(err)
	}
	for where, said := range map[string]string{"the log": a.logText(), "the status": text} {
		// Of the twins, either may have been first.
		for _, want := range []string{"probe wild", "probe one", "probe two"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s does not name %s", where, want)
			}
		}
	}
	for _, want := range []string{`wild</bdi></b> <small>probe</small>`, "reached its limit of 15 series", "one</bdi>", "two</bdi>", " also appends"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %s", want)
		}
	}
	if want := `"severity": "warning"`; !strings.Contains(text, want) {
		t.Errorf("the status has no warning:\n%s", text)
	}
}
