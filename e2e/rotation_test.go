package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/tier"
)

// secured returns a load on a receiver that demands a client certificate and a token.
func secured(t *testing.T) (*load, *receiver.Receiver, *receiver.PKI) {
	t.Helper()
	pki, err := receiver.NewPKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(pki.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	recv, oracle := startReceiver(t, receiver.Options{TLS: pki.ServerTLS(), Tokens: []string{strings.TrimSpace(string(token))}})
	l := newLoad(t, 200, 100*time.Millisecond, entry("receiver", recv.URL(),
		"    bearer_token_file: "+pki.TokenFile+"\n",
		fmt.Sprintf("    tls_config: {ca_file: %s, cert_file: %s, key_file: %s}\n", pki.CAFile, pki.CertFile, pki.KeyFile)), oracle).begin()
	l.arrived(20 * time.Second)
	return l, recv, pki
}

// inUse waits until an accepted request has what is asked for, and says how long after
// from that was.
func inUse(t *testing.T, recv *receiver.Receiver, from time.Time, is func(receiver.Seen) bool) time.Duration {
	t.Helper()
	var took time.Duration
	eventually(t, 20*time.Second, func() string {
		for _, s := range recv.Seen() {
			if s.At.After(from) && s.Status == 204 && is(s) {
				took = s.At.Sub(from)
				return ""
			}
		}
		return "the new credential is not in use"
	})
	return took
}

// TestTokenRotation replaces the token file under load; the old token is refused from
// that moment on.
func TestTokenRotation(t *testing.T) {
	t.Parallel()
	l, recv, pki := secured(t)
	begin := time.Now()
	next, err := pki.RotateToken()
	if err != nil {
		t.Fatal(err)
	}
	recv.AllowTokens(next)
	if took := inUse(t, recv, begin, func(s receiver.Seen) bool { return s.Token == next && s.Samples > 0 }); took > tier.Within(10*time.Second) {
		t.Errorf("the new token came into use after %s, want within 10 s", took)
	}
	checkNothingLost(t, l, 0)
}

// TestTokenExpiresFirst refuses the old token for a while before there is a new one.
func TestTokenExpiresFirst(t *testing.T) {
	t.Parallel()
	l, recv, pki := secured(t)
	recv.AllowTokens("none yet")
	eventually(t, 20*time.Second, func() string {
		if tg := l.target("receiver"); tg.State != "held" || !strings.Contains(tg.Why+tg.LastError, "401") {
			return fmt.Sprintf("the target is %s (%s), want held because of the 401", tg.State, tg.Why)
		}
		return ""
	})
	l.acked(10)
	begin := time.Now()
	next, err := pki.RotateToken()
	if err != nil {
		t.Fatal(err)
	}
	recv.AllowTokens(next)
	if took := inUse(t, recv, begin, func(s receiver.Seen) bool { return s.Token == next && s.Samples > 0 }); took > tier.Within(10*time.Second) {
		t.Errorf("the new token came into use after %s, want within 10 s", took)
	}
	checkNothingLost(t, l, 1) // the backlog begins with the question whether the receiver takes an old sample: one is sent again
}

// TestCertRotation replaces certificate and key under load, one file after the other.
func TestCertRotation(t *testing.T) {
	t.Parallel()
	l, recv, pki := secured(t)
	begin := time.Now()
	if err := pki.RotateClient("hwsagent-2"); err != nil {
		t.Fatal(err)
	}
	if took := inUse(t, recv, begin, func(s receiver.Seen) bool { return s.Client == "hwsagent-2" && s.Samples > 0 }); took > tier.Within(10*time.Second) {
		t.Errorf("the new certificate came into use after %s, want within 10 s", took)
	}
	// And the old one is out of use.
	l.arrived(10 * time.Second)
	changed := time.Now()
	l.acked(20)
	for _, s := range recv.Seen() {
		if s.At.After(changed) && s.Client != "hwsagent-2" {
			t.Errorf("%s after the rotation, %s is still in use", s.At.Sub(begin), s.Client)
			break
		}
	}
	checkNothingLost(t, l, 0)
}

// checkNothingLost ends the load and fails the test if a sample is missing or late, or if more than mostTwice came twice.
func checkNothingLost(t *testing.T, l *load, mostTwice uint64) {
	t.Helper()
	l.arrived(20 * time.Second)
	if r := l.settle(30*time.Second, "receiver"); r.Missing != 0 || r.Duplicated > mostTwice || r.OutOfOrder != 0 {
		t.Errorf("lost %d, twice %d, out of order %d; want none lost or out of order, and at most %d twice", r.Missing, r.Duplicated, r.OutOfOrder, mostTwice)
	}
	if tg := l.target("receiver"); len(tg.Ledger.Dropped) != 0 {
		t.Errorf("the ledger has drops: %+v", tg.Ledger)
	}
}
