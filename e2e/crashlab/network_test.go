//go:build linux

package crashlab

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
	"hwsagent/internal/tools/tier"
)

// The agent's two targets, each at the end of a cable of its own: faults are at the one,
// the other must not notice.
const (
	brokenHost, wellHost = "10.98.0.2", "10.97.0.2"
	peerPort             = ":9090"

	remoteTimeout = 2 * time.Second
	maxBackoff    = time.Second
)

// network is an agent in a network of its own.
type network struct {
	*lab
	near, far            *netns // the agent's namespace, and the receivers'
	broken, well         *peer
	rnd                  *rand.Rand
	calmLag              time.Duration // the well target's p99 while nothing is broken
	files                int           // open in the agent, likewise
	faults               int           // so far
	worstFresh, worstLag time.Duration // the longest after a fault until fresh data, and of the well target's p99 in one
}

// fault breaks the way to the one receiver, or the receiver.
type fault struct {
	name string
	// on starts the fault. The function that it returns ends it, and returns how often it was met.
	on func(n *network) (off func() (times int))
	// says is what the status must say meanwhile, beside that it is tried again.
	says string
	// wire faults keep data from coming; others are known to the receiver itself.
	wire bool
	// leaky faults let data through, slowly.
	leaky bool
	// naming faults keep new connections from being made: one whose name was looked up just before goes on.
	naming bool
	// short faults are over at once.
	short bool
}

// targetEntries are two entries of remote_write. The last of the arguments are the hosts.
func targetEntries(broken, well string) string {
	entry := `
  - name: %s
    url: http://%s:9090/api/v1/write
    remote_timeout: %s
    queue_config: {batch_send_deadline: 100ms, min_backoff: 30ms, max_backoff: %s}`
	return fmt.Sprintf(entry, "broken", broken, remoteTimeout, maxBackoff) + fmt.Sprintf(entry, "well", well, remoteTimeout, maxBackoff)
}

// newNetwork makes two namespaces and two cables, and a lab inside that does not run yet.
// brokenName is how the agent calls the broken host.
func newNetwork(t *testing.T, brokenName string) *network {
	t.Helper()
	n := &network{rnd: seeded(t), near: newNetns(t), far: newNetns(t)}
	n.near.cable("broken", "10.98.0.1/24", n.far, "broken", brokenHost+"/24")
	n.near.cable("well", "10.97.0.1/24", n.far, "well", wellHost+"/24")
	n.far.ip("addr add 10.98.0.3/24 dev broken")
	n.far.firewall()
	n.broken = newPeer(t, func() (net.Listener, error) { return n.far.listen(brokenHost + peerPort) })
	n.well = newPeer(t, func() (net.Listener, error) { return n.far.listen(wellHost + peerPort) })
	n.lab = newLab(t, options{targets: targetEntries(brokenName, wellHost), inside: n.near})
	return n
}

// settleIn waits until data arrives, and measures how things are while all is well.
func (n *network) settleIn() {
	n.t.Helper()
	n.ready()
	n.fresh(time.Now(), 20*time.Second)
	from := time.Now()
	time.Sleep(3 * time.Second) // the time that is measured
	n.calmLag = p99(n.well.lags(n.witness, from, time.Now()))
	n.files = n.openFiles()
	n.t.Logf("while all is well: p99 of the lag %s, %d files open", n.calmLag.Round(time.Millisecond), n.files)
}

// suffer is one fault, of that duration, and what must hold in it and after it.
func (n *network) suffer(f fault, d time.Duration) {
	n.t.Helper()
	before := n.broken.counts()
	n.broken.doubtful(f.wire)
	from := time.Now()
	off := f.on(n)
	begun := n.broken.counts() // before the fault is there, the agent sends as usual
	time.Sleep(d)              // the duration of the fault
	after := n.broken.counts() // before a command runs, which takes its time on a busy machine
	told := n.told("broken")
	arrived := len(n.broken.lags(n.witness, from.Add(remoteTimeout), time.Now()))
	if !f.leaky && !f.short {
		if arrived > 0 && f.wire {
			n.t.Errorf("%s: %d numbers arrived meanwhile: it stops nothing", f.name, arrived)
		}
		if told.State != "retrying" || told.Why == "" || !strings.Contains(told.Why, f.says) {
			n.t.Errorf("%s: after %s the status says %q, %q", f.name, d, told.State, told.Why)
		}
	}
	n.broken.doubtful(true) // the end of the fault may cut an answer short
	repaired := time.Now()
	times := off()
	n.broken.doubtful(false)
	if times == 0 {
		n.t.Errorf("%s: the fault did not take", f.name)
	}
	took := n.fresh(repaired, time.Minute)
	lag := p99(n.well.lags(n.witness, from, time.Now().Add(-time.Second)))
	n.t.Logf("%s for %s: met %d times, %d connections, %d requests, %d not sure; fresh data after %s; the other target's p99 %s; said: %s %s",
		f.name, d.Round(time.Millisecond), times, after.accepted-before.accepted, after.requests-before.requests, after.unsure-before.unsure,
		took.Round(time.Millisecond), lag.Round(time.Millisecond), told.State, told.Why)
	n.faults, n.worstFresh, n.worstLag = n.faults+1, max(n.worstFresh, took), max(n.worstLag, lag)
	if limit := remoteTimeout + maxBackoff + time.Second + 4*n.witness.slippedBy(); took > tier.Within(limit) {
		n.t.Errorf("%s: fresh data after %s, more than %s", f.name, took, limit)
	}
	limit := 2*n.calmLag + 100*time.Millisecond + 4*n.witness.slippedBy()
	if !tier.Nightly() { // others use the machine, too: judge only that the other target did not wait for the end of a fault, which takes longer
		limit = max(limit, 1500*time.Millisecond)
	}
	if lag > limit {
		n.t.Errorf("%s: the other target's lag is %s, more than %s", f.name, lag, limit)
	}
	// Pauses double up to half of max_backoff. A request that meets a connection that was
	// closed meanwhile is sent twice.
	escaped := f.naming && after.accepted > before.accepted
	if limit := 20 + int(6*d/maxBackoff); !f.leaky && !escaped && after.requests-begun.requests > limit {
		n.t.Errorf("%s: %d requests in %s: a storm", f.name, after.requests-begun.requests, d)
	}
}

