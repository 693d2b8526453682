package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/config"
	"hwsagent/agent/status"
	"hwsagent/internal/tools/tier"
	"hwsagent/remotewrite/deadletter"
	"hwsagent/wal"
)

// sink is a receiver that keeps the values of the canary, in the order of their arrival.
type sink struct {
	*httptest.Server
	mu     sync.Mutex
	values []float64
	refuse func(v float64) bool // answers 400 to a request with such a value
}

func newSink(t *testing.T) *sink {
	s := &sink{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = snappy.Decode(nil, body)
	}
	var req prompb.WriteRequest
	if err == nil {
		err = req.Unmarshal(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []float64
	for _, ts := range req.Timeseries {
		for _, l := range ts.Labels {
			if l.Name == "__name__" && l.Value == "hwsagent_canary" {
				for _, smp := range ts.Samples {
					got = append(got, smp.Value)
					if s.refuse != nil && s.refuse(smp.Value) {
						http.Error(w, fmt.Sprintf("value %v is bad luck", smp.Value), http.StatusBadRequest)
						return
					}
				}
			}
		}
	}
	s.values = append(s.values, got...)
}

func (s *sink) last() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.values) == 0 {
		return 0
	}
	return s.values[len(s.values)-1]
}

// inOrder fails the test unless the sink has from, from+1, … up to its last value.
func (s *sink) inOrder(t *testing.T, from float64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, v := range s.values {
		if v != from+float64(i) {
			t.Fatalf("value %d is %v, want %v: %v", i, v, from+float64(i), s.values)
		}
	}
}

// running is an agent under test.
type running struct {
	*Agent
	t    *testing.T
	file string
	stop context.CancelFunc
	done chan error

	extra string // further probes
}

const testProbes = `
web: {listen: ""}
probes:
  - {name: hwsagent, type: self, enabled: false}
  - {name: count, type: canary, interval: 20ms, timeout: 20ms}
`

// entry returns a remote_write entry that sends at once.
func entry(name, url, more string) string {
	return fmt.Sprintf("  - {name: %s, url: %q, metadata_config: {send: false}, queue_config: {batch_send_deadline: 10ms}%s}\n", name, url, more)
}

func startAgent(t *testing.T, storage string, entries ...string) *running {
	t.Helper()
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	r.configure(entries...)
	return startAgentWith(t, r, storage, "")
}

