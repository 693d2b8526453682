package agent

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"hwsagent/internal/meter"
	"hwsagent/internal/tools/reference"
	"hwsagent/wal/queue"
)

var update = flag.Bool("update", false, "write the pages of docs/reference anew")

// documented returns every word in code style on a page of docs that matches pattern.
func documented(t *testing.T, page, pattern string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`\n]+`").FindAllString(string(text), -1) {
		for _, w := range regexp.MustCompile(`[A-Za-z0-9_]+`).FindAllString(code, -1) {
			if regexp.MustCompile(pattern).MatchString(w) {
				words[w] = true
			}
		}
	}
	return words
}

// TestReferenceMetrics holds the tables of docs/reference/metrics.md to the metrics that the code describes.
func TestReferenceMetrics(t *testing.T) {
	if len(scrapeMetrics()) == 0 {
		t.Skip("this build cannot scrape, the page is that of one that can")
	}
	file := filepath.Join("..", "docs", "reference", "metrics.md")
	metrics, shown := describedMetrics(), 0
	reference.Section(t, file, "metrics of the runtime", "`"+strings.Join(runtimeSent, "`, `")+"`.\n", *update)
	for _, prefixes := range []string{"hwsagent_", "prometheus_remote_storage_ prometheus_tsdb_ prometheus_wal_", "prometheus_target_", "prometheus_sd_"} {
		table, n := metricsTable(metrics, strings.Fields(prefixes))
		reference.Section(t, file, prefixes, table, *update)
		shown += n
	}
	if shown != len(metrics) {
		t.Errorf("the tables have %d metrics of %d", shown, len(metrics))
	}
}

// metricsTable returns the table of the metrics that begin with one of the prefixes, and how many these are.
func metricsTable(metrics []meter.Metric, prefixes []string) (table string, n int) {
	var b strings.Builder
	b.WriteString("| metric | type | labels | sent | meaning |\n|---|---|---|---|---|\n")
	for _, m := range metrics {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(m.Name, p) }) {
			continue
		}
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		sent := map[meter.Level]string{meter.Sent: "yes", meter.NotZero: "not 0", meter.Shown: "full"}[m.Level]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Kind, labels, sent, strings.TrimSuffix(m.Help, "."))
		n++
	}
	return b.String(), n
}

// TestMetricsAreDescribed: every metric of ours that a working agent exports is described as it is, so it
// has a level and stands in docs/reference/metrics.md; and what is described is exported, but for what needs
// an event to appear. Each target's account adds up in the metrics, too.
func TestMetricsAreDescribed(t *testing.T) {
	const ours = `^(hwsagent|prometheus_remote_storage|prometheus_tsdb|prometheus_wal)_`
	afterAnEvent := []string{
		"hwsagent_scrape_refused_samples_total", "hwsagent_wal_deleted_bytes_total", "hwsagent_target_certificate_expiry_timestamp_seconds",
		"hwsagent_target_token_expiry_timestamp_seconds", "hwsagent_duplicate_series", "hwsagent_duplicate_samples_total",
		"prometheus_remote_storage_samples_dropped_total", "hwsagent_target_account_dropped_samples",
		"hwsagent_receiver_refused_requests_total", "hwsagent_receiver_refused_samples_total", "hwsagent_remotewrite_series_muted",
	}
	sink := newSink(t)
	sink.refuse = func(v float64) bool { return v == 5 }
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	r.extra = "receivers: {remote_write: {listen: \"127.0.0.1:0\"}}\n"
	r.configure(entry("a", sink.URL, ""), entry("down", "http://127.0.0.1:1/", ""))
	startAgentWith(t, r, t.TempDir(), "")
	until(t, "it has delivered", func() bool { return sink.last() > 8 })
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	described, exported := map[string]meter.Metric{}, map[string]bool{}
	for _, m := range describedMetrics() {
		if _, twice := described[m.Name]; twice {
			t.Errorf("%s is described twice", m.Name)
		}
		described[m.Name] = m
	}
	for _, f := range families {
		name := f.GetName()
		if !regexp.MustCompile(ours).MatchString(name) {
			continue
		}
		exported[name] = true
		m := described[name]
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		if string(m.Kind) != strings.ToLower(f.GetType().String()) || m.Help != f.GetHelp() || !slices.Equal(slices.Sorted(slices.Values(m.Labels)), labels) {
			t.Errorf("%s, a %v of %v, is described as %+v", name, f.GetType(), labels, m)
		}
	}
	for name := range described {
		if regexp.MustCompile(ours).MatchString(name) && !exported[name] && !slices.Contains(afterAnEvent, name) {
			t.Errorf("%s is described and not exported", name)
		}
	}

	for _, target := range []string{"a", "down"} {
		sum := func(name string) (n float64) {
			for _, m := range metricsOf(families, "hwsagent_target_"+name, target) {
				n += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
			return n
		}
		appended := sum("appended_samples_total")
		if all := sum("delivered_samples_total") + sum("filtered_samples_total") + sum("dropped_samples_total") + sum("pending_samples"); appended == 0 || all != appended {
			t.Errorf("target %s: %v appended, %v accounted for", target, appended, all)
		}
	}
	if n := len(metricsOf(families, "hwsagent_target_dropped_samples_total", "a")); n == 0 {
		t.Error("no reasons of drops")
	}
}

// metricsOf returns a family's metrics with that target.
func metricsOf(families []*dto.MetricFamily, name, target string) (found []*dto.Metric) {
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName() == "target" && l.GetValue() == target {
					found = append(found, m)
				}
			}
		}
	}
	return found
}

// TestReasonsAreDocumented: every reason for a dropped sample stands in docs/operate.md.
func TestReasonsAreDocumented(t *testing.T) {
	inDocs := documented(t, "operate.md", `^[a-z]`)
	for r := range queue.NumReasons {
		if !inDocs[r.String()] {
			t.Errorf("docs/operate.md lacks the reason %q", r)
		}
	}
}
