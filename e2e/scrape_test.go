package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// startNodeExporter starts Debian's prometheus-node-exporter and returns host:port.
func startNodeExporter(t *testing.T) (addr string, p *process) {
	t.Helper()
	program := needs(t, "prometheus-node-exporter")
	addr = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	p = startProcess(t, program, []string{"--web.listen-address=" + addr, "--log.level=warn"}, nil)
	ready(t, p, "http://"+addr+"/metrics")
	return addr, p
}

// TestScrapeRealTargets: Debian's node exporter is scraped by way of every kind of discovery
// that needs no name server, and Debian's Prometheus is a federation source; what a real
// Prometheus at the other end has equals what a Prometheus that scrapes by itself has.
func TestScrapeRealTargets(t *testing.T) {
	t.Parallel()
	node, exporter := startNodeExporter(t)
	dir := t.TempDir()
	jobs := func(extra string) string {
		return "scrape_configs:\n  - job_name: node\n    static_configs:\n      - targets: [" + node + "]\n        labels: {rack: b4}\n" + extra
	}
	// The source scrapes the exporter with the same entry, pasted.
	program := needs(t, "prometheus")
	source := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	conf := writeFile(t, filepath.Join(dir, "source.yml"), "global: {scrape_interval: 1s}\n"+jobs("  - job_name: self\n    static_configs: [{targets: ["+source+"]}]\n"))
	p := startProcess(t, program, []string{"--config.file=" + conf, "--storage.tsdb.path=" + filepath.Join(dir, "source"), "--web.listen-address=" + source, "--log.level=warn"}, nil)
	ready(t, p, "http://"+source+"/-/ready")

	sd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `[{"targets": [%q], "labels": {"found": "http"}}]`, node)
	}))
	defer sd.Close()
	writeFile(t, filepath.Join(dir, "found.json"), fmt.Sprintf(`[{"targets": [%q], "labels": {"found": "file"}}]`, node))
	more := writeFile(t, filepath.Join(dir, "jobs.yml"), "scrape_configs:\n  - job_name: found\n    scrape_interval: 1s\n    scrape_timeout: 1s\n    sample_limit: 1000000\n"+
		"    file_sd_configs: [{files: [found.json]}]\n    http_sd_configs: [{url: '"+sd.URL+"', refresh_interval: 5s}]\n"+
		"    metric_relabel_configs: [{source_labels: [__name__], regex: 'node_uname_info|up', action: keep}]\n")

	server := startPrometheus(t, "")
	a := startAgent(t, "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_config_files: ["+more+"]\n"+jobs(
		"  - job_name: federate\n    honor_labels: true\n    metrics_path: /federate\n    params:\n      'match[]': ['{job=\"self\"}']\n"+
			"    static_configs: [{targets: ["+source+"]}]\n")+
		"remote_write:\n  - {name: server, url: 'http://"+server.addr+"/api/v1/write', queue_config: {batch_send_deadline: 200ms}}\n")

	server.wait(30*time.Second, `up{job="node",rack="b4",instance="`+node+`"} == 1`)
	theirs := &prometheus{t: t, addr: source, process: p}
	theirs.wait(30*time.Second, `up{job="node"} == 1`)
	// The same series, but for those whose quantile="1" is "1.0" since Prometheus 3.
	series := func(p *prometheus) []string {
		var all []string
		for _, r := range p.query(`{job="node",rack="b4",__name__!~"go_.*"}`) {
			all = append(all, fmt.Sprint(r.Metric)) // maps print in order
		}
		slices.Sort(all)
		return all
	}
	eventually(t, 30*time.Second, func() string {
		want, got := series(theirs), series(server)
		missing, extra := 0, 0
		for _, s := range want {
			if _, found := slices.BinarySearch(got, s); !found {
				missing++
			}
		}
		for _, s := range got {
			if _, found := slices.BinarySearch(want, s); !found {
				extra++
			}
		}
		if len(want) < 300 || missing > 0 || extra > 0 {
			return fmt.Sprintf("of %d series that Prometheus has by itself %d are missing, and %d of %d are more", len(want), missing, extra, len(got))
		}
		return ""
	})
	if v, ok := server.value(`scrape_samples_scraped{job="node"} - on() (count({job="node",__name__!~"up|scrape_.*"}))`); !ok || v != 0 {
		t.Errorf("scrape_samples_scraped differs from the series by %v", v)
	}
	for _, q := range []string{
		`node_uname_info{job="found",found="file"}`, `node_uname_info{job="found",found="http"}`,
		`prometheus_build_info{job="self",instance="` + source + `"}`, // of the source, as it has it
		`up{job="federate",instance="` + source + `"} == 1`,
		`scrape_duration_seconds{job="node"} > 0`,
	} {
		server.wait(30*time.Second, q)
	}
	targetsAsPrometheus(t, a, source)

	// An exporter that goes: up is 0, and its series end at once.
	exporter.kill()
	server.wait(30*time.Second, `up{job="node"} == 0`)
	eventually(t, 10*time.Second, func() string {
		if r := server.query(`node_uname_info{job="node"}`); len(r) > 0 {
			return fmt.Sprintf("the series of an exporter that is gone goes on: %v", r)
		}
		return ""
	})
	exporter.start()
	server.wait(30*time.Second, `up{job="node"} == 1`)
	server.wait(30*time.Second, `node_uname_info{job="node"}`)

	// A job that is removed, and one that stays.
	if tg := a.target("server"); tg.Ledger.Lost > 0 {
		t.Errorf("lost: %+v", tg.Ledger)
	}
}

