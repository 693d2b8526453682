//go:build linux

package crashlab

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hwsagent/agent/demo/receiver"
)

// The load: 50,000 series in all; 10,000 samples a second when each comes every 5 s.
const (
	sizeProbes   = 25
	sizeSeries   = 2_000 // of each probe
	liveInterval = 5 * time.Second
	liveRate     = sizeProbes * sizeSeries / 5
)

// sized is an agent with two targets: late, which is away until the test starts it, and steady, which is always there.
type sized struct {
	*lab
	late, steady *tally
}

// newSized returns the agent and its receivers. maxBytes is the log's budget.
func newSized(t *testing.T, maxBytes int64) *sized {
	t.Helper()
	s := &sized{
		lab:  &lab{t: t, dir: t.TempDir()},
		late: newTally(t, sizeProbes, sizeSeries), steady: newTally(t, sizeProbes, sizeSeries),
	}
	s.storage, s.web = filepath.Join(s.dir, "data"), freeAddress(t)
	s.wal = fmt.Sprintf("max_bytes: %d, min_free_bytes: 1MiB", maxBytes)
	s.args = []string{
		binary(t), "run", "--config.file", filepath.Join(s.dir, "agent.yaml"),
		"--storage.path", s.storage, "--web.listen-address", s.web,
	}
	s.steady.up()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the agent said last:\n%s", s.tail(40))
		}
	})
	return s
}

// load writes the configuration: how often each series comes, 0 for not at all, and
// whether steady takes the first probe only.
func (s *sized) load(interval time.Duration, firstOnly bool) {
	s.t.Helper()
	on := interval > 0
	if !on {
		interval = liveInterval
	}
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: 5s, scrape_timeout: 5s}\nwal: {%s}\nprobes:\n  - {name: hwsagent, type: self, enabled: false}\n", s.wal)
	for i := range sizeProbes {
		fmt.Fprintf(&b, "  - {name: canary%d, type: canary, enabled: %t, series: %d, noise: true, interval: %s, timeout: %[4]s, journal_file: %q}\n",
			i, on, sizeSeries, interval, s.journalOf(i))
	}
	b.WriteString("remote_write:\n")
	for name, c := range map[string]*tally{"late": s.late, "steady": s.steady} {
		fmt.Fprintf(&b, "  - name: %s\n    url: %s\n    queue_config: {batch_send_deadline: 200ms, max_backoff: 1s}\n", name, c.url())
		if name == "steady" && firstOnly {
			b.WriteString("    write_relabel_configs: [{source_labels: [job], regex: canary0, action: keep}]\n")
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, "agent.yaml"), []byte(b.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// reload makes the running agent take the configuration.
func (s *sized) reload() {
	s.t.Helper()
	out, err := exec.Command(s.args[0], "reload", "--storage.path", s.storage).CombinedOutput()
	if err != nil {
		s.t.Fatalf("reload: %v\n%s", err, out)
	}
}

func (s *sized) journalOf(probe int) string {
	return filepath.Join(s.dir, fmt.Sprintf("journal%d", probe))
}

func (s *sized) journals() []receiver.Journal {
	s.t.Helper()
	var all []receiver.Journal
	for i := range sizeProbes {
		j, err := receiver.ReadJournal(s.journalOf(i))
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, j)
	}
	return all
}

// sizedStatus is what these tests read of the status.
type sizedStatus struct {
	WAL struct {
		Segments int
		Refused  uint64 `json:"samples_refused"`
	}
	Targets []sizedTarget
	Probes  []probe
}

type sizedTarget struct {
	Name, State, Why string
	PendingBytes     int64     `json:"pending_bytes"`
	OldestPending    time.Time `json:"oldest_pending"`
	Ledger           ledger
}

// parse reads a status and checks the ledgers.
func (s *sized) parse(body []byte) sizedStatus {
	s.t.Helper()
	var st sizedStatus
	if err := json.Unmarshal(body, &st); err != nil {
		s.t.Fatalf("status: %v\n%s", err, body)
	}
	for _, tg := range st.Targets {
		if wrong := tg.Ledger.addsUp(); wrong != "" {
			s.t.Errorf("target %s: %s", tg.Name, wrong)
		}
	}
	return st
}

// now returns the status of the running agent.
func (s *sized) now() sizedStatus {
	s.t.Helper()
	body, err := s.get("/api/v1/status")
	if err != nil {
		s.t.Fatalf("status: %v\n%s", err, s.tail(20))
	}
	return s.parse([]byte(body))
}

func (st sizedStatus) target(name string) sizedTarget {
	for _, tg := range st.Targets {
		if tg.Name == name {
			return tg
		}
	}
	return sizedTarget{}
}

// skipped returns how many rounds of the probes did not begin in time.
func (st sizedStatus) skipped() (n uint64) {
	for _, p := range st.Probes {
		n += p.Skipped
	}
	return n
}

// start starts the agent and says how long that took until it was ready.
func (s *sized) start() time.Duration {
	s.t.Helper()
	began := time.Now()
	s.launch()
	s.ready()
	return time.Since(began)
}

// forget drops the log's files from the page cache, so that whatever reads them has to
// ask the disk, as after a restart of the machine.
func (s *sized) forget() {
	s.t.Helper()
	dir := filepath.Join(s.storage, "wal")
	entries, err := os.ReadDir(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			s.t.Fatal(err)
		}
		err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		f.Close()
		if err != nil {
			s.t.Fatalf("drop %s from the page cache: %v", e.Name(), err)
		}
	}
}

