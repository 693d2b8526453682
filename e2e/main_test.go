package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hwsagent/internal/tools/tier"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if dir := builtDir.Load(); dir != nil {
		_ = os.RemoveAll(*dir) // what is left is in the temporary directory
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// endToEnd marks a test that takes real time and runs the built binary. `make test`
// skips it, `make e2e` runs it.
func endToEnd(t *testing.T) {
	t.Helper()
	if os.Getenv("HWSAGENT_E2E") == "" {
		t.Skip("an end-to-end test: run by make e2e (HWSAGENT_E2E=1)")
	}
}

// needs finds another program. Without it the test is skipped by the program's name;
// in continuous integration that is a failure.
func needs(t *testing.T, program string) string {
	t.Helper()
	endToEnd(t)
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	if path := "/usr/sbin/" + program; exec.Command("test", "-x", path).Run() == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("needs %s, and this is CI: .ci/run must install it", program)
	}
	t.Skipf("needs %s (Debian: apt-get install %[1]s)", program)
	return ""
}

var (
	builtDir atomic.Pointer[string] // to be removed at the end
	makeDir  = sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "hwsagent-e2e-")
		builtDir.Store(&dir)
		return dir, err
	})
	build = sync.OnceValues(func() (string, error) {
		return buildProgram("hwsagent", "HWSAGENT_BINARY", ".", "../cmd/hwsagent")
	})
)

// binary returns the hwsagent under test, built once per run of the suite.
func binary(t *testing.T) string {
	t.Helper()
	endToEnd(t)
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// buildProgram builds a package of the module in that directory, unless the environment
// names the binary.
func buildProgram(name, env, module, pkg string) (string, error) {
	if path := os.Getenv(env); path != "" {
		return filepath.Abs(path)
	}
	dir, err := makeDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "-C", module, "build", "-trimpath", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// nextPort starts at a place of this process's own, below the range from which the
// system takes ports for outgoing connections.
var nextPort atomic.Int64

// freePort returns an unused port on 127.0.0.1, for UDP and TCP alike, that no other test of this run gets.
func freePort(t *testing.T) int {
	t.Helper()
	const from, to = 20000, 32000
	for range to - from {
		port := from + int(nextPort.Add(1)+int64(os.Getpid()*37))%(to-from)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l.Close()
		u, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		u.Close()
		return port
	}
	t.Fatal("no port is free")
	return 0
}

// eventually waits until done returns "", and fails the test with what done says is
// missing when that takes longer than limit (tier.Within).
func eventually(t *testing.T, limit time.Duration, done func() string) {
	t.Helper()
	limit = tier.Within(limit)
	deadline := time.Now().Add(limit)
	for {
		missing := done()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", limit, missing)
		}
		time.Sleep(20 * time.Millisecond) // the pace of asking, not a synchronisation
	}
}

// watch checks that ok returns "" all the time for d, which is how long a thing must
// not happen.
func watch(t *testing.T, d time.Duration, ok func() string) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if wrong := ok(); wrong != "" {
			t.Fatal(wrong)
		}
	}
}
