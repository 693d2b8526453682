//go:build linux

package crashlab

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
)

// lab is one agent through all its lives, and the account of what it did.
type lab struct {
	t *testing.T
	options
	dir      string // config, journal and the agent's output: never broken
	web      string // host:port
	recv     *receiver.Receiver
	oracle   *receiver.Oracle
	witness  *witness
	args     []string // of the agent
	cmd      *exec.Cmd
	tracer   *traced       // between the test and the agent; nil if there is none
	done     chan struct{} // closed when the process is gone
	faults   []time.Time   // when the agent was killed, its machine, or its connections
	lastSlow time.Duration // the longest delay that the receiver was told
	figures  figures
	last     status // before the load ended

	behaviour receiver.Behaviour // of the receiver when it is well
}

// figures are the worst that a lab has seen, for the results.
type figures struct {
	healed, slip time.Duration // after a fault until the next acknowledgement; of a round
	repeated     int           // faults that were late once, and therefore repeated
}

func (f figures) values(l *lab) map[string]float64 {
	return map[string]float64{
		"writes_again_within_ms": float64(f.healed.Milliseconds()), "latest_round_ms": float64(f.slip.Milliseconds()),
		"repeated_for_lateness":      float64(f.repeated),
		"noise_of_the_machine_ms":    float64(l.witness.slippedBy().Milliseconds()),
		"rounds_skipped_and_counted": float64(l.last.canary().Skipped), "samples_refused_and_counted": float64(l.last.WAL.Refused),
	}
}

// options configure a lab; zero values mean the defaults that newLab fills in.
type options struct {
	storage  string // --storage.path; default: below the lab's own directory
	wal      string // the inside of wal: {…}
	series   int    // default 20
	interval time.Duration
	targets  string                    // the entries of remote_write; default: the lab's own receiver
	more     string                    // of the configuration
	scrape   time.Duration             // the interval of what says no other, default 1 s
	global   string                    // more of global: {…}
	inside   *netns                    // where the agent runs; nil: where the test does
	also     func([]prompb.TimeSeries) // also receives the stored series; may be nil
}

// many returns a load of which nine rounds fill a segment of 128 KiB, which is what
// max_bytes: 1MiB makes of them: most of it is announcements of series.
func many(o options, interval time.Duration) options {
	o.series, o.interval = 7000, interval
	return o
}

// report is how many series a round of the runner has beside the probe's own: up and
// scrape_duration_seconds.
const report = 2

func newLab(t *testing.T, o options) *lab {
	t.Helper()
	endToEnd(t)
	l := &lab{t: t, options: o, dir: t.TempDir(), oracle: receiver.NewOracle(), behaviour: receiver.Accept}
	if l.series == 0 {
		l.series = 20
	}
	if l.interval == 0 {
		l.interval = 50 * time.Millisecond
	}
	if l.storage == "" {
		l.storage = filepath.Join(l.dir, "data")
	}
	if l.wal == "" {
		l.wal = "min_free_bytes: 1MiB"
	}
	l.witness = newWitness(t, l.journalFile())
	l.startReceiver()
	l.web = freeAddress(t)
	l.configure(true)
	l.args = []string{
		binary(t), "run", "--config.file", filepath.Join(l.dir, "agent.yaml"),
		"--storage.path", l.storage, "--web.listen-address", l.web,
	}
	t.Cleanup(func() {
		l.kill()
		if t.Failed() {
			t.Logf("the agent said last:\n%s", l.tail(60))
		}
	})
	return l
}

// startReceiver starts a receiver on an address that no other test gets while it is stopped. A process that was forked while the address was
// tried holds it until it runs its program: then another one is taken.
func (l *lab) startReceiver() {
	l.t.Helper()
	for tries := 1; ; tries++ {
		l.recv = receiver.New(receiver.Options{Sink: l.sink, Addr: freeAddress(l.t)})
		err := l.recv.Start()
		if errors.Is(err, syscall.EADDRINUSE) && tries < 10 {
			continue
		}
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(l.recv.Stop)
		return
	}
}

// sink is given what a receiver stores.
func (l *lab) sink(series []prompb.TimeSeries) {
	l.witness.arrived(series)
	l.oracle.Add(series)
	if l.also != nil {
		l.also(series)
	}
}

func (l *lab) journalFile() string { return filepath.Join(l.dir, "journal") }

// ownTarget is the entry of the lab's own receiver.
const ownTarget = `
  - name: lab
    url: %s
    remote_timeout: 5s
    queue_config: {batch_send_deadline: 100ms, min_backoff: 30ms, max_backoff: 300ms}`

