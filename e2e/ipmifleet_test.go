package e2e

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/e2e/bmcsim"
)

// startBMCs starts n simulated BMCs of one machine, each at an address of its own in 127.net.0.0/16, with the faults in turn.
func startBMCs(t *testing.T, subnet, n int, faults ...bmcsim.Fault) (all []*bmcsim.BMC) {
	t.Helper()
	machine := bmcsim.NewMachine("watcher", "watch-pass")
	var wg sync.WaitGroup
	t.Cleanup(func() {
		for _, b := range all {
			b.Close()
		}
		wg.Wait()
	})
	for i := range n {
		b, err := bmcsim.Listen(net.JoinHostPort(fmt.Sprintf("127.%d.%d.%d", subnet, i/250, 1+i%250), "0"), machine, faults[i%len(faults)])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
		wg.Go(b.Run)
	}
	return all
}

// listBMCs writes the list that the agent reads.
func listBMCs(t *testing.T, a *agent, all ...[]*bmcsim.BMC) {
	t.Helper()
	var targets []string
	for _, b := range slices.Concat(all...) {
		targets = append(targets, strconv.Quote(b.Address()))
	}
	writeFile(t, filepath.Join(a.dir, "bmcs.json"), `[{"targets": [`+strings.Join(targets, ", ")+`]}]`)
}

// opened returns how many sessions BMCs have had, and how many of them were not closed.
func opened(all []*bmcsim.BMC) (n, left int) {
	for _, b := range all {
		c := b.Counts()
		n, left = n+c.Opened, left+c.Opened-c.Closed
	}
	return n, left
}

// strain is what a process holds at a moment: all sockets, those of the one BMC that has most, those of none, and goroutines.
type strain struct{ sockets, ofOneBMC, others, goroutines int }

func (s strain) most(o strain) strain {
	return strain{max(s.sockets, o.sockets), max(s.ofOneBMC, o.ofOneBMC), max(s.others, o.others), max(s.goroutines, o.goroutines)}
}

// sockets returns what each descriptor of the agent that is a socket points to.
func (a *agent) sockets() map[string]string {
	a.t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", a.cmd.Process.Pid))
	if err != nil {
		a.t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "socket:") { // others were closed meanwhile
			all[f] = to
		}
	}
	return all
}

// strain returns what the agent holds now.
func (a *agent) strain() (s strain) {
	a.t.Helper()
	first := a.sockets()
	s.sockets = len(first)
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp", a.cmd.Process.Pid))
	if err != nil {
		a.t.Fatal(err)
	}
	peers := map[string]string{} // the BMC's address of each socket, as the kernel writes it
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if strings.Contains(f[2], "107F:") || strings.Contains(f[2], "117F:") { // 127.16.0.0/16 and 127.17.0.0/16
			peers["socket:["+f[9]+"]"] = f[2]
		}
	}
	held := map[string]int{}
	for file, to := range a.sockets() {
		peer, ok := peers[to]
		switch {
		case first[file] != to: // opened meanwhile
		case ok:
			held[peer]++
			s.ofOneBMC = max(s.ofOneBMC, held[peer])
		default:
			s.others++
		}
	}
	m := regexp.MustCompile(`(?m)^go_goroutines (\d+)`).FindStringSubmatch(getText(a.t, "http://"+a.web+"/metrics"))
	if m == nil {
		a.t.Fatal("the agent does not say how many goroutines it has")
	}
	s.goroutines, err = strconv.Atoi(m[1])
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}

// phase is what was seen of well BMCs over some rounds.
type phase struct {
	cpu    float64 // parts of a core
	strain strain  // the most at a time
	late   time.Duration
	rounds int // of all BMCs
	short  int // BMCs that had fewer rounds than they should
}