func startAgentWith(t *testing.T, r *running, storage, listen string) *running {
	t.Helper()
	var err error
	if r.Agent, err = New(Options{ConfigFile: r.file, StoragePath: storage, WebListen: listen, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return runStarted(t, r)
}

// runStarted runs the agent that r has.
func runStarted(t *testing.T, r *running) *running {
	t.Helper()
	r.stopWithin = tier.Within(r.stopWithin) // others use the disk, too
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() { r.done <- r.Run(ctx) }()
	t.Cleanup(r.end)
	return r
}

func (r *running) configure(entries ...string) {
	text := testProbes + r.extra
	if len(entries) > 0 {
		text += "remote_write:\n" + strings.Join(entries, "")
	}
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// end stops the agent and checks that it closed cleanly. It may be called twice.
func (r *running) end() {
	r.stop()
	if err, ok := <-r.done; ok {
		close(r.done)
		if err != nil {
			r.t.Errorf("the agent ended with %v", err)
		}
	}
}

func (r *running) target(name string) (status.TargetStatus, bool) {
	for _, t := range r.Status().Targets {
		if t.Name == name {
			return t, true
		}
	}
	return status.TargetStatus{}, false
}

// until polls cond; a real agent with real sockets has no virtual clock.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func TestReload(t *testing.T) {
	a, b := newSink(t), newSink(t)
	r := startAgent(t, t.TempDir(), entry("a", a.URL, ""), entry("b", b.URL, ""))
	until(t, "both receive", func() bool { return a.last() > 3 && b.last() > 3 })
	queueOf := func(name string) any {
		if t := r.targets.Get(name); t != nil {
			return t
		}
		return nil
	}
	qa, qb := queueOf("a"), queueOf("b")

	// A mistake changes nothing and stays visible.
	r.configure(entry("a", a.URL, ", remote_timeout: soon"), entry("c", b.URL, ""))
	err := r.Reload()
	if _, ok := errors.AsType[*config.Errors](err); !ok {
		t.Fatalf("a wrong configuration was reloaded: %v", err)
	}
	if queueOf("a") != qa || queueOf("b") != qb || queueOf("c") != nil {
		t.Error("a failed reload changed the targets")
	}
	if s := r.Status(); s.Config.ReloadError == "" || len(s.Problems) == 0 {
		t.Error("the failed reload is not shown")
	}

	// An unchanged target is left alone, a changed one goes on, a removed one goes.
	r.configure(entry("b", b.URL, ", remote_timeout: 7s"), entry("a", a.URL, ""))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if queueOf("a") != qa {
		t.Error("the unchanged target got a new queue")
	}
	if queueOf("b") == qb {
		t.Error("the changed target kept its queue")
	}
	if s := r.Status(); s.Config.ReloadError != "" {
		t.Errorf("the reload worked, and the status still says %q", s.Config.ReloadError)
	}
	before := b.last()
	until(t, "the changed target goes on", func() bool { return b.last() > before+3 })

	r.configure(entry("a", a.URL, ""))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	until(t, "the queue of the removed target is shown", func() bool {
		b, there := r.target("b")
		return there && b.State == status.StateOrphan && b.PendingSamples > 0 && b.Ledger.Balanced
	})
	before = a.last()
	until(t, "the remaining target goes on", func() bool { return a.last() > before+3 })

	// It comes back with its queue: nothing is missing at b.
	r.configure(entry("a", a.URL, ""), entry("b", b.URL, ""))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	until(t, "the target that came back has caught up", func() bool { return b.last() >= a.last()-1 && b.last() > before+3 })
	r.end()
	a.inOrder(t, 1)
	b.inOrder(t, 1)
}

func TestStopInAnOutageKeepsEverything(t *testing.T) {
	storage := t.TempDir()
	s := newSink(t)
	r := startAgent(t, storage, entry("up", s.URL, ""), entry("down", "http://127.0.0.1:1/", ""))
	until(t, "one target has received", func() bool { return s.last() > 5 })
	began := time.Now()
	r.end()
	if took := time.Since(began); took > tier.Within(2*time.Second) {
		t.Errorf("stopping took %s with a target down", took)
	}

	// The target that was down gets another address, and everything from the start.
	late := newSink(t)
	r = startAgent(t, storage, entry("up", s.URL, ""), entry("down", late.URL, ""))
	until(t, "the late target has received", func() bool { return late.last() > 5 })
	until(t, "its ledger is settled", func() bool { d, _ := r.target("down"); return d.PendingSamples < 20 })
	for _, ts := range r.Status().Targets {
		if !ts.Ledger.Balanced || ts.Ledger.Lost != 0 {
			t.Errorf("ledger of %s: %+v", ts.Name, ts.Ledger)
		}
	}
	late.mu.Lock()
	defer late.mu.Unlock()
	if late.values[0] != 1 {
		t.Errorf("the first value at the late target is %v, want 1", late.values[0])
	}
}

func TestRefusedSampleIsKept(t *testing.T) {
	s := newSink(t)
	s.refuse = func(v float64) bool { return v == 7 }
	r := startAgent(t, t.TempDir(), entry("picky", s.URL, ""))
	until(t, "the sample after the bad one arrives", func() bool { return s.last() > 9 })
	ts, _ := r.target("picky")
	if ts.DeadLetters != 1 || ts.Ledger.Dropped["rejected"] != 1 || ts.Ledger.Lost != 1 || !ts.Ledger.Balanced {
		t.Errorf("dead letters %d, ledger %+v", ts.DeadLetters, ts.Ledger)
	}
	letters, err := os.ReadFile(filepath.Join(deadletter.Dir(r.o.StoragePath, "picky"), "letters.jsonl"))
	if err != nil || !strings.Contains(string(letters), "value 7 is bad luck") || !strings.Contains(string(letters), "hwsagent_canary") {
		t.Errorf("the dead letter is %q, %v", letters, err)
	}
}

// A token file that is emptied, or replaced by what cannot be read: the former token stays
// in use, the status says what is wrong, and the agent still stops in time.
func TestTokenFileGoesBad(t *testing.T) {
	a := newSink(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startAgent(t, t.TempDir(), entry("a", a.URL, ", bearer_token_file: "+token))
	until(t, "it receives", func() bool { return a.last() > 3 })
	for what, spoil := range map[string]func() error{
		"is empty":      func() error { return os.WriteFile(token, nil, 0o600) },
		"not a regular": func() error { return errors.Join(os.RemoveAll(token), spoilFile(token)) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		until(t, "the status tells that the file "+what, func() bool {
			s := r.Status()
			return strings.Contains(s.Targets[0].Credentials, what) && strings.Contains(fmt.Sprint(s.Problems), what)
		})
		if err := os.RemoveAll(token); err != nil {
			t.Fatal(err)
		}
	}
	before := a.last()
	until(t, "data goes on", func() bool { return a.last() > before+3 })
	began := time.Now()
	r.end()
	if d := time.Since(began); d > tier.Within(2*time.Second) {
		t.Errorf("stopped after %v", d)
	}
}

func TestSecondAgentIsRefused(t *testing.T) {
	storage := t.TempDir()
	r := startAgent(t, storage, entry("a", newSink(t).URL, ""))
	began := time.Now()
	_, err := New(Options{ConfigFile: r.file, StoragePath: storage, Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, wal.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second agent on the directory: %v, want ErrLocked with the holder's pid", err)
	}
	if took := time.Since(began); took > tier.Within(time.Second) {
		t.Errorf("it took %s to refuse", took)
	}
}

// A reload opens a target that could not be opened, before its retry is due: samples logged meanwhile are still sent to
// it.
func TestReloadOpensTargetThatCouldNotBe(t *testing.T) {
	a, b := newSink(t), newSink(t)
	storage := t.TempDir()
	blocker := deadletter.Dir(storage, "b")
	if err := errors.Join(os.MkdirAll(filepath.Dir(blocker), 0o700), os.WriteFile(blocker, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	r := startAgent(t, storage, entry("a", a.URL, ""), entry("b", b.URL, ""))
	until(t, "the other target receives", func() bool { return a.last() > 3 })
	if err := os.Remove(blocker); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); err != nil {
		t.Errorf("reload: %v", err)
	}
	until(t, "it runs", func() bool { return b.last() > 3 })
	r.end()
	b.inOrder(t, 1)
}