// targetsAsPrometheus compares the agent's GET /api/v1/targets with a Prometheus' own, of a
// job that both scrape.
func targetsAsPrometheus(t *testing.T, a *agent, prometheus string) {
	t.Helper()
	type answer struct {
		Status string
		Data   struct {
			ActiveTargets  []map[string]any
			DroppedTargets []map[string]any
		}
	}
	var ours, theirs answer
	code, body, err := a.ask(http.MethodGet, "/api/v1/targets?state=active")
	if err != nil || code != http.StatusOK {
		t.Fatalf("targets: %d %s %v", code, body, err)
	}
	resp, err := httpClient(t).Get("http://" + prometheus + "/api/v1/targets?state=active")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	other, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for text, into := range map[string]*answer{body: &ours, string(other): &theirs} {
		if err := json.Unmarshal([]byte(text), into); err != nil || into.Status != "success" || into.Data.DroppedTargets == nil {
			t.Fatalf("targets: %v: %s", err, text)
		}
	}
	of := func(an answer) map[string]any {
		for _, tg := range an.Data.ActiveTargets {
			if tg["scrapePool"] == "node" {
				return tg
			}
		}
		t.Fatalf("no target of job node: %+v", an)
		return nil
	}
	mine, want := of(ours), of(theirs)
	for key := range want {
		if _, ok := mine[key]; !ok {
			t.Errorf("the answer lacks %q, which Prometheus' has", key)
		}
	}
	for _, key := range []string{"labels", "scrapePool", "scrapeUrl", "health", "lastError", "scrapeInterval", "scrapeTimeout"} {
		if fmt.Sprint(mine[key]) != fmt.Sprint(want[key]) {
			t.Errorf("%s is %v, Prometheus says %v", key, mine[key], want[key])
		}
	}
}

// TestScrapeRefusedByBudget: with on_full: reject and no room, scraped samples are refused and
// counted, targets stay up, and afterwards nothing at the other end says that they were down.
func TestScrapeRefusedByBudget(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	// Values that no compression makes small, so that a megabyte is soon full.
	n := 0
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		var b strings.Builder
		for i := range 4000 {
			fmt.Fprintf(&b, "m{i=\"%d\"} %d.%d\n", i, uint32(i*n)*2654435761, uint32(i+n)*40503)
		}
		_, _ = io.WriteString(w, b.String())
	}))
	defer page.Close()
	server := startPrometheus(t, "")
	gate := newGate(t, server.writeURL())
	gate.down()
	a := startAgent(t, "global: {scrape_interval: 300ms, scrape_timeout: 300ms}\nwal: {max_bytes: 1MiB, min_free_bytes: 0B, on_full: reject}\nscrape_configs:\n"+
		"  - job_name: big\n    static_configs: [{targets: ["+strings.TrimPrefix(page.URL, "http://")+"]}]\n"+
		"remote_write:\n  - {name: server, url: 'http://"+gate.addr+"/api/v1/write', queue_config: {batch_send_deadline: 100ms, max_backoff: 500ms}}\n")
	eventually(t, 60*time.Second, func() string {
		_, body, err := a.ask(http.MethodGet, "/metrics")
		if err != nil || !strings.Contains(body, `hwsagent_scrape_refused_samples_total{job="big"}`) {
			return fmt.Sprintf("nothing is refused yet (%v)", err)
		}
		return ""
	})
	_, body, err := a.ask(http.MethodGet, "/api/v1/targets")
	if err != nil || !strings.Contains(body, `"health":"up"`) || strings.Contains(body, `"health":"down"`) {
		t.Errorf("targets: %v %s", err, body)
	}
	// A small round of another input may still have its place between two refusals.
	eventually(t, 30*time.Second, func() string {
		_, page1, err := a.ask(http.MethodGet, "/api/v1/status")
		if err != nil || !strings.Contains(page1, "log is full") {
			return fmt.Sprintf("the status does not say that the log is full: %v", err)
		}
		return ""
	})
	gate.up()
	eventually(t, 30*time.Second, func() string {
		if tg := a.target("server"); tg.Ledger.Delivered == 0 {
			return fmt.Sprintf("nothing is delivered: %+v", tg)
		}
		return ""
	})
	server.wait(30*time.Second, `up{job="big"} == 1`)
	if r := server.query(`min_over_time(up{job="big"}[10m]) < 1`); len(r) > 0 {
		t.Errorf("up was 0 while the log was full: %v", r)
	}
	if tg := a.target("server"); tg.Ledger.Lost > 0 {
		t.Errorf("acknowledged samples are lost: %+v", tg.Ledger)
	}
}
