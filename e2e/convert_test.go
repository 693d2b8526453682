package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestConvertAndRun: the output of `config convert` for a Prometheus' own configuration runs: the same targets are
// scraped, and arrive at the same receiver with the same labels.
func TestConvertAndRun(t *testing.T) {
	t.Parallel()
	p := startPrometheus(t, "")
	dir := t.TempDir()
	theirs := writeFile(t, filepath.Join(dir, "prometheus.yml"), `
global: {scrape_interval: 1s, scrape_timeout: 900ms, evaluation_interval: 1s, external_labels: {site: lab}}
rule_files: [rules.yml]
scrape_configs:
  - job_name: self
    static_configs: [{targets: ["`+p.addr+`"], labels: {rack: a3}}]
    metric_relabel_configs: [{source_labels: [__name__], regex: "prometheus_build_info|go_info", action: keep}]
  - {job_name: pods, consul_sd_configs: [{server: "c:8500"}]}
remote_write:
  - {name: p, url: "`+p.writeURL()+`"}
`)
	out, said, code := hwsagent(t, "config", "convert", theirs)
	if named, _, _ := hwsagent(t, "config", "convert", "--from", "prometheus", theirs); code != 0 || named != out {
		t.Fatalf("%d %s\n%s\nwith --from: %s", code, said, out, named)
	}
	unknown := filepath.Join(dir, "unknown.yml")
	if err := os.WriteFile(unknown, []byte("inputs: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{theirs + ":3: rule_files: ", theirs + ":8: scrape_configs[1].consul_sd_configs: ", theirs + ":2: global.evaluation_interval: "} {
		if !strings.Contains(said, want) || !strings.Contains(out, "# "+want) {
			t.Errorf("%q is missing in\n%s\n%s", want, said, out)
		}
	}
	startAgent(t, out)
	p.wait(time.Minute, `prometheus_build_info{job="self", rack="a3", site="lab"}`)
	p.wait(time.Minute, `up{job="self", rack="a3", site="lab"} == 1`)

	for _, bad := range [][]string{{"--from", "telegraf", theirs}, {"--from", "prometheus", filepath.Join(dir, "absent.yml")}, {unknown}} {
		if out, _, code := hwsagent(t, append([]string{"config", "convert"}, bad...)...); code == 0 || out != "" {
			t.Errorf("%v: %d %s", bad, code, out)
		}
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
}
