//go:build linux

package crashlab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

// memoryGroup is a control group of the test's own whose memory can run out (Linux,
// Documentation/admin-guide/cgroup-v1/memory.rst).
type memoryGroup struct {
	t   *testing.T
	dir string
}

// newMemoryGroup skips the test where control groups of version 1 cannot be made, which
// is so in most containers: CI too.
func newMemoryGroup(t *testing.T, limit int) *memoryGroup {
	t.Helper()
	endToEnd(t)
	dir, err := os.MkdirTemp("/sys/fs/cgroup/memory", "hwsagent-crashlab-")
	if err != nil {
		t.Skipf("needs a control group for memory, version 1: %v", err)
	}
	g := &memoryGroup{t: t, dir: dir}
	t.Cleanup(func() {
		eventually(t, 5*time.Second, func() string {
			if err := os.Remove(dir); err != nil {
				return "remove the control group: " + err.Error()
			}
			return ""
		})
	})
	if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), fmt.Append(nil, limit), 0o600); err != nil {
		t.Skipf("cannot limit memory: %v", err)
	}
	return g
}

// kills returns how many processes of the group the kernel has killed for want of memory.
func (g *memoryGroup) kills() int {
	g.t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.oom_control"))
	if err != nil {
		g.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var n int
		if _, err := fmt.Sscanf(line, "oom_kill %d", &n); err == nil {
			return n
		}
	}
	g.t.Fatalf("the kernel does not count its kills: %s", text)
	return 0
}

// inside returns a shell command that runs another within the group. Of several the kernel
// kills the likeliest first: 1000 outweighs the whole limit, 0 says nothing.
func (g *memoryGroup) inside(likely int, command string) []string {
	return []string{"-c", fmt.Sprintf(`echo $$ >%s/cgroup.procs && echo %d >/proc/self/oom_score_adj && %s`, g.dir, likely, command)}
}

// exhaust has another process of the group take more memory than there is, until the
// kernel has killed the agent.
func (g *memoryGroup) exhaust(gone <-chan struct{}) {
	g.t.Helper()
	// tail keeps all of a line that does not end.
	hog := exec.Command("sh", g.inside(0, "head -c 1G /dev/zero | tail")...)
	hog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := hog.Start(); err != nil {
		g.t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		g.t.Error("the kernel killed no process within 20 s")
	}
	_ = syscall.Kill(-hog.Process.Pid, syscall.SIGKILL) // the shell, head and tail
	_ = hog.Wait()                                      // it was killed, by whomever
}

// TestOutOfMemory has the kernel kill the agent because memory ran out, at random moments.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	g := newMemoryGroup(t, 128<<20)
	l := newLab(t, options{wal: "max_bytes: 64MiB, min_free_bytes: 1MiB"})
	kills := amount(2, 30)
	for range kills {
		l.weather(rnd)
		before := g.kills()
		l.tracer = nil
		l.spawn("sh", g.inside(1000, "exec "+strings.Join(l.args, " ")), nil, nil, nil)
		l.ready()
		time.Sleep(between(rnd, 10, 900)) // the fault's own schedule
		g.exhaust(l.done)
		l.crash() // it is noted; there is nothing left to kill
		if g.kills() == before {
			t.Fatalf("the kernel says that it killed no process; the agent: %s\n%s", l.cmd.ProcessState, l.tail(20))
		}
		l.offline()
	}
	l.run()
	l.acked(5)
	r, gl := l.settle()
	t.Logf("%d kills for want of memory", kills)
	l.complete(r, gl)
	l.sound(r, gl)
	results.Add(t, results.Line{
		What: "killed by the kernel for want of memory", Count: kills, Lost: int(r.Missing), Seed: seed(t),
		Figures: map[string]float64{"came_twice": float64(r.Duplicated)},
	})
}
