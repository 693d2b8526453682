//go:build linux

package crashlab

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/results"
	"hwsagent/internal/tools/tier"
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
	outages, each := amount(1, 6), amount(5, 15)
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
	eventually(t, 5*time.Minute, func() string { // at its rate, which is not the machine's
		if tg := l.target(); tg.Missed > 0 {
			return fmt.Sprintf("%d samples of the backlogs are still to come", tg.Missed)
		}
		return ""
	})
	r, g := l.settle()
	t.Logf("%d outages, %d kills while up to %d samples followed; fresh ones arrived within %s", outages, kills, missed, latest)
	l.complete(r, g)
	if r.Garbled != 0 || r.Ghosts != 0 {
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

// TestLiveFirstBacklogFails answers all that is old with 503, then with 429, while fresh samples
// are taken: those come without delay all the time, and the backlog when it may.
func TestLiveFirstBacklogFails(t *testing.T) {
	t.Parallel()
	l := newLab(t, options{wal: "max_bytes: 64MiB, min_free_bytes: 1MiB"})
	l.targets = fmt.Sprintf(liveFirstTarget, l.recv.URL())
	l.configure(true)
	l.run()
	l.acked(20)
	l.away()
	eventually(t, 90*time.Second, func() string {
		if lag := l.target().Lag; lag < 33 {
			return fmt.Sprintf("the oldest sample waits for %.0f s", lag)
		}
		return ""
	})
	if err := l.recv.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string {
		if tg := l.target(); tg.Missed == 0 {
			return "nothing is left to a backlog: " + tg.State + " " + tg.Why
		}
		return ""
	})
	var failed atomic.Int64
	figures := map[string]float64{}
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		before := failed.Load()
		l.recv.Behave(func(r receiver.Request) receiver.Reply {
			if old(r, 10*time.Second) {
				failed.Add(1)
				return receiver.Reply{Status: status, Text: "too much"}
			}
			return receiver.Accept(r)
		})
		eventually(t, 40*time.Second, func() string {
			if failed.Load() == before {
				return "nothing of the backlog is sent"
			}
			return ""
		})
		from := l.journal().Tried + 1 // the one before may be part of the backlog
		for range amount(1, 6) {
			l.acked(100)
		}
		last := l.witness.lastAcked()
		worst := time.Duration(0)
		for n := from; n <= last; n++ {
			_, acked, came := l.witness.at(n)
			if acked.IsZero() {
				continue
			}
			eventually(t, 10*time.Second, func() string {
				if _, _, came = l.witness.at(n); came.IsZero() {
					return fmt.Sprintf("number %d of %d to %d has not come while the backlog is answered %d", n, from, last, status)
				}
				return ""
			})
			worst = max(worst, came.Sub(acked))
		}
		// A batch waits for 100 ms at most, and the answer to the one before.
		if limit := time.Second + 2*l.witness.slippedBy(); worst > tier.Within(limit) {
			t.Errorf("a fresh sample came after %s, more than %s, while the backlog is answered %d", worst, limit, status)
		}
		if tg := l.target(); tg.Missed == 0 || tg.State != "behind" {
			t.Errorf("while the backlog is answered %d: %+v", status, tg)
		}
		figures[fmt.Sprintf("latest_at_%d_ms", status)] = float64(worst.Milliseconds())
	}
	l.recv.Behave(receiver.Accept)
	r, g := l.settle()
	l.complete(r, g)
	figures["backlog_requests_refused"], figures["noise_of_the_machine_ms"] = float64(failed.Load()), float64(l.witness.slippedBy().Milliseconds())
	t.Logf("%v", figures)
	results.Add(t, results.Line{What: "live first: the backlog is answered 503 and 429", Count: 2, Lost: int(r.Missing), Figures: figures})
}

// old reports whether a request has a sample of that age.
func old(r receiver.Request, age time.Duration) bool {
	for _, ts := range r.Series {
		for _, s := range ts.Samples {
			if time.Since(time.UnixMilli(s.Timestamp)) > age {
				return true
			}
		}
	}
	return false
}
