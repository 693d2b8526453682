package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/tier"
)

// Exit codes, as documented.
const (
	exitOK         = 0
	exitUsage      = 2
	exitConfig     = 3
	exitTarget     = 4
	exitProbe      = 5
	exitWAL        = 6
	exitNotRunning = 7
)

// TestDemoScripts runs the demo's scripts as anyone can.
func TestDemoScripts(t *testing.T) {
	for _, script := range []string{"outage", "crash"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			stdout, stderr, code := hwsagent(t, "demo", "--script", script, "--json")
			if code != exitOK || time.Since(begin) > tier.Within(time.Minute) {
				t.Fatalf("exit code %d after %s\n%s\n%s", code, time.Since(begin), stdout, stderr)
			}
			d := json.NewDecoder(strings.NewReader(stdout))
			var got map[string]any
			if err := d.Decode(&got); err != nil {
				t.Fatalf("%v in %q", err, stdout)
			}
			if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
				t.Errorf("stdout has more than one JSON object: %q", stdout)
			}
			for _, key := range []string{"script", "appended", "delivered", "lost", "duplicated", "out_of_order", "pending", "seconds"} {
				if _, ok := got[key]; !ok {
					t.Errorf("the result has no %s: %s", key, stdout)
				}
			}
			if got["script"] != script || got["lost"] != 0.0 || got["pending"] != 0.0 || got["out_of_order"] != 0.0 ||
				got["appended"] != got["delivered"] || got["appended"].(float64) < 10_000 {
				t.Errorf("result: %s", stdout)
			}
			if script == "crash" != strings.Contains(stderr, "kill -9") {
				t.Errorf("the progress does not tell of a kill, or of one too many:\n%s", stderr)
			}
			t.Log(strings.TrimSpace(stdout))
		})
	}
}

// TestRootConfigChecks checks the configuration in the repository's root, and the example with all keys.
func TestRootConfigChecks(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"../agent.yaml", "../deploy/examples/full.yaml"} {
		stdout, stderr, code := hwsagent(t, "check", "--config.file", file, "--storage.path", t.TempDir(), "--no-network")
		if code != exitOK {
			t.Errorf("%s: exit code %d\n%s\n%s", file, code, stdout, stderr)
		}
	}
}

// TestCheckLive finds with the network what is right and what is not.
func TestCheckLive(t *testing.T) {
	t.Parallel()
	recv, _ := startReceiver(t, receiver.Options{Tokens: []string{"right"}})
	config := func(token string) string {
		return writeFile(t, filepath.Join(t.TempDir(), "agent.yaml"), `
probes: [{name: host, type: host}]
remote_write: [{name: here, url: "`+recv.URL()+`", bearer_token: `+token+`}]
`)
	}
	stdout, stderr, code := hwsagent(t, "check", "--config.file", config("right"), "--storage.path", t.TempDir())
	if code != exitOK {
		t.Errorf("the right token: exit code %d\n%s\n%s", code, stdout, stderr)
	}
	if seen := recv.Seen(); len(seen) == 0 || !slices.ContainsFunc(seen, func(s receiver.Seen) bool { return s.Empty && s.Status == 204 }) {
		t.Errorf("check has not tried an empty write: %+v", seen)
	}
	stdout, stderr, code = hwsagent(t, "check", "--config.file", config("wrong"), "--storage.path", t.TempDir())
	if out := stdout + stderr; code != exitTarget || !strings.Contains(out, "401") || !strings.Contains(out, "here") || strings.Contains(out, "wrong") {
		t.Errorf("the wrong token: exit code %d, want %d; no token in the output\n%s", code, exitTarget, out)
	}
	if recv.Samples() != 0 {
		t.Errorf("check has written %d samples", recv.Samples())
	}
}

// TestBadConfig names every mistake at once.
func TestBadConfig(t *testing.T) {
	t.Parallel()
	file := writeFile(t, filepath.Join(t.TempDir(), "agent.yaml"), badConfig)
	for _, args := range [][]string{{"check", "--syntax-only"}, {"check", "--no-network"}, {"run"}} {
		args = append(args, "--config.file", file, "--storage.path", t.TempDir())
		stdout, stderr, code := hwsagent(t, args...)
		if code != exitConfig {
			t.Errorf("%v: exit code %d, want %d", args, code, exitConfig)
		}
		for _, word := range badWords() {
			if !strings.Contains(stdout+stderr, word) {
				t.Errorf("%v does not mention %q:\n%s%s", args, word, stdout, stderr)
			}
		}
	}
}

