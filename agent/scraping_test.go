package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/agent/config"
	"hwsagent/agent/inputs"
	"hwsagent/wal"
)

// TestScrapeMetricsAreDocumented: the metrics of scraping stand in docs/reference/metrics.md, and those that
// stand there are exported.
func TestScrapeMetricsAreDocumented(t *testing.T) {
	const theirs = `^prometheus_target_`
	target := &scripted{asked: map[string]int{}, pages: map[string][]page{"text": {{kind: plainText, body: "a 1\n"}, {kind: plainText, body: "a 2\n"}}}}
	server := httptest.NewServer(target)
	defer server.Close()
	cfg, _, err := config.LoadBytes("agent.yaml", fmt.Appendf(nil, "global: {scrape_interval: 100ms, scrape_timeout: 100ms}\nscrape_configs:\n"+
		"  - {job_name: text, metrics_path: /ours/text, static_configs: [{targets: [%q]}]}\n", strings.TrimPrefix(server.URL, "http://")), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	log, err := wal.Open(wal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	quiet := slog.New(slog.DiscardHandler)
	s := newScraper(cfg, inputs.NewPath(log, quiet), reg, quiet)
	if err := s.Apply(cfg.ScrapeJobs()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	until(t, "it was scraped", func() bool { return target.done("ours") })
	families, err := reg.Gather()
	cancel()
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	inDocs, exported := documented(t, "reference/metrics.md", theirs), map[string]bool{}
	for _, f := range families {
		if name := f.GetName(); regexp.MustCompile(theirs).MatchString(name) {
			exported[name] = true
			if !inDocs[name] {
				t.Errorf("docs/reference/metrics.md lacks %s: %s", name, f.GetHelp())
			}
		}
	}
	for name := range inDocs {
		if name != "prometheus_target_" && !exported[name] {
			t.Errorf("docs/reference/metrics.md has %s, which is not exported", name)
		}
	}
}
