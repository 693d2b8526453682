package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(asForgetful) != "" && len(os.Args) > 5 && os.Args[1] == "run" {
		if err := forgetful(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestUnknownScript(t *testing.T) {
	err := Run(t.Context(), Options{Script: "flood"})
	if err == nil || !strings.Contains(err.Error(), "outage") {
		t.Errorf("error %v does not name the scripts", err)
	}
}

// TestAgentThatDies proves that the demo fails, soon and with the agent's own words,
// when the agent does not run.
func TestAgentThatDies(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("needs /bin/sh")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "agent")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\necho it is broken; exit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	start := time.Now()
	err := Run(t.Context(), Options{Script: Outage, JSON: true, Listen: "127.0.0.1:0", Binary: binary, Keep: filepath.Join(dir, "files"), Stdout: io.Discard, Stderr: &stderr})
	if err == nil || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("error %v, want one that tells how the agent ended", err)
	}
	if !strings.Contains(stderr.String(), "it is broken") {
		t.Errorf("the agent's words are missing: %s", stderr.String())
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s to notice", took)
	}
	for _, name := range []string{"token", "client.key", "agent.yaml", logName} {
		if info, err := os.Stat(filepath.Join(dir, "files", name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info, err)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s, want %s", n, got, want)
		}
	}
}