const badConfig = `global:
  scrape_intervall: 15s
probes:
  - {name: host, type: hots}
wal: {max_bytes: many}
remote_write:
  - url: http://127.0.0.1:1/api/v1/write
    remote_timeout: 30
`

// badWords returns what a message about badConfig must have: places and suggestions.
func badWords() []string {
	return []string{"scrape_intervall", "scrape_interval", "hots", "host", "max_bytes", "remote_timeout", ":2:", ":4:", ":5:", ":8:"}
}

// TestBadConfigChangesNothing loads a bad configuration into a running agent.
func TestBadConfigChangesNothing(t *testing.T) {
	t.Parallel()
	recv, oracle := startReceiver(t, receiver.Options{})
	l := newLoad(t, 10, 100*time.Millisecond, entry("receiver", recv.URL()), oracle).begin()
	l.arrived(20 * time.Second)
	l.configure(badConfig)
	code, body, err := l.ask(http.MethodPost, "/-/reload")
	if err != nil || code != http.StatusBadRequest {
		t.Errorf("reload of a bad config: %d %v, want 400", code, err)
	}
	for _, word := range badWords() {
		if !strings.Contains(body, word) {
			t.Errorf("the answer does not mention %q:\n%s", word, body)
		}
	}
	l.arrived(10 * time.Second)
	if got := l.status().Config.ReloadError; !strings.Contains(got, "scrape_intervall") {
		t.Errorf("the status does not show the failed reload: %q", got)
	}
	// SIGHUP is a reload, too; a good one clears the error.
	l.configure(l.text(true))
	if err := l.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() string { return l.status().Config.ReloadError })
	r := l.settle(20*time.Second, "receiver")
	if r.Missing != 0 || r.Duplicated != 0 || r.OutOfOrder != 0 {
		t.Errorf("lost %d, twice %d, out of order %d; want none of each", r.Missing, r.Duplicated, r.OutOfOrder)
	}
}

// TestStatusCommand asks for the status while the agent runs and after.
func TestStatusCommand(t *testing.T) {
	t.Parallel()
	recv, oracle := startReceiver(t, receiver.Options{})
	l := newLoad(t, 10, 100*time.Millisecond, entry("receiver", recv.URL()), oracle).begin()
	l.arrived(20 * time.Second)
	ask := func(args ...string) (string, int) {
		stdout, stderr, code := hwsagent(t, append(args, "--config.file", l.config, "--storage.path", l.storage)...)
		return stdout + stderr, code
	}
	if out, code := ask("status"); code != exitOK || !strings.Contains(out, "receiver") {
		t.Errorf("status: %d\n%s", code, out)
	}
	recv.Stop()
	l.acked(10)
	l.kill()
	var st struct {
		Running bool
		Targets []target
	}
	out, code := ask("status", "--json")
	if err := json.Unmarshal([]byte(out), &st); err != nil || st.Running || code != exitNotRunning {
		t.Errorf("status of a dead agent: exit code %d, want %d; %v\n%s", code, exitNotRunning, err, out)
	}
	if len(st.Targets) != 1 || st.Targets[0].PendingSamples < 100 || !st.Targets[0].Ledger.Balanced {
		t.Errorf("status of a dead agent: %+v", st.Targets)
	}
	if out, code := ask("reload"); code != exitNotRunning {
		t.Errorf("reload of a dead agent: exit code %d, want %d\n%s", code, exitNotRunning, out)
	}
}

// TestSecondAgentRefused starts a second agent on the same storage.
func TestSecondAgentRefused(t *testing.T) {
	t.Parallel()
	l := newLoad(t, 1, time.Second, "  []\n", receiver.NewOracle()).begin()
	begin := time.Now()
	stdout, stderr, code := hwsagent(t, "run", "--config.file", l.config, "--storage.path", l.storage, "--web.listen-address", "127.0.0.1:0")
	if code == exitOK || time.Since(begin) > tier.Within(2*time.Second) {
		t.Errorf("a second agent on one storage: exit code %d after %s\n%s%s", code, time.Since(begin), stdout, stderr)
	}
	if gone := l.ended(); gone != "" {
		t.Error(gone)
	}
}

