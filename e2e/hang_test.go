//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
	"hwsagent/internal/tools/tier"
)

// Bounds of what a person waits for, and what a busy machine may add to each.
const (
	stopBound   = 2 * time.Second
	answerBound = 10 * time.Second
	busyMachine = 2 * time.Second
)

// tarpit is a server that answers each request with a text and lets the connection open. With
// drips, a byte each 200 ms follows.
type tarpit struct {
	net.Listener
	asked atomic.Int64
}

func startTarpit(t *testing.T, text string, drips bool) *tarpit {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tarpit{Listener: l}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				p.asked.Add(1)
				_, err := io.WriteString(c, text)
				for ; drips && err == nil; time.Sleep(200 * time.Millisecond) { // the pace of the fault
					_, err = io.WriteString(c, "x")
				}
				_, _ = io.Copy(io.Discard, c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return p
}

// hung is a hanging part: its configuration, at the address of a tarpit.
type hung struct {
	target string // keys of the target "bad"; TIMEOUT is its remote_timeout
	more   string // sections beside remote_write; TIMEOUT, too
	state  string // the state of "bad" at 101, "" if there is no such target
}

func hungParts() map[string]hung {
	const oauth = "url: http://127.0.0.1:1/w\n    oauth2: {client_id: a, client_secret: b, token_url: 'http://ADDRESS/token'}"
	return map[string]hung{
		"a receiver":          {target: "url: http://ADDRESS/w", state: "held"},
		"a proxy":             {target: "url: http://192.0.2.1/w\n    proxy_url: http://ADDRESS", state: "held"},
		"a proxy at CONNECT":  {target: "url: https://192.0.2.1/w\n    proxy_url: http://ADDRESS", state: "held"},
		"a token endpoint":    {target: oauth, state: "held"},
		"a scrape target":     {more: "scrape_configs: [{job_name: bad, scrape_interval: 1s, scrape_timeout: 1s, params: {t: [TIMEOUT]}, static_configs: [{targets: [ADDRESS]}]}]\n"},
		"a list of targets":   {more: "scrape_configs: [{job_name: bad, scrape_interval: 1s, scrape_timeout: 1s, params: {t: [TIMEOUT]}, http_sd_configs: [{url: 'http://ADDRESS/sd'}]}]\n"},
		"a probe's exporter":  {more: "PROBE  - {name: bad, type: exec, command: [/bin/sleep, '1000'], scrape_url: 'http://ADDRESS/metrics', interval: 1s, timeout: 1s, labels: {t: TIMEOUT}}\n"},
		"a stubborn program":  {more: "PROBE  - {name: bad, type: exec, command: [/bin/sh, -c, 'trap \"\" TERM INT HUP; while :; do sleep 1; done'], interval: 1s, timeout: 1s, labels: {t: TIMEOUT, a: ADDRESS}}\n"},
		"a receiver's sender": {more: "receivers: {import: {listen: 'IMPORT', metric_relabel_configs: [{target_label: t, replacement: TIMEOUT}]}}\n"},
	}
}

// TestNothingHangsTheAgent: whatever hangs, in whatever way, the status, a reload that changes
// nothing, one that changes the part, a test of the target and a check are answered in time, SIGTERM ends
// the agent and the check in time, and nothing that was acknowledged is missing.
func TestNothingHangsTheAgent(t *testing.T) {
	for part, h := range hungParts() {
		for way, answer := range map[string]string{
			"101":                 "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
			"no answer":           "",
			"a body that drips":   "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
			"an error that drips": "HTTP/1.1 503 Service Unavailable\r\n\r\n",
		} {
			if strings.Contains(h.more, "sh, -c") && way != "101" {
				continue // it is asked nothing
			}
			t.Run(part+" and "+way, func(t *testing.T) {
				t.Parallel()
				pit := startTarpit(t, answer, strings.Contains(way, "drips"))
				l, text := startHung(t, h, pit)
				hangs(t, l, h, pit, way)
				l.ends(t, "the status", answerBound, func() { l.status() })
				l.ends(t, "a reload that changes nothing", answerBound, func() { l.reload(text("3s")) })
				if h.target != "" {
					l.ends(t, "targets test", answerBound, func() { hwsagent(t, "targets", "test", "bad", "--storage.path", l.storage) })
				}
				l.ends(t, "a reload that changes the part", answerBound, func() {
					l.configure(text("4s"))
					if _, stderr, code := hwsagent(t, "reload", "--storage.path", l.storage); code != 0 {
						t.Errorf("exit code %d, %s", code, stderr)
					}
				})
				l.checkEnds(t)
				took, code := l.terminate(time.Minute)
				if took > tier.Within(stopBound+busyMachine) || code != 0 {
					t.Errorf("SIGTERM: exit code %d after %s, want 0 within %s", code, took, stopBound)
				}
				l.configure(l.text(false))
				l.run()
				l.drained(30*time.Second, "receiver")
				if r := l.oracle.Verify(l.journal(), l.series); r.Missing != 0 || r.OutOfOrder != 0 || r.Appended == 0 {
					t.Errorf("account %+v", r)
				}
			})
		}
	}
}

// startHung starts an agent with a part that hangs, beside a target that is well. text is its configuration
// with another timeout.
func startHung(t *testing.T, h hung, pit *tarpit) (l *load, text func(timeout string) string) {
	t.Helper()
	recv, oracle := startReceiver(t, receiver.Options{})
	l = newLoad(t, 5, 200*time.Millisecond, entry("receiver", recv.URL()), oracle)
	intake := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	text = func(timeout string) string {
		all, more := l.text(true), h.more
		if probe, ok := strings.CutPrefix(more, "PROBE"); ok {
			all, more = strings.Replace(all, "\nremote_write:", "\n"+probe+"remote_write:", 1), ""
		}
		if h.target != "" {
			all += "\n  - name: bad\n    remote_timeout: TIMEOUT\n    " + h.target + "\n"
		}
		return strings.NewReplacer("ADDRESS", pit.Addr().String(), "TIMEOUT", timeout, "IMPORT", intake).Replace(all + "\n" + more)
	}
	l.agent = startAgent(t, text("3s"))
	if strings.Contains(h.more, "IMPORT") { // half a request, over a connection that stays
		c, err := net.Dial("tcp", intake)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, "POST /api/v1/import/prometheus HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\na 1\n"); err != nil {
			t.Fatal(err)
		}
		pit.asked.Add(1)
	}
	if strings.Contains(h.more, "sh, -c") || strings.Contains(h.more, "scrape_url") {
		pit.asked.Add(1) // its round hangs: the status shows it
		eventually(t, 20*time.Second, func() string {
			for _, p := range l.status().Probes {
				if p.Name == "bad" && p.LastError != "" {
					return ""
				}
			}
			return "the probe has not failed yet"
		})
	}
	return l, text
}

