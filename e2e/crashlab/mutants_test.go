//go:build linux

package crashlab

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/tier"
)

// The bounds of TestMutants.
const (
	mostMemory     = 256 << 10 // KiB of the resident set, at any time
	mostGoroutines = 5         // more than before, when all peers have gone
	mostCPU        = 0.5       // of a core, when all peers have gone
	mostStop       = 2 * time.Second
	// mostNoise is how late this process may be, of a round's second, so that a round of the
	// agent that is late is the agent's own.
	mostNoise = 300 * time.Millisecond
)

// TestMutants: two hundred exporters, receivers and clients that answer, or ask, with damaged
// messages of their protocols, over HTTP/1.1, HTTP/2 and UDP, for ten minutes. One agent has
// every way in and is stopped and started amid it at random moments. Its own probes lose no
// round, it stays small, ends when it is told to, and when the peers have gone nothing of them
// is left.
func TestMutants(t *testing.T) {
	if os.Getenv("HWSAGENT_TORTURE") == "" {
		t.Skip("judges memory, CPU and rounds of the agent, and so wants the machine for itself: run by make nightly (HWSAGENT_TORTURE=1)")
	}
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
	for most := began.Add(3 * m.lasting / 2); ; {
		m.live(between(rnd, int(m.life.Milliseconds())/2, int(m.life.Milliseconds())*3/2))
		// It may take longer until each kind has had its turn. The last life is not stopped: of all
		// that it went through nothing may be left.
		if lasted := time.Since(began); lasted > m.lasting && (m.decks.dealt() || time.Now().After(most)) {
			break
		}
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
	life     time.Duration // of the agent, on average
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
	m.faults = append(m.faults, time.Now())
	m.t.Errorf("the agent ended by itself: %s\n%s\nplayed last:\n%s", m.cmd.ProcessState, m.panicked(), m.decks.played(25))
	if m.crashes >= 5 {
		m.t.Fatal("it has ended by itself five times")
	}
	m.start()
}

// panicked returns what the agent said from its last panic on.
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
	m.skipped += m.skippedRounds()
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
		m.faults = append(m.faults, began, time.Now()) // it is killed, and may send again what was on its way
		m.t.Errorf("the agent did not end within %s of SIGTERM; played last:\n%s\nit said:\n%s\nit was at:\n%s", limit, m.decks.played(25), m.saidSince(began), m.stacks())
		return
	}
	took := time.Since(began)
	m.slowest = max(m.slowest, took)
	if took > tier.Within(limit) {
		m.t.Errorf("SIGTERM: it took %s, more than %s; it said:\n%s", took, limit, m.saidSince(began))
	}
	if code := m.cmd.ProcessState.ExitCode(); code != 0 {
		m.crashes++
		m.t.Errorf("SIGTERM: exit code %d\n%s", code, m.panicked())
	}
}

// saidSince returns what the agent said since a moment, but for what it says of each target.
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

// stacks returns an agent that hangs say where its goroutines are, and ends it.
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

// skippedRounds returns those that the probe of the host has skipped in this life, by the status,
// which must come within ten seconds.
func (m *mutants) skippedRounds() uint64 {
	m.t.Helper()
	var last error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && !m.gone(); time.Sleep(100 * time.Millisecond) {
		body, err := m.get("/api/v1/status")
		if err == nil {
			return hostProbe(m.checked(body)).Skipped
		}
		last = err
	}
	m.t.Errorf("the status does not come within 10 s: %v", last)
	return 0
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
