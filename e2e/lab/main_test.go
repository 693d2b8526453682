//go:build linux && amd64

package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// laboratory marks a test that boots the machine.
func laboratory(t *testing.T) {
	t.Helper()
	if os.Getenv("HWSAGENT_E2E") == "" {
		t.Skip("boots a machine: run by make nightly (HWSAGENT_E2E=1)")
	}
}

// needs finds another program. Without it the test is skipped by the names of program and package.
func needs(t *testing.T, program, debianPackage string) string {
	t.Helper()
	for _, dir := range filepath.SplitList(os.Getenv("PATH") + ":/usr/sbin:/sbin") {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	missing(t, program, debianPackage)
	return ""
}

// missing skips the test; where it is part of continuous integration that is a failure, as everywhere.
func missing(t *testing.T, thing, debianPackage string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("needs %s of Debian's package %s, and this is CI", thing, debianPackage)
	}
	t.Skipf("needs %s (Debian: apt-get install %s)", thing, debianPackage)
}

// kernel is the newest of Debian's kernels on this host: its image, and the directory of its modules.
func kernel(t *testing.T) (image, modules, version string) {
	t.Helper()
	images, err := filepath.Glob("/boot/vmlinuz-*-amd64")
	if err != nil {
		t.Fatal(err)
	}
	for i := len(images) - 1; i >= 0; i-- {
		version = filepath.Base(images[i])[len("vmlinuz-"):]
		modules = filepath.Join("/lib/modules", version)
		if _, err := os.Stat(filepath.Join(modules, "modules.dep")); err == nil {
			return images[i], modules, version
		}
	}
	missing(t, "/boot/vmlinuz-*-amd64 and its modules", "linux-image-amd64")
	return "", "", ""
}

// built is a program of this module, without which nothing in the machine runs. The environment may name it.
func built(t *testing.T, pkg, env string) string {
	t.Helper()
	if path := os.Getenv(env); env != "" && path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), filepath.Base(pkg))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return path
}

// eventually waits until done returns "", and fails the test with what done says is missing when that takes longer than limit.
func eventually(t *testing.T, limit time.Duration, done func() string) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) { // the pace of asking
		missing := done()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", limit, missing)
		}
	}
}
