package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestVerdicts: only a database that is out of reach is a warning. The outputs are those of
// govulncheck 1.8.0.
func TestVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		stdout, stderr string
		code           int
		err            string // "" if none is wanted
		warned         bool
	}{
		"nothing found":       {"No vulnerabilities found.", "", 0, "", false},
		"one is reached":      {"Your code is affected by 1 vulnerability from 1 module.", "", 3, "is reached", false},
		"no such host":        {"", `govulncheck: fetching vulnerabilities: Get "https://vuln.go.dev/index/modules.json.gz": dial tcp: lookup vuln.go.dev on 10.0.0.1:53: no such host`, 1, "", true},
		"another code":        {"", "govulncheck: fetching vulnerabilities: x", 3, "is reached", false},
		"it does not compile": {"", "govulncheck: loading packages: \nThere are errors with the provided package patterns", 1, "exit code 1", false},
		"a package says so":   {"fetching vulnerabilities: ", "", 1, "exit code 1", false},
		"a wrong flag":        {"", "flag provided but not defined", 2, "exit code 2", false},
	} {
		dir := t.TempDir()
		script := fmt.Sprintf("#!/bin/sh\ncat %s/out\ncat %[1]s/err >&2\nexit %d\n", dir, tc.code)
		program := filepath.Join(dir, "govulncheck")
		for file, text := range map[string]string{"out": tc.stdout + "\n", "err": tc.stderr + "\n", "govulncheck": script} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		var out strings.Builder
		err := check(t.Context(), &out, program, []string{"./..."})
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, want %q", name, err, tc.err)
		}
		if warned := strings.Contains(out.String(), "\n"+warning); warned != tc.warned {
			t.Errorf("%s: warned %t\n%s", name, warned, out.String())
		}
		if !strings.Contains(out.String(), tc.stdout) || !strings.Contains(out.String(), tc.stderr) {
			t.Errorf("%s: what the program says is not shown: %s", name, out.String())
		}
	}
	if err := check(t.Context(), &strings.Builder{}, filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("a program that is not there finds nothing")
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if err := check(late, &strings.Builder{}, "/bin/sh", []string{"-c", "exit 0"}); err == nil || !strings.Contains(err.Error(), "took longer") {
		t.Errorf("a run that is too long: %v", err)
	}
}
