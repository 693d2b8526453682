package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
			var all *Errors
			if !errors.As(err, &all) {
				t.Fatalf("%T is not an *Errors: %v", err, err)
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
	if got, want := cfg.ScrapeJobs().Names(), []string{"prometheus", "federate", "blackbox", "service", "again"}; !slices.Equal(got, want) {
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
	for _, f := range cfg.NamedFiles() {
		files = append(files, f.Path)
	}
	if want := []string{"/etc/hwsagent/ca.crt", "/etc/hwsagent/a.crt", "/etc/hwsagent/a.key", "/etc/hwsagent/sd.token"}; !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
}
