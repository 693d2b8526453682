//go:build linux

package crashlab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/results"
	"hwsagent/internal/tools/tier"
)

const (
	// healsWithin is the sync interval, after which a log is tried again at the latest,
	// and a probe's round.
	healsWithin = time.Second + 200*time.Millisecond
	// maxSlip is how much later than its schedule a round may begin.
	maxSlip = 100 * time.Millisecond
)

// suffer breaks the disk by spoil, and repairs it by repair. It calls spoil until the log
// refuses a sample, because a full log removes delivered segments and so frees space. The
// agent must keep its schedule, send its backlog, and acknowledge again within an interval
// after the repair.
//
// The machine may make one round late, although this process was on time: other processes
// use the disk, or threads wait for a core. A delay that the agent causes comes again. So
// the fault is repeated, and the third late time in a row is a failure.
func (l *lab) suffer(spoil, repair func()) {
	l.t.Helper()
	const times = 3
	for i := range times {
		healed, slip := l.sufferOnce(spoil, repair)
		late := ""
		if limit := healsWithin + l.interval + l.noise(); healed > limit {
			late = fmt.Sprintf("the log needed %s to heal, more than %s", healed, limit)
		} else if limit := l.slipLimit(); slip > limit {
			late = fmt.Sprintf("a round began %s late, more than %s", slip, limit)
		}
		if late == "" {
			l.figures.healed, l.figures.slip = max(l.figures.healed, healed), max(l.figures.slip, slip)
			return
		}
		if i == times-1 {
			l.t.Errorf("%s, %d times in a row", late, times)
		}
		l.figures.repeated++
		l.t.Logf("%s; once more", late)
	}
}

// sufferOnce reports how long the log needed to heal, and how late the latest round began.
func (l *lab) sufferOnce(spoil, repair func()) (healed, slip time.Duration) {
	l.t.Helper()
	// There must be something to send meanwhile.
	l.away()
	l.acked(10)
	refused := l.status().WAL.Refused
	from := time.Now()
	eventually(l.t, 20*time.Second, func() string {
		spoil()
		s := l.status()
		if s.WAL.Refused == refused {
			return "the log still takes everything: the fault did not take"
		}
		if s.WAL.Error == "" {
			l.t.Error("the status does not say that the log cannot be written")
		}
		return ""
	})
	if err := l.recv.Start(); err != nil {
		l.t.Fatal(err)
	}
	eventually(l.t, 10*time.Second, func() string {
		spoil()
		if tg := l.target(); tg.Ledger.Pending > 0 {
			return fmt.Sprintf("the backlog is not sent while the disk is broken: %d pending, %s %s", tg.Ledger.Pending, tg.State, tg.Why)
		}
		if r := l.oracle.Verify(l.journal(), l.series); r.Missing > 0 { // takes seconds on a busy machine after millions of samples
			return fmt.Sprintf("the backlog is not sent while the disk is broken: %d of %d acknowledged samples have not arrived", r.Missing, r.Appended)
		}
		if l.status().WAL.Error == "" {
			return "the log is well again by itself, so that what arrived proves nothing"
		}
		return ""
	})
	repaired := time.Now()
	repair()
	healed = l.acknowledgedAfter(repaired)
	slip = l.witness.gap(from, time.Now()) - l.interval
	l.t.Logf("the latest round was %s late; this process itself was up to %s late", slip.Round(time.Millisecond), l.witness.slippedBy().Round(time.Millisecond))
	return healed, slip
}

// slipLimit returns how late a round may begin: the promise, and what is the machine's doing
// and not the agent's. A tracer stops every thread at every call.
func (l *lab) slipLimit() time.Duration {
	limit := maxSlip + l.noise()
	if l.tracer != nil {
		limit += maxSlip
	}
	return tier.Within(limit)
}

// noise returns what of a delay may be the machine's doing: the agent and this process are
// late in turn.
func (l *lab) noise() time.Duration { return 2 * l.witness.slippedBy() }

// healed fails the test if the log does not heal in time.
func (l *lab) healed(repaired time.Time) {
	l.t.Helper()
	took := l.acknowledgedAfter(repaired)
	l.figures.healed = max(l.figures.healed, took)
	if limit := healsWithin + l.interval + l.noise(); took > tier.Within(limit) {
		l.t.Errorf("the log needed %s to heal, more than %s", took, limit)
	}
}

