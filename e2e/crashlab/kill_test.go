//go:build linux

package crashlab

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
)

// weather changes what the receiver does, at random: well, away, slow, refusing, silent.
func (l *lab) weather(rnd *rand.Rand) string {
	l.t.Helper()
	kind := rnd.IntN(8)
	slow := between(rnd, 20, 600)
	if kind == 4 {
		l.away()
		return "away"
	}
	if err := l.recv.Start(); err != nil {
		l.t.Fatal(err)
	}
	switch kind {
	case 5:
		l.lastSlow = max(l.lastSlow, slow)
		l.recv.Behave(receiver.Slow(slow))
		return "slow"
	case 6:
		l.recv.Behave(receiver.Refuse(http.StatusServiceUnavailable, "busy"))
		return "busy"
	case 7:
		l.recv.Behave(receiver.Hang)
		return "silent"
	default:
		l.recv.Behave(receiver.Accept)
		return "well"
	}
}

// TestRandomKills kills the agent at random moments of its life, its first milliseconds
// included, while the receiver comes and goes. Nothing acknowledged is lost.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"1s", "always"} {
		t.Run("sync="+sync, func(t *testing.T) {
			t.Parallel()
			rnd := seeded(t)
			// A small log: its segments are few KiB, so that they are sealed and removed as well.
			l := newLab(t, options{wal: "sync: " + sync + ", max_bytes: 64MiB, min_free_bytes: 1MiB"})
			kills := tier(15, 500)
			before := 0 // kills before the agent was ready
			for range kills {
				l.weather(rnd)
				l.launch()
				if rnd.IntN(4) == 0 {
					time.Sleep(between(rnd, 0, 120)) // the fault's own schedule, as below
					before++
				} else {
					l.ready()
					time.Sleep(between(rnd, 10, 900))
				}
				if l.gone() {
					t.Fatalf("the agent ended by itself: %s\n%s", l.cmd.ProcessState, l.tail(20))
				}
				l.crash()
				l.offline()
			}
			l.run()
			l.acked(5)
			r, g := l.settle()
			t.Logf("%d kills, %d of them about the start", kills, before)
			l.complete(r, g)
			l.sound(r, g)
		})
	}
}
