package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hwsagent/agent/status"
)

// TestInit: init writes a file that check takes, tries the target, replaces no file, and leaves no file with a mistake.
func TestInit(t *testing.T) {
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer good.Close()
	none := httptest.NewServer(http.HandlerFunc(http.NotFound))
	defer none.Close()
	token := write(t, "token", "x")
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stdout string
		stderr string
		file   string // a part of it; empty: there is none
	}{
		{"taken", []string{"--url", good.URL}, status.ExitOK, "hwsagent run --config.file ", "", `url: "` + good.URL + `"`},
		{"token", []string{"--url", good.URL, "--bearer-token-file", token}, status.ExitOK, "wrote ", "", `bearer_token_file: "` + token + `"`},
		{"no token", []string{"--url", good.URL, "--bearer-token-file", token + "x"}, status.ExitConfig, "does not exist", "", "bearer_token_file"},
		{"wrong path", []string{"--url", none.URL}, status.ExitTarget, "404", "", `name: "127.0.0.1"`},
		{"no URL", []string{"--url", "prometheus:9090"}, status.ExitConfig, "wrote no file", "", ""},
		{"structure", []string{"--url", good.URL, "--name", `a": {b: ${HOME}`}, status.ExitOK, "wrote ", "", `$${HOME}`},
		{"no flag", nil, status.ExitUsage, "", "write: hwsagent init --url URL", ""},
	} {
		file := filepath.Join(t.TempDir(), "agent.yaml")
		code, stdout, stderr := hwsagent(t, append([]string{"init", "--file", file}, c.args...)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: exit %d, want %d\n%s%s", c.name, code, c.code, stdout, stderr)
		}
		text, err := os.ReadFile(file)
		if (err != nil) != (c.file == "") || !strings.Contains(string(text), c.file) {
			t.Errorf("%s: the file has %q, %v", c.name, text, err)
		}
		if err != nil {
			continue
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", c.name, info, err)
		}
		if code, stdout, _ := hwsagent(t, "check", "--syntax-only", "--config.file", file); code != status.ExitOK {
			t.Errorf("%s: check of the file: exit %d\n%s", c.name, code, stdout)
		}
		if code, _, stderr := hwsagent(t, append([]string{"init", "--file", file}, c.args...)...); code != status.ExitFailed || !strings.Contains(stderr, "never replaces a file") {
			t.Errorf("%s: a second init: exit %d\n%s", c.name, code, stderr)
		}
		if again, _ := os.ReadFile(file); string(again) != string(text) {
			t.Errorf("%s: a second init changed the file", c.name)
		}
	}
}

// TestInitNextSteps: the commands that init prints are complete, with the file and the directory.
func TestInitNextSteps(t *testing.T) {
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer good.Close()
	dir := t.TempDir()
	file, storage := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "data")
	_, stdout, _ := hwsagent(t, "init", "--url", good.URL, "--file", file, "--storage.path", storage)
	_, steps, _ := strings.Cut(stdout, "Try:\n")
	var commands [][]string
	for line := range strings.Lines(steps) {
		line, _, _ = strings.Cut(line, "#")
		commands = append(commands, strings.Fields(line))
	}
	both := []string{"--config.file", file, "--storage.path", storage}
	want := [][]string{append([]string{"hwsagent", "check"}, both...), append([]string{"hwsagent", "run"}, both...), append([]string{"hwsagent", "status"}, both[2:]...)}
	if !reflect.DeepEqual(commands, want) {
		t.Fatalf("it prints %q, want %q", commands, want)
	}
	if code, stdout, stderr := hwsagent(t, commands[0][1:]...); code != status.ExitOK {
		t.Errorf("check, as it is printed: exit %d\n%s%s", code, stdout, stderr)
	}
}