// observe watches the agent read well BMCs for as many rounds.
func observe(t *testing.T, a *agent, well []*bmcsim.BMC, interval time.Duration, rounds int) (p phase) {
	t.Helper()
	begun := time.Now()
	first := a.cpu()
	n, _ := opened(well)
	for end := begun.Add(time.Duration(rounds)*interval + interval/20); time.Now().Before(end); time.Sleep(min(interval/10, 5*time.Second)) { // what is measured; to ask costs, too
		p.strain = p.strain.most(a.strain())
	}
	p.cpu = (a.cpu() - first).Seconds() / time.Since(begun).Seconds()
	m, _ := opened(well)
	p.rounds = m - n
	var late []time.Duration
	for _, b := range well {
		in := slices.DeleteFunc(b.Counts().Begun, func(at time.Time) bool { return at.Before(begun) })
		if len(in) < rounds {
			p.short++
		}
		for k := 1; k < len(in); k++ {
			late = append(late, (in[k].Sub(in[k-1]) - interval).Abs())
		}
	}
	slices.Sort(late)
	if len(late) > 0 {
		p.late = late[len(late)*99/100]
	}
	return p
}

// TestIPMIFleet: one agent reads many simulated BMCs of 60 sensors; then ten more hang, in two ways. The
// well ones are read as before, each in its time, and sockets and goroutines do not pile up. HWSAGENT_BMCS says how many BMCs
// (20), HWSAGENT_BMCS_INTERVAL how often each is read (2s); internal/tools/README.md measures 200 each 60s.
func TestIPMIFleet(t *testing.T) {
	endToEnd(t)
	n, err := strconv.Atoi(cmp.Or(os.Getenv("HWSAGENT_BMCS"), "20"))
	if err != nil {
		t.Fatal(err)
	}
	measure := os.Getenv("HWSAGENT_BMCS") != ""
	if !measure {
		t.Parallel()
	}
	interval := durationOf(t, "HWSAGENT_BMCS_INTERVAL", 2*time.Second)
	const hanging, rounds = 10, 3
	well := startBMCs(t, 16, n, bmcsim.Well)
	sick := startBMCs(t, 17, hanging, bmcsim.Silent, bmcsim.Stops)
	to := newCounter(t)
	head := "web: {pprof: true}\nprobes:\n  - {name: hwsagent, type: self, enabled: false}\n"
	tail := fmt.Sprintf("remote_write:\n  - {name: receiver, url: %q}\n", to.url())
	idle := startAgent(t, head+tail)
	a := newAgent(t, head+fmt.Sprintf("  - {name: bmcs, type: ipmi, file_sd_configs: [{files: [bmcs.json]}], username: watcher, password: watch-pass, interval: %s, timeout: %dms}\n",
		interval, (interval*9/10).Milliseconds())+tail)
	listBMCs(t, a, well)
	a.run()
	t.Cleanup(a.kill)
	eventually(t, 2*interval+20*time.Second, func() string {
		if k, _ := opened(well); k < 2*n {
			return fmt.Sprintf("%d sessions so far, want two for each BMC", k)
		}
		return ""
	})
	stop := profile(a, "bmcs", rounds*interval)
	before := observe(t, a, well, interval, rounds)
	stop()
	own, rss := float64(idle.rss())/(1<<20), float64(a.rss())/(1<<20)

	listBMCs(t, a, well, sick)
	eventually(t, 30*time.Second+2*interval, func() string {
		for _, b := range sick {
			if c := b.Counts(); c.Faults == 0 {
				return b.Address() + " has not hung yet"
			}
		}
		return ""
	})
	after := observe(t, a, well, interval, rounds)
	rssAfter := float64(a.rss()) / (1 << 20)

	for what, p := range map[string]phase{"without": before, "with": after} {
		t.Logf("%s hanging BMCs: %d rounds of %d BMCs each %s; %d had too few; 99 of 100 within %s of their time; CPU %.2f %% of a core; at most %d sockets, %d of one BMC, %d of none, %d goroutines",
			what, p.rounds, n, interval, p.short, p.late.Round(time.Millisecond), 100*p.cpu, p.strain.sockets, p.strain.ofOneBMC, p.strain.others, p.strain.goroutines)
		if measure && p.short > 0 || p.rounds < n*(rounds-1) {
			t.Errorf("%s hanging BMCs, %d well ones were not read in each round, and all had %d rounds", what, p.short, p.rounds)
		}
		if measure && p.late > interval/4 { // other tests may take all of the machine for seconds
			t.Errorf("%s hanging BMCs, one of a hundred rounds is %s away from its time", what, p.late)
		}
	}
	// A BMC has one socket during its round, and a hanging one its loop, its round and two helpers of that round.
	if more := after.strain.sockets - before.strain.sockets; more > hanging+5 {
		t.Errorf("%d sockets more with %d hanging BMCs", more, hanging)
	}
	if p := before.strain.most(after.strain); p.ofOneBMC != 1 {
		t.Errorf("%d sockets of one BMC at a time", p.ofOneBMC)
	}
	if more := after.strain.others - before.strain.others; more > 5 {
		t.Errorf("%d other sockets more with %d hanging BMCs", more, hanging)
	}
	if more := after.strain.goroutines - before.strain.goroutines; more > 4*hanging+20 {
		t.Errorf("%d goroutines more with %d hanging BMCs", more, hanging)
	}
	if before.strain.sockets > n+20 {
		t.Errorf("%d sockets for %d BMCs", before.strain.sockets, n)
	}
	if before.strain.others > 20 {
		t.Errorf("%d sockets that are not of a BMC", before.strain.others)
	}
	for _, b := range well {
		// A session whose end got no answer in time, on a busy machine, may still be open when the next one begins.
		if c := b.Counts(); c.Opened-c.Closed > 1 || c.Most > 2 || measure && c.Most > 1 {
			t.Errorf("%s had %d sessions at a time, and %d were not closed", b.Address(), c.Most, c.Opened-c.Closed)
		}
	}
	failing := map[string]bool{}
	for _, p := range a.status().Probes {
		if p.State == "failing" || p.State == "hung" {
			failing[p.Name] = true
		}
	}
	for _, b := range well {
		if measure && failing["bmcs/"+b.Address()] { // other tests may take all of the machine for a round
			t.Errorf("%s is well, and its probe fails", b.Address())
		}
	}
	t.Logf("RSS %.1f MiB, %.1f MiB with the hanging ones; %.1f MiB without BMCs", rss, rssAfter, own)
	if measure {
		report(t, "CPU, % of a core", 5, 100*before.cpu)
		report(t, "CPU with 10 hanging, % of a core", 5, 100*after.cpu)
		report(t, "RSS in MiB above the agent's own", 80, rss-own)
		report(t, "RSS with 10 hanging, in MiB above the agent's own", 80, rssAfter-own)
	}
}

