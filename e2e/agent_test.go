package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
)

// agent is the built binary, run as a user runs it.
type agent struct {
	*process
	dir     string // config file, storage and what the config names
	web     string // host:port
	storage string
	config  string
}

// status is what these tests read of GET /api/v1/status.
type status struct {
	Config struct {
		ReloadError string `json:"reload_error"`
	}
	WAL struct {
		Appended uint64 `json:"samples_appended"`
		Refused  uint64 `json:"samples_refused"`
	} `json:"wal"`
	Targets []target
	Probes  []struct {
		Name, State string
		LastError   string `json:"last_error"`
	}
}

type target struct {
	Name, State, Why string
	LagSeconds       float64 `json:"lag_seconds"`
	PendingSamples   uint64  `json:"pending_samples"`
	MissedSamples    uint64  `json:"missed_samples"`
	LastError        string  `json:"last_error"`
	Muted            []struct {
		Reason, Text, Words, Example string
		Series                       int
		Since                        time.Time
	}
	DeadLetters int `json:"dead_letters"`
	Ledger      ledger
}

type ledger struct {
	Appended, Delivered, Filtered, Lost, Pending uint64
	Dropped                                      map[string]uint64
	Balanced                                     bool
}

// UnmarshalJSON also counts what may be stored as lost: the tests allow it only where they say so.
func (g *ledger) UnmarshalJSON(b []byte) error {
	type plain ledger
	err := json.Unmarshal(b, (*plain)(g))
	g.Lost += g.Dropped["unconfirmed"]
	return err
}

// newAgent prepares an agent without starting it. In the config, DIR stands for the
// directory of its files.
func newAgent(t *testing.T, config string) *agent {
	t.Helper()
	dir := t.TempDir()
	a := &agent{
		dir: dir, web: fmt.Sprintf("127.0.0.1:%d", freePort(t)),
		storage: filepath.Join(storageDir(t), "data"), config: filepath.Join(dir, "agent.yaml"),
	}
	a.process = &process{t: t, name: binary(t), log: filepath.Join(dir, "agent.log"), args: []string{
		"run", "--config.file", a.config, "--storage.path", a.storage, "--web.listen-address", a.web,
	}}
	a.configure(config)
	return a
}

// startAgent starts an agent and waits until it is ready.
func startAgent(t *testing.T, config string) *agent {
	t.Helper()
	a := newAgent(t, config)
	a.run()
	t.Cleanup(func() {
		a.kill()
		if t.Failed() {
			t.Logf("the agent (last pid %d) said:\n%s", a.cmd.Process.Pid, a.tail(80))
		}
	})
	return a
}

// run starts the process, again if need be, and waits until it is ready.
func (a *agent) run() {
	a.t.Helper()
	a.start()
	eventually(a.t, 20*time.Second, func() string {
		if gone := a.ended(); gone != "" {
			a.t.Fatalf("%s\n%s", gone, a.tail(20))
		}
		code, body, err := a.ask(http.MethodGet, "/-/ready")
		if err != nil || code != http.StatusOK {
			return fmt.Sprintf("the agent is not ready: %d %s %v", code, body, err)
		}
		return ""
	})
}

func (a *agent) configure(config string) {
	a.t.Helper()
	// A word of its own: the text of a random key may contain the three letters.
	writeFile(a.t, a.config, regexp.MustCompile(`\bDIR\b`).ReplaceAllLiteralString(config, a.dir))
}

