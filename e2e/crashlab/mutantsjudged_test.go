//go:build linux

package crashlab

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"hwsagent/internal/tools/results"
)

// rest waits until the number of goroutines does not fall any more, and returns it.
func (m *mutants) rest() int {
	m.t.Helper()
	least := math.MaxInt
	for still := 0; still < 8; still++ {
		if n := m.running(); n < least {
			least, still = n, 0
		}
		time.Sleep(100 * time.Millisecond) // the pace of asking
	}
	return least
}

// ticks returns the CPU seconds that the agent has used.
func (m *mutants) ticks() float64 {
	m.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.cmd.Process.Pid))
	if err != nil {
		m.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err1 != nil || err2 != nil {
		m.t.Fatalf("no times in %s", b)
	}
	return float64(user+system) / 100 // USER_HZ
}

// quietAgain fails the test unless the agent, from which all peers have gone, does what it did
// before they came.
func (m *mutants) quietAgain() {
	m.t.Helper()
	if m.gone() {
		m.crashed()
	}
	time.Sleep(time.Second) // so that what ends has ended
	const span = 5 * time.Second
	began, before := time.Now(), m.ticks()
	m.left = m.rest()
	for deadline := time.Now().Add(30 * time.Second); m.left > m.base+mostGoroutines && time.Now().Before(deadline); {
		m.left = m.rest()
	}
	time.Sleep(span - time.Since(began)) // the time that is measured
	m.cpu = (m.ticks() - before) / time.Since(began).Seconds()
	if m.left > m.base+mostGoroutines {
		m.t.Errorf("%d goroutines are left, %d before the peers came:\n%s", m.left, m.base, m.goroutines())
	}
	if m.cpu > mostCPU {
		m.t.Errorf("when all peers have gone the agent takes %.2f of a core, more than %.2f:\n%s", m.cpu, mostCPU, m.goroutines())
	}
}

func (m *mutants) goroutines() string {
	body, err := m.get("/debug/pprof/goroutine?debug=2")
	if err != nil {
		return err.Error()
	}
	return mostCommon(strings.Split(body, "\n\n"))
}

// judgeMutants ends the load and looks at the account.
func (m *mutants) judgeMutants(lasted time.Duration) {
	m.t.Helper()
	m.rounds.lives = append(m.rounds.lives, [2]int64{m.began.UnixMilli(), time.Now().UnixMilli()})
	m.last = m.status()
	m.skipped += hostProbe(m.last).Skipped
	m.look()
	well := m.byName()["lab"]
	m.more, m.targets = "web: {pprof: true}", "" // the agent forgets all of them
	m.recv.Behave(m.behaviour)
	began := time.Now()
	m.quiet()
	m.reload = time.Since(began)
	if limit := 10*time.Second + 2*m.witness.slippedBy(); m.reload > limit {
		m.t.Errorf("a reload took %s, more than %s", m.reload, limit)
	}
	eventually(m.t, time.Minute, func() string {
		if tg := m.byName()["lab"]; tg.Ledger.Pending > 0 {
			return fmt.Sprintf("%d samples pending, %s: %s", tg.Ledger.Pending, tg.State, tg.Why)
		}
		return ""
	})
	r, g := m.oracle.Verify(m.journal(), m.series), m.byName()["lab"].Ledger
	if well.State != "ok" && well.State != "behind" {
		m.t.Errorf("the target that is well is %s: %s", well.State, well.Why)
	}
	m.sound(r, g)
	// A damaged time may be of the future, or that of another sample of the series, and a native histogram of custom buckets is nothing for
	// remote write 1.0.
	if excused := g.Dropped["future"] + g.Dropped["unsupported"] + m.secondValues(); r.Missing != 0 || g.Lost != excused {
		m.t.Errorf("%d of %d acknowledged samples are lost: rounds %v; the ledger: %+v", r.Missing, r.Appended, m.oracle.Missing(m.journal(), m.series), g)
	}
	missed := m.missedRounds()
	fired, kinds := m.decks.report(m.t)
	for sort, answers := range m.answers() {
		if answers[0] == 0 {
			m.t.Errorf("%s: no right request was taken; answers by status: %v", sort, answers)
		}
	}
	if m.peak > mostMemory {
		m.t.Errorf("the agent took %d KiB of memory, more than %d", m.peak, mostMemory)
	}
	if m.crashes == 0 {
		m.readable()
	}
	m.t.Logf("account %+v, ledger %+v", r, g)
	m.t.Logf("%d peers, %d mutations of %d kinds in %s, %d stops, the slowest %s; at most %d MiB; %d goroutines left of %d before; %.2f of a core; a reload %s; noise %s",
		len(m.peers), fired, kinds, lasted.Round(time.Second), m.stops, m.slowest.Round(time.Millisecond), m.peak>>10, m.left, m.base, m.cpu, m.reload.Round(time.Millisecond), m.witness.slippedBy())
	results.Add(m.t, results.Line{
		What: "mutants: exporters, receivers and clients with damaged messages", Count: fired, Lost: int(r.Missing), Seed: seed(m.t),
		Figures: map[string]float64{
			"peers": float64(len(m.peers)), "kinds": float64(kinds), "seconds": lasted.Seconds(), "stops": float64(m.stops), "slowest_stop_ms": float64(m.slowest.Milliseconds()),
			"rounds_lost": float64(missed), "memory_at_most_mib": float64(m.peak >> 10), "goroutines_left": float64(m.left - m.base), "cores_afterwards": m.cpu,
			"noise_of_the_machine_ms": float64(m.witness.slippedBy().Milliseconds()),
		},
	})
}

