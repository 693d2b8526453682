//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// agent is a program to measure.
type agent struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Binary  int64  `json:"binary_bytes"`

	program string
	// v2 and zstd select further measurements: with remote write 2.0, and with 1.0 and zstd.
	v2, zstd bool
	setUp    func(job job, dir string) (args []string, err error)
}

// Names of the agents.
const (
	ours       = "hwsagent"
	prometheus = "prometheus"
	vmagent    = "vmagent"
)

// job is the task of an agent in a run.
type job struct {
	targets  []string // host:port
	interval time.Duration
	url      string // of the receiver
	entries  int    // of the receiver, at our agent; 0 is 1
	version  string // of remote write
	zstd     bool   // the receiver is VictoriaMetrics
}

// findAgent finds a program, by its name in PATH or by its path, and asks for its version.
func findAgent(ctx context.Context, name, program string) (agent, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return agent{}, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return agent{}, err
	}
	file, err := os.Stat(path) // the target of a link
	if err != nil {
		return agent{}, err
	}
	ask := "--version"
	if name == ours {
		ask = "version"
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, ask).CombinedOutput()
	if err != nil {
		return agent{}, fmt.Errorf("ask %s for its version: %w: %s", path, err, said)
	}
	a := agent{Name: name, Version: versionIn(name, string(said)), Binary: file.Size(), program: path}
	switch name {
	case ours:
		a.v2, a.zstd, a.setUp = true, true, setUpOurs
	case prometheus:
		a.v2 = atLeast(a.Version, 3, 0)
		a.setUp = func(j job, dir string) ([]string, error) { return setUpPrometheus(j, dir, atLeast(a.Version, 3, 0)) }
	case vmagent:
		a.zstd, a.setUp = true, setUpVMAgent
	}
	return a, nil
}

// versionIn returns the version in an agent's output: "hwsagent 1.2.3-4-gabc (…)", "prometheus, version 3.14.0 (…)",
// "vmagent-20260801-101112-tags-v1.150.0-0-gabc". Distributions remove vmagent's.
func versionIn(name, said string) string {
	if f := strings.Fields(said); name == ours && len(f) > 1 {
		return f[1]
	}
	if v := regexp.MustCompile(`\d+\.\d+(\.\d+)?`).FindString(said); v != "" {
		return v
	}
	return "unknown"
}

// atLeast compares a version with major.minor. An unknown version never satisfies it.
func atLeast(version string, major, minor int) bool {
	a, rest, _ := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, err1 := strconv.Atoi(a)
	y, err2 := strconv.Atoi(b)
	return err1 == nil && err2 == nil && (x > major || x == major && y >= minor)
}

// scrapeConfigs returns the part of the configuration that all agents read alike.
func scrapeConfigs(j job) string {
	return fmt.Sprintf("scrape_configs:\n  - job_name: hardware\n    static_configs:\n      - targets: [%s]\n        labels: {rack: b4, role: storage}\n", strings.Join(j.targets, ", "))
}

func global(j job) string {
	return fmt.Sprintf("scrape_interval: %s, scrape_timeout: %[1]s, external_labels: {site: fra1}", j.interval)
}

// messageOf returns Prometheus' name for a version.
func messageOf(version string) string {
	if version == v2 {
		return "io.prometheus.write.v2.Request"
	}
	return "prometheus.WriteRequest"
}

// setUpOurs turns the agent's own series off, because the others do not send theirs either.
func setUpOurs(j job, dir string) ([]string, error) {
	config := fmt.Sprintf("global: {%s}\nprobes:\n  - {name: hwsagent, type: self, enabled: false}\n%sremote_write:\n", global(j), scrapeConfigs(j))
	compression := "snappy"
	if j.zstd {
		compression = "zstd"
	}
	for i := range max(1, j.entries) {
		config += fmt.Sprintf("  - {name: receiver%d, url: %q, protobuf_message: %s, hwsagent: {compression: %s}}\n", i, j.url, messageOf(j.version), compression)
	}
	file := filepath.Join(dir, "agent.yaml")
	return []string{"run", "--config.file", file, "--storage.path", filepath.Join(dir, "data"), "--web.listen-address", "127.0.0.1:0"},
		os.WriteFile(file, []byte(config), 0o600)
}

// setUpPrometheus uses the flag for agent mode that exists since version 3.
func setUpPrometheus(j job, dir string, three bool) ([]string, error) {
	message := ""
	if j.version == v2 {
		message = ", protobuf_message: " + messageOf(v2)
	}
	config := fmt.Sprintf("global: {%s}\n%sremote_write:\n  - {url: %q%s}\n", global(j), scrapeConfigs(j), j.url, message)
	mode := "--enable-feature=agent"
	if three {
		mode = "--agent"
	}
	file := filepath.Join(dir, "prometheus.yml")
	return []string{mode, "--config.file=" + file, "--storage.agent.path=" + filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0"},
		os.WriteFile(file, []byte(config), 0o600)
}

// setUpVMAgent leaves the compression to the receiver's answer, as for our agent.
func setUpVMAgent(j job, dir string) ([]string, error) {
	config := fmt.Sprintf("global: {%s}\n%s", global(j), scrapeConfigs(j))
	file := filepath.Join(dir, "scrape.yml")
	return []string{
		"-promscrape.config=" + file, "-remoteWrite.url=" + j.url,
		"-remoteWrite.tmpDataPath=" + filepath.Join(dir, "data"), "-httpListenAddr=127.0.0.1:0",
	}, os.WriteFile(file, []byte(config), 0o600)
}