// TestIPMIFaults: answers that come twice, or after others out of order and with rubbish, cost nothing; a BMC that is silent, late, stops or answers
// too little costs itself, and no other. Each fault fires.
func TestIPMIFaults(t *testing.T) {
	endToEnd(t)
	t.Parallel()
	faults := []bmcsim.Fault{bmcsim.Well, bmcsim.Twice, bmcsim.Stray, bmcsim.Lies, bmcsim.Silent, bmcsim.Stops, bmcsim.Late}
	const endured = 3 // of them
	all := startBMCs(t, 18, len(faults), faults...)
	a := newAgent(t, "probes:\n  - {name: bmcs, type: ipmi, file_sd_configs: [{files: [bmcs.json]}], username: watcher, password: watch-pass, interval: 5s, timeout: 4s, retries: 1}\n")
	listBMCs(t, a, all)
	a.run()
	t.Cleanup(a.kill)
	eventually(t, time.Minute, func() string {
		states := map[string]string{}
		for _, p := range a.status().Probes {
			states[p.Name] = p.State
			if p.LastError != "" && p.State != "failing" {
				states[p.Name] = "partial"
			}
		}
		for i, b := range all {
			state := states["bmcs/"+b.Address()]
			if i < endured && state != "ok" || i >= endured && state != "failing" && state != "partial" {
				return fmt.Sprintf("the BMC with fault %d is %q: %v", faults[i], state, states)
			}
			if c := b.Counts(); i > 0 && c.Faults == 0 || i < endured && c.Opened < 2 {
				return fmt.Sprintf("the BMC with fault %d: %+v", faults[i], c)
			}
		}
		return ""
	})
}
