package e2e

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/tier"
)

// seeded returns a source of randomness whose seed is printed; HWSAGENT_SEED replays it.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("HWSAGENT_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("HWSAGENT_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("HWSAGENT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestTwentyKills kills the agent twenty times at random moments, under load, with the
// receiver up and down.
func TestTwentyKills(t *testing.T) {
	rnd := seeded(t)
	recv, oracle := startReceiver(t, receiver.Options{})
	l := newLoad(t, 200, 50*time.Millisecond, entry("receiver", recv.URL()), oracle).begin()
	l.arrived(20 * time.Second)

	up := true
	var kills []time.Time
	for range 20 {
		if rnd.IntN(2) == 0 {
			if up = !up; up {
				if err := recv.Start(); err != nil {
					t.Fatal(err)
				}
			} else {
				recv.Stop()
			}
		}
		time.Sleep(time.Duration(100+rnd.IntN(1200)) * time.Millisecond) // the fault's own schedule
		kills = append(kills, time.Now())
		l.kill()
		l.run()
	}
	if !up {
		if err := recv.Start(); err != nil {
			t.Fatal(err)
		}
	}
	l.arrived(30 * time.Second)
	r := l.settle(60*time.Second, "receiver")
	if r.Missing != 0 || r.OutOfOrder != 0 || r.Garbled != 0 {
		t.Errorf("lost %d, out of order %d, garbled %d; want none of each", r.Missing, r.OutOfOrder, r.Garbled)
	}
	// A sample sent twice was sent within a savepoint's interval before a kill, or was in flight. Requests are recorded
	// when they begin to arrive, so both fall into that interval.
	const interval = time.Second + 300*time.Millisecond // and the time that saving takes
	var suspects uint64
	for _, s := range recv.Seen() {
		for _, k := range kills {
			if s.At.After(k.Add(-interval)) && s.At.Before(k) {
				suspects += uint64(s.Samples)
			}
		}
	}
	if r.Duplicated > suspects {
		t.Errorf("%d samples were sent twice; only %d were sent within a second before a kill", r.Duplicated, suspects)
	}
}

// TestSigtermInOutage stops the agent while its target is away.
func TestSigtermInOutage(t *testing.T) {
	t.Parallel()
	recv, oracle := startReceiver(t, receiver.Options{})
	l := newLoad(t, 200, 50*time.Millisecond, entry("receiver", recv.URL()), oracle).begin()
	l.arrived(20 * time.Second)
	recv.Stop()
	l.acked(40)
	took, code := l.terminate(10 * time.Second)
	if took > tier.Within(2*time.Second) || code != 0 {
		t.Errorf("SIGTERM in an outage: exit code %d after %s, want 0 within 2 s", code, took)
	}
	if !regexp.MustCompile(`(pending|undelivered)[a-z_]*=[1-9]`).MatchString(l.tail(5)) {
		t.Errorf("the log's end does not count what is undelivered:\n%s", l.tail(5))
	}
	if err := recv.Start(); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.arrived(20 * time.Second)
	r := l.settle(30*time.Second, "receiver")
	if r.Missing != 0 || r.OutOfOrder != 0 {
		t.Errorf("lost %d, out of order %d; want none", r.Missing, r.OutOfOrder)
	}
	// Only requests that the receiver cut off may have come twice: one a shard.
	if limit := uint64(2 * 2000); r.Duplicated > limit {
		t.Errorf("%d samples were sent twice, more than were in flight", r.Duplicated)
	}
}

// TestStopStartStop stops and starts an agent whose target is well: nothing is lost and
// nothing comes twice.
func TestStopStartStop(t *testing.T) {
	t.Parallel()
	recv, oracle := startReceiver(t, receiver.Options{})
	l := newLoad(t, 50, 50*time.Millisecond, entry("receiver", recv.URL()), oracle).begin()
	for range 5 {
		l.arrived(20 * time.Second)
		if took, code := l.terminate(10 * time.Second); code != 0 || took > tier.Within(2*time.Second) {
			t.Errorf("SIGTERM: exit code %d after %s, want 0 within 2 s", code, took)
		}
		l.run()
	}
	l.arrived(20 * time.Second)
	r := l.settle(30*time.Second, "receiver")
	if r.Missing != 0 || r.OutOfOrder != 0 || r.Duplicated != 0 {
		t.Errorf("lost %d, out of order %d, twice %d; want none of each", r.Missing, r.OutOfOrder, r.Duplicated)
	}
}

// TestOneTargetDown runs two targets of which one does not answer at all.
func TestOneTargetDown(t *testing.T) {
	t.Parallel()
	recv, oracle := startReceiver(t, receiver.Options{})
	hanging, _ := startReceiver(t, receiver.Options{})
	hanging.Behave(receiver.Hang)
	gone, _ := startReceiver(t, receiver.Options{})
	gone.Stop()
	l := newLoad(t, 500, 100*time.Millisecond,
		entry("well", recv.URL())+entry("hanging", hanging.URL(), "    remote_timeout: 2s\n")+entry("gone", gone.URL()), oracle).begin()
	l.arrived(20 * time.Second)
	l.acked(50)
	before := l.rss()
	watch(t, 15*time.Second, func() string {
		if lag := l.target("well").LagSeconds; lag > 3 {
			return "the target that is well lags by " + strconv.FormatFloat(lag, 'f', 1, 64) + " s"
		}
		return ""
	})
	after := l.rss()
	t.Logf("RSS %d KiB, 15 s and 75,000 samples later %d KiB", before>>10, after>>10)
	if after > before+16<<20 {
		t.Errorf("memory grew from %d to %d KiB while two targets were away", before>>10, after>>10)
	}
	for _, name := range []string{"hanging", "gone"} {
		if tg := l.target(name); tg.State == "ok" || tg.PendingSamples == 0 {
			t.Errorf("target %s is %s with %d pending: the fault did not take", name, tg.State, tg.PendingSamples)
		}
	}
	r := l.settle(20*time.Second, "well")
	if r.Missing != 0 || r.Duplicated != 0 || r.OutOfOrder != 0 {
		t.Errorf("lost %d, twice %d, out of order %d; want none of each", r.Missing, r.Duplicated, r.OutOfOrder)
	}
	if took, code := l.terminate(10 * time.Second); code != 0 || took > tier.Within(2*time.Second) {
		t.Errorf("SIGTERM with targets away: exit code %d after %s, want 0 within 2 s", code, took)
	}
}
