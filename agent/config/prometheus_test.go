package config

import (
	"strings"
	"testing"
)

// TestPrometheusFileRuns: a whole prometheus.yml is an agent.yaml. Each key that has no effect is a warning at its place, and variables in
// its value are not expanded; the same key twice, and one of another name, are mistakes.
func TestPrometheusFileRuns(t *testing.T) {
	text := `
global:
  scrape_interval: 30s
  evaluation_interval: 1m
  rule_query_offset: 1m
  query_log_file: q.log
rule_files: ["rules/*.yml"]
alerting:
  alert_relabel_configs: [{target_label: x, replacement: "${1}"}]
  alertmanagers: [{basic_auth: {username: u, password: "${UNSET}"}, static_configs: [{targets: ["am:9093"]}]}]
storage: {tsdb: {out_of_order_time_window: 30m}}
tracing: {endpoint: "t:4317"}
otlp: {promote_resource_attributes: [service.name]}
remote_read: [{url: "http://r/read"}]
runtime: {gogc: 75}
remote_write:
  - {url: "http://r/push", headers: {X-Scope-OrgID: a}}
  - {url: "http://r/push", headers: {X-Scope-OrgID: b}}
`
	text += `scrape_configs: [{job_name: j, static_configs: [{targets: ["127.0.0.1:1"]}]}]` + "\n"
	cfg, warns, err := LoadBytes("agent.yaml", []byte(text), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.RemoteWrite[0].TargetName() + " " + cfg.RemoteWrite[1].TargetName(); got != "r/push,X-Scope-OrgID=a r/push,X-Scope-OrgID=b" {
		t.Errorf("the targets are %s", got)
	}
	for place, key := range map[string]string{
		"4": "global.evaluation_interval", "5": "global.rule_query_offset", "6": "global.query_log_file", "7": "rule_files", "8": "alerting", "11": "storage", "12": "tracing", "13": "otlp", "14": "remote_read", "15": "runtime",
	} {
		found := false
		for _, w := range warns {
			found = found || strings.HasPrefix(w.String(), "agent.yaml:"+place+":") && w.Path == key && strings.Contains(w.Message, "no effect")
		}
		if !found {
			t.Errorf("line %s: no warning of %s in %v", place, key, warns)
		}
	}
	if _, _, err := LoadBytes("agent.yaml", []byte(text+"rule_files: []\n"), testEnv); err == nil || !strings.Contains(err.Error(), "rule_files") {
		t.Errorf("a key twice: %v", err)
	}
	if _, _, err := LoadBytes("agent.yaml", []byte(text+"rule_file: []\n"), testEnv); err == nil || !strings.Contains(err.Error(), `unknown key "rule_file"`) {
		t.Errorf("an unknown key: %v", err)
	}
	twins := `remote_write: [{url: "http://r/push"}, {url: "http://r/push"}]`
	if _, _, err := LoadBytes("agent.yaml", []byte(twins), testEnv); err == nil || !strings.Contains(err.Error(), "add name: to both") {
		t.Errorf("equal entries: %v", err)
	}
}
