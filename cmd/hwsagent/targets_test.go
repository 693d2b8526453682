package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTargets does everything to the queues of an agent that is down.
func TestTargets(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "data")
	file := write(t, "agent.yaml", `
web: {listen: ""}
wal: {min_free_bytes: 1MiB}
probes: [{name: c, type: canary, interval: 20ms, timeout: 20ms}]
remote_write: [{name: a, url: "http://127.0.0.1:1/"}, {name: b, url: "http://127.0.0.1:1/"}]
`)
	stop := startAgent(t, file, storage)
	until(t, "something waits", func() error {
		return waits(t, storage, "a", 30)
	})
	code, stdout, _ := hwsagent(t, "targets", "--storage.path", storage)
	if code != exitOK || !strings.Contains(stdout, "WAITING") || !strings.Contains(stdout, "http://127.0.0.1:1/") {
		t.Errorf("targets: exit %d\n%s", code, stdout)
	}
	stop()
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"targets"}, exitOK, "stopped", "not running"},
		{[]string{"targets", "list"}, exitOK, "stopped", "not running"},
		{[]string{"targets", "pause"}, exitUsage, "", "targets pause NAME"},
		{[]string{"targets", "paws", "a"}, exitUsage, "", "Did you mean"},
		{[]string{"targets", "pause", "x"}, exitUsage, "", "it has those of a, b"},
		{[]string{"targets", "pause", "a"}, exitOK, "a is paused since", ""},
		{[]string{"targets", "resume", "a"}, exitOK, "a is not paused", ""},
		{[]string{"targets", "skip", "a"}, exitUsage, "", `"before" not set`},
		{[]string{"targets", "skip", "a", "--before", "soon"}, exitUsage, "", "is no time"},
		{[]string{"targets", "skip", "a", "--before", "1d", "--yes"}, exitOK, "nothing waits for a before", ""},
		{[]string{"targets", "skip", "a", "--before", "now"}, exitUsage, "write --yes", ""},
		{[]string{"targets", "skip", "a", "--before", "now", "--dry-run"}, exitOK, "would skip", ""},
		{[]string{"targets", "skip", "a", "--before", "now", "--yes"}, exitOK, "", ""},
		{[]string{"targets", "adopt", "a"}, exitUsage, "", "targets adopt OLD NEW"},
		{[]string{"targets", "adopt", "a", "b"}, exitFailed, "", "its own"},
		{[]string{"targets", "rejected", "a"}, exitOK, "a", ""},
		{[]string{"targets", "rejected", "a", "clean"}, exitUsage, "", "rejected NAME clear"},
		{[]string{"targets", "rejected", "a", "clear"}, exitOK, "removed 0 dead letters", ""},
		{[]string{"targets", "test", "a", "--config.file", file}, exitTarget, "connection refused", ""},
		{[]string{"targets", "test", "x", "--config.file", file}, exitUsage, "", "it has a, b"},
		{[]string{"targets", "drop", "b"}, exitUsage, "", "--yes"},
		{[]string{"targets", "drop", "x", "--yes"}, exitUsage, "", "no such target"},
		{[]string{"targets", "drop", "a", "--storage.path", t.TempDir(), "--yes"}, exitFailed, "", "there is no log"},
	} {
		args := c.args
		if !strings.Contains(strings.Join(args, " "), "--storage.path") {
			args = append(args, "--storage.path", storage)
		}
		code, stdout, stderr := hwsagent(t, args...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("hwsagent %s: exit %d, want %d\nstdout (want %q):\n%s\nstderr (want %q):\n%s",
				strings.Join(c.args, " "), code, c.code, c.stdout, stdout, c.stderr, stderr)
		}
		code, stdout, _ = hwsagent(t, append(args, "--json")...)
		var v map[string]any
		if err := json.Unmarshal([]byte(stdout), &v); code != c.code || err != nil {
			t.Errorf("hwsagent %s --json: exit %d, want %d; %v\n%s", strings.Join(c.args, " "), code, c.code, err, stdout)
		}
	}
	if code, stdout, stderr := hwsagent(t, "targets", "adopt", "b", "c", "--storage.path", storage); code != exitOK || !strings.Contains(stdout, "c has the queue of b") {
		t.Errorf("adopt: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := hwsagent(t, "targets", "drop", "c", "--yes", "--storage.path", storage); code != exitOK || !strings.Contains(stdout, "dropped the queue of c") {
		t.Errorf("drop: exit %d\n%s%s", code, stdout, stderr)
	}
}

func TestParseTime(t *testing.T) {
	zone := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, zone)
	for text, want := range map[string]time.Time{
		"now":                       now,
		"90m":                       now.Add(-90 * time.Minute),
		"-26h":                      now.Add(-26 * time.Hour),
		"3d":                        now.Add(-72 * time.Hour),
		"2026-11-20T06:00:00Z":      time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC),
		"2026-11-20T06:00Z":         time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC),
		"2026-11-20T06:00:00.5Z":    time.Date(2026, 11, 20, 6, 0, 0, 5e8, time.UTC),
		"2026-11-20 06:00":          time.Date(2026, 11, 20, 6, 0, 0, 0, zone),
		"2026-11-20":                time.Date(2026, 11, 20, 0, 0, 0, 0, zone),
		"2026-11-20T06:00:00+01:00": time.Date(2026, 11, 20, 5, 0, 0, 0, time.UTC),
		"soon":                      {}, "": {}, "20.11.2026": {},
	} {
		got, err := parseTime(text, now)
		if !got.Equal(want) || (err != nil) != want.IsZero() {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
}

// startAgent runs an agent until the returned function is called.
func startAgent(t *testing.T, file, storage string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var log bytes.Buffer
		if code := run(ctx, []string{"run", "--config.file", file, "--storage.path", storage}, &bytes.Buffer{}, &log); code != exitOK {
			t.Errorf("run: exit %d\n%s", code, log.String())
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// waits is nil when so many samples wait for a target.
func waits(t *testing.T, storage, target string, n uint64) error {
	t.Helper()
	_, stdout, stderr := hwsagent(t, "targets", "--storage.path", storage, "--json")
	var s struct {
		Targets []struct {
			Name    string `json:"name"`
			Pending uint64 `json:"pending_samples"`
		} `json:"targets"`
	}
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		return err
	}
	for _, got := range s.Targets {
		if got.Name == target && got.Pending >= n {
			return nil
		}
	}
	return fmt.Errorf("targets %+v, %s", s.Targets, stderr)
}
