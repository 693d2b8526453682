package convert_test

import (
	"strings"
	"testing"

	"hwsagent/agent/config"
	"hwsagent/agent/convert"
)

// TestSeveralReceivers: each prometheus receiver of a Collector has its own global and its own names. Data that reaches
// a target only after the conversion is noted.
func TestSeveralReceivers(t *testing.T) {
	r, err := convert.Convert("otelcol", "f.yaml", []byte(`
receivers:
  prometheus/a:
    config:
      global: {scrape_interval: 20s, external_labels: {dc: 'x$$y'}}
      scrape_configs: [{job_name: j, static_configs: [{targets: ["h:1"]}]}]
  prometheus/b:
    config:
      scrape_configs: [{job_name: j, static_configs: [{targets: ["h:2"]}], relabel_configs: [{target_label: q, replacement: r}]}]
exporters:
  prometheusremotewrite: {endpoint: 'https://x', external_labels: {site: s}, headers: {Authorization: "Bearer tok", X-Team: t}}
  debug: {}
service: {pipelines: {metrics/a: {receivers: [prometheus/a], exporters: [prometheusremotewrite]}, metrics/b: {receivers: [prometheus/b], exporters: [debug]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := config.LoadBytes("agent.yaml", []byte(r.Config), func(string) (string, bool) { return "", false }); err != nil {
		t.Errorf("the agent does not take it: %v", err)
	}
	for _, want := range []string{
		"job_name: j static_configs", "scrape_interval: 20s", "{target_label: dc, replacement: x$$y}", // the first
		"job_name: j-2", "{target_label: job, replacement: j} - {target_label: q", "scrape_interval: 1m", // the second
		"external_labels: {site: s}", "authorization: {type: Bearer, credentials: tok}", "headers: {X-Team: t}",
		"another receiver has a job j", "also gets the data of prometheus/b",
	} {
		if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(r.Config, "\n", " ")), " "), want) {
			t.Errorf("it lacks %s", want)
		}
	}
	if t.Failed() {
		t.Log(r.Config)
	}
}

// TestUsualInterval: where nothing is said, Prometheus scrapes each minute, and goes on to.
func TestUsualInterval(t *testing.T) {
	for format, text := range map[string]string{
		"prometheus": "scrape_configs: [{job_name: j, static_configs: [{targets: [h]}]}]\n",
		"vmagent":    "global: {external_labels: {a: b}}\nscrape_configs: [{job_name: j, static_configs: [{targets: [h]}]}]\n",
		"otelcol": "receivers: {prometheus: {config: {global: {external_labels: {a: b, c: d}}, scrape_configs: [{job_name: j, static_configs: [{targets: [h]}]}]}}}\n" +
			"exporters: {prometheusremotewrite: {endpoint: 'https://x', external_labels: {a: e}}}\nservice: {pipelines: {metrics: {receivers: [prometheus], exporters: [prometheusremotewrite]}}}\n",
	} {
		r, err := convert.Convert(format, "f.yaml", []byte(text))
		if err != nil || !strings.Contains(r.Config, "scrape_interval: 1m") {
			t.Errorf("%s: %v\n%s", format, err, r.Config)
		}
		if format == "otelcol" && (!strings.Contains(r.Config, "{a: e, c: d}") || !strings.Contains(r.Config, "the receiver has b")) {
			t.Errorf("labels of the receiver and of the exporter:\n%s", r.Config)
		}
	}
}
