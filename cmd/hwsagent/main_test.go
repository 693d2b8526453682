package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hwsagent/agent/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hwsagent runs the command line.
func hwsagent(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), &out, &errs, args...)
	return code, out.String(), errs.String()
}

// execute runs the command line without the guard.
func execute(ctx context.Context, out, errs io.Writer, args ...string) int {
	return (&cli{stdout: out, stderr: errs}).execute(ctx, args)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestExitCodes(t *testing.T) {
	none := httptest.NewServer(http.HandlerFunc(http.NotFound))
	defer none.Close()
	storage := t.TempDir()
	if err := os.Chmod(storage, 0o700); err != nil {
		t.Fatal(err)
	}
	good := write(t, "good.yaml", "probes: [{name: c, type: canary}]\nwal: {max_bytes: 1MiB, min_free_bytes: 1MiB}\n")
	bad := write(t, "bad.yaml", "prober: []\n")
	dead := write(t, "dead.yaml", "remote_write: [{url: "+none.URL+"}]\nwal: {max_bytes: 1MiB, min_free_bytes: 1MiB}\n")
	device := write(t, "device.yaml", "probes: [{name: d, type: snmp, target: \"127.0.0.1:1\", modules: [system], timeout: 200ms, packet_timeout: 100ms, retries: 0}]\nwal: {max_bytes: 1MiB, min_free_bytes: 1MiB}\n")
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string // a part of each
	}{
		{[]string{"version"}, status.ExitOK, "hwsagent ", ""},
		{[]string{"--version"}, status.ExitOK, "hwsagent ", ""},
		{[]string{"--help"}, status.ExitOK, "Exit codes:", ""},
		{[]string{"completion", "bash"}, status.ExitOK, "bash completion", ""},
		{[]string{"--nope"}, status.ExitUsage, "", "unknown flag"},
		{[]string{"status", "--json=x"}, status.ExitUsage, "", `--json: "x" is neither true nor false`},
		{[]string{"tap", "--point", "x", "--target", "a"}, status.ExitUsage, "", `unknown point "x": write inputs, relabelled or sent`},
		{[]string{"tap", "--rate", "x"}, status.ExitUsage, "", `--rate: "x" is not a whole number`},
		{[]string{"wal", "replay", "--after", "-1"}, status.ExitUsage, "", `--after: "-1" is not a whole number from 0 on`},
		{[]string{"snmp", "discover", "--port", "65536"}, status.ExitUsage, "", `--port: "65536" is not a whole number from 0 to 65535`},
		{[]string{"wal", "replay", "--rate", "x"}, status.ExitUsage, "", `--rate: "x" is not a number`},
		{[]string{"top", "--interval", "5"}, status.ExitUsage, "", `--interval: "5" is not a time with its unit, such as 500ms or 5s`},
		{[]string{"chekc"}, status.ExitUsage, "", "Did you mean: hwsagent check"},
		{[]string{"replay"}, status.ExitUsage, "", "Did you mean: hwsagent wal replay"},
		{[]string{"replay", "--help"}, status.ExitUsage, "", `unknown command "replay"`},
		{[]string{"help", "replay"}, status.ExitUsage, "", `unknown command "replay"`},
		{[]string{"targets", "rename"}, status.ExitUsage, "", "Did you mean: hwsagent targets adopt"},
		{[]string{"run", "more"}, status.ExitUsage, "", `hwsagent run takes no argument, but got "more"`},
		{[]string{"record", "host"}, status.ExitUsage, "", "write: hwsagent record PROBE FILE"},
		{[]string{"wal", "replay"}, status.ExitUsage, "", "write: hwsagent wal replay --target NAME --from TIME"},
		{[]string{"inventory", "{type: nope}"}, status.ExitConfig, "", `hwsagent: the entry on the command line: probes[0].type: unknown type of probe "nope"`},
		{[]string{"config", "convert", good}, status.ExitFailed, "", "a configuration of hwsagent already"},
		{[]string{"check", "more"}, status.ExitUsage, "", "Try: hwsagent check --help"},
		{[]string{"snmp", "walk", "127.0.0.1:1", "nothing"}, status.ExitUsage, "", "give a number, such as 1.3.6.1.2.1.1"},
		{[]string{"check", "--syntax-only", "--no-network"}, status.ExitUsage, "", "write only one of these flags: --no-network, --syntax-only"},
		{[]string{"version", "--log.level", "loud"}, status.ExitUsage, "", "write debug, info, warn or error"},
		{[]string{"check", "--config.file", good, "--storage.path", storage}, status.ExitOK, "✓ probe c", ""},
		{[]string{"--config.file", good, "--storage.path", storage, "check"}, status.ExitOK, "✓ probe c", ""},
		{[]string{"check", "--config.file", bad, "--storage.path", storage}, status.ExitConfig, `did you mean "probes"?`, ""},
		{[]string{"check", "--config.file", bad + "x"}, status.ExitConfig, "or write a first one: hwsagent init --url URL", ""},
		{[]string{"check", "--config.file", dead, "--storage.path", storage}, status.ExitTarget, "404", ""},
		{[]string{"check", "--config.file", dead, "--storage.path", storage, "--no-network"}, status.ExitOK, "", ""},
		{[]string{"check", "--config.file", device, "--storage.path", storage}, status.ExitAttention, "✗ probe d", ""},
		{[]string{"demo", "--script", "nope"}, status.ExitUsage, "", `unknown script "nope"`},
		{[]string{"probe"}, status.ExitUsage, "", "hwsagent probe NAME"},
		{[]string{"probe", "c", "--config.file", good}, status.ExitOK, "hwsagent_canary{", "samples in"},
		{[]string{"probe", "x", "--config.file", good}, status.ExitUsage, "", "no such probe"},
		{[]string{"probe", "d", "--config.file", device}, status.ExitAttention, "up{", "the probe failed"},
		{[]string{"probe", "c", "--config.file", bad}, status.ExitConfig, "", `did you mean "probes"?`},
		{[]string{"run", "--config.file", bad + "x", "--storage.path", storage}, status.ExitConfig, "", "hwsagent init --url URL"},
		{[]string{"probe", "c", "--config.file", bad + "x"}, status.ExitConfig, "", "hwsagent init --url URL"},
		{[]string{"inventory", "--config.file", bad + "x"}, status.ExitConfig, "", "hwsagent init --url URL"},
		{[]string{"inventory", "c", "--config.file", bad + "x"}, status.ExitConfig, "", "hwsagent init --url URL"},
		{[]string{"record", "c", bad + "y", "--config.file", bad + "x"}, status.ExitConfig, "", "hwsagent init --url URL"},
		{[]string{"targets", "test", "a", "--config.file", bad + "x"}, status.ExitConfig, "", "hwsagent init --url URL"},
		{[]string{"run", "--config.file", filepath.Dir(bad), "--storage.path", storage}, status.ExitConfig, "", "read configuration"},
		{[]string{"check", "--config.file", filepath.Dir(bad), "--storage.path", storage}, status.ExitConfig, "read configuration", ""},
		{[]string{"run", "--config.file", bad, "--storage.path", storage}, status.ExitConfig, "", `did you mean "probes"?`},
		{[]string{"run", "--config.file", good, "--storage.path", storage, "--web.listen-address", "0.0.0.0:0"}, status.ExitFailed, "", "insecure_listen"},
		{[]string{"reload", "--storage.path", storage}, status.ExitNotRunning, "", "Try:"},
		{[]string{"status", "--storage.path", t.TempDir()}, status.ExitNotRunning, "", "no agent is running"},
		{[]string{"wal", "inspect", "--storage.path", t.TempDir()}, status.ExitFailed, "", "there is no log"},
		{[]string{"wal", "dump", "--storage.path", t.TempDir()}, status.ExitFailed, "", "there is no log"},
		{[]string{"wal", "verify", "--storage.path", t.TempDir()}, status.ExitFailed, "", "there is no log"},
		{[]string{"wal", "dump", "--series", "{"}, status.ExitUsage, "", "parse selector"},
		{[]string{"wal", "dump", "--from", "yesterday"}, status.ExitUsage, "", "invalid time"},
		{[]string{"wal", "dump", "--from", "1m", "--to", "2m"}, status.ExitUsage, "", "is not before"},
	} {
		code, stdout, stderr := hwsagent(t, c.args...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("hwsagent %s: exit %d, want %d\nstdout (want %q):\n%s\nstderr (want %q):\n%s",
				strings.Join(c.args, " "), code, c.code, c.stdout, stdout, c.stderr, stderr)
		}
		// The same as JSON: one value, and the same exit code.
		if c.args[0] == "completion" || c.args[0] == "--help" {
			continue
		}
		code, stdout, _ = hwsagent(t, append(c.args, "--json")...)
		var v map[string]any
		if err := json.Unmarshal([]byte(stdout), &v); code != c.code || c.args[0] != "--nope" && err != nil {
			t.Errorf("hwsagent %s --json: exit %d, want %d; %v\n%s", strings.Join(c.args, " "), code, c.code, err, stdout)
		}
	}
}