// fresh waits for a number that was tried after since to arrive, and says how long after.
func (n *network) fresh(since time.Time, limit time.Duration) (took time.Duration) {
	n.t.Helper()
	eventually(n.t, limit, func() string {
		if n.gone() {
			n.t.Fatalf("the agent ended by itself: %s\n%s", n.cmd.ProcessState, n.tail(20))
		}
		var ok bool
		if took, ok = n.broken.freshAfter(n.witness, since); !ok {
			return "nothing new arrives"
		}
		return ""
	})
	return took
}

// notWell is the exit code of `hwsagent status` when a target is not well.
const notWell = 4

// told returns what `hwsagent status` says of a target. It reaches the agent by the storage
// directory, whatever the network is like.
func (n *network) told(name string) target {
	n.t.Helper()
	cmd := exec.Command(n.args[0], "status", "--json", "--storage.path", n.storage)
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != notWell {
		n.t.Fatalf("hwsagent status: %v\n%s", err, out)
	}
	var s status
	if err := json.Unmarshal(out, &s); err != nil {
		n.t.Fatal(err)
	}
	n.checked(string(out))
	for _, tg := range s.Targets {
		if tg.Name == name {
			return tg
		}
	}
	n.t.Fatalf("the status has no target %q", name)
	return target{}
}

// account ends the load and fails the test unless both receivers have everything, in
// order, and twice only what the sender could not know of. what names the faults.
func (n *network) account(what string) {
	n.t.Helper()
	n.quiet()
	eventually(n.t, time.Minute, func() string {
		for _, name := range []string{"broken", "well"} {
			if tg := n.told(name); tg.Ledger.Pending > 0 {
				return fmt.Sprintf("%s has %d samples pending, %s: %s", name, tg.Ledger.Pending, tg.State, tg.Why)
			}
		}
		return ""
	})
	var lost, twice uint64
	for name, p := range map[string]*peer{"broken": n.broken, "well": n.well} {
		r, g := p.oracle.Verify(n.journal(), n.series), n.told(name).Ledger
		n.t.Logf("%s: %+v, unsure %d, ledger %+v", name, r, p.counts().unsure, g)
		if r.Appended == 0 || r.Missing != 0 || r.OutOfOrder != 0 || r.Garbled != 0 || r.Ghosts != 0 || r.Unacknowledged != 0 {
			n.t.Errorf("%s: %+v", name, r)
		}
		if unsure := p.counts().unsure; r.Duplicated > unsure {
			n.t.Errorf("%s: %d samples came twice, only %d were in doubt", name, r.Duplicated, unsure)
		}
		lost, twice = lost+r.Missing, twice+r.Duplicated
		if g.Lost != 0 || len(g.Dropped) != 0 {
			n.t.Errorf("%s: the ledger says that something was lost: %+v", name, g)
		}
	}
	n.frugal()
	results.Add(n.t, results.Line{
		What: what, Count: n.faults, Lost: int(lost), Seed: seed(n.t),
		Figures: map[string]float64{
			"fresh_data_after_ms_at_most": float64(n.worstFresh.Milliseconds()), "other_targets_p99_ms_at_most": float64(n.worstLag.Milliseconds()), "came_twice": float64(twice),
		},
	})
}

// frugal fails the test if the agent has taken memory or keeps files open.
func (n *network) frugal() {
	n.t.Helper()
	const most = 150 << 10 // KiB
	peak := n.procStatus("VmHWM")
	n.t.Logf("peak memory %d KiB, %d files open", peak, n.openFiles())
	if peak > most {
		n.t.Errorf("the agent took %d KiB of memory, more than %d", peak, most)
	}
	eventually(n.t, 10*time.Second, func() string {
		if open := n.openFiles(); open > n.files+4 {
			return fmt.Sprintf("%d files are open, %d were before", open, n.files)
		}
		return ""
	})
}

// procStatus returns a figure of the agent's /proc/PID/status.
func (n *lab) procStatus(key string) int {
	n.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			k, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				n.t.Fatal(err)
			}
			return k
		}
	}
	n.t.Fatalf("no %s in %s", key, b)
	return 0
}

func (n *lab) openFiles() int {
	n.t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.cmd.Process.Pid))
	if err != nil {
		n.t.Fatal(err)
	}
	return len(files)
}

// p99 returns the 99th percentile; 0 of nothing.
func p99(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(len(all)-1)*99/100]
}
