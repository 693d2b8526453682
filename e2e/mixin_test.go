package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v4"

	"hwsagent/agent/demo/receiver"
)

const mixinDir = "../deploy/mixin"

// TestMixinRules: the alerts of deploy/mixin are valid, and fire and end as its unit tests say. Each has one.
func TestMixinRules(t *testing.T) {
	tests := readText(t, filepath.Join(mixinDir, "tests.yaml"))
	for alert := range mixinRules(t) {
		if !regexp.MustCompile(`(alertname: |alertname=")` + alert + `\b`).MatchString(tests) {
			t.Errorf("no test names the alert %s", alert)
		}
	}
	promtool := needs(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "tests.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = mixinDir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestMixinMetricsAreSent: every metric that an alert or a dashboard reads comes from a running agent with
// the default level; those that are sent unless they are 0 are at least shown by it. Prometheus
// understands every expression.
func TestMixinMetricsAreSent(t *testing.T) {
	p := startPrometheus(t, "")
	server := httptest.NewUnstartedServer(nil) // for its certificate
	server.StartTLS()
	defer server.Close()
	claims := fmt.Sprintf(`{"exp":%d}`, time.Now().Add(time.Hour).Unix())
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
	other, _ := startReceiver(t, receiver.Options{TLS: &tls.Config{Certificates: server.TLS.Certificates}, Tokens: []string{token}})
	a := startAgent(t, `
global: {scrape_interval: 1s}
probes:
  - {name: count, type: canary}
  - {name: nothing-there, type: snmp, target: "127.0.0.1:9", auth: {version: 2, community: public}, modules: [system]}
remote_write:
`+entry("p", p.writeURL())+entry("other", other.URL(), "    tls_config: {insecure_skip_verify: true}\n", "    authorization: {credentials: "+token+"}\n"))
	p.wait(time.Minute, `hwsagent_target_token_expiry_timestamp_seconds{target="other"} > 0`)
	p.wait(time.Minute, `hwsagent_target_certificate_expiry_timestamp_seconds{target="other", role="server"} > 0`)
	p.wait(time.Minute, `hwsagent_probe_failing{probe="nothing-there"} == 1`)
	p.wait(time.Minute, `hwsagent_target_state{target="p", state="ok"} == 1`)

	shown := getText(t, "http://"+a.web+"/metrics")
	unlessZero := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|.*\\| not 0 \\|").FindAllStringSubmatch(readText(t, "../docs/reference/metrics.md"), -1) {
		unlessZero[m[1]] = true
	}
	if len(unlessZero) < 10 {
		t.Fatalf("docs/reference/metrics.md has %d metrics that are sent unless they are 0: the search is broken", len(unlessZero))
	}
	read := mixinExpressions(t)
	if len(read) < 50 {
		t.Fatalf("found %d expressions: the search is broken", len(read))
	}
	arrived := map[string]bool{}
	for _, r := range p.query(`group by (__name__) ({job="hwsagent"})`) {
		arrived[r.Metric["__name__"]] = true
	}
	// Shown once two inputs bring the same series, or a receiver refuses series.
	events := []string{"hwsagent_duplicate_series", "hwsagent_remotewrite_series_muted"}
	for _, expr := range slices.Sorted(maps.Keys(read)) {
		for _, name := range metricNames(t, expr) {
			switch {
			case arrived[name]:
			case !unlessZero[name]:
				t.Errorf("%s reads %s, which is not sent: %s", read[expr], name, expr)
			case !strings.Contains(shown, "\n"+name+"{") && !slices.Contains(events, name):
				t.Errorf("%s reads %s, which the agent does not have: %s", read[expr], name, expr)
			}
		}
		p.query(expr) // fails where Prometheus does not understand it
	}
}

// TestHeldTargetIsSeenByAnother: a target that is held cannot say so itself. The second target of docs/operate.md,
// which gets the agent's own series only, does.
func TestHeldTargetIsSeenByAnother(t *testing.T) {
	p := startPrometheus(t, "")
	refusing, _ := startReceiver(t, receiver.Options{Tokens: []string{"another"}})
	startAgent(t, "global: {scrape_interval: 1s}\nprobes: [{name: count, type: canary}]\nremote_write:\n"+
		entry("main", refusing.URL())+
		entry("watch", p.writeURL(), "    write_relabel_configs: [{source_labels: [job], regex: hwsagent, action: keep}]\n"))
	p.wait(time.Minute, `hwsagent_target_state{target="main", state="held"} == 1`)
	if others := p.query(`{__name__=~".+", job!="hwsagent"}`); len(others) > 0 {
		t.Errorf("the second target also got %v", others)
	}
	if own := p.query(`{job="hwsagent"}`); len(own) > 60+2*35 {
		t.Errorf("it got %d series, want at most %d", len(own), 60+2*35)
	}
}

// mixinRules returns the expressions of the alerts, by name.
func mixinRules(t *testing.T) map[string]string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Load([]byte(readText(t, filepath.Join(mixinDir, "rules.yaml"))), &file); err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules[r.Alert] = r.Expr
		}
	}
	if len(rules) < 10 {
		t.Fatalf("found %d alerts: the search is broken", len(rules))
	}
	return rules
}