// ask asks the agent's own web server.
func (a *agent) ask(method, path string) (code int, body string, err error) {
	req, err := http.NewRequestWithContext(a.t.Context(), method, "http://"+a.web+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := httpClient(a.t).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// reload loads a new configuration.
func (a *agent) reload(config string) {
	a.t.Helper()
	a.configure(config)
	if code, body, err := a.ask(http.MethodPost, "/-/reload"); err != nil || code/100 != 2 {
		a.t.Fatalf("reload: %d %s %v", code, body, err)
	}
}

func (a *agent) status() status {
	a.t.Helper()
	code, body, err := a.ask(http.MethodGet, "/api/v1/status")
	if err != nil || code != http.StatusOK {
		a.t.Fatalf("status: %d %s %v (%s)", code, body, err, a.ended())
	}
	var s status
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		a.t.Fatalf("status: %v\n%s", err, body)
	}
	return s
}

// target returns one target's status. It always checks that the ledger adds up.
func (a *agent) target(name string) target {
	a.t.Helper()
	for _, tg := range a.status().Targets {
		if tg.Name != name {
			continue
		}
		l, sum := tg.Ledger, tg.Ledger.Delivered+tg.Ledger.Filtered+tg.Ledger.Pending
		for _, n := range l.Dropped {
			sum += n
		}
		if !l.Balanced || l.Appended != sum {
			a.t.Errorf("the ledger of %s does not add up: %+v", name, l)
		}
		return tg
	}
	a.t.Fatalf("the status has no target %s", name)
	return target{}
}

// drained waits until a target has nothing pending.
func (a *agent) drained(limit time.Duration, name string) target {
	a.t.Helper()
	var tg target
	eventually(a.t, limit, func() string {
		if gone := a.ended(); gone != "" {
			a.t.Fatal(gone)
		}
		if tg = a.target(name); tg.PendingSamples > 0 {
			return fmt.Sprintf("target %s: %d samples pending, %s: %s %s", name, tg.PendingSamples, tg.State, tg.Why, tg.LastError)
		}
		return ""
	})
	return tg
}

// rss returns the process's resident memory in bytes.
func (a *agent) rss() uint64 {
	a.t.Helper()
	return a.memory("VmRSS")
}

// memory returns one of the kernel's figures of the process's memory, in bytes; see proc_pid_status(5).
func (a *agent) memory(name string) uint64 {
	a.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	if err != nil {
		a.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name+":" {
			kib, err := strconv.ParseUint(f[1], 10, 64)
			if err != nil {
				a.t.Fatal(err)
			}
			return kib << 10
		}
	}
	a.t.Fatalf("the kernel does not say %s", name)
	return 0
}

// load is an agent whose canary probe counts, and the account of what arrives.
type load struct {
	*agent
	t        *testing.T
	series   int
	interval time.Duration
	targets  string // the remote_write list
	canary   string // more keys of the canary, each with a comma before it
	oracle   *receiver.Oracle
}

// newLoad returns the config: series canaries that count each interval. The agent is
// started by go_.
func newLoad(t *testing.T, series int, interval time.Duration, targets string, o *receiver.Oracle) *load {
	t.Helper()
	return &load{t: t, series: series, interval: interval, targets: targets, oracle: o}
}

// text returns the agent's configuration, with the canary on or off.
func (l *load) text(on bool) string {
	return fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s}
wal: {max_bytes: 1GiB, min_free_bytes: 1MiB}
probes:
  - {name: hwsagent, type: self, enabled: false}
  - {name: canary, type: canary, enabled: %t, series: %d, interval: %s, timeout: %[3]s, journal_file: DIR/journal%[4]s}
remote_write:
%[5]s`, on, l.series, l.interval, l.canary, l.targets)
}

// begin starts the agent under load.
func (l *load) begin() *load {
	l.t.Helper()
	l.agent = startAgent(l.t, l.text(true))
	return l
}

// journal returns what the log has acknowledged so far.
func (l *load) journal() receiver.Journal {
	l.t.Helper()
	j, err := receiver.ReadJournal(filepath.Join(l.dir, "journal"))
	if err != nil {
		l.t.Fatal(err)
	}
	return j
}

// acked waits until the log has acknowledged so many more rounds.
func (l *load) acked(rounds int) {
	l.t.Helper()
	from := len(l.journal().Acked)
	eventually(l.t, time.Duration(rounds)*l.interval*4+10*time.Second, func() string {
		if got := len(l.journal().Acked) - from; got < rounds {
			return fmt.Sprintf("%d of %d rounds acknowledged", got, rounds)
		}
		return ""
	})
}

// arrived waits until numbers that are tried from now on have arrived.
func (l *load) arrived(limit time.Duration) {
	l.t.Helper()
	tried := l.journal().Tried
	eventually(l.t, limit, func() string {
		if gone := l.ended(); gone != "" {
			l.t.Fatal(gone)
		}
		if last := l.oracle.Last(); last <= tried {
			return fmt.Sprintf("round %d has arrived, none after %d yet", last, tried)
		}
		return ""
	})
}

// settle ends the load, waits until the target has everything and returns the account.
func (l *load) settle(limit time.Duration, target string) receiver.Result {
	l.t.Helper()
	l.reload(l.text(false))
	l.drained(limit, target)
	r := l.oracle.Verify(l.journal(), l.series)
	l.t.Logf("account: %+v", r)
	if r.Appended == 0 {
		l.t.Error("the load did nothing")
	}
	return r
}

// startReceiver starts a plain receiver with an oracle. The system never gives its port to another receiver: while it is stopped,
// its agent keeps sending to that port.
func startReceiver(t *testing.T, o receiver.Options) (*receiver.Receiver, *receiver.Oracle) {
	t.Helper()
	oracle := receiver.NewOracle()
	o.Sink = oracle.Add
	for tries := 1; ; tries++ {
		o.Addr = fmt.Sprintf("127.0.0.1:%d", freePort(t))
		r := receiver.New(o)
		err := r.Start()
		if errors.Is(err, syscall.EADDRINUSE) && tries < 10 {
			continue // a program has taken it meanwhile
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Stop)
		return r, oracle
	}
}

// entry returns a remote_write entry for a receiver, with more keys if given.
func entry(name, url string, more ...string) string {
	return fmt.Sprintf("  - name: %s\n    url: %s\n    queue_config: {batch_send_deadline: 200ms, max_backoff: 1s}\n", name, url) +
		strings.Join(more, "")
}

// hwsagent runs a command of the binary to its end.
func hwsagent(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return runToEnd(t, 2*time.Minute, binary(t), args...)
}
