package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"hwsagent/agent/status"
)

// TestManualPagesHaveEveryCommandAndFlag: each command that help shows has a page, with all of its flags.
func TestManualPagesHaveEveryCommandAndFlag(t *testing.T) {
	dir := t.TempDir()
	code, stdout, stderr := hwsagent(t, "man", dir)
	if code != status.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	pages := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		pages++
		text, err := os.ReadFile(filepath.Join(dir, pageName(cmd)+".1"))
		if err != nil {
			t.Error(err)
		}
		page := strings.ReplaceAll(string(text), `\-`, "-")
		for _, flag := range regexp.MustCompile(`--[a-z.-]+`).FindAllString(cmd.LocalFlags().FlagUsages()+cmd.InheritedFlags().FlagUsages(), -1) {
			if !strings.Contains(page, flag) {
				t.Errorf("the page of %q lacks the flag %s", cmd.CommandPath(), flag)
			}
		}
		for i, line := range strings.Split(page, "\n") {
			if strings.HasPrefix(line, ".") && !regexp.MustCompile(`^\.(TH|SH|TP|B|BR|I|nf|fi)\b`).MatchString(line) || strings.HasPrefix(line, "'") {
				t.Errorf("line %d of the page of %q begins with a command of troff: %s", i+1, cmd.CommandPath(), line)
			}
		}
		for _, sub := range cmd.Commands() {
			if !sub.Hidden { // it says only where a command has gone
				walk(sub)
			}
		}
	}
	walk((&cli{}).root())
	if pages < 20 || !strings.Contains(stdout, "manual pages are in "+dir) {
		t.Errorf("%d pages; it said %q", pages, stdout)
	}
}

// TestGroffTakesManualPages: groff warns of nothing in any page.
func TestGroffTakesManualPages(t *testing.T) {
	groff, err := exec.LookPath("groff")
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatal("needs groff, and this is CI: .ci/run must install it")
	case err != nil:
		t.Skip("needs groff (Debian: apt-get install groff-base)")
	}
	dir := t.TempDir()
	if code, _, stderr := hwsagent(t, "man", dir); code != status.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	out, err := exec.Command(groff, append([]string{"-man", "-ww", "-z", "-Tascii"}, files...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}

// TestCompletionHasNames: a shell that asks gets the names that a command takes at that place.
func TestCompletionHasNames(t *testing.T) {
	file := write(t, "agent.yaml", "probes: [{name: switch, type: canary}]\nremote_write: [{name: mimir, url: 'http://127.0.0.1:1/', bearer_token: '${file:/no/such/file}'}]\n")
	bad := write(t, "bad.yaml", "remote_write: [{name: mimir}]\n")
	for _, c := range []struct{ line, want string }{
		{"targets test ", "mimir"},
		{"targets pause ", "mimir"},
		{"targets resume ", "mimir"},
		{"targets skip --before 1h ", "mimir"},
		{"targets rejected ", "mimir"},
		{"targets test mimir ", ""},
		{"targets adopt old ", "mimir"},
		{"wal replay --target ", "mimir"},
		{"probe ", "switch hwsagent"},
		{"check --target ", "mimir"},
		{"check --probe ", "switch hwsagent"},
		{"run --log.level ", "debug info warn error"},
	} {
		args := strings.Split(c.line, " ")
		for config, want := range map[string]string{file: c.want, bad: ""} {
			if strings.Contains(c.line, "log.level") {
				want = c.want
			}
			ask := append([]string{"__complete", "--config.file", config, "--storage.path", t.TempDir()}, args...)
			code, stdout, stderr := hwsagent(t, ask...)
			words, _, _ := strings.Cut(stdout, ":")
			if got := strings.Join(strings.Fields(words), " "); code != status.ExitOK || got != want || strings.Contains(stdout, ":0\n") {
				t.Errorf("%q: exit code %d, got %q, want %q and no names of files\n%s", c.line, code, got, want, stderr)
			}
		}
	}
}

// TestDropIsCompletedWithQueues: only queues without an entry in the configuration may be dropped.
func TestDropIsCompletedWithQueues(t *testing.T) {
	storage := t.TempDir()
	code, stdout, stderr := hwsagent(t, "__complete", "--storage.path", storage, "targets", "drop", "")
	if code != status.ExitOK || strings.TrimSpace(strings.Split(stdout, ":")[0]) != "" {
		t.Errorf("without a log: exit code %d, %q, %s", code, stdout, stderr)
	}
}
