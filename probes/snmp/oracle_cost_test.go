package snmp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/probes"
)

// uncompressed asks for text without gzip, which is no part of what is compared.
var uncompressed = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}}

// Bounds and sizes of the comparison of cost.
const (
	costOfExporter = 1. / 3 // parts of snmp_exporter's CPU time for the same readings
	costDevices    = 120    // about so many of the recordings, evenly chosen
	costRounds     = 5
	costParallel   = 4                // devices
	costInterval   = 30 * time.Second // of the steady rounds, in which each device has a moment of its own
	steadyRounds   = 3                // the first is not looked at
)

// TestOracleExporterCost compares the CPU time and the memory for readings of recorded devices in a process that keeps their probes, as the agent does,
// with those of an snmp_exporter that is asked for the same modules as often. It needs the same environment as TestOracleExporter.
//
// In steady rounds each device is read at its moment of an interval, as the agent and Prometheus do; the memory is that of looks each 50 ms. In the rounds
// after that, four devices at a time are read, one after the other; their CPU time is compared, and the peak of memory is printed.
func TestOracleExporterCost(t *testing.T) {
	recordings, program, file, text := exporterOracle(t)
	whole, _ := parseYML(file, text, func(string) bool { return true })
	var all []recorded
	for i := 0; i < len(recordings); i += max(1, len(recordings)/costDevices) {
		rec, a, err := served(recordings[i])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		if names := answered(rec, whole); len(names) > 0 {
			all = append(all, recorded{a.Addr(), names})
		}
	}
	exporter, theirPID := runExporter(t, program, text)
	reader := startReader(t)
	for _, d := range all {
		reader.say(t, d.addr+" "+file+" "+strings.Join(d.modules, ","))
	}
	compareSteady(t, reader, exporter, theirPID, all)
	var cost [2]processes
	for round := range costRounds {
		if round == 1 { // the first opens connections
			cost[0] = processes{cpuTime(t, reader.pid), cpuTime(t, theirPID)}
		}
		samples := reader.say(t, "")
		inParallel(len(all), func(i int) { all[i].print(exporter) })
		if round == costRounds-1 {
			fmt.Printf("%d devices, %s samples a round\n", len(all), samples)
		}
	}
	cost[1] = processes{cpuTime(t, reader.pid), cpuTime(t, theirPID)}
	ours, theirs := (cost[1].ours-cost[0].ours)/(costRounds-1), (cost[1].theirs-cost[0].theirs)/(costRounds-1)
	ourPeak, theirPeak := memory(t, reader.pid, "VmHWM"), memory(t, theirPID, "VmHWM")
	fmt.Printf("a round of %d devices at a time takes %s of CPU here and %s in snmp_exporter: %.2f of it; the peak of memory is %.1f and %.1f MiB: %.2f of it\n",
		costParallel, ours, theirs, ours.Seconds()/theirs.Seconds(), ourPeak, theirPeak, ourPeak/theirPeak)
	if ours.Seconds() > costOfExporter*theirs.Seconds() {
		t.Errorf("a round takes %s of CPU, want at most a third of snmp_exporter's %s", ours, theirs)
	}
}

// recorded is a device, and the modules that it answers.
type recorded struct {
	addr    string
	modules []string
}

// print makes the exporter read the device. It fetches also the error that the exporter prints for some modules.
func (d *recorded) print(exporter string) {
	for _, name := range d.modules {
		_, _ = printed(exporter, d.addr, name)
	}
}

// compareSteady reads each device at its moment of an interval, in both processes, and prints their memory.
func compareSteady(t *testing.T, reader *reader, exporter string, theirPID int, all []recorded) {
	t.Helper()
	var memories [2][2]looks // RSS and RssAnon of each
	var stop chan struct{}
	var looker sync.WaitGroup
	begin := time.Now()
	for round := range steadyRounds {
		if round == 1 {
			stop = make(chan struct{})
			looker.Go(func() {
				for {
					for i, pid := range []int{reader.pid, theirPID} {
						for k, figure := range []string{"VmRSS", "RssAnon"} {
							memories[i][k].add(memory(t, pid, figure))
						}
					}
					select {
					case <-stop:
						return
					case <-time.After(50 * time.Millisecond): // what is measured
					}
				}
			})
		}
		for i := range all {
			at := begin.Add(time.Duration(round)*costInterval + time.Duration(i)*costInterval/time.Duration(len(all)))
			time.Sleep(time.Until(at)) // what is measured
			reader.say(t, strconv.Itoa(i))
			all[i].print(exporter)
		}
	}
	close(stop)
	looker.Wait()
	for k, figure := range []string{"resident memory", "anonymous memory"} {
		ours, theirs := memories[0][k], memories[1][k]
		fmt.Printf("%d devices each %s: %s is %.1f MiB here (at most %.1f) and %.1f MiB in snmp_exporter (at most %.1f): %.2f of it\n",
			len(all), costInterval, figure, ours.mean(), ours.most, theirs.mean(), theirs.most, ours.mean()/theirs.mean())
	}
}

