//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

func TestVersionIn(t *testing.T) {
	for _, tc := range []struct{ name, said, want string }{
		{ours, "hwsagent v0.9.0-12-gc4b7455 (no revision, go1.26.8, linux/amd64)\n", "v0.9.0-12-gc4b7455"},
		{ours, "hwsagent c4b7455 (no revision, go1.26.8, linux/amd64)\n", "c4b7455"},
		{prometheus, "prometheus, version 2.42.0+ds (branch: debian/sid, revision: 2.42.0+ds-5)\n  go version: go1.19.8\n", "2.42.0"},
		{prometheus, "prometheus, version 3.14.0 (branch: HEAD, revision: 123)\n", "3.14.0"},
		{vmagent, "vmagent-20260801-101112-tags-v1.150.0-0-g123abc\n", "1.150.0"},
		{vmagent, "vmagent-v1.150.0\n", "1.150.0"},
		{vmagent, "\n", "unknown"},
	} {
		if got := versionIn(tc.name, tc.said); got != tc.want {
			t.Errorf("%q of %s: %q, want %q", tc.said, tc.name, got, tc.want)
		}
	}
}

func TestAtLeast(t *testing.T) {
	for version, want := range map[string]bool{"3.0": true, "3.14.0": true, "4.0.0": true, "2.55.1": false, "unknown": false, "": false, "3": false} {
		if got := atLeast(version, 3, 0); got != want {
			t.Errorf("%q is at least 3.0: %t, want %t", version, got, want)
		}
	}
}

// TestAgentsGetTheSameWork: all scrape the same targets as often, with the same labels, and
// send to the same address; none listens on anything but loopback.
func TestAgentsGetTheSameWork(t *testing.T) {
	type scraping struct {
		Global struct {
			Interval string            `yaml:"scrape_interval"`
			Timeout  string            `yaml:"scrape_timeout"`
			Labels   map[string]string `yaml:"external_labels"`
		}
		Configs []struct {
			Static []struct {
				Targets []string
				Labels  map[string]string
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	work := job{targets: []string{"127.0.0.1:1001", "127.0.0.1:1002"}, interval: 5 * time.Second, url: "http://127.0.0.1:1003/api/v1/write", version: v1}
	for name, setUp := range map[string]func(job, string) ([]string, error){
		ours:         setUpOurs,
		prometheus:   func(j job, dir string) ([]string, error) { return setUpPrometheus(j, dir, true) },
		"before 3.0": func(j job, dir string) ([]string, error) { return setUpPrometheus(j, dir, false) },
		vmagent:      setUpVMAgent,
	} {
		dir := t.TempDir()
		args, err := setUp(work, dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.y*ml"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s has the files %v: %v", name, files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		var got scraping
		if err := yaml.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, text)
		}
		if got.Global.Interval != "5s" || got.Global.Timeout != "5s" || got.Global.Labels["site"] != "fra1" {
			t.Errorf("%s scrapes with %v", name, got.Global)
		}
		if len(got.Configs) != 1 || len(got.Configs[0].Static) != 1 || !slices.Equal(got.Configs[0].Static[0].Targets, work.targets) || got.Configs[0].Static[0].Labels["rack"] != "b4" {
			t.Errorf("%s scrapes %v", name, got.Configs)
		}
		all := strings.Join(args, " ")
		if n := strings.Count(all+string(text), work.url); n != 1 {
			t.Errorf("%s has the receiver %d times: %s\n%s", name, n, all, text)
		}
		if !strings.Contains(all, files[0]) || !strings.Contains(all, "127.0.0.1:0") {
			t.Errorf("%s is started with %s", name, all)
		}
	}
}
