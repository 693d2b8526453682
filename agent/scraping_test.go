//go:build !minimal

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/inputs"
	"hwsagent/wal"
)

// TestBadScrapeConfigs: every mistake in scrape_configs, and in the files that scrape_config_files names, is reported
// at its own line.
func TestBadScrapeConfigs(t *testing.T) {
	for _, name := range []string{"many", "global", "further"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "scrape", name+".bad")
			text, err := os.ReadFile(file + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			cfg, _, err := LoadBytes("testdata/scrape/agent.yaml", text, testEnv)
			if err == nil || cfg != nil {
				t.Fatal("loaded")
			}
			var all *ConfigErrors
			if !errors.As(err, &all) {
				t.Fatalf("%T is not a *ConfigErrors: %v", err, err)
			}
			if strings.Contains(err.Error(), secretCanary) {
				t.Errorf("a secret shows:\n%v", err)
			}
			golden(t, file+".txt", err.Error()+"\n")
		})
	}
}

// TestPastedScrapeConfigs: a configuration pasted from Prometheus works unchanged; the configuration in force is shown
// without secrets, and files are relative to the file that names them.
func TestPastedScrapeConfigs(t *testing.T) {
	text, err := os.ReadFile("testdata/scrape/pasted.good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cfg, warns, err := LoadBytes("/etc/hwsagent/agent.yaml", text, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warns {
		if !strings.Contains(w.Message, "no targets") {
			t.Error(w)
		}
	}
	if got, want := cfg.scrape.Names(), []string{"prometheus", "federate", "blackbox", "service", "again"}; !slices.Equal(got, want) {
		t.Errorf("jobs %q, want %q", got, want)
	}
	shown, err := cfg.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{secretCanary, "pw@", `job:.*`} {
		if strings.Contains(string(shown), secret) {
			t.Errorf("the configuration in force shows %q:\n%s", secret, shown)
		}
	}
	for _, want := range []string{
		`match[]`, `(.*)://([^:/]+)(:\d+)?,?[a-z]{2}`, "replacement: ${1}-$2", "/etc/hwsagent/a.key",
		"max_series: 20000", "/etc/hwsagent/targets/*.json", "scrape_interval: 1m30s", "sample_limit: 50000", "convert_classic_histograms_to_nhcb: true", "scrape_native_histograms: true",
		`"on": "yes"`, `tier: "1"`,
	} {
		if !strings.Contains(string(shown), want) {
			t.Errorf("the configuration in force lacks %s:\n%s", want, shown)
		}
	}
	var files []string
	for _, f := range cfg.files() {
		files = append(files, f.path)
	}
	if want := []string{"/etc/hwsagent/ca.crt", "/etc/hwsagent/a.crt", "/etc/hwsagent/a.key", "/etc/hwsagent/sd.token"}; !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
}

// TestFlowKeepsLines: each token of the text that the scraper parses stands on its line in
// the file, whatever style that is written in, and means what it means there.
func TestFlowKeepsLines(t *testing.T) {
	text := "a: &x\n  b: |\n    two\n    lines\n  c: 'it''s'\nd:\n- e: *x\n- \"q\\\"\": [1, yes,\n   {f: g:h}]\n- ~\n- ''\n-\n"
	d, err := parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := d.flowText(d.root)
	want := `{"a": {` + "\n" + `"b": "two\nlines\n",` + "\n\n\n" + `"c": "it's"},` + "\n" + `"d": ` + "\n" +
		`[{"e": {"b": "two\nlines\n","c": "it's"}},` + "\n" + `{"q\"": [1,yes,` + "\n" + `{f: "g:h"}]},` + "\n~,\n\"\",\nnull]}"
	if unquoted := strings.NewReplacer(`"a"`, "a", `"b"`, "b", `"c"`, "c", `"d"`, "d", `"e"`, "e"); got != unquoted.Replace(want) {
		t.Errorf("got\n%s\nwant\n%s", got, unquoted.Replace(want))
	}
}

// TestScrapeMetricsAreDocumented: the metrics of scraping stand in docs/metrics.md, and those that
// stand there are exported.
func TestScrapeMetricsAreDocumented(t *testing.T) {
	const theirs = `^prometheus_target_`
	target := &scripted{asked: map[string]int{}, pages: map[string][]page{"text": {{kind: plainText, body: "a 1\n"}, {kind: plainText, body: "a 2\n"}}}}
	server := httptest.NewServer(target)
	defer server.Close()
	cfg, _, err := LoadBytes("agent.yaml", fmt.Appendf(nil, "global: {scrape_interval: 100ms, scrape_timeout: 100ms}\nscrape_configs:\n"+
		"  - {job_name: text, metrics_path: /ours/text, static_configs: [{targets: [%q]}]}\n", strings.TrimPrefix(server.URL, "http://")), testEnv)
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
	if err := s.Apply(cfg.scrape); err != nil {
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
	inDocs, exported := documented(t, "metrics.md", theirs), map[string]bool{}
	for _, f := range families {
		if name := f.GetName(); regexp.MustCompile(theirs).MatchString(name) {
			exported[name] = true
			if !inDocs[name] {
				t.Errorf("docs/metrics.md lacks %s: %s", name, f.GetHelp())
			}
		}
	}
	for name := range inDocs {
		if name != "prometheus_target_" && !exported[name] {
			t.Errorf("docs/metrics.md has %s, which is not exported", name)
		}
	}
}
