//go:build linux

package crashlab

import (
	"slices"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/results"
)

// outage is one life of an agent that a power cut ended.
type outage struct {
	first, last uint64 // the numbers that it tried are first+1 to last
	acked       uint64 // the last that was acknowledged when the power went
	at          time.Time
}

// worstLoss is how much of the newest a power cut may take under `sync: 1s`.
const worstLoss = 1500 * time.Millisecond

// TestPowerCut cuts the power of real file systems under the agent, again and again on
// the same disk, while the receiver comes and goes. The agent starts again by itself.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	for _, kind := range []string{"ext4", "xfs"} {
		for _, sync := range []string{"1s", "always"} {
			t.Run(kind+",sync="+sync, func(t *testing.T) {
				t.Parallel()
				powerCuts(t, kind, sync, amount(3, 200))
			})
		}
	}
}

func powerCuts(t *testing.T, kind, sync string, cuts int) {
	rnd := seeded(t)
	d := newLoop(t, kind)
	l := newLab(t, options{storage: d.storage(), wal: "sync: " + sync + ", max_bytes: 4MiB, min_free_bytes: 1MiB", series: 60, interval: 30 * time.Millisecond})
	var outages []outage
	for range cuts {
		first := l.journal().Tried
		l.run()
		l.weather(rnd)
		time.Sleep(between(rnd, 50, 2400)) // the fault's own schedule
		if rnd.IntN(2) == 0 {
			l.away() // so that what is in the log only is at stake
			time.Sleep(between(rnd, 50, 1400))
		}
		o := outage{first: first}
		d.cut(func() {
			if acked := l.journal().Acked; len(acked) > 0 {
				o.acked = acked[len(acked)-1]
			}
			o.at = time.Now()
		})
		l.crash()
		o.last = l.journal().Tried
		outages = append(outages, o)
		d.restore()
		l.offline()
	}
	l.run()
	l.acked(5)
	r, g := l.settle()
	l.sound(r, g)
	worst, hurt, lost := l.judge(r, g, outages, sync)
	results.Add(t, results.Line{
		What: "power cut, " + kind + ", sync " + sync, Count: cuts, Lost: lost * l.series, Seed: seed(t),
		Figures: map[string]float64{"newest_ms_lost_at_most": float64(worst.Milliseconds()), "cuts_that_took_something": float64(hurt), "came_twice": float64(r.Duplicated)},
	})
}

// judge checks what the cuts took: nothing under `sync: always`, else the newest only,
// and not too much of it: the age of the oldest that was lost, by how many cuts, and how
// many rounds. An fsync that the cut itself ends can return success, so a round may be
// acknowledged after the power was cut: by a machine that has none, so it does not count.
func (l *lab) judge(r receiver.Result, g ledger, outages []outage, sync string) (worst time.Duration, hurt, lost int) {
	l.t.Helper()
	j := l.journal()
	missing := l.oracle.Missing(j, l.series)
	for reason, n := range g.Dropped {
		if n > 0 && reason != "power_cut" {
			l.t.Errorf("the ledger has %d samples as %s: nothing but power cuts happened", n, reason)
		}
	}
	var newest uint64 // rounds that the cuts can have taken
	for _, o := range outages {
		before := len(missing)
		missing = slices.DeleteFunc(missing, func(n uint64) bool { return o.acked < n && n <= o.last })
		if after := before - len(missing); after > 2 && sync == "always" {
			l.t.Errorf("%d rounds were acknowledged after the power was cut", after)
		}
		newest += uint64((worstLoss) / l.interval)
	}
	lost = len(missing)
	// Samples that were sent and then cut from the log count as power_cut, too: only the receiver knows about them. So
	// the ledger may have more losses than the oracle, but never of older samples.
	if most := newest * uint64(l.series+report); g.Dropped["power_cut"] > most {
		l.t.Errorf("the ledger has %d samples as power_cut, more than the %d of the last %s before each cut", g.Dropped["power_cut"], most, worstLoss)
	}
	if sync == "always" {
		if len(missing) > 0 {
			l.t.Errorf("sync always: acknowledged rounds %v are lost", missing)
		}
		l.t.Logf("%d cuts, %d rounds acknowledged before them lost", len(outages), len(missing))
		return 0, 0, lost
	}
	for _, o := range outages {
		i, _ := slices.BinarySearch(missing, o.first+1)
		end, _ := slices.BinarySearch(missing, o.last+1)
		if i == end {
			continue
		}
		hurt++
		oldest := missing[i]
		missing = slices.Delete(missing, i, end)
		_, acked, _ := l.witness.at(oldest)
		worst = max(worst, o.at.Sub(acked))
		if o.at.Sub(acked) > worstLoss {
			l.t.Errorf("the cut took round %d, which was acknowledged %s before", oldest, o.at.Sub(acked))
		}
		// The newest only: samples after the oldest loss were sent before the cut.
		for n := oldest + 1; n <= o.last; n++ {
			if _, _, came := l.witness.at(n); came.After(o.at.Add(time.Second)) {
				l.t.Errorf("the cut took round %d and left the later round %d in the log", oldest, n)
			}
		}
	}
	if len(missing) > 0 {
		l.t.Errorf("rounds %v are lost, which no cut explains", missing)
	}
	l.t.Logf("%d cuts, %d of them lost something, at most %s of the newest (%d samples in all)", len(outages), hurt, worst.Round(time.Millisecond), lost*l.series)
	return worst, hurt, lost
}