// TestDamageReported flips one byte of a log that holds undelivered data.
func TestDamageReported(t *testing.T) {
	t.Parallel()
	recv, oracle := startReceiver(t, receiver.Options{})
	l := newLoad(t, 2000, 50*time.Millisecond, entry("receiver", recv.URL()), oracle).begin()
	l.arrived(20 * time.Second)
	recv.Stop()
	l.acked(100)
	l.terminate(5 * time.Second)

	inspect := func() (string, int) {
		stdout, stderr, code := hwsagent(t, "wal", "inspect", "--storage.path", l.storage)
		return stdout + stderr, code
	}
	if out, code := inspect(); code != exitOK {
		t.Errorf("inspect of a sound log: exit code %d\n%s", code, out)
	}
	flipByte(t, l.storage)
	if out, code := inspect(); code != exitWAL || !strings.Contains(out, "damage") {
		t.Errorf("inspect of a damaged log: exit code %d, want %d\n%s", code, exitWAL, out)
	}
	if err := recv.Start(); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.arrived(20 * time.Second)
	r := l.settle(30*time.Second, "receiver")
	damage := l.target("receiver").Ledger.Dropped["damage"]
	t.Logf("damage: %d samples", damage)
	if r.Missing == 0 || damage < r.Missing || r.OutOfOrder != 0 {
		t.Errorf("missing %d, damage in the ledger %d, out of order %d", r.Missing, damage, r.OutOfOrder)
	}
	// A page is 32 KiB, of a segment of several times that.
	if r.Missing > r.Appended/3 {
		t.Errorf("one flipped bit cost %d of %d samples, more than a page's", r.Missing, r.Appended)
	}
}

// flipByte changes one bit of the largest segment of a log, towards its end.
func flipByte(t *testing.T, dir string) {
	t.Helper()
	var largest string
	var size int64
	segment := regexp.MustCompile(`^[0-9]{8}$`)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !segment.MatchString(d.Name()) {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > size {
			largest, size = path, info.Size()
		}
		return err
	})
	if err != nil || size < 4*32<<10 {
		t.Fatalf("no segment of several pages below %s: the largest is %q with %d bytes (%v)", dir, largest, size, err)
	}
	f, err := os.OpenFile(largest, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	at := size * 3 / 4
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	t.Logf("flipped a bit at %d of %d in %s", at, size, largest)
}

// TestUsage: an unknown flag or command is distinguished from a failure.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--no-such-flag"}, {"nonsense"}, {"run", "--config.fil", "x"}} {
		if stdout, stderr, code := hwsagent(t, args...); code != exitUsage {
			t.Errorf("%v: exit code %d, want %d\n%s%s", args, code, exitUsage, stdout, stderr)
		}
	}
	stdout, _, code := hwsagent(t, "version", "--json")
	var v map[string]any
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != exitOK {
		t.Errorf("version: %d %v %s", code, err, stdout)
	}
}

// TestProbeCommand prints what a probe would append, in the exposition format.
func TestProbeCommand(t *testing.T) {
	t.Parallel()
	file := writeFile(t, filepath.Join(t.TempDir(), "agent.yaml"), `
probes:
  - {name: this, type: host}
  - {name: nobody, type: snmp, target: "127.0.0.1:9", modules: [system], timeout: 1s}
`)
	stdout, stderr, code := hwsagent(t, "probe", "this", "--config.file", file)
	if code != exitOK || !strings.Contains(stdout, "# TYPE node_load1 gauge\nnode_load1") {
		t.Errorf("probe this: exit code %d\n%s\n%s", code, stdout, stderr)
	}
	if stdout, stderr, code := hwsagent(t, "probe", "nobody", "--config.file", file); code != exitProbe {
		t.Errorf("probe nobody: exit code %d, want %d\n%s\n%s", code, exitProbe, stdout, stderr)
	}
	if _, stderr, code := hwsagent(t, "probe", "thiss", "--config.file", file); code == exitOK || !strings.Contains(stderr, "this") {
		t.Errorf("probe thiss: exit code %d\n%s", code, stderr)
	}
}
