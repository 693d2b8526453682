package e2e

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestPanicIsContained has an mdstat on which Prometheus' procfs library panics. That costs the
// collector that reads it; the agent goes on, and says so in the log once, in the metrics, in the
// status, on the page and in the command.
func TestPanicIsContained(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "loadavg"), "1 2 3 4/5 6\n")
	mdstat := writeFile(t, filepath.Join(dir, "mdstat"), "Personalities : ]\n")
	a := startAgent(t, `
global: {scrape_interval: 200ms}
pull: {listen: "127.0.0.1:0"}
probes:
  - {name: bad, type: host, proc_path: `+dir+`, collectors: [loadavg, mdadm]}
  - {name: good, type: host, collectors: [loadavg]}
  - {name: hwsagent, type: self, interval: 200ms}
`)
	counter := regexp.MustCompile(`(?m)^hwsagent_input_panics_total\{input="probe bad"\} (\d+)$`)
	panicked := func() int {
		_, body, err := a.ask(http.MethodGet, "/metrics")
		m := counter.FindStringSubmatch(body)
		if err != nil || m == nil {
			t.Fatalf("the metrics lack the counter: %v", err)
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	eventually(t, 20*time.Second, func() string {
		if n := panicked(); n < 5 {
			return "only " + strconv.Itoa(n) + " panics are counted"
		}
		return ""
	})
	log := a.logText()
	if n := strings.Count(log, "An input panicked"); n != 1 || !strings.Contains(log, "mdstat.go") || !strings.Contains(log, "probes/host/mdadm_linux.go") {
		t.Errorf("the log tells of %d panics:\n%s", n, log)
	}
	var st struct {
		Inputs []struct {
			Kind, Name string
			Panics     *struct {
				Count       int
				Since, Last time.Time
				Error       string
			}
		}
		Problems []struct{ Subject, Text string }
	}
	_, text, err := a.ask(http.MethodGet, "/api/v1/status")
	if err != nil || json.Unmarshal([]byte(text), &st) != nil {
		t.Fatalf("status: %v\n%s", err, text)
	}
	for _, in := range st.Inputs {
		p := in.Panics
		if in.Name == "good" && p != nil {
			t.Errorf("the other probe is said to have panicked: %+v", p)
		}
		if in.Name == "bad" && (p == nil || p.Count < 5 || !p.Since.Before(p.Last) || !strings.Contains(p.Error, "probe bad panicked: runtime error: slice bounds out of range")) {
			t.Errorf("the status says %+v", p)
		}
	}
	_, page, err := a.ask(http.MethodGet, "/")
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, _ := hwsagent(t, "status", "--config.file", a.config, "--storage.path", a.storage)
	for where, said := range map[string]string{"the status": text, "the page": page, "the command": stdout + stderr} {
		if !regexp.MustCompile(`panicked \d+ times since .+, last at .+slice bounds`).MatchString(said) {
			t.Errorf("%s does not tell of the panics:\n%s", where, said)
		}
	}
	for _, p := range a.status().Probes {
		if p.State != "ok" {
			t.Errorf("probe %s is %s: %s", p.Name, p.State, p.LastError)
		}
	}
	writeFile(t, mdstat, "Personalities : [raid1]\nmd0 : active raid1 sdb1[1] sda1[0]\n      100 blocks [2/2] [UU]\n\nunused devices: <none>\n")
	eventually(t, 20*time.Second, func() string {
		for _, p := range a.status().Probes {
			if p.LastError != "" {
				return p.Name + " still fails: " + p.LastError
			}
		}
		return ""
	})
	if _, code := a.terminate(10 * time.Second); code != 0 {
		t.Errorf("the agent ended with %d", code)
	}
}
