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
	costParallel   = 4 // devices
)

// TestOracleExporterCost compares the CPU time for readings of recorded devices in a process that keeps their probes, as the agent does, with that of an
// snmp_exporter that is asked for the same modules as often. It also prints peak memory, which does not measure a reading: between rounds the exporter
// keeps no state of a device, and this process a probe with its socket for each. It needs the same environment as TestOracleExporter.
func TestOracleExporterCost(t *testing.T) {
	recordings, program, file, text := exporterOracle(t)
	whole, _ := parseYML(file, text, func(string) bool { return true })
	type device struct {
		addr    string
		modules []string
	}
	var all []device
	for i := 0; i < len(recordings); i += max(1, len(recordings)/costDevices) {
		rec, a, err := served(recordings[i])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		if names := answered(rec, whole); len(names) > 0 {
			all = append(all, device{a.Addr(), names})
		}
	}
	exporter, theirPID := runExporter(t, program, text)
	reader := startReader(t)
	for _, d := range all {
		reader.say(t, d.addr+" "+file+" "+strings.Join(d.modules, ","))
	}
	var cost [2]processes
	for round := range costRounds {
		if round == 1 { // the first reads files and opens sockets
			cost[0] = processes{cpuTime(t, reader.pid), cpuTime(t, theirPID)}
		}
		samples := reader.say(t, "")
		inParallel(len(all), func(i int) {
			for _, name := range all[i].modules {
				_, _ = printed(exporter, all[i].addr, name) // its cost counts also where it prints an error
			}
		})
		if round == costRounds-1 {
			fmt.Printf("%d devices, %s samples a round\n", len(all), samples)
		}
	}
	cost[1] = processes{cpuTime(t, reader.pid), cpuTime(t, theirPID)}
	ours, theirs := (cost[1].ours-cost[0].ours)/(costRounds-1), (cost[1].theirs-cost[0].theirs)/(costRounds-1)
	ourPeak, theirPeak := memoryPeak(t, reader.pid), memoryPeak(t, theirPID)
	fmt.Printf("a round takes %s of CPU here and %s in snmp_exporter: %.2f of it; the peak of memory is %d and %d MiB: %.2f of it\n",
		ours, theirs, ours.Seconds()/theirs.Seconds(), ourPeak>>10, theirPeak>>10, float64(ourPeak)/float64(theirPeak))
	if ours.Seconds() > costOfExporter*theirs.Seconds() {
		t.Errorf("a round takes %s of CPU, want at most a third of snmp_exporter's %s", ours, theirs)
	}
}

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

// TestReaderOfOracle is the process of startReader. A line "address file modules" is answered when there is a probe of that device, an empty line when
// all probes were read once, with the number of samples. It ends with its standard input.
func TestReaderOfOracle(t *testing.T) {
	if os.Getenv("ORACLE_READER") == "" {
		t.Skip("is run by TestOracleExporterCost")
	}
	plans, all := modulePlans{}, []*Probe{}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		if len(words) == 3 {
			p, err := plans.probe(words[0], words[1], words[2])
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			all = append(all, p)
			fmt.Println("ready")
			continue
		}
		counts := make([]int, len(all))
		inParallel(len(all), func(i int) {
			r := probes.NewRound(0)
			if err := all[i].Collect(context.Background(), r); err != nil {
				t.Error(err)
			}
			counts[i] = len(r.Samples())
		})
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

// memoryPeak is the most memory that a process had, in KiB: proc(5).
func memoryPeak(t *testing.T, pid int) (rss int) {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(peak, &rss); err != nil {
		t.Fatalf("read the peak of memory: %v", err)
	}
	return rss
}
