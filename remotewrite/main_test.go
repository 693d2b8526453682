package remotewrite

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"

	"hwsagent/internal/tools/tier"
)

// TestMain makes garbage collection rare while tests run, but not in benchmarks: otherwise it takes a fifth of the time
// of chaos.
func TestMain(m *testing.M) {
	if flag.Parse(); os.Getenv("GOGC") == "" && flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(400)
	}
	goleak.VerifyTestMain(m)
}

// sparse reports whether a test of a cross product leaves out its nth cell. make nightly runs all cells, otherwise one of
// seven runs: no dimension has seven values, so each value is among these cells.
func sparse(n int) bool { return !tier.Nightly() && n%7 != 0 }

// seedsOf returns how many seeds of n a test runs: all in make nightly, otherwise a quarter, under the race detector, which
// sees the same goroutines with each, one.
func seedsOf(n uint64) uint64 {
	switch {
	case testing.Short():
		return 1
	case tier.Nightly():
		return n
	default:
		return (n + 3) / 4
	}
}

// memoryDir returns an empty directory, in memory where the system has such a file system: only the disk's time is not
// virtual.
func memoryDir(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "hwsagent-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
