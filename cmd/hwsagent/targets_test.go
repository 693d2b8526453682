package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/agent/queues"
	"hwsagent/agent/status"
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
	if code != status.ExitOK || !strings.Contains(stdout, "WAITING") || !strings.Contains(stdout, "http://127.0.0.1:1/") {
		t.Errorf("targets: exit %d\n%s", code, stdout)
	}
	stop()
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"targets"}, status.ExitOK, "stopped", "not running"},
		{[]string{"targets", "list"}, status.ExitOK, "stopped", "not running"},
		{[]string{"targets", "pause"}, status.ExitUsage, "", "targets pause NAME"},
		{[]string{"targets", "paws", "a"}, status.ExitUsage, "", "Did you mean"},
		{[]string{"targets", "pause", "x"}, status.ExitUsage, "", "it has those of a, b"},
		{[]string{"targets", "pause", "a"}, status.ExitOK, "a has been paused since", ""},
		{[]string{"targets", "resume", "a"}, status.ExitOK, "a is resumed", ""},
		{[]string{"targets", "skip", "a"}, status.ExitUsage, "", "write: hwsagent targets skip NAME --before TIME"},
		{[]string{"targets", "skip", "a", "--before", "soon"}, status.ExitUsage, "", "invalid time"},
		{[]string{"targets", "skip", "a", "--before", "1d", "--yes"}, status.ExitOK, "waits for a; the queue continues with", ""},
		{[]string{"targets", "skip", "a", "--before", "now"}, status.ExitUsage, "pass --yes", ""},
		{[]string{"targets", "skip", "a", "--before", "now", "--dry-run"}, status.ExitOK, "would skip", ""},
		{[]string{"targets", "skip", "a", "--before", "now", "--yes"}, status.ExitOK, "", ""},
		{[]string{"targets", "adopt", "a"}, status.ExitUsage, "", "targets adopt OLD NEW"},
		{[]string{"targets", "adopt", "a", "b"}, status.ExitFailed, "", "its own"},
		{[]string{"targets", "rejected", "a"}, status.ExitOK, "a", ""},
		{[]string{"targets", "rejected", "a", "clean"}, status.ExitUsage, "", "rejected NAME clear"},
		{[]string{"targets", "rejected", "a", "clear"}, status.ExitOK, "removed 0 dead letters", ""},
		{[]string{"targets", "test", "a", "--config.file", file}, status.ExitTarget, "connection refused", ""},
		{[]string{"targets", "test", "x", "--config.file", file}, status.ExitUsage, "", "it has a, b"},
		{[]string{"targets", "drop", "b"}, status.ExitUsage, "", "--yes"},
		{[]string{"targets", "drop", "x", "--yes"}, status.ExitUsage, "", "no such target"},
		{[]string{"targets", "drop", "a", "--storage.path", t.TempDir(), "--yes"}, status.ExitFailed, "", "there is no log"},
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
	if code, stdout, stderr := hwsagent(t, "targets", "adopt", "b", "c", "--storage.path", storage); code != status.ExitOK || !strings.Contains(stdout, "c now has the queue of b") {
		t.Errorf("adopt: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := hwsagent(t, "targets", "drop", "c", "--yes", "--storage.path", storage); code != status.ExitOK || !strings.Contains(stdout, "dropped the queue of c") {
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

// TestAcknowledge: losses have the same name and number in each table. ack names as many samples as the losses have, and says so if there is
// no loss.
func TestAcknowledge(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "data")
	file := write(t, "agent.yaml", `
web: {listen: ""}
wal: {min_free_bytes: 1MiB}
probes: [{name: c, type: canary, interval: 20ms, timeout: 20ms}]
remote_write: [{name: a, url: "http://127.0.0.1:1/", hwsagent: {tenant: {label: none, header: X-Scope-OrgID}}}]
`)
	stop := startAgent(t, file, storage)
	until(t, "samples without a tenant are lost", func() error {
		code, stdout, _ := hwsagent(t, "events", "--storage.path", storage)
		if code != status.ExitOK || !strings.Contains(stdout, "lost") {
			return fmt.Errorf("exit %d\n%s", code, stdout)
		}
		return nil
	})
	stop()
	st, err := queues.OfflineStatus(storage, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, stdout, _ := hwsagent(t, "targets", "--storage.path", storage)
	head, row, _ := strings.Cut(stdout, "\n")
	words := strings.Fields(row)
	if lost := fmt.Sprint(st.Targets[0].Ledger.Lost); !strings.Contains(head, "REFUSED  UNCONFIRMED  LOST  DEAD LETTERS  URL") || len(words) < 9 || !slices.Equal(words[6:9], []string{"0", "0", lost}) {
		t.Errorf("%s are lost, want that number in the column LOST:\n%s", lost, stdout)
	}
	for _, want := range []string{"samples that did not arrive or were not confirmed\n", "there is no loss to acknowledge\n"} {
		if code, stdout, stderr := hwsagent(t, "events", "ack", "--storage.path", storage); code != status.ExitOK || !strings.HasSuffix(stdout, want) {
			t.Errorf("exit %d, want %q\n%s%s", code, want, stdout, stderr)
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
		if code := execute(ctx, io.Discard, &log, "run", "--config.file", file, "--storage.path", storage); code != status.ExitOK {
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

// TestReplay sends a window once more, is refused, and is interrupted.
func TestReplay(t *testing.T) {
	var mu sync.Mutex
	answer, seen := http.StatusNoContent, 0
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen++
		w.WriteHeader(answer)
	}))
	defer to.Close()
	storage := filepath.Join(t.TempDir(), "data")
	file := write(t, "agent.yaml", `
web: {listen: ""}
wal: {min_free_bytes: 1MiB, retain: 1h}
probes: [{name: c, type: canary, interval: 20ms, timeout: 20ms}]
remote_write: [{name: "it's a", url: "`+to.URL+`"}, {name: down, url: "http://127.0.0.1:1/"}]
`)
	stop := startAgent(t, file, storage)
	until(t, "something is logged", func() error { return waits(t, storage, "down", 200) })
	stop()
	replay := func(ctx context.Context, args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		args = append([]string{"wal", "replay", "--config.file", file, "--storage.path", storage, "--target", "it's a"}, args...)
		code = execute(ctx, &out, &errs, args...)
		return code, out.String(), errs.String()
	}
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"--from", "1h", "--dry-run"}, status.ExitOK, "would send", ""},
		{[]string{"--from", "1h", "--match", "hwsagent_canary"}, status.ExitOK, "delivered to it's a", ""},
		{[]string{"--from", "1h", "--match", "nothing"}, status.ExitOK, "the log has no such samples", ""},
		{[]string{"--from", "1h", "--match", "{"}, status.ExitUsage, "", "parse selector"},
		{[]string{"--from", "1h", "--to", "2h"}, status.ExitUsage, "", "--from 1h is not before --to 2h"},
		{[]string{"--from", "2040-01-01"}, status.ExitUsage, "", "--from 2040-01-01 is not before --to now"},
		{[]string{"--from", "1h", "--rate", "-1"}, status.ExitUsage, "", "--rate -1 is negative"},
		{[]string{"--from", "later"}, status.ExitUsage, "", "--from"},
		{nil, status.ExitUsage, "", "write: hwsagent wal replay --target NAME --from TIME"},
	} {
		if code, stdout, stderr := replay(t.Context(), c.args...); code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("replay %q: exit %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
		code, stdout, _ := replay(t.Context(), append(c.args, "--json")...)
		if code != c.code || !json.Valid([]byte(stdout)) {
			t.Errorf("replay %q --json: exit %d, want %d\n%s", c.args, code, c.code, stdout)
		}
	}
	mu.Lock()
	answer = http.StatusBadRequest
	mu.Unlock()
	if code, stdout, stderr := replay(t.Context(), "--from", "1h"); code != status.ExitTarget || stdout != "" || !strings.Contains(stderr, "Nothing was stored. Try:") {
		t.Errorf("refused: exit %d\n%s%s", code, stdout, stderr)
	}
	mu.Lock()
	answer, seen = http.StatusNoContent, 0
	mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // SIGINT
		for {
			mu.Lock()
			n := seen
			mu.Unlock()
			if n > 0 || ctx.Err() != nil {
				cancel()
				return
			}
			<-time.After(time.Millisecond)
		}
	}()
	code, _, stderr := replay(ctx, "--from", "1h", "--rate", "0.01")
	if code != status.ExitFailed || !strings.Contains(stderr, `replay --target 'it'\''s a' --from`) || !strings.Contains(stderr, "--rate=0.01") || !strings.Contains(stderr, "--after ") {
		t.Errorf("interrupted: exit %d\n%s", code, stderr)
	}
}

