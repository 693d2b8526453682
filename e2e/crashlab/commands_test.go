//go:build linux

package crashlab

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

// rename gives the lab's one target another name in the configuration.
func (l *lab) rename(name string) {
	l.t.Helper()
	l.targets = strings.Replace(fmt.Sprintf(ownTarget, l.recv.URL()), "name: lab", "name: "+name, 1)
	l.configure(true)
}

// command is `hwsagent targets …` on the lab's directory.
func (l *lab) command(args ...string) *exec.Cmd {
	return exec.Command(l.args[0], append([]string{"targets", "--config.file", l.args[3], "--storage.path", l.storage}, args...)...)
}

// TestKillAmidCommands kills the agent, or the command where no agent runs, while a target's
// queue is paused, resumed, skipped or renamed. Nothing is lost but what was skipped, which is
// counted; and one name has the queue at all times.
func TestKillAmidCommands(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	l := newLab(t, options{wal: "max_bytes: 64MiB, min_free_bytes: 1MiB"})
	kills, name, renames := amount(15, 300), "lab", 0
	finished, cut := map[string]int{}, map[string]int{}
	for i := range kills {
		verb := [...]string{"adopt", "pause", "skip", "resume", "adopt"}[i%5]
		if l.weather(rnd); verb == "skip" {
			l.away() // so that there is something to skip
		}
		l.run()
		l.acked(4 + rnd.IntN(5))
		down := rnd.IntN(3) == 0
		if down {
			l.crash()
		}
		next := name
		args := []string{verb, name}
		switch verb {
		case "adopt":
			next = fmt.Sprintf("lab-%d", i)
			args = append(args, next)
			l.rename(next)
		case "skip":
			args = append(args, "--before", "100ms", "--yes")
		}
		cmd := l.command(args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The command stops the target's queue, so it is a fault as far as duplicates go.
		l.faults = append(l.faults, time.Now())
		time.Sleep(l.moment(rnd, down)) // the fault's own schedule
		if down {
			_ = cmd.Process.Kill() // it may be gone already
		} else {
			l.crash()
		}
		if err := cmd.Wait(); err == nil {
			finished[verb]++
		} else {
			cut[verb]++
		}
		l.faults = append(l.faults, time.Now())

		// A person looks at what there is, and makes the configuration fit.
		s := l.offline()
		if len(s.Targets) != 1 || !slices.Contains([]string{name, next}, s.Targets[0].Name) {
			t.Fatalf("after %q was cut: targets %+v", args, s.Targets)
		}
		if got := s.Targets[0].Name; got != name {
			name = got
			renames++
		}
		l.rename(name)
	}
	l.run()
	if out, err := l.command("resume", name).CombinedOutput(); err != nil {
		t.Fatalf("resume: %v\n%s", err, out)
	}
	l.acked(5)
	r, g := l.settle()
	t.Logf("%d commands ended, %d were cut; %d renames", total(finished), total(cut), renames)
	if total(finished) == 0 || total(cut) == 0 || renames == 0 {
		t.Errorf("ended %v, cut %v, %d renames: want some of each", finished, cut, renames)
	}
	// Samples in flight when they were skipped may have arrived.
	if skipped := g.Dropped["skipped"]; uint64(r.Missing) > skipped || g.Lost != skipped {
		t.Errorf("%d samples are missing, %d were skipped, the ledger says %d are lost: %+v", r.Missing, skipped, g.Lost, g)
	}
	l.sound(r, g)
	results.Add(t, results.Line{
		What: "kill -9 amid pause, resume, skip and rename of a queue", Count: kills, Lost: 0, Seed: seed(t),
		Figures: map[string]float64{
			"commands_cut": float64(total(cut)), "renames": float64(renames), "skipped_and_counted": float64(g.Dropped["skipped"]),
			"missing_of_these": float64(r.Missing), "came_twice": float64(r.Duplicated), "of": float64(r.Appended),
		},
	})
}

// moment returns when to strike: through the agent a command takes as long as its requests, at
// most 0.7 s; in the directory some milliseconds after the program has started.
func (l *lab) moment(rnd *rand.Rand, down bool) time.Duration {
	if down || rnd.IntN(2) == 0 {
		return between(rnd, 5, 80)
	}
	return between(rnd, 50, 900)
}

func total(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}
