//go:build linux

package crashlab

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/results"
)

// TestClockSteps sets the agent's clock while it works: back, a year ahead and back, from
// 1970 and from 2106 to now; with the receiver there and away. Nothing is lost or sent
// twice, the cadence goes on, and the agent tells what happened.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	at := func(wall time.Duration, down bool) stage { return stage{shift: shift{Wall: wall}, down: down} }
	for _, tc := range []struct {
		name          string
		stages        []stage // the first is how the agent starts
		forward, back uint64
	}{
		{"two hours back", []stage{at(0, false), at(-2*time.Hour, false)}, 0, 1},
		{"two hours back, receiver away", []stage{at(0, true), at(-2*time.Hour, true), at(-2*time.Hour, false)}, 0, 1},
		{"a year ahead and back", []stage{at(0, false), at(year, false), at(0, false)}, 1, 1},
		{"a year ahead and back, receiver away", []stage{at(0, true), at(year, true), at(0, true), at(0, false)}, 1, 1},
		{"a year ahead and back, receiver back between", []stage{at(0, true), at(year, true), at(year, false), at(0, false)}, 1, 1},
		{"1970", []stage{at(sinceNow(time.Unix(300, 0)), true), at(sinceNow(time.Unix(300, 0)), false), at(0, false)}, 1, 0},
		{"2106", []stage{at(sinceNow(time.Unix(1<<32-2, 0)), true), at(sinceNow(time.Unix(1<<32-2, 0)), false), at(0, false)}, 0, 1},
		{"one interval back, again and again", []stage{at(0, false), at(-clockInterval, false), at(-2*clockInterval, false), at(-3*clockInterval, true), at(-4*clockInterval, false)}, 0, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := newTimeLab(t, timeOptions{})
			l.c.set(tc.stages[0].down, 0)
			l.start(tc.stages[0].shift)
			l.acked(2)
			for _, s := range tc.stages {
				l.live(s)
			}
			gap := l.steady()
			l.told(tc.forward, tc.back, 0)
			r, g := l.settleAll()
			l.complete(r, g)
			l.carried()
			t.Logf("longest time without a round: %s, at an interval of %s", gap, l.interval)
			results.Add(t, results.Line{What: "the clock is set: " + tc.name, Count: int(tc.forward + tc.back), Lost: int(r.Missing),
				Figures: map[string]float64{"gap_seconds_max": gap.Seconds(), "interval_seconds": l.interval.Seconds()}})
		})
	}
}

// TestClockOfTheFuture: samples collected while the clock is a year ahead of a receiver that refuses them and sends its time are
// dropped and counted as future once the clock is right again, but no samples from before or after.
func TestClockOfTheFuture(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	for _, down := range []bool{false, true} {
		name := map[bool]string{false: "receiver there", true: "receiver away"}[down]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The limit of age would drop the backlog, if the agent's clock counted.
			l := newTimeLab(t, timeOptions{future: "10m", age: "10m", limit: 10 * time.Minute})
			l.start(shift{})
			l.arrived() // the receiver has told its time
			l.live(stage{down: down})
			l.live(stage{shift: shift{Wall: year}, down: down})
			l.live(stage{down: down})
			l.live(stage{})
			l.steady()
			l.told(1, 1, 0)
			r, g := l.settleAll()
			margin := 100*time.Millisecond + 2*l.witness.slippedBy()
			from, to := l.stages[1].from, l.stages[2].from
			j, future := l.journal(), 0
			for _, n := range j.Acked {
				tried, _, _ := l.witness.at(n)
				_, came := l.c.at(n)
				inside := tried.After(from.Add(margin)) && tried.Before(to.Add(-margin))
				outside := tried.Before(from.Add(-margin)) || tried.After(to.Add(margin))
				if came && inside || !came && outside {
					t.Errorf("round %d of %s after the step: arrived %v", n, tried.Sub(from), came)
				}
				if !came {
					future++
				}
			}
			if rounds := uint64(future * (l.series + report)); future == 0 || g.Dropped["future"] != rounds || g.Lost != rounds || r.Missing != uint64(future*l.series) {
				t.Errorf("%d rounds did not arrive, %d samples with their report; the ledger says %+v", future, rounds, g)
			}
		})
	}
}

// TestClockSuspend: the host is suspended, twice. Its wall clock is right at once, and so is the receiver's; only the
// monotonic clock stood still. No sample counts as future, and the agent reports a suspend, not a step.
func TestClockSuspend(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	for _, down := range []bool{false, true} {
		name := map[bool]string{false: "receiver there", true: "receiver away"}[down]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTimeLab(t, timeOptions{future: "10m"})
			l.start(shift{})
			l.arrived()
			const night = 8 * time.Hour
			for i := range 3 {
				by := time.Duration(i) * night
				l.live(stage{shift: shift{Wall: by, Boot: by}, follow: true, down: down && i < 2})
			}
			l.steady()
			l.told(0, 0, 2)
			r, g := l.settleAll()
			l.complete(r, g)
			l.carried()
			results.Add(t, results.Line{What: "the machine is suspended, " + name, Count: 2, Lost: int(r.Missing)})
		})
	}
}

// TestClockAndCertificates: a clock that is a year ahead takes the receiver's certificate
// for expired. That is retried: nothing is lost, and it ends with the clock's being right.
func TestClockAndCertificates(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	pki, err := receiver.NewPKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := newTimeLab(t, timeOptions{tls: pki})
	l.start(shift{})
	l.arrived()
	l.live(stage{})
	l.live(stage{shift: shift{Wall: year}, d: 4 * time.Second})
	eventually(t, 10*time.Second, func() string {
		if tg := l.lab.target(); tg.State != "retrying" || !strings.Contains(tg.Why, "expired") {
			return "the target is " + tg.State + ": " + tg.Why
		}
		return ""
	})
	l.live(stage{})
	l.steady()
	r, g := l.settleAll()
	l.complete(r, g)
	l.carried()
	results.Add(t, results.Line{What: "the clock is a year ahead of the certificates", Count: 1, Lost: int(r.Missing)})
}

// TestClockAtRandom sets the clock at random, while the receiver comes and goes and the
// agent is killed and started with another clock.
func TestClockAtRandom(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	rnd := seeded(t)
	for life := range amount(1, 40) {
		seed := rnd.Uint64()
		t.Run(fmt.Sprint(life), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 0))
			clocks := []time.Duration{0, -2 * time.Hour, 2 * time.Hour, year, -year, -clockInterval, clockInterval, 80 * year, sinceNow(time.Unix(300, 0))}
			l := newTimeLab(t, timeOptions{})
			by, kills := time.Duration(0), 0
			l.start(shift{})
			l.acked(2)
			l.live(stage{})
			for range 6 {
				if rnd.IntN(3) > 0 {
					by = clocks[rnd.IntN(len(clocks))]
				} else {
					by += between(rnd, -5000, 5000)
				}
				if rnd.IntN(4) == 0 {
					kills++
					l.crash()
					l.offline()
					l.start(shift{Wall: by})
				}
				l.live(stage{shift: shift{Wall: by}, down: rnd.IntN(2) == 0, d: between(rnd, 1200, 3000)})
			}
			r, g := l.settleAll()
			l.complete(r, g)
			steps := l.status().Clock.Steps
			t.Logf("%d kills, %d steps in the last life", kills, steps)
			results.Add(t, results.Line{What: "the clock set at random, the receiver away and back, kills", Count: len(l.stages), Lost: int(r.Missing), Seed: seed})
		})
	}
}