// TestReplayRefusals: the result counts each refused sample once, and says which of them the target may have.
func TestReplayRefusals(t *testing.T) {
	for want, r := range map[string]queues.ReplayResult{
		"in 0.0 s\n":    {Delivered: 1},
		", 2 refused\n": {Delivered: 1, Refused: 2},
		", 3 refused; the target may have them already\n":      {Delivered: 1, Unconfirmed: 3},
		", 5 refused; the target may have 3 of them already\n": {Delivered: 1, Refused: 2, Unconfirmed: 3},
	} {
		r.Samples = r.Delivered + r.Refused + r.Unconfirmed
		var out bytes.Buffer
		writeReplay(&out, r)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}

// A replay is shown as a bar on a terminal, and as a line now and then elsewhere.
func TestReplayBar(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		var out strings.Builder
		now := time.Unix(0, 0)
		b := &replayBar{out: &out, now: func() time.Time { return now }, terminal: terminal}
		for i := range int64(10) {
			b.show(queues.ReplayProgress{Read: i * 10, Total: 100, Delivered: uint64(i) * 1000})
			now = now.Add(2 * time.Second)
		}
		b.end()
		lines, bars := strings.Count(out.String(), "\n"), strings.Count(out.String(), "\r\x1b[K[")
		if terminal && (lines != 0 || bars != 9) || !terminal && (lines != 3 || strings.Contains(out.String(), "\x1b")) || !strings.Contains(out.String(), "90 % of the log read, 9000 samples delivered, 500/s, about 2 s left") {
			t.Errorf("terminal=%v:\n%q", terminal, out.String())
		}
	}
}
