//go:build linux

package crashlab

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/results"
)

// weather changes what the receiver does, at random: well, away, slow, refusing, silent.
func (l *lab) weather(rnd *rand.Rand) string {
	l.t.Helper()
	kind := rnd.IntN(8)
	slow := between(rnd, 20, 600)
	if kind == 4 {
		l.away()
		return "away"
	}
	if err := l.recv.Start(); err != nil {
		l.t.Fatal(err)
	}
	switch kind {
	case 5:
		l.lastSlow = max(l.lastSlow, slow)
		l.recv.Behave(receiver.Slow(slow))
		return "slow"
	case 6:
		l.recv.Behave(receiver.Refuse(http.StatusServiceUnavailable, "busy"))
		return "busy"
	case 7:
		l.recv.Behave(receiver.Hang)
		return "silent"
	default:
		l.recv.Behave(receiver.Accept)
		return "well"
	}
}

// TestRandomKills kills the agent at random moments of its life, its first milliseconds
// included, while the receiver comes and goes. Nothing acknowledged is lost.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"1s", "always"} {
		t.Run("sync="+sync, func(t *testing.T) {
			t.Parallel()
			rnd := seeded(t)
			// A small log: its segments are few KiB, so that they are sealed and removed as well.
			l := newLab(t, options{wal: "sync: " + sync + ", max_bytes: 64MiB, min_free_bytes: 1MiB"})
			kills := amount(15, 500)
			before := 0 // kills before the agent was ready
			for range kills {
				l.weather(rnd)
				l.launch()
				if rnd.IntN(4) == 0 {
					time.Sleep(between(rnd, 0, 120)) // the fault's own schedule, as below
					before++
				} else {
					l.ready()
					time.Sleep(between(rnd, 10, 900))
				}
				if l.gone() {
					t.Fatalf("the agent ended by itself: %s\n%s", l.cmd.ProcessState, l.tail(20))
				}
				l.crash()
				l.offline()
			}
			l.run()
			l.acked(5)
			r, g := l.settle()
			t.Logf("%d kills, %d of them about the start", kills, before)
			l.complete(r, g)
			l.sound(r, g)
			results.Add(t, results.Line{
				What: "kill -9 at random, sync " + sync, Count: kills, Lost: int(r.Missing), Seed: seed(t),
				Figures: map[string]float64{"about_the_start": float64(before), "came_twice": float64(r.Duplicated), "of": float64(r.Appended)},
			})
		})
	}
}

// TestKillInReload kills the agent at random moments of a reload that changes its target,
// which is closed and opened again.
func TestKillInReload(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"1s", "always"} {
		t.Run("sync="+sync, func(t *testing.T) {
			t.Parallel()
			rnd := seeded(t)
			l := newLab(t, options{wal: "sync: " + sync + ", max_bytes: 64MiB, min_free_bytes: 1MiB"})
			l.run()
			l.acked(3)
			// The shortest of some: the first may have waited for the machine.
			took := min(l.reload("max_backoff: 400ms"), l.reload("max_backoff: 401ms"), l.reload("max_backoff: 402ms"))
			enough, kills := amount(4, 100), 0
			inside := 0 // kills that no reload had ended before
			for ; kills < enough || inside == 0 && kills < 5*enough; kills++ {
				l.weather(rnd)
				l.acked(1 + rnd.IntN(10))
				ended := make(chan struct{})
				cmd := l.reloadCommand(fmt.Sprintf("max_backoff: %dms", 500+kills))
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				go func() {
					_ = cmd.Wait() // it may fail, as the agent is killed
					close(ended)
				}()
				time.Sleep(time.Duration(rnd.Int64N(int64(took)))) // the fault's own schedule
				select {
				case <-ended:
				default:
					inside++
				}
				l.crash()
				<-ended
				l.offline()
				l.run()
			}
			l.acked(5)
			r, g := l.settle()
			t.Logf("%d kills, %d of them before the reload's end; a reload takes %s", kills, inside, took)
			if inside == 0 {
				t.Error("no kill was within a reload")
			}
			l.complete(r, g)
			l.sound(r, g)
			results.Add(t, results.Line{
				What: "kill -9 in a reload, sync " + sync, Count: kills, Lost: int(r.Missing), Seed: seed(t),
				Figures: map[string]float64{"before_its_end": float64(inside), "came_twice": float64(r.Duplicated)},
			})
		})
	}
}

// reload has the agent take up a changed target, and says how long that takes.
func (l *lab) reload(setting string) time.Duration {
	l.t.Helper()
	began := time.Now()
	if out, err := l.reloadCommand(setting).CombinedOutput(); err != nil {
		l.t.Fatalf("reload: %v\n%s", err, out)
	}
	return time.Since(began)
}

// reloadCommand changes the target's setting of that name and makes `hwsagent reload`.
func (l *lab) reloadCommand(setting string) *exec.Cmd {
	l.t.Helper()
	file := filepath.Join(l.dir, "agent.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	name, _, _ := strings.Cut(setting, ":")
	changed := regexp.MustCompile(name+`: \w+`).ReplaceAll(text, []byte(setting))
	if bytes.Equal(changed, text) {
		l.t.Fatalf("the configuration has no %s to change", name)
	}
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		l.t.Fatal(err)
	}
	return exec.Command(l.args[0], "reload", "--config.file", file, "--storage.path", l.storage)
}

// underWay is how long before a kill a request may have begun to arrive that is sent again: its answer, and what the sender makes
// of that, take their time.
const underWay = 150 * time.Millisecond

// TestKillSendsAgainOnlyWhatWasUnderWay kills an agent that delivers 10,000 samples a second: nothing comes twice but what
// was on its way at that moment.
func TestKillSendsAgainOnlyWhatWasUnderWay(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	l := newLab(t, options{series: 500, interval: 50 * time.Millisecond})
	kills := amount(8, 100)
	for range kills {
		l.run()
		time.Sleep(between(rnd, 1500, 2600)) // the fault's own schedule
		l.crash()
	}
	l.run()
	l.acked(5)
	r, g := l.settle()
	l.complete(r, g)
	var suspects uint64
	window := underWay + 2*l.witness.slippedBy()
	for _, s := range l.recv.Seen() {
		for _, f := range l.faults {
			if s.At.After(f.Add(-window)) && s.At.Before(f.Add(pace)) {
				suspects += uint64(s.Samples)
				break
			}
		}
	}
	t.Logf("%d kills at %d samples/s: %d samples came twice, %.0f a kill; %d arrived within %s of a kill", kills, 500*20, r.Duplicated, float64(r.Duplicated)/float64(kills), suspects, window)
	if r.Duplicated > suspects {
		t.Errorf("%d samples came twice; only %d arrived within %s before a kill", r.Duplicated, suspects, window)
	}
	results.Add(t, results.Line{
		What: "kill -9 at 10,000 samples a second", Count: kills, Lost: int(r.Missing), Seed: seed(t),
		Figures: map[string]float64{"came_twice": float64(r.Duplicated), "of": float64(r.Appended)},
	})
}
