package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/internal/tools/benchagents/hardware"
)

// The load of TestMillion: each target shows millionSeries series, and the agent adds millionReports series to each scrape.
const (
	millionSeries  = 10_000
	millionReports = 5 // up and four scrape_*, as Prometheus adds
)

// Bounds of TestMillion. Those of memory and CPU are for 100 targets each minute; fewer targets have smaller ones.
const (
	millionRSS    = 700e6 // bytes, at any moment
	millionCPU    = 0.15  // parts of a core
	millionJitter = time.Second
)

// millionTarget is a scrape target that records its scrapes.
type millionTarget struct {
	page *hardware.Target
	door *sync.RWMutex // locked when the measurement is over: scrapes wait, so that counts stand still

	mu      sync.Mutex
	scrapes []time.Time
}

func (m *millionTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	m.door.RLock()
	defer m.door.RUnlock()
	if r.Context().Err() != nil {
		return // the agent did not wait for the door
	}
	m.page.ServeHTTP(w, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scrapes = append(m.scrapes, at)
}

// since returns the times of the scrapes after a moment.
func (m *millionTarget) since(t time.Time) (after []time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range m.scrapes {
		if at.After(t) {
			after = append(after, at)
		}
	}
	return after
}

// memoryUse collects looks at a process's memory.
type memoryUse struct {
	rss, anon []float64
}

// watch looks each second until done returns true, at most for limit. It returns whether done did.
func (u *memoryUse) watch(a *agent, limit time.Duration, done func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(min(time.Second, time.Until(end))) { // what is measured
		if gone := a.ended(); gone != "" {
			a.t.Fatalf("%s\n%s", gone, a.tail(20))
		}
		u.rss, u.anon = append(u.rss, float64(a.rss())), append(u.anon, float64(a.memory("RssAnon")))
		if done() {
			return true
		}
	}
	return false
}

func (u *memoryUse) String() string {
	return fmt.Sprintf("RSS %.0f MB in the mean and %.0f at most, anonymous %.0f and %.0f",
		mean(u.rss)/1e6, slices.Max(u.rss)/1e6, mean(u.anon)/1e6, slices.Max(u.anon)/1e6)
}

func mean(all []float64) (sum float64) {
	for _, x := range all {
		sum += x / float64(len(all))
	}
	return sum
}

// TestMillion: one agent scrapes a million series each minute and sends them to two receivers, within the bounds above. It takes
// minutes: HWSAGENT_MILLION says how many targets of 10,000 series (100), HWSAGENT_MILLION_INTERVAL the interval (60s),
// HWSAGENT_BENCH_PROFILES a directory for profiles of the agent.
func TestMillion(t *testing.T) {
	endToEnd(t)
	n, _ := strconv.Atoi(os.Getenv("HWSAGENT_MILLION"))
	if n == 0 {
		t.Skip("takes minutes: run by hand, see internal/tools/README.md (HWSAGENT_MILLION)")
	}
	interval := durationOf(t, "HWSAGENT_MILLION_INTERVAL", time.Minute)
	var door sync.RWMutex
	targets, addresses := startMillion(t, n, &door)
	to := []*counter{newCounter(t), newCounter(t)}
	a := newAgent(t, fmt.Sprintf("global: {scrape_interval: %s, scrape_timeout: %[1]s, external_labels: {site: fra1}}\nweb: {pprof: true}\n"+
		"probes:\n  - {name: hwsagent, type: self, enabled: false}\nscrape_configs:\n  - job_name: hardware\n    static_configs: [{targets: [%s]}]\n"+
		"remote_write:\n  - {name: one, url: %q}\n  - {name: two, url: %q}\n", interval, strings.Join(addresses, ", "), to[0].url(), to[1].url()))
	begin := time.Now()
	a.run()
	t.Cleanup(a.kill)

	perRound := int64(n) * (millionSeries + millionReports)
	var start, steady memoryUse
	if !start.watch(a, 2*interval+time.Minute, func() bool {
		return scraped(targets) >= n && to[0].samples.Load() >= perRound && to[1].samples.Load() >= perRound
	}) {
		t.Fatalf("%d of %d targets were scraped, and %d and %d of %d samples came", scraped(targets), n, to[0].samples.Load(), to[1].samples.Load(), perRound)
	}
	first := time.Since(begin)

	const rounds = 3
	window := rounds*interval + interval/20
	stop := profile(a, "million", window)
	began, cpuBefore := time.Now(), a.cpu()
	steady.watch(a, window, func() bool { return false })
	cpu := (a.cpu() - cpuBefore).Seconds() / time.Since(began).Seconds()
	stop()
	missed, away := roundsOf(targets, began, interval, rounds)
	door.Lock()
	defer door.Unlock()
	samples := delivered(t, a, targets, to)

	rate := float64(n) / 100 * time.Minute.Seconds() / interval.Seconds()
	bound := millionRSS * max(0.2, float64(n)/100)
	t.Logf("%d series each %s to two receivers; the first round had arrived after %s: %v", perRound, interval, first.Round(time.Second/10), &start)
	t.Logf("%s after that: %v; CPU %.1f %% of a core (bound %.1f)", window, &steady, 100*cpu, 100*millionCPU*rate)
	t.Logf("%d samples in all came to each receiver, none lost and none twice; %d rounds missed; scrapes at most %s from their time", samples, missed, away.Round(time.Millisecond))
	if missed > 0 {
		t.Errorf("%d rounds were missed", missed)
	}
	if away >= millionJitter {
		t.Errorf("a scrape was %s away from its time, want less than %s", away, millionJitter)
	}
	if cpu > millionCPU*rate {
		t.Errorf("the agent takes %.1f %% of a core, want at most %.1f", 100*cpu, 100*millionCPU*rate)
	}
	if most := max(slices.Max(start.rss), slices.Max(steady.rss)); most > bound {
		t.Errorf("the agent has %.0f MB of resident memory, want at most %.0f", most/1e6, bound/1e6)
	}
}

// startMillion starts n targets and returns them with their addresses.
func startMillion(t *testing.T, n int, door *sync.RWMutex) (targets []*millionTarget, addresses []string) {
	t.Helper()
	for i := range n {
		m := &millionTarget{page: hardware.NewTarget(1, i, millionSeries), door: door}
		server := httptest.NewServer(m)
		t.Cleanup(server.Close)
		targets, addresses = append(targets, m), append(addresses, strings.TrimPrefix(server.URL, "http://"))
	}
	return targets, addresses
}

// scraped returns how many targets were scraped at least once.
func scraped(targets []*millionTarget) (n int) {
	for _, m := range targets {
		if len(m.since(time.Time{})) > 0 {
			n++
		}
	}
	return n
}

// roundsOf returns how many of the rounds due since began were missed, and how far the interval between two scrapes of a target
// was from the configured one at most.
func roundsOf(targets []*millionTarget, began time.Time, interval time.Duration, rounds int) (missed int, away time.Duration) {
	for _, m := range targets {
		at := m.since(began)
		missed += max(0, rounds-len(at))
		for i := 1; i < len(at); i++ {
			away = max(away, (at[i].Sub(at[i-1]) - interval).Abs())
		}
	}
	return missed, away
}

// delivered waits until each receiver has all samples of all scrapes, which have stopped, and returns how many that are. It compares
// the counts of the targets, of the log, of the agent's ledgers and of the receivers.
func delivered(t *testing.T, a *agent, targets []*millionTarget, to []*counter) (want int64) {
	t.Helper()
	for _, m := range targets {
		want += m.page.Served() + millionReports*int64(len(m.since(time.Time{})))
	}
	eventually(t, 15*time.Second, func() string {
		if one, two := to[0].samples.Load(), to[1].samples.Load(); one < want || two < want {
			return fmt.Sprintf("%d and %d of %d samples have come", one, two, want)
		}
		return ""
	})
	if appended := a.status().WAL.Appended; appended != uint64(want) {
		t.Errorf("%d samples were scraped, and the log has %d", want, appended)
	}
	for i, name := range []string{"one", "two"} {
		if l := a.drained(10*time.Second, name).Ledger; l.Delivered != uint64(want) || l.Appended != uint64(want) || l.Lost > 0 {
			t.Errorf("%d samples were scraped; the ledger of %s is %+v", want, name, l)
		}
		if got := to[i].samples.Load(); got != want {
			t.Errorf("%d samples were scraped, and %d came to %s", want, got, name)
		}
	}
	return want
}