// acknowledgedAfter waits for the first acknowledgement after a time.
func (l *lab) acknowledgedAfter(repaired time.Time) (took time.Duration) {
	l.t.Helper()
	eventually(l.t, 10*time.Second, func() string {
		var ok bool
		if took, ok = l.witness.ackedAfter(repaired); !ok {
			return "nothing is acknowledged although the disk is well again"
		}
		return ""
	})
	l.t.Logf("acknowledged again %s after the disk was well", took.Round(time.Millisecond))
	return took
}

// exact fails the test unless what arrived is what was acknowledged, and what was not
// acknowledged is counted as refused. The agent must have had one life only.
func (l *lab) exact(r receiver.Result, g ledger) {
	l.t.Helper()
	l.complete(r, g)
	l.sound(r, g)
	if r.Unacknowledged != 0 {
		l.t.Errorf("%d samples arrived that the log had refused", r.Unacknowledged)
	}
	j := l.journal()
	failed := (j.Tried - uint64(len(j.Acked))) * uint64(l.series)
	if refused := l.last.WAL.Refused; refused < failed {
		l.t.Errorf("%d samples of rounds were not acknowledged, only %d are counted as refused", failed, refused)
	}
}

// TestDiskFull fills the disk to the last byte, or takes its last inode, and gives it back.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"bytes", "inodes"} {
		for _, sync := range []string{"1s", "always"} {
			t.Run(what+",sync="+sync, func(t *testing.T) {
				t.Parallel()
				rnd := seeded(t)
				d := newMemory(t, "size=6m,nr_inodes=60")
				o := options{storage: d.storage(), wal: "sync: " + sync + ", max_bytes: 1MiB, min_free_bytes: 0"}
				if what == "inodes" {
					o = many(o, 250*time.Millisecond) // so that new segments are needed
				}
				l := newLab(t, o)
				l.run()
				l.arrived()
				faults := amount(1, 40)
				for range faults {
					time.Sleep(between(rnd, 0, 500)) // where in a segment it happens
					if what == "bytes" {
						l.suffer(d.fill, d.empty)
					} else {
						l.suffer(d.fillInodes, d.empty)
					}
				}
				l.acked(3)
				r, g := l.settle()
				l.exact(r, g)
				results.Add(t, results.Line{
					What: "disk full, no " + what + " left, sync " + sync, Count: faults, Lost: int(r.Missing), Seed: seed(t), Figures: l.figures.values(l),
				})
			})
		}
	}
}

// TestDiskFullDropsOldest has somebody else fill the disk while the receiver is away and
// min_free_bytes is to be kept: the oldest data goes, and the ledger counts it.
func TestDiskFullDropsOldest(t *testing.T) {
	const inFlight = 4 // rounds on their way at most
	t.Parallel()
	d := newMemory(t, "size=6m,nr_inodes=100")
	l := newLab(t, many(options{storage: d.storage(), wal: "max_bytes: 1MiB, min_free_bytes: 1MiB"}, 100*time.Millisecond))
	l.run()
	l.arrived()
	l.away()
	eventually(t, 30*time.Second, func() string {
		if files, err := os.ReadDir(filepath.Join(l.storage, "wal")); err != nil || len(files) < 4 {
			return fmt.Sprintf("%d segments, %v", len(files), err)
		}
		return ""
	})
	d.fill()
	eventually(t, 10*time.Second, func() string {
		if l.target().Ledger.Dropped["budget"] == 0 {
			return "nothing was dropped: the fault did not take"
		}
		return ""
	})
	l.acked(20)
	d.empty()
	l.acked(5)
	r, g := l.settle()
	l.sound(r, g)
	rounds := l.oracle.Missing(l.journal(), l.series)
	// A round that was on its way when the log dropped it counts as dropped, although the receiver may take it.
	counted := int(g.Dropped["budget"]) / (l.series + report)
	if len(rounds) == 0 || counted*(l.series+report) != int(g.Dropped["budget"]) || g.Lost != g.Dropped["budget"] ||
		counted < len(rounds) || counted > len(rounds)+inFlight {
		t.Errorf("%d rounds of %d samples are missing, the ledger says %+v", len(rounds), l.series+report, g)
	}
	// While the disk was full, some rounds were refused. They are not in the log, so what was dropped may lie on both sides of them.
	acked := l.journal().Acked
	if n := len(rounds); n > 0 {
		first, last := slices.Index(acked, rounds[0]), slices.Index(acked, rounds[n-1])
		if last-first+1 > counted {
			t.Errorf("%d rounds were dropped, and not the oldest: missing are %v of %v", counted, rounds, acked)
		}
	}
	if r.Unacknowledged != 0 {
		t.Errorf("%d samples arrived that the log had refused", r.Unacknowledged)
	}
	results.Add(t, results.Line{
		What: "disk below min_free_bytes, targets away", Count: 1, Lost: int(r.Missing),
		Figures: map[string]float64{"dropped_by_the_account": float64(g.Dropped["budget"] / uint64(l.series+report) * uint64(l.series))},
	})
}

