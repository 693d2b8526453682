package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestProcessFigures measures the agent as a process of its own, under the load that
// docs/performance.md describes, and prints what it costs beside what it should. It takes
// HWSAGENT_BENCH (60s, say) of steady load and then an outage of HWSAGENT_BENCH_OUTAGE
// (90s). With HWSAGENT_BENCH_PROFILES naming a directory, it leaves profiles there.
//
// Times of a shared machine vary: a figure fails the test only at twice its aim.
func TestProcessFigures(t *testing.T) {
	steady := durationOf(t, "HWSAGENT_BENCH", 0)
	if steady == 0 {
		t.Skip("a measurement of three minutes: run by hand, see internal/tools/README.md (HWSAGENT_BENCH)")
	}
	outage := durationOf(t, "HWSAGENT_BENCH_OUTAGE", 90*time.Second)
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	t.Logf("load: %d probes of %d series each %s; steady for %s, then an outage of %s", heavyProbes, heavySeries, heavyInterval, steady, outage)

	to := newCounter(t)
	small := startAgent(t, figuresConfig(newCounter(t).url(), 1, 500, 15*time.Second))
	a := startAgent(t, figuresConfig(to.url(), heavyProbes, heavySeries, heavyInterval))
	perRound := int64(heavyProbes * heavySeries)
	eventually(t, time.Minute, func() string {
		if to.samples.Load() < 2*perRound {
			return "the load has not settled"
		}
		return ""
	})

	// The steady state.
	begin := meter(a, to)
	stop := profile(a, "steady", steady)
	time.Sleep(steady) // what is measured
	got := meter(a, to).since(begin)
	stop()
	n := float64(got.samples)
	report(t, "CPU seconds per million samples", 1.8, got.cpu.Seconds()/n*1e6)
	report(t, "RSS in MB", 55, float64(a.rss())/1e6)
	report(t, "RSS in MB at 500 series each 15s", 20, float64(small.rss())/1e6)
	report(t, "wire bytes per sample", 25, float64(got.bytes)/n)
	t.Logf("%d samples in %d requests, %.1f a request", got.samples, got.requests, n/float64(got.requests))

	// The outage.
	to.down()
	time.Sleep(outage) // what is measured
	t.Logf("RSS at the end of the outage: %.1f MB", float64(a.rss())/1e6)
	backlog := int64(a.target("receiver").PendingSamples)
	stop = profile(a, "drain", 10*time.Second)
	begin = meter(a, to)
	to.up()
	back := time.Now()
	var first, drained time.Duration
	eventually(t, time.Minute, func() string {
		if d, ok := to.firstAfter(back); ok && first == 0 {
			first = d
		}
		if got := to.samples.Load() - begin.samples; got < backlog {
			return fmt.Sprintf("%d of %d samples have arrived", got, backlog)
		}
		drained = time.Since(back)
		return ""
	})
	got = meter(a, to).since(begin)
	stop()
	n = float64(got.samples)
	report(t, "seconds to the first sample after the outage", 3, first.Seconds())
	report(t, fmt.Sprintf("seconds until %d samples were drained", backlog), 5, drained.Seconds())
	t.Logf("drain: %.0f samples a second, %.2f CPU seconds per million, %.1f wire bytes a sample, RSS %.1f MB",
		n/(drained-first).Seconds(), got.cpu.Seconds()/n*1e6, float64(got.bytes)/n, float64(a.rss())/1e6)
}

// The load of DESIGN's table.
const (
	heavyProbes   = 5
	heavySeries   = 10_000
	heavyInterval = 5 * time.Second
)

// figuresConfig returns an agent with that many canary probes and nothing else.
func figuresConfig(url string, probes, series int, interval time.Duration) string {
	var b strings.Builder
	b.WriteString("global: {external_labels: {site: fra1}}\nweb: {pprof: true}\nprobes:\n  - {name: hwsagent, type: self, enabled: false}\n")
	for i := range probes {
		fmt.Fprintf(&b, "  - {name: canary%d, type: canary, series: %d, interval: %s, timeout: %[3]s, labels: {rack: b4, role: storage}}\n", i, series, interval)
	}
	fmt.Fprintf(&b, "remote_write:\n  - {name: receiver, url: %q}\n", url)
	return b.String()
}

// usage is what was spent up to a moment.
type usage struct {
	cpu                      time.Duration
	samples, bytes, requests int64
}

func meter(a *agent, c *counter) usage {
	return usage{cpu: a.cpu(), samples: c.samples.Load(), bytes: c.bytes.Load(), requests: c.requests.Load()}
}

func (u usage) since(b usage) usage {
	return usage{u.cpu - b.cpu, u.samples - b.samples, u.bytes - b.bytes, u.requests - b.requests}
}

// cpu returns the time that the process has spent, in user and in system.
func (a *agent) cpu() time.Duration {
	a.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.cmd.Process.Pid))
	if err != nil {
		a.t.Fatal(err)
	}
	// The fields after the program's name, which may hold blanks: see proc_pid_stat(5).
	const tick = 10 * time.Millisecond
	f := strings.Fields(string(b)[strings.LastIndexByte(string(b), ')')+1:])
	var sum time.Duration
	for _, s := range f[11:13] {
		n, err := strconv.Atoi(s)
		if err != nil {
			a.t.Fatal(err)
		}
		sum += time.Duration(n) * tick
	}
	return sum
}

// profile takes a CPU profile of the agent for that long, then one of its memory, if the environment requests them. The
// returned function waits for that.
func profile(a *agent, name string, d time.Duration) (wait func()) {
	dir := os.Getenv("HWSAGENT_BENCH_PROFILES")
	if dir == "" {
		return func() {}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		client := &http.Client{Timeout: d + time.Minute}
		defer client.CloseIdleConnections()
		for _, kind := range []string{fmt.Sprintf("profile?seconds=%d", int(d.Seconds())), "allocs", "heap?gc=1"} {
			what, _, _ := strings.Cut(kind, "?")
			if err := download(client, "http://"+a.web+"/debug/pprof/"+kind, filepath.Join(dir, name+"."+what)); err != nil {
				a.t.Errorf("profile: %v", err)
			}
		}
	})
	return wg.Wait
}

// download gets a page into a file.
func download(client *http.Client, url, file string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, b)
	}
	return os.WriteFile(file, b, 0o600)
}

// report prints a figure beside its aim.
func report(t *testing.T, what string, aim, got float64) {
	t.Helper()
	verdict := "met"
	if got > aim {
		verdict = "MISSED"
	}
	t.Logf("%-48s aim ≤ %5.1f   measured %7.2f   %s", what, aim, got, verdict)
	if got > 2*aim {
		t.Errorf("%s: %.2f is more than twice the aim", what, got)
	}
}

// durationOf reads a duration from the environment.
func durationOf(t *testing.T, name string, otherwise time.Duration) time.Duration {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}