// answers returns how many answers askers of each sort got, by status; 0 is right requests that were
// taken.
func (m *mutants) answers() map[string]map[int]int {
	all := map[string]map[int]int{}
	for _, a := range m.askers {
		a.mu.Lock()
		if all[a.sort] == nil {
			all[a.sort] = map[int]int{}
		}
		for status, n := range a.statuses {
			if status > 0 {
				all[a.sort][status] += n
			}
		}
		all[a.sort][0] += a.taken
		a.mu.Unlock()
	}
	return all
}

// missedRounds counts the rounds of the probe of the host that did not come, life by life.
func (m *mutants) missedRounds() (missed int) {
	m.t.Helper()
	h := &m.rounds
	h.mu.Lock()
	defer h.mu.Unlock()
	most, late := 0, m.t.Errorf
	for _, n := range h.of {
		most = max(most, n)
	}
	if noise := m.witness.slippedBy(); noise > mostNoise {
		m.t.Logf("this process itself was %s late: what rounds came late, or not, is no failure", noise)
		late = m.t.Logf
	}
	times := slices.Sorted(maps.Keys(h.ups))
	for i, life := range h.lives {
		// From the first round, which comes within an interval of the start, to the stop.
		last, rounds := int64(0), 0
		for _, at := range times {
			if at < life[0] || at > life[1]+1000 {
				continue
			}
			rounds++
			if gap := at - last; last > 0 && gap > 1500+m.witness.slippedBy().Milliseconds() {
				missed += int(gap/1000) - 1
				late("life %d: no round of the host between %s and %s", i+1, time.UnixMilli(last).Format("15:04:05.000"), time.UnixMilli(at).Format("15:04:05.000"))
			}
			if h.ups[at] != 1 || h.of[at] < most/2 {
				missed++
				late("life %d: the round at %s has up %v and %d samples, others %d", i+1, time.UnixMilli(at).Format("15:04:05.000"), h.ups[at], h.of[at], most)
			}
			last = at
		}
		if due := int(life[1]-life[0])/1000 - 3; rounds < due {
			late("life %d: %d rounds of the host in %d ms", i+1, rounds, life[1]-life[0])
		}
	}
	if m.skipped > 0 {
		late("the probe of the host skipped %d rounds", m.skipped)
	}
	if len(times) == 0 {
		m.t.Error("no round of the host came")
	}
	return missed
}