// hangs waits until the part hangs, and looks at what the status says about 101.
func hangs(t *testing.T, l *load, h hung, pit *tarpit, way string) {
	t.Helper()
	eventually(t, 30*time.Second, func() string {
		if pit.asked.Load() == 0 {
			return "nothing has been asked yet"
		}
		if h.state == "" || way != "101" {
			return ""
		}
		if tg := l.target("bad"); tg.State != h.state || !strings.Contains(tg.Why, "101 Switching Protocols") || !strings.Contains(tg.Why, "WebSocket") {
			return fmt.Sprintf("the target is %s: %s", tg.State, tg.Why)
		}
		return ""
	})
	l.acked(2)
}

// ends fails the test unless f ends in time.
func (l *load) ends(t *testing.T, what string, bound time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > tier.Within(bound+busyMachine) {
		t.Errorf("%s took %s, more than %s", what, took.Round(time.Millisecond), bound)
	}
}

// checkEnds starts a check of the configuration, and fails the test unless a signal ends it.
func (l *load) checkEnds(t *testing.T) {
	t.Helper()
	cmd := exec.Command(binary(t), "check", "--config.file", l.config, "--storage.path", filepath.Join(l.dir, "elsewhere"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	time.Sleep(500 * time.Millisecond) // so that it is amid its work, unless it has ended
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(answerBound + busyMachine):
		t.Error("SIGTERM does not end the check")
		_ = cmd.Process.Kill()
		<-done
	}
}

// TestStopLeavesBehindWhatHangs: where a file does not answer, which nothing in the program can
// end, a reload says that it goes on and what it waits for, and SIGTERM ends the agent in
// time, with an exit code of its own and the part's name in the log. Nothing is lost.
func TestStopLeavesBehindWhatHangs(t *testing.T) {
	t.Parallel()
	recv, oracle := startReceiver(t, receiver.Options{})
	l := newLoad(t, 5, 200*time.Millisecond, entry("receiver", recv.URL()), oracle).begin()
	l.acked(5)
	// A pipe without a writer, in place of the dead letters of a future target.
	letters := filepath.Join(l.storage, "deadletters", "bad")
	if err := os.MkdirAll(letters, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(letters, "letters.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.targets += "\n" + entry("bad", "http://127.0.0.1:1/w")
	l.configure(l.text(true))
	l.ends(t, "the reload", answerBound, func() {
		_, stderr, code := hwsagent(t, "reload", "--storage.path", l.storage)
		if code != 1 || !strings.Contains(stderr, "has not ended yet and continues") || !strings.Contains(stderr, `opening target "bad"`) {
			t.Errorf("exit code %d, %s", code, stderr)
		}
	})
	l.ends(t, "a command", answerBound, func() {
		_, stderr, code := hwsagent(t, "targets", "pause", "receiver", "--storage.path", l.storage)
		if code == 0 || !strings.Contains(stderr, "was not begun, and changes nothing") {
			t.Errorf("exit code %d, %s", code, stderr)
		}
	})
	l.ends(t, "the status", stopBound, func() {
		out, _, code := hwsagent(t, "status", "--storage.path", l.storage)
		if code != 4 && code != 5 || !strings.Contains(out, `the reload began at`) || !strings.Contains(out, `opening target "bad"`) {
			t.Errorf("exit code %d, %s", code, out)
		}
	})
	l.arrived(20 * time.Second) // the other target goes on
	took, code := l.terminate(time.Minute)
	if took > tier.Within(stopBound+busyMachine) || code != 9 {
		t.Errorf("SIGTERM: exit code %d after %s, want 9 within %s", code, took, stopBound)
	}
	t.Logf("exit code %d after %s", code, took)
	if said := l.logText(); !strings.Contains(said, "left behind") || !strings.Contains(said, "the reload (in remotewrite/deadletter.") || !strings.Contains(said, "log_closed=true") {
		t.Errorf("it said: %s", l.tail(5))
	}
	if err := os.RemoveAll(letters); err != nil {
		t.Fatal(err)
	}
	l.run()
	if r := l.settle(30*time.Second, "receiver"); r.Missing != 0 || r.OutOfOrder != 0 {
		t.Errorf("account %+v", r)
	}
}

// TestStopWithALogThatHangs: whoever reads what the agent writes has stopped reading. It ends in
// time all the same.
func TestStopWithALogThatHangs(t *testing.T) {
	t.Parallel()
	recv, oracle := startReceiver(t, receiver.Options{})
	l := newLoad(t, 5, 200*time.Millisecond, entry("receiver", recv.URL()), oracle)
	l.agent = newAgent(t, l.text(true))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const setSize = 1031 // F_SETPIPE_SZ
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, w.Fd(), setSize, 4096); errno != 0 {
		t.Fatal(errno)
	}
	cmd := exec.Command(binary(t), append(l.args, "--log.level", "debug")...)
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		<-done
	}()
	l.acked(5)
	fill(t, w)
	w.Close()
	began := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		done <- err
	case <-time.After(time.Minute):
		t.Fatal("SIGTERM does not end it")
	}
	took, code := time.Since(began), cmd.ProcessState.ExitCode()
	t.Logf("exit code %d after %s", code, took)
	if took > tier.Within(stopBound+busyMachine) || code != 9 {
		t.Errorf("SIGTERM: exit code %d after %s, want 9 within %s", code, took, stopBound)
	}
}

// fill writes to a pipe until it is full.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	fd, err := syscall.Dup(int(w.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	// The flag is the pipe's, and so the agent's end's, too: it is set back at once.
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = syscall.Write(fd, []byte("x"))
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
}
