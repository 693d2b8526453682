//go:build linux

package crashlab

import (
	"strings"
	"testing"
	"time"

	"hwsagent/internal/tools/tier"
)

// TestSilentDeath has a connection die without a word under a request: a translator of
// addresses forgot it. The kernel gives it up before remote_timeout ends the request, and
// the next one finds a new connection.
func TestSilentDeath(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, brokenHost)
	const timeout = 18 * time.Second
	n.targets = strings.ReplaceAll(n.targets, "remote_timeout: "+remoteTimeout.String(), "remote_timeout: "+timeout.String())
	n.configure(true)
	n.launch()
	n.settleIn()
	n.broken.doubtful(true)
	from := time.Now()
	off := forgetFlows(n)
	took := n.fresh(from, 2*timeout)
	if off() == 0 {
		t.Error("no new connection was made: the fault did not take")
	}
	n.broken.doubtful(false)
	t.Logf("fresh data after %s", took.Round(time.Millisecond))
	if limit := timeout*5/6 + n.witness.slippedBy(); took > tier.Within(limit) { // the kernel waits for two thirds of it
		t.Errorf("fresh data after %s, more than %s, as if only remote_timeout, %s, had ended it", took, limit, timeout)
	}
	n.faults, n.worstFresh = 1, took
	n.account("a connection dies without a word")
}
