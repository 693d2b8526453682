// Package tier says how much a run of the tests tries. go test ./..., which make test runs, proves each promise once and takes
// minutes; make nightly sets HWSAGENT_NIGHTLY, tries all that a test can try, and also judges how long things take.
// Only tests import this package.
package tier

import (
	"os"
	"testing"
	"time"
)

// Nightly reports whether this is a run of make nightly, or one of the full fault tests (HWSAGENT_TORTURE), which tries even more.
func Nightly() bool {
	return os.Getenv("HWSAGENT_NIGHTLY") != "" || os.Getenv("HWSAGENT_TORTURE") != ""
}

// OnlyNightly skips a test outside make nightly. why says what keeps it out of make test.
func OnlyNightly(t testing.TB, why string) {
	t.Helper()
	if !Nightly() {
		t.Skip(why + ": run by make nightly (HWSAGENT_NIGHTLY=1)")
	}
}

// Of returns how many of something a test tries: nightly in make nightly, otherwise usual.
func Of[N int | uint64](usual, nightly N) N {
	if Nightly() {
		return nightly
	}
	return usual
}

// Within returns how long something may take in a test that measures wall time: limit in make nightly, which judges it. Other
// runs share the machine, so only what hangs is a failure there: they have half a minute more.
func Within(limit time.Duration) time.Duration {
	if Nightly() {
		return limit
	}
	return limit + 30*time.Second
}