// configure writes the configuration, with the canary on or off.
func (l *lab) configure(on bool) {
	l.t.Helper()
	text := fmt.Sprintf(`
global: {scrape_interval: %s, scrape_timeout: %[1]s%s}
wal: {%s}
probes:
  - {name: hwsagent, type: self, enabled: false}
  - {name: canary, type: canary, enabled: %t, series: %d, interval: %s, timeout: %[6]s, journal_file: %q}
%s
remote_write:
%s
`, cmp.Or(l.scrape, time.Second), l.global, l.wal, on, l.series, l.interval, l.journalFile(), l.more, cmp.Or(l.targets, fmt.Sprintf(ownTarget, l.recv.URL())))
	if err := os.WriteFile(filepath.Join(l.dir, "agent.yaml"), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// spawn starts the agent, or a program that starts it, and does not wait for anything.
// stdin and more, which becomes descriptor 3, may be nil.
func (l *lab) spawn(program string, args, env []string, stdin, more *os.File) {
	l.t.Helper()
	out, err := os.OpenFile(l.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	if stdin != nil {
		cmd.Stdin, cmd.ExtraFiles = stdin, []*os.File{more}
	}
	// Whatever ends the test ends the agent as well.
	cmd.SysProcAttr = dieWithParent()
	start := children.start
	if l.inside != nil {
		start = l.inside.do
	}
	if err := start(cmd.Start); err != nil {
		l.t.Fatal(err)
	}
	done := make(chan struct{})
	l.cmd, l.done = cmd, done
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(done)
	}()
}

func (l *lab) log() string { return filepath.Join(l.dir, "agent.log") }

func (l *lab) launch() {
	l.t.Helper()
	l.tracer = nil
	l.spawn(l.args[0], l.args[1:], nil, nil, nil)
}

// run starts the agent and waits until it is ready.
func (l *lab) run() {
	l.t.Helper()
	l.launch()
	l.ready()
}

func (l *lab) ready() {
	l.t.Helper()
	eventually(l.t, 20*time.Second, func() string {
		if l.gone() {
			l.t.Fatalf("the agent ended by itself: %s\n%s", l.cmd.ProcessState, l.tail(20))
		}
		if body, err := l.get("/-/ready"); err != nil {
			return fmt.Sprintf("the agent is not ready: %s %v", body, err)
		}
		return ""
	})
}

func (l *lab) gone() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// kill is SIGKILL. It returns when the process is gone.
func (l *lab) kill() {
	if l.cmd == nil {
		return
	}
	if l.tracer == nil || l.tracer.signal(syscall.SIGKILL) != nil {
		_ = l.cmd.Process.Kill() // it may be gone already
	}
	<-l.done
}

// crash is a kill as a fault of the test: it is noted.
func (l *lab) crash() {
	l.faults = append(l.faults, time.Now())
	l.kill()
}

// away takes the receiver away; what was on its way may have arrived.
func (l *lab) away() {
	l.recv.Stop()
	l.faults = append(l.faults, time.Now())
}

// terminate is SIGTERM; it says how long the agent took to end.
func (l *lab) terminate() time.Duration {
	l.t.Helper()
	began := time.Now()
	signal := func(s syscall.Signal) error { return l.cmd.Process.Signal(s) }
	if l.tracer != nil {
		signal = l.tracer.signal
	}
	if err := signal(syscall.SIGTERM); err != nil {
		l.t.Fatalf("terminate the agent: %v", err)
	}
	select {
	case <-l.done:
	case <-time.After(10 * time.Second):
		l.t.Fatalf("the agent did not end within 10 s of SIGTERM\n%s", l.tail(20))
	}
	return time.Since(began)
}

func (l *lab) tail(n int) string {
	b, err := os.ReadFile(l.log())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// acked waits until the log has acknowledged so many more rounds.
func (l *lab) acked(rounds int) {
	l.t.Helper()
	from := l.witness.lastAcked()
	eventually(l.t, 20*time.Second, func() string {
		if l.gone() {
			l.t.Fatalf("the agent ended by itself: %s\n%s", l.cmd.ProcessState, l.tail(20))
		}
		if l.witness.lastAcked() < from+uint64(rounds) {
			return "no more rounds are acknowledged"
		}
		return ""
	})
}

// arrived waits until a number that is tried from now on has arrived.
func (l *lab) arrived() {
	l.t.Helper()
	tried := l.journal().Tried
	eventually(l.t, 20*time.Second, func() string {
		if l.gone() {
			l.t.Fatalf("the agent ended by itself: %s\n%s", l.cmd.ProcessState, l.tail(20))
		}
		if l.oracle.Last() <= tried {
			return "nothing new arrives"
		}
		return ""
	})
}

// nextPort starts at a place of this process's own, below the range from which the
// system takes ports for outgoing connections.
var nextPort atomic.Int64

// freeAddress returns an unused address on loopback.
func freeAddress(t *testing.T) string {
	t.Helper()
	const from, to = 13000, 20000
	for range to - from {
		address := fmt.Sprintf("127.0.0.1:%d", from+int(nextPort.Add(1)+int64(os.Getpid()*37))%(to-from))
		if n, err := net.Listen("tcp", address); err == nil {
			n.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}