// reportsBug checks that a report has the running agent's metrics, is for its owner only and replaces no file.
func reportsBug(t *testing.T, config, storage string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "report.tar.gz")
	args := []string{"bugreport", "--config.file", config, "--storage.path", storage, "--output", archive}
	code, stdout, stderr := hwsagent(t, append(args, "--json")...)
	var report struct {
		File  string
		Files []struct {
			Name string
			Size int
		}
	}
	if err := json.Unmarshal([]byte(stdout), &report); code != status.ExitOK || err != nil || report.File != archive {
		t.Errorf("bugreport: exit %d, %v, %s%s", code, err, stdout, stderr)
	}
	for _, f := range report.Files {
		if f.Name == "metrics.txt" && f.Size < 5000 || f.Name == "status.json" && f.Size < 1000 {
			t.Errorf("%s of a running agent has %d bytes", f.Name, f.Size)
		}
	}
	if info, err := os.Stat(archive); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the report is %v, %v", info, err)
	}
	if code, _, stderr := hwsagent(t, args...); code != status.ExitFailed || !strings.Contains(stderr, "file exists") {
		t.Errorf("a report in the place of a file: exit %d, %s", code, stderr)
	}
}

func TestRunStatusReload(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "data")
	file := write(t, "agent.yaml", "probes: [{name: c, type: canary, series: 20000, interval: 1s}]\nwal: {min_free_bytes: 1MiB}\n")
	ctx, stop := context.WithCancel(t.Context())
	var log bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- execute(ctx, io.Discard, &log, "run", "--config.file", file, "--storage.path", storage, "--web.listen-address", "127.0.0.1:0", "--log.format=json")
	}()
	until(t, "the agent has taken samples", func() error {
		code, stdout, stderr := hwsagent(t, "status", "--storage.path", storage, "--json")
		var s struct {
			Running bool `json:"running"`
			WAL     struct {
				Appended uint64 `json:"samples_appended"`
			} `json:"wal"`
		}
		if err := json.Unmarshal([]byte(stdout), &s); code != status.ExitAttention || err != nil || !s.Running || s.WAL.Appended < 40_000 { // two rounds
			return fmt.Errorf("exit %d, %w, %+v, %s", code, err, s, stderr)
		}
		return nil
	})
	if code, stdout, _ := hwsagent(t, "status", "--storage.path", storage); code != status.ExitAttention || !strings.Contains(stdout, "canary") || !strings.Contains(stdout, "no targets") {
		t.Errorf("status: exit %d\n%s", code, stdout)
	}
	if code, _, stderr := hwsagent(t, "run", "--config.file", file, "--storage.path", storage); code != status.ExitFailed || !strings.Contains(stderr, "in use") {
		t.Errorf("a second agent on the directory: exit %d, %s", code, stderr)
	}
	if code, _, stderr := hwsagent(t, "tap", "--input", "nope", "--storage.path", storage); code != status.ExitUsage || !strings.Contains(stderr, `no such input: "nope"; the inputs are probe c`) {
		t.Errorf("tap of an unknown input: exit %d, %s", code, stderr)
	}
	reportsBug(t, file, storage)
	if code, stdout, stderr := hwsagent(t, "reload", "--storage.path", storage); code != status.ExitOK || !strings.HasSuffix(stdout, "reloaded "+file+"; nothing has changed\n") {
		t.Errorf("reload: exit %d, %s%s", code, stdout, stderr)
	}
	reloadsWithoutFiles(t, file, storage)
	if err := os.WriteFile(file, []byte("prober: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := hwsagent(t, unitReload(t, storage)...); code != status.ExitConfig || !strings.Contains(stderr, `did you mean "probes"?`) {
		t.Errorf("reload of a mistake: exit %d, %s", code, stderr)
	}
	if code, stdout, _ := hwsagent(t, "status", "--storage.path", storage); code != status.ExitAttention || !strings.Contains(stdout, "the reload at") {
		t.Errorf("status after it: exit %d\n%s", code, stdout)
	}
	stop()
	if code := <-done; code != status.ExitOK {
		t.Errorf("run: exit %d\n%s", code, log.String())
	}
	code, stdout, _ := hwsagent(t, "status", "--storage.path", storage)
	if code != status.ExitNotRunning || !strings.Contains(stdout, "The agent is not running") {
		t.Errorf("status of an agent that is down: exit %d\n%s", code, stdout)
	}
	if code, stdout, stderr := hwsagent(t, "wal", "inspect", "--storage.path", storage); code != status.ExitOK || !strings.Contains(stdout, "00000000") {
		t.Errorf("wal inspect: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := hwsagent(t, "wal", "verify", "--storage.path", storage); code != status.ExitOK || !strings.Contains(stdout, "both readings agree") {
		t.Errorf("wal verify: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := hwsagent(t, "wal", "dump", "--series", `{__name__=~".+"}`, "--from", "1h", "--to", "now", "--storage.path", storage); code != status.ExitOK || !strings.Contains(stdout, "00000000:") {
		t.Errorf("wal dump: exit %d\n%s%s", code, stdout, stderr)
	}
	damage(t, storage)
	for _, sub := range []string{"dump", "verify"} {
		code, stdout, stderr := hwsagent(t, "wal", sub, "--json", "--storage.path", storage)
		if (code == status.ExitOK) != (sub == "verify" && strings.Contains(stdout, `"agree": true`)) || !json.Valid([]byte(stdout)) || !strings.Contains(stdout, `"stopped"`) {
			t.Errorf("wal %s of a damaged log: exit %d\n%s%s", sub, code, stdout, stderr)
		}
	}
	if code, stdout, stderr := hwsagent(t, "wal", "inspect", "--json", "--storage.path", storage); code != status.ExitDamaged || !json.Valid([]byte(stdout)) || !strings.Contains(stderr, "unreadable") {
		t.Errorf("wal inspect of a damaged log: exit %d\n%s%s", code, stdout, stderr)
	}
	for _, want := range []string{`"page":"http://127.0.0.1:`, `"msg":"Waiting for the first round of probes","in":`} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log does not have %s once:\n%s", want, log.String())
		}
	}
	for line := range strings.Lines(log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("the log has a line that is not JSON: %s", line)
		}
	}
}

