//go:build linux

package crashlab

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hwsagent/internal/tools/results"
)

// exporterEnv makes this program an exporter: where it listens, and the file for its number.
const exporterEnv = "HWSAGENT_LAB_EXPORTER"

// runExporter answers each scrape with a greater number, until it is killed.
func runExporter(spec string) int {
	address, file, _ := strings.Cut(spec, ",")
	if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err := http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now().UnixMilli()
		for part := range parts {
			fmt.Fprintf(w, "%s{%s=\"%d\"} %d\n", toldName, saidPart, part, now)
		}
	}))
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// wild is a command of which every fourth run succeeds. The others print a part, and hang with a child, are killed, or
// end with something that is not a metric. %[1]s is a directory, %[2]s how long the child sleeps, a unique duration.
const wild = `read n <%[1]s/n
n=$((n+1))
echo $n >%[1]s/n.new && mv %[1]s/n.new %[1]s/n
echo "told{part=\"0\"} $n"
case $((n %% 4)) in
1) sleep %[2]s & sleep %[2]s ;;
2) kill -9 $$ ;;
3) echo 'told{part=' ;;
*) echo "told{part=\"1\"} $n"; echo "told{part=\"2\"} $n" ;;
esac
`

// TestInputsChildren: commands that hang, are killed or print half of their output, and an exporter that is killed,
// then stopped (SIGSTOP), then loses its agent. No output is stored in part, up reports each failure, probes continue,
// and no process is left.
func TestInputsChildren(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	dir, account := t.TempDir(), newIntake()
	script, runs, pid := filepath.Join(dir, "wild"), filepath.Join(dir, "n"), filepath.Join(dir, "pid")
	sleeps := fmt.Sprintf("9%07d", os.Getpid())
	for file, text := range map[string]string{script: fmt.Sprintf(wild, dir, sleeps), runs: "0\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t, options{interval: 100 * time.Millisecond, also: account.add, more: fmt.Sprintf(`
  - {name: wild, type: exec, command: [/bin/sh, %q], interval: 300ms, timeout: 200ms}
  - name: exporter
    type: exec
    command: [%q]
    env: {%s: "127.0.0.1:{{port}},%s"}
    scrape_url: "http://127.0.0.1:{{port}}/metrics"
    interval: 200ms
    timeout: 150ms`, script, own, exporterEnv, pid)})
	t.Cleanup(func() { killNamed(sleeps) })
	number := func(file string) int {
		text, _ := os.ReadFile(file) // it may be written this moment
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
	is := func(job string, well bool, what string) {
		t.Helper()
		since := time.Now()
		eventually(t, 30*time.Second, func() string {
			if account.up(job, since, well) == 0 {
				return what
			}
			return ""
		})
	}
	lives, most, orphans := amount(2, 12), 0, 0
	for range lives {
		l.run()
		is("exporter", true, "the exporter is not scraped")
		victim := number(pid)
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
			victim = number(pid)
			if err := syscall.Kill(victim, signal); err != nil {
				t.Fatalf("the exporter (%d): %v", victim, err)
			}
			is("exporter", false, "the exporter has got "+signal.String()+", and is up")
			if signal == syscall.SIGSTOP {
				if err := syscall.Kill(victim, syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
			}
			is("exporter", true, "the exporter is not scraped again")
		}
		victim = number(pid)
		upTo := number(runs) + 8
		eventually(t, 30*time.Second, func() string {
			most = max(most, len(named(sleeps)))
			if n := number(runs); n < upTo {
				return fmt.Sprintf("the command has run %d times of %d", n, upTo)
			}
			return ""
		})
		l.crash()
		eventually(t, 10*time.Second, func() string {
			if err := syscall.Kill(victim, 0); !errors.Is(err, syscall.ESRCH) {
				return fmt.Sprintf("the agent is gone, and its exporter (%d) is still there", victim)
			}
			return ""
		})
		orphans += killNamed(sleeps) // what a command that was killed with its agent had started
		l.offline()
	}
	l.run()
	l.acked(5)
	is("exporter", true, "the exporter is not scraped")
	victim := number(pid)
	l.more = ""
	r, g := l.settle()
	if err := syscall.Kill(victim, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the probe is gone, and its exporter (%d) is still there", victim)
	}
	left := named(sleeps)
	if len(left) > 0 {
		t.Errorf("the probe is gone, and has left processes: %v", left)
	}
	if r.Missing != 0 || g.Lost != 0 {
		t.Errorf("%d acknowledged samples are missing; the ledger: %+v", r.Missing, g)
	}
	l.sound(r, g)
	if most > 2 {
		t.Errorf("%d processes of a command that hangs were there at a time", most)
	}
	half, well := 0, map[string]int{}
	for _, job := range []string{"wild", "exporter"} {
		rounds := account.sources[job]
		for _, at := range slices.Sorted(maps.Keys(rounds)) {
			n, whole := rounds[at].whole()
			switch {
			case !whole || job == "wild" && n%4 != 0:
				half++
				t.Errorf("%s: at %d it was taken in part: %+v", job, at, *rounds[at])
			case n > 0:
				well[job]++
			}
		}
		if well[job] < lives {
			t.Errorf("%s was well %d times only", job, well[job])
		}
	}
	ran := number(runs)
	if bad := account.up("wild", time.Time{}, false); bad < ran/2 {
		t.Errorf("of %d runs 3 in 4 were spoilt, %d are told", ran, bad)
	}
	t.Logf("%d runs, %v rounds taken, at most %d processes of a run that hung, %d outlived a kill of the agent", ran, well, most, orphans)
	results.Add(t, results.Line{
		What: "inputs: commands hang, are killed or print half, exporters are killed and stopped", Count: ran*3/4 + 2*lives, Lost: int(r.Missing),
		Figures: map[string]float64{
			"taken_in_part": float64(half), "processes_left": float64(len(left)), "outlived_a_kill_of_the_agent": float64(orphans), "kill_-9_of_the_agent": float64(lives), "processes_at_most": float64(most),
		},
	})
}

// named returns the processes that have that argument.
func named(argument string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !slices.ContainsFunc(bytes.Split(text, []byte{0}), func(a []byte) bool { return string(a) == argument }) {
			continue // it has ended, or is another
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func killNamed(argument string) int {
	all := named(argument)
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	return len(all)
}