// command runs a command of the binary on the agent's directory: its output, how long it
// took and the most memory that it had.
func (s *sized) command(args ...string) (out []byte, took time.Duration, memory int64) {
	s.t.Helper()
	began := time.Now()
	cmd := exec.Command(s.args[0], append(args, "--storage.path", s.storage)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	const notRunning = 7
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != notWell && code != notRunning {
		s.t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	return out, time.Since(began), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

// page returns how long the agent's web server takes for a page.
func (s *sized) page(path string) (string, time.Duration) {
	s.t.Helper()
	began := time.Now()
	body, err := s.get(path)
	if err != nil {
		s.t.Fatalf("get %s: %v", path, err)
	}
	return body, time.Since(began)
}

// process is what a process takes at a moment: bytes of memory, now and at most so far,
// files and goroutines.
type process struct {
	rss, peak         int64
	files, goroutines int
}

func (s *sized) process() process {
	s.t.Helper()
	var p process
	proc := fmt.Sprintf("/proc/%d/", s.cmd.Process.Pid)
	text, err := os.ReadFile(proc + "status")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64) // in kB where it matters
		switch f[0] {
		case "VmRSS:":
			p.rss = n << 10
		case "VmHWM:":
			p.peak = n << 10
		}
	}
	entries, err := os.ReadDir(proc + "fd")
	if err != nil {
		s.t.Fatal(err)
	}
	p.files = len(entries)
	body, _ := s.page("/metrics")
	for line := range strings.Lines(body) {
		if n, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			p.goroutines, _ = strconv.Atoi(strings.TrimSpace(n))
		}
	}
	return p
}

func (p process) String() string {
	return fmt.Sprintf("RSS %.1f MB, at most %.1f MB, %d files, %d goroutines", mb(p.rss), mb(p.peak), p.files, p.goroutines)
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }

// worst has the greatest of each.
func (p process) worst(q process) process {
	return process{max(p.rss, q.rss), max(p.peak, q.peak), max(p.files, q.files), max(p.goroutines, q.goroutines)}
}

// roomFor skips the test if the disk has not that many bytes for it.
func roomFor(t *testing.T, dir string, bytes int64) {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < bytes {
		cannot(t, fmt.Sprintf("a backlog needs %d GB free below %s, there are %d", bytes/1e9, dir, free/1e9))
	}
}

// settle ends the load and waits until both targets have everything.
func (s *sized) settle(limit time.Duration) sizedStatus {
	s.t.Helper()
	s.load(0, false)
	s.reload()
	var st sizedStatus
	eventually(s.t, limit, func() string {
		if s.gone() {
			s.t.Fatalf("the agent ended by itself: %s\n%s", s.cmd.ProcessState, s.tail(20))
		}
		st = s.now()
		for _, tg := range st.Targets {
			if tg.Ledger.Pending > 0 {
				return fmt.Sprintf("%s: %d samples pending, %s: %s", tg.Name, tg.Ledger.Pending, tg.State, tg.Why)
			}
		}
		return ""
	})
	return st
}