// reloadsWithoutFiles: a reload to targets whose files are missing is done, and names each file in the words of a check.
func reloadsWithoutFiles(t *testing.T, file, storage string) {
	t.Helper()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	token, ca := filepath.Join(t.TempDir(), "x.token"), filepath.Join(t.TempDir(), "ca.pem")
	text := fmt.Sprintf("%sremote_write:\n- {name: x, url: \"http://127.0.0.1:1/\", bearer_token_file: %s}\n- {name: y, url: \"https://127.0.0.1:1/\", tls_config: {ca_file: %s}}\n", before, token, ca)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, checked, _ := hwsagent(t, "check", "--no-network", "--config.file", file, "--storage.path", storage)
	for _, args := range [][]string{{"--dry-run"}, {}} {
		code, stdout, stderr := hwsagent(t, append([]string{"reload", "--storage.path", storage}, args...)...)
		if code != status.ExitConfig || strings.Contains(stdout, "reloaded "+file) == (len(args) > 0) {
			t.Errorf("reload %v without files: exit %d\n%s%s", args, code, stdout, stderr)
		}
		for _, line := range []string{"✗ files", token + ": for target x: does not exist", ca + ": for target y: does not exist", "Try: create it; no reload is needed"} {
			if !strings.Contains(stderr, line) || !strings.Contains(checked, line) {
				t.Errorf("%q is not in the warning of reload %v, or of check:\n%s\n%s", line, args, stderr, checked)
			}
		}
	}
	byUnit := unitReload(t, storage)
	if code, stdout, stderr := hwsagent(t, byUnit...); code != status.ExitOK || !strings.Contains(stdout, "reloaded "+file) || !strings.Contains(stderr, token) {
		t.Errorf("%v, as the unit reloads, without files: exit %d\n%s%s", byUnit, code, stdout, stderr)
	}
	for _, name := range []string{token, ca} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, stdout, _ := hwsagent(t, "reload", "--json", "--storage.path", storage); code != status.ExitConfig || strings.Contains(stdout, token) || !strings.Contains(stdout, ca) {
		t.Errorf("reload with a token, and a file that is no certificate: exit %d\n%s", code, stdout)
	}
	if err := os.WriteFile(file, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := hwsagent(t, "reload", "--storage.path", storage); code != status.ExitOK {
		t.Errorf("reload of the former configuration: exit %d\n%s%s", code, stdout, stderr)
	}
	// Samples wait for x and y if a round came while they were configured. The status would then be an error.
	for _, name := range []string{"x", "y"} {
		if code, stdout, stderr := hwsagent(t, "targets", "drop", name, "--yes", "--storage.path", storage); code != status.ExitOK {
			t.Errorf("drop of %s: exit %d\n%s%s", name, code, stdout, stderr)
		}
	}
}

// unitReload returns the arguments with which systemd has the agent reload, for a storage directory.
func unitReload(t *testing.T, storage string) []string {
	t.Helper()
	unit, err := os.ReadFile("../../deploy/package/hwsagent.service")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^ExecReload=/usr/bin/hwsagent (.*) --storage\.path /var/lib/hwsagent$`).FindSubmatch(unit)
	if m == nil {
		t.Fatalf("the unit has no ExecReload of the agent:\n%s", unit)
	}
	return append(strings.Fields(string(m[1])), "--storage.path", storage)
}

// damage overwrites the middle of the log's largest file.
func damage(t *testing.T, storage string) {
	t.Helper()
	var largest string
	var size int64
	err := filepath.WalkDir(storage, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(filepath.Base(path), "0000") {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > size {
			largest, size = path, info.Size()
		}
		return err
	})
	if err != nil || size == 0 {
		t.Fatalf("find a segment: %v", err)
	}
	f, err := os.OpenFile(largest, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("damage"), size/2); err != nil {
		t.Fatal(err)
	}
}

// until asks again and again until check is content.
func until(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute) // the machine may be busy
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// What takes long says how far it is; what does not, says nothing.
func TestProgress(t *testing.T) {
	var stderr strings.Builder
	now := time.Unix(0, 0)
	tell := (&cli{stderr: &stderr}).progress(func() time.Time { return now })
	for i := range int64(5) {
		tell(i*1e9, 10e9)
		now = now.Add(900 * time.Millisecond)
	}
	if got, want := stderr.String(), "read 3000 of 10000 MB\n"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// An error is JSON wherever --json stands: the flag may follow the one that is wrong.
func TestJSONBehindAWrongFlag(t *testing.T) {
	code, stdout, stderr := hwsagent(t, "status", "--bogus", "--json")
	var got struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != status.ExitUsage || !strings.Contains(got.Error, "--bogus") {
		t.Errorf("exit code %d, stdout %q, stderr %q: %v", code, stdout, stderr, err)
	}
}

// TestDefaultStorage: of several state directories of a service the first one has the log.
func TestDefaultStorage(t *testing.T) {
	for given, want := range map[string]string{"": "/var/lib/hwsagent", "/a": "/a", "/a:/b": "/a"} {
		t.Setenv("STATE_DIRECTORY", given)
		if got := (&cli{}).root().PersistentFlags().Lookup("storage.path").DefValue; got != want {
			t.Errorf("%q: %s, want %s", given, got, want)
		}
	}
}

// TestHelpSaysWhatFirst: the help of a command begins with its short description, also where the text behind it says something else.
func TestHelpSaysWhatFirst(t *testing.T) {
	for _, args := range [][]string{{"demo", "--help"}, {"help", "demo"}} {
		code, stdout, stderr := hwsagent(t, args...)
		if want := "Show that an outage and a kill -9 lose nothing.\ndemo needs no configuration"; code != status.ExitOK || !strings.HasPrefix(stdout, want) || stderr != "" {
			t.Errorf("%q: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
}