// looks are what several looks at one figure have found.
type looks struct {
	n         int
	sum, most float64
}

func (l *looks) add(v float64) { l.n, l.sum, l.most = l.n+1, l.sum+v, max(l.most, v) }

func (l *looks) mean() float64 { return l.sum / float64(l.n) }

// processes are a figure of both.
type processes struct{ ours, theirs time.Duration }

// inParallel calls f for 0 to n-1.
func inParallel(n int, f func(i int)) {
	work := make(chan int)
	var workers sync.WaitGroup
	for range costParallel {
		workers.Go(func() {
			for i := range work {
				f(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	workers.Wait()
}

// reader is a process that keeps probes.
type reader struct {
	pid int
	in  io.Writer
	out *bufio.Reader
}

// startReader runs the test program again as a reader: TestReaderOfOracle.
func startReader(t *testing.T) *reader {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestReaderOfOracle$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), "ORACLE_READER=1", "GOGC=20") // the agent's gcPercent
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait(); uncompressed.CloseIdleConnections() })
	return &reader{cmd.Process.Pid, stdin, bufio.NewReader(stdout)}
}

// say sends a line and returns the one that answers it.
func (r *reader) say(t *testing.T, line string) string {
	t.Helper()
	if _, err := fmt.Fprintln(r.in, line); err != nil {
		t.Fatal(err)
	}
	answer, err := r.out.ReadString('\n')
	if err != nil {
		t.Fatalf("ask the reader: %v", err)
	}
	return strings.TrimSpace(answer)
}

// TestReaderOfOracle is the process of startReader. A line "address file modules" is answered when there is a probe of that device. A number is answered
// when that probe was read once, an empty line when all probes were, with the number of samples. It ends with its standard input.
func TestReaderOfOracle(t *testing.T) {
	if os.Getenv("ORACLE_READER") == "" {
		t.Skip("is a part of TestOracleExporterCost: run by hand, see internal/tools/README.md")
	}
	plans, all := new(Plans), []*Probe{}
	var rounds sync.Pool // as the agent's runner has it
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		if len(words) == 3 {
			p, err := probeOf(plans, words[0], words[1], words[2])
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			all = append(all, p)
			fmt.Println("ready")
			continue
		}
		plans = nil // the agent keeps the probes only
		read := func(i int) int {
			r, ok := rounds.Get().(*probes.Round)
			if !ok {
				r = probes.NewRound(0)
			}
			defer rounds.Put(r)
			r.Reset(0)
			if err := all[i].Collect(context.Background(), r); err != nil {
				t.Error(err)
			}
			return len(r.Samples())
		}
		if len(words) == 1 {
			i, err := strconv.Atoi(words[0])
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(read(i))
			continue
		}
		counts := make([]int, len(all))
		inParallel(len(all), func(i int) { counts[i] = read(i) })
		sum := 0
		for _, n := range counts {
			sum += n
		}
		fmt.Println(sum)
	}
}

// cpuTime is the CPU time of a process so far: proc(5).
func cpuTime(t *testing.T, pid int) (cpu time.Duration) {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	for _, f := range strings.Fields(rest)[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		cpu += time.Duration(n) * 10 * time.Millisecond
	}
	return cpu
}

// memory is a figure of a process's memory, in MiB: VmRSS is what it has now, RssAnon the part of it that is of no file, VmHWM the most that it had. proc(5).
func memory(t *testing.T, pid int, name string) float64 {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Error(err)
	}
	_, figure, _ := strings.Cut(string(status), name+":")
	var kib float64
	if _, err := fmt.Sscan(figure, &kib); err != nil {
		t.Errorf("read %s: %v", name, err)
	}
	return kib / 1024
}
