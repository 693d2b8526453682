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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
	"hwsagent/e2e/results"
)

// The bounds of TestMutants.
const (
	mostMemory     = 256 << 10 // KiB of the resident set, at any time
	mostGoroutines = 12        // more than before, when all peers have gone
	mostCPU        = 0.5       // of a core, when all peers have gone
	mostStop       = 2 * time.Second
)

// TestMutants: two hundred exporters, receivers and clients that answer, or ask, with damaged
// messages of their protocols, over HTTP/1.1, HTTP/2 and UDP, for ten minutes. One agent has
// every way in and is stopped and started amid it at random moments. Its own probes lose no
// round, it stays small, ends when it is told to, and when the peers have gone nothing of them
// is left.
func TestMutants(t *testing.T) {
	t.Parallel()
	m := newMutants(t)
	m.start()
	openAll(t, m.peers)
	time.Sleep(m.calmly) // the time in which all are right
	m.away()
	m.base = m.rest()
	t.Logf("%d peers; when they have gone the agent has %d goroutines", len(m.peers), m.base)
	openAll(t, m.peers)
	m.decks.calm.Store(false)
	began, rnd := time.Now(), seeded(t)
	// A machine with other work may take longer until each kind has had its turn.
	for most := began.Add(3 * m.lasting); time.Since(began) < m.lasting || !m.decks.dealt() && time.Now().Before(most); {
		m.live(between(rnd, m.life/2, m.life*3/2))
		m.stop()
		m.start()
	}
	m.decks.calm.Store(true)
	m.cut() // what hangs ends
	m.live(m.calmly)
	m.away()
	m.quietAgain()
	m.judgeMutants(time.Since(began))
}

// mutants is a lab whose agent meets nothing but them.
type mutants struct {
	*lab
	decks    *decks
	peers    []mutant
	askers   []*asker
	rounds   hostRounds
	patience time.Duration // of askers
	lasting  time.Duration // of the mutations
	life     int           // milliseconds, on average
	calmly   time.Duration

	base    int           // goroutines when all peers have gone
	began   time.Time     // of the agent's life
	peak    int           // KiB
	left    int           // goroutines at the end
	cpu     float64       // of a core, at the end
	slowest time.Duration // stop
	reload  time.Duration
	stops   int
	skipped uint64
	crashes int // and times that it had to be killed
}

// hostRounds are the rounds of the probe of the host that came, by their time.
type hostRounds struct {
	mu    sync.Mutex
	ups   map[int64]float64
	of    map[int64]int // samples
	lives [][2]int64    // milliseconds; of the agent
}

func (h *hostRounds) add(all []prompb.TimeSeries) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ts := range all {
		if receiver.Label(ts, "job") != "host" {
			continue
		}
		up := receiver.Label(ts, "__name__") == "up"
		for _, s := range ts.Samples {
			if math.Float64bits(s.Value) == value.StaleNaN {
				continue
			}
			h.of[s.Timestamp]++
			if up {
				h.ups[s.Timestamp] = s.Value
			}
		}
	}
}

// start is a new life of the agent.
func (m *mutants) start() {
	m.t.Helper()
	m.began = time.Now()
	m.run()
}

// live lets time pass, and looks at the agent.
func (m *mutants) live(d time.Duration) {
	m.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if m.gone() {
			m.crashed()
		}
		m.look()
	}
}

// look notes how large the agent is.
func (m *mutants) look() {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid)); err == nil && strings.Contains(string(b), "VmHWM:") {
		m.peak = max(m.peak, m.procStatus("VmHWM"))
	}
}

// crashed notes that the agent has ended by itself, and starts it again.
func (m *mutants) crashed() {
	m.t.Helper()
	m.crashes++
	m.t.Errorf("the agent ended by itself: %s\n%s\nplayed last:\n%s", m.cmd.ProcessState, m.panicked(), m.decks.played(25))
	if m.crashes >= 5 {
		m.t.Fatal("it has ended by itself five times")
	}
	m.start()
}

// panicked is what the agent said from its last panic on.
func (m *mutants) panicked() string {
	b, _ := os.ReadFile(m.log()) // it is there
	text := string(b)
	at := max(strings.LastIndex(text, "\npanic: "), strings.LastIndex(text, "\nfatal error: "), strings.LastIndex(text, "\nSIGQUIT: "))
	if at < 0 {
		return m.tail(20)
	}
	return text[at:min(len(text), at+6000)]
}

