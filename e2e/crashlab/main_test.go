//go:build linux

package crashlab

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hwsagent/internal/tools/tier"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(tracerEnv); spec != "" {
		os.Exit(runTracer(spec, os.Args[1:]))
	}
	if spec := os.Getenv(exporterEnv); spec != "" {
		os.Exit(runExporter(spec))
	}
	if os.Getenv("HWSAGENT_E2E") != "" {
		ownMounts()
	}
	ended := make(chan struct{})
	go func() { defer close(ended); children.run() }()
	code := m.Run()
	children.end()
	<-ended
	if dir := builtDir.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// endToEnd marks a test that takes real time and runs the built binary.
func endToEnd(t *testing.T) {
	t.Helper()
	if os.Getenv("HWSAGENT_E2E") == "" {
		t.Skip("runs the built binary: run by make faults (HWSAGENT_E2E=1)")
	}
}

// amount picks how much of something a run does: a little in the short tier, all of it in
// the full one. HWSAGENT_TORTURE may also be a percentage of the full tier.
func amount(short, full int) int {
	v := os.Getenv("HWSAGENT_TORTURE")
	if v == "" {
		return short
	}
	if percent, err := strconv.Atoi(v); err == nil && percent > 1 {
		return max(1, full*percent/100)
	}
	return full
}

// cannot skips a test for want of something that is named; with CI=true that is a failure.
func cannot(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why + ", and this is CI")
	}
	t.Skip(why)
}

// shortSeed is the seed of the short tier, so that it has the same faults each time.
const shortSeed = 1

// runSeed is the seed of all of this process's tests: HWSAGENT_SEED, else a new one in
// the full tier.
var runSeed = sync.OnceValues(func() (uint64, error) {
	if s := os.Getenv("HWSAGENT_SEED"); s != "" {
		return strconv.ParseUint(s, 10, 64)
	}
	if os.Getenv("HWSAGENT_TORTURE") != "" {
		return uint64(time.Now().UnixNano()), nil
	}
	return shortSeed, nil
})

// seed returns the run's seed, for the results.
func seed(t *testing.T) uint64 {
	t.Helper()
	n, err := runSeed()
	if err != nil {
		t.Fatalf("HWSAGENT_SEED: %v", err)
	}
	return n
}

// seeded returns a source of randomness of the test's own, which its name and the run's seed
// determine. HWSAGENT_SEED replays it. The sequence of faults is the same then; what the
// scheduler does between them is not.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	n := seed(t)
	t.Logf("HWSAGENT_SEED=%d", n)
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name())) // a hash never fails
	return rand.New(rand.NewPCG(n, name.Sum64()))
}

// between returns a random duration, in milliseconds; from itself if to is not greater.
func between(rnd *rand.Rand, from, to int) time.Duration {
	return time.Duration(from+rnd.IntN(max(1, to-from))) * time.Millisecond
}

var (
	builtDir atomic.Pointer[string] // to be removed at the end
	build    = sync.OnceValues(buildBinary)
)

// binary returns the hwsagent under test.
func binary(t *testing.T) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func buildBinary() (string, error) {
	if path := os.Getenv("HWSAGENT_BINARY"); path != "" {
		return filepath.Abs(path)
	}
	dir, err := os.MkdirTemp("", "hwsagent-crashlab-")
	if err != nil {
		return "", err
	}
	builtDir.Store(&dir)
	path := filepath.Join(dir, "hwsagent")
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "../../cmd/hwsagent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build hwsagent: %w\n%s", err, out)
	}
	return path, nil
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
		time.Sleep(10 * time.Millisecond) // the pace of asking, not a synchronisation
	}
}
