package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/tier"
)

// TestSIGINTFlushesOnce: samples that wait for their batch to fill are sent at SIGINT and at SIGTERM, once, a request for each round
// because a window has one sample of a series, and the agent exits with 0.
func TestSIGINTFlushesOnce(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recv, oracle := startReceiver(t, receiver.Options{})
			// Without the end, the newest round would wait for ten minutes, or for the next one.
			target := strings.Replace(entry("receiver", recv.URL()), "batch_send_deadline: 200ms", "batch_send_deadline: 10m", 1)
			l := newLoad(t, 10, 200*time.Millisecond, target, oracle).begin()
			l.acked(10)
			before := recv.Samples()
			took, code := l.end(signal, 10*time.Second)
			if took > tier.Within(2*time.Second) || code != 0 {
				t.Errorf("exit code %d after %s, want 0 within 2 s", code, took)
			}
			if recv.Samples() == before {
				t.Error("no sample came at the end: nothing waited")
			}
			r := oracle.Verify(l.journal(), l.series)
			requests := 0
			for _, s := range recv.Seen() {
				if s.Samples > 0 {
					requests++
				}
			}
			t.Logf("%d requests, %+v, after %s", requests, r, took)
			if r.Missing != 0 || r.Duplicated != 0 || r.OutOfOrder != 0 || r.Appended == 0 || uint64(requests) > r.Appended/uint64(l.series) {
				t.Errorf("%d requests, account %+v", requests, r)
			}
			l.run()
			l.acked(2)
			if took, code := l.end(signal, 10*time.Second); took > tier.Within(2*time.Second) || code != 0 {
				t.Errorf("the second time: exit code %d after %s", code, took)
			}
			if r := oracle.Verify(l.journal(), l.series); r.Missing != 0 || r.Duplicated != 0 || r.OutOfOrder != 0 {
				t.Errorf("after a restart: %+v", r)
			}
		})
	}
}

// TestStaysUpWithUnresolvableHost: a target whose host name cannot be resolved is retried, says so, and keeps its data;
// the agent starts, runs and stops with it as usual.
func TestStaysUpWithUnresolvableHost(t *testing.T) {
	t.Parallel()
	recv, oracle := startReceiver(t, receiver.Options{})
	const host = "hwsagent-nowhere.invalid"
	l := newLoad(t, 5, 200*time.Millisecond, entry("lost", "http://"+host+"/api/v1/write"), oracle).begin()
	eventually(t, 30*time.Second, func() string {
		if tg := l.target("lost"); tg.State != "retrying" || !strings.Contains(tg.Why, host) {
			return "the target is " + tg.State + ": " + tg.Why
		}
		return ""
	})
	l.acked(25)
	if tg := l.target("lost"); tg.State != "retrying" || tg.Ledger.Lost > 0 || tg.PendingSamples == 0 {
		t.Errorf("%s, %+v", tg.State, tg.Ledger)
	}
	if took, code := l.terminate(10 * time.Second); took > tier.Within(2*time.Second) || code != 0 {
		t.Errorf("SIGTERM: exit code %d after %s, want 0 within 2 s", code, took)
	}
	l.run()
	l.acked(5)
	l.targets = entry("lost", recv.URL())
	l.reload(l.text(true))
	l.arrived(30 * time.Second)
	if r := l.settle(30*time.Second, "lost"); r.Missing != 0 || r.OutOfOrder != 0 || r.Duplicated != 0 {
		t.Errorf("after the host is found: %+v", r)
	}
}
