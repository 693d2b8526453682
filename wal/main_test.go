package wal

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

// TestMain collects garbage seldom while tests run, and not while benchmarks do: half of the time of lives
// in memory is the collector's otherwise.
func TestMain(m *testing.M) {
	crashFlags()
	transcriptFlag()
	if flag.Parse(); os.Getenv("GOGC") == "" && flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(400)
	}
	goleak.VerifyTestMain(m)
}
