//go:build linux

package crashlab

import (
	"fmt"
	"testing"
	"time"

	"hwsagent/e2e/results"
)

// liveFirstTarget is the lab's own receiver, which takes late data, with a backlog that takes
// its time.
const liveFirstTarget = ownTarget + `
    hwsagent: {catch_up: live_first, catch_up_rate_limit: 700}`

// TestLiveFirst takes the receiver away until what waits counts as a backlog. When it is back,
// fresh samples arrive while that follows; meanwhile the agent is killed at random moments.
// Nothing acknowledged is lost.
func TestLiveFirst(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	l := newLab(t, options{wal: "max_bytes: 64MiB, min_free_bytes: 1MiB"})
	l.targets = fmt.Sprintf(liveFirstTarget, l.recv.URL())
	l.configure(true)
	l.run()
	l.acked(20)
	outages, each := tier(1, 6), tier(5, 15)
	kills, missed, latest := 0, uint64(0), time.Duration(0)
	for range outages {
		gone := time.Now()
		l.away()
		eventually(t, 90*time.Second, func() string {
			// A backlog of the outage before may wait, too: then there are two.
			if lag := l.target().Lag; lag < 33 || time.Since(gone) < 33*time.Second {
				return fmt.Sprintf("the oldest sample waits for %.0f s", lag)
			}
			return ""
		})
		if err := l.recv.Start(); err != nil {
			t.Fatal(err)
		}
		back, tried := time.Now(), l.journal().Tried
		eventually(t, 30*time.Second, func() string {
			switch tg := l.target(); {
			case tg.Missed == 0:
				return "nothing is left to a backlog: " + tg.State + " " + tg.Why
			case l.oracle.Last() <= tried:
				return "nothing fresh arrives"
			default:
				missed = max(missed, tg.Missed)
				return ""
			}
		})
		latest = max(latest, time.Since(back))
		for range each {
			time.Sleep(between(rnd, 10, 900)) // the fault's own schedule
			if l.target().Missed == 0 {
				break
			}
			kills++
			l.crash()
			l.offline()
			l.run()
		}
	}
	if kills < outages*2 {
		t.Errorf("%d kills only came in the time of a backlog", kills)
	}
	l.acked(5)
	r, g := l.settle()
	t.Logf("%d outages, %d kills while up to %d samples followed; fresh ones arrived within %s", outages, kills, missed, latest)
	l.complete(r, g)
	if r.Garbled != 0 || r.Ghosts != 0 || g.Dropped["resent"] > 0 {
		t.Errorf("garbled %d, never tried %d; %+v", r.Garbled, r.Ghosts, g)
	}
	results.Add(t, results.Line{
		What: "live first: kill -9 at random while a backlog follows what is fresh", Count: kills, Lost: int(r.Missing), Seed: seed(t),
		Figures: map[string]float64{
			"outages": float64(outages), "missed": float64(missed), "fresh_within_ms": float64(latest.Milliseconds()),
			"noise_of_the_machine_ms": float64(l.witness.slippedBy().Milliseconds()), "came_twice": float64(r.Duplicated), "of": float64(r.Appended),
		},
	})
}