// TestReadOnly has the kernel make the file system read-only under the agent, as ext4
// does after an error. It stays so until somebody repairs it; the agent goes on sending,
// stops in time, and starts on the repaired disk.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	d := newLoop(t, "ext4")
	l := newLab(t, options{storage: d.storage(), wal: "max_bytes: 4MiB, min_free_bytes: 1MiB"})
	l.run()
	l.arrived()
	l.away()
	l.acked(10)
	began := time.Now()
	d.breakExt4()
	eventually(t, 10*time.Second, func() string {
		if l.status().WAL.Refused == 0 {
			return "the log still takes everything: the fault did not take"
		}
		return ""
	})
	if err := l.recv.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() string {
		if tg := l.target(); tg.Ledger.Pending > 0 {
			return fmt.Sprintf("%d pending, %s %s", tg.Ledger.Pending, tg.State, tg.Why)
		}
		return ""
	})
	if slip := l.witness.gap(began, time.Now()) - l.interval; slip > l.slipLimit() {
		t.Errorf("a round began %s late", slip)
	}
	if took := l.terminate(); took > tier.Within(2*time.Second) {
		t.Errorf("SIGTERM with a read-only disk: out after %s", took)
	}
	// No savepoint could be saved: all that was sent meanwhile is sent again.
	l.faults, l.lastSlow = append(l.faults, time.Now()), time.Since(began)
	d.unmount()
	if out, err := exec.Command("e2fsck", "-fy", d.image).CombinedOutput(); err != nil {
		t.Logf("e2fsck: %v\n%s", err, out) // 1 means that it corrected something
	}
	d.mountImage()
	l.run()
	l.acked(5)
	r, g := l.settle()
	l.sound(r, g)
	if r.Missing != 0 {
		t.Errorf("%d acknowledged samples are lost", r.Missing)
	}
	results.Add(t, results.Line{
		What: "ext4 becomes read-only, repair and restart", Count: 1, Lost: int(r.Missing), Figures: map[string]float64{"came_twice": float64(r.Duplicated)},
	})
}

// breakExt4 makes the kernel believe that it found an error on an ext4 of the test's own,
// which is to make it read-only.
func (d *disk) breakExt4() {
	d.t.Helper()
	if out, err := exec.Command("mount", "-o", "remount,errors=remount-ro", d.dir).CombinedOutput(); err != nil {
		d.t.Fatalf("remount: %v %s", err, out)
	}
	out, err := exec.Command("findmnt", "-n", "-o", "SOURCE", d.dir).Output()
	if err != nil {
		d.t.Fatalf("findmnt: %v", err)
	}
	trigger := filepath.Join("/sys/fs/ext4", filepath.Base(strings.TrimSpace(string(out))), "trigger_fs_error")
	if err := os.WriteFile(trigger, []byte("crashlab"), 0o600); err != nil {
		cannot(d.t, "cannot tell ext4 of an error: "+err.Error())
	}
	if err := os.WriteFile(filepath.Join(d.dir, "probe"), nil, 0o600); err == nil {
		d.t.Fatal("the file system can still be written")
	}
}
