package agent

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/internal/lastlines"
)

// TestBugReportHidesSecrets: whatever is a secret in a configuration is in no file of a report, whether the
// configuration is right or wrong.
func TestBugReportHidesSecrets(t *testing.T) {
	const secret = "s3cr3t-of-a-bug-report"
	file := filepath.Join(t.TempDir(), "agent.yaml")
	good := "probes: [{type: host}]\nremote_write: [{name: a, url: 'http://127.0.0.1:1/?x=" + secret + "', bearer_token: " + secret + "}, {name: b, url: 'http://user:" + secret + "@127.0.0.1:1/'}]\n"
	bad := good + "prober: " + secret + "\n"
	for name, text := range map[string]string{"right": good, "wrong": strings.Replace(bad, "prober: "+secret, "prober: 1", 1)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var archive bytes.Buffer
		files := BugReport(t.Context(), BugReportOptions{ConfigFile: file, StoragePath: t.TempDir(), Env: os.LookupEnv})
		if err := WriteBugReport(&archive, files, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		got := untar(t, &archive)
		if len(got) != len(files) || len(got) < 8 {
			t.Errorf("%s: %d files in the archive, want %d", name, len(got), len(files))
		}
		for f, content := range got {
			if strings.Contains(content, secret) {
				t.Errorf("%s: %s has the secret:\n%s", name, f, content)
			}
		}
		if c := got["hwsagent-bugreport/config.yaml"]; name == "right" && !strings.Contains(c, "<secret>") || name == "wrong" && !strings.Contains(c, `unknown key "prober"`) {
			t.Errorf("%s: config.yaml is\n%s", name, c)
		}
		if _, ok := got["hwsagent-bugreport/events.json"]; !ok {
			t.Errorf("%s: there are no events", name)
		}
		if s := got["hwsagent-bugreport/status.json"]; !strings.Contains(s, "could not be collected: no agent is running") {
			t.Errorf("%s: status.json is\n%s", name, s)
		}
	}
}

func untar(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(z); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[head.Name] = string(text)
	}
}

// TestBugReportOfRunningAgent: the report has the agent's goroutines, without pprof, and the last lines that it has logged.
func TestBugReportOfRunningAgent(t *testing.T) {
	a := newSink(t)
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	r.configure(entry("a", a.URL, ""))
	recent := lastlines.New(1 << 20)
	var err error
	o := Options{ConfigFile: r.file, StoragePath: t.TempDir(), Logger: slog.New(slog.NewTextHandler(recent, nil)), Logged: recent.Bytes}
	if r.Agent, err = New(o); err != nil {
		t.Fatal(err)
	}
	runStarted(t, r)
	until(t, "the agent is running", func() bool { return strings.Contains(string(recent.Bytes()), "The agent is running") })
	got := map[string]string{}
	for _, f := range BugReport(t.Context(), BugReportOptions{ConfigFile: r.file, StoragePath: o.StoragePath}) {
		got[f.Name] = string(f.text)
	}
	for name, want := range map[string]string{"goroutines.txt": `"part":"the page"`, "log.txt": "The agent is running", "events.json": `"kind": "restart"`, "metrics.txt": "hwsagent_"} {
		if !strings.Contains(got[name], want) || strings.Contains(got[name], "could not be collected") {
			t.Errorf("%s lacks %q: %.2000s", name, want, got[name])
		}
	}
}