// stop ends the life of the agent with SIGTERM.
func (m *mutants) stop() {
	m.t.Helper()
	if m.gone() {
		m.crashed()
	}
	m.look()
	if body, err := m.get("/api/v1/status"); err == nil {
		m.skipped += hostProbe(m.checked(body)).Skipped
	} else {
		m.t.Errorf("the status does not come: %v", err)
	}
	began := time.Now()
	m.rounds.lives = append(m.rounds.lives, [2]int64{m.began.UnixMilli(), began.UnixMilli()})
	m.stops++
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		m.t.Errorf("terminate the agent: %v", err)
	}
	limit := mostStop + 2*m.witness.slippedBy()
	select {
	case <-m.done:
	case <-time.After(limit + 500*time.Millisecond):
		m.crashes++
		m.t.Errorf("the agent did not end within %s of SIGTERM; played last:\n%s\nit said:\n%s\nit was at:\n%s", limit, m.decks.played(25), m.saidSince(began), m.stacks())
		return
	}
	took := time.Since(began)
	m.slowest = max(m.slowest, took)
	if took > limit {
		m.t.Errorf("SIGTERM: it took %s, more than %s; it said:\n%s", took, limit, m.saidSince(began))
	}
	if code := m.cmd.ProcessState.ExitCode(); code != 0 {
		m.crashes++
		m.t.Errorf("SIGTERM: exit code %d\n%s", code, m.panicked())
	}
}

// saidSince is what the agent said since a moment, but for what it says of each target.
func (m *mutants) saidSince(since time.Time) string {
	var out strings.Builder
	for line := range strings.Lines(m.tail(400)) {
		stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil && at.Before(since) || strings.Contains(line, "target=") {
			continue
		}
		out.WriteString(line)
	}
	return out.String()
}

// stacks makes an agent that hangs say where its goroutines are, and ends it.
func (m *mutants) stacks() string {
	_ = m.cmd.Process.Signal(syscall.SIGQUIT) // it may end this moment
	select {
	case <-m.done:
	case <-time.After(5 * time.Second):
	}
	m.kill()
	b, _ := os.ReadFile(m.log()) // it is there
	text := string(b)
	text = text[max(0, strings.LastIndex(text, "SIGQUIT: ")):]
	return mostCommon(strings.Split(text, "\n\n"))
}

// mostCommon are stacks of goroutines without their numbers, each once, with how often it is
// there.
func mostCommon(stacks []string) string {
	counts := map[string]int{}
	for _, s := range stacks {
		var calls []string
		for line := range strings.Lines(s) {
			if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "goroutine ") || len(calls) > 12 {
				continue
			}
			call, _, _ := strings.Cut(strings.TrimSpace(line), "({")
			if at := strings.LastIndex(call, "(0x"); at > 0 {
				call = call[:at]
			}
			calls = append(calls, call)
		}
		counts[strings.Join(calls, " < ")]++
	}
	var out strings.Builder
	for i, s := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return counts[b] - counts[a] }) {
		if i < 40 {
			fmt.Fprintf(&out, "%d: %s\n", counts[s], s)
		}
	}
	return out.String()
}

func hostProbe(s status) probe {
	for _, p := range s.Probes {
		if p.Name == "host" {
			return p
		}
	}
	return probe{}
}

// away takes all peers away, each with its connections.
func (m *mutants) away() {
	var all sync.WaitGroup
	for _, p := range m.peers {
		all.Go(p.shut)
	}
	all.Wait()
}

// cut takes all peers away for a moment.
func (m *mutants) cut() {
	m.t.Helper()
	m.away()
	openAll(m.t, m.peers)
}

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

// ticks are the CPU seconds that the agent has used.
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
	// A damaged time may be of the future, and a native histogram of custom buckets is nothing for
	// remote write 1.0.
	if excused := g.Dropped["future"] + g.Dropped["unsupported"]; r.Missing != 0 || g.Lost != excused {
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

// answers are how many answers askers of each sort got, by status; 0 is right requests that were
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
	most := 0
	for _, n := range h.of {
		most = max(most, n)
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
				m.t.Errorf("life %d: no round of the host between %s and %s", i+1, time.UnixMilli(last).Format("15:04:05.000"), time.UnixMilli(at).Format("15:04:05.000"))
			}
			if h.ups[at] != 1 || h.of[at] < most/2 {
				missed++
				m.t.Errorf("life %d: the round at %s has up %v and %d samples, others %d", i+1, time.UnixMilli(at).Format("15:04:05.000"), h.ups[at], h.of[at], most)
			}
			last = at
		}
		if due := int(life[1]-life[0])/1000 - 3; rounds < due {
			m.t.Errorf("life %d: %d rounds of the host in %d ms", i+1, rounds, life[1]-life[0])
		}
	}
	if noisy := m.witness.slippedBy() > 500*time.Millisecond; m.skipped > 0 && !noisy {
		m.t.Errorf("the probe of the host skipped %d rounds", m.skipped)
	}
	if len(times) == 0 {
		m.t.Error("no round of the host came")
	}
	return missed
}