// TestAlertsAreDocumented: docs/operate.md names each alert about agents, docs/hardware.md each alert on hardware. The
// runbook_url of each leads to an anchor of such a page.
func TestAlertsAreDocumented(t *testing.T) {
	for rules, page := range map[string]string{"rules.yaml": "operate.md", "hardware/rules.yaml": "hardware.md"} {
		text, source := readText(t, filepath.Join("../docs", page)), readText(t, filepath.Join(mixinDir, rules))
		alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(source, -1)
		if len(alerts) < 10 {
			t.Errorf("%s has only %d alerts: the search is broken", rules, len(alerts))
		}
		for _, a := range alerts {
			if !regexp.MustCompile(`\b` + a[1] + `\b`).MatchString(text) {
				t.Errorf("docs/%s does not name the alert %s", page, a[1])
			}
			if prefix := map[string]string{"operate.md": "Hwsagent", "hardware.md": "Hardware"}[page]; !strings.HasPrefix(a[1], prefix) {
				t.Errorf("%s: the alert %s does not begin with %s", rules, a[1], prefix)
			}
		}
		runbooks := regexp.MustCompile(`runbook_url: (\S+/docs/([a-z/-]+\.md))#([\w-]+)`).FindAllStringSubmatch(source, -1)
		if len(runbooks) != len(alerts) {
			t.Errorf("%s: %d alerts have a runbook_url, of %d", rules, len(runbooks), len(alerts))
		}
		for _, m := range runbooks {
			if _, err := os.Stat(filepath.Join(mixinDir, filepath.Dir(rules), m[1])); err != nil {
				t.Errorf("%s: %v", rules, err)
			}
			m = m[1:]
			if !strings.Contains(readText(t, filepath.Join("../docs", m[1])), `<a id="`+m[2]+`">`) {
				t.Errorf("%s: docs/%s has no anchor %s", rules, m[1], m[2])
			}
		}
	}
}

// mixinExpressions returns all expressions of alerts and dashboards, with the place of each.
func mixinExpressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for alert, expr := range mixinRules(t) {
		found[expr] = "the alert " + alert
	}
	files, err := filepath.Glob(filepath.Join(mixinDir, "dashboards", "*.json"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	// That of hardware reads what probes send, not the agent's own metrics; package probes/hw tests it on recorded series.
	files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == "hardware.json" })
	fill := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*", "$target", ".*")
	for _, file := range files {
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
			Templating struct{ List []struct{ Definition string } }
		}
		d := json.NewDecoder(bytes.NewBufferString(readText(t, file)))
		if err := d.Decode(&board); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				found[fill.Replace(target.Expr)] = filepath.Base(file) + ", panel " + panel.Title
			}
		}
		for _, v := range board.Templating.List {
			if inner, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
				found[fill.Replace(inner[:strings.LastIndex(inner, ",")])] = filepath.Base(file) + ", a variable"
			}
		}
	}
	return found
}

// metricNames returns the names of the metrics that an expression reads.
func metricNames(t *testing.T, expr string) (names []string) {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatalf("parse %s: %v", expr, err)
	}
	for _, selectors := range parser.ExtractSelectors(tree) {
		for _, m := range selectors {
			if m.Name == "__name__" {
				names = append(names, m.Value)
			}
		}
	}
	return names
}

func getText(t *testing.T, url string) string {
	t.Helper()
	resp, err := httpClient(t).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func readText(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
