package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/storage"

	"hwsagent/agent/check"
	"hwsagent/agent/queues"
	"hwsagent/probes"
	"hwsagent/receivers"
	"hwsagent/wal"
)

// hang is a call that does not return until the test lets it.
type hang struct {
	fired chan struct{} // closed when the call is there
	over  chan struct{} // closed at the end of the test
	once  sync.Once
}

func newHang() *hang { return &hang{fired: make(chan struct{}), over: make(chan struct{})} }

func (h *hang) wait() {
	h.once.Do(func() { close(h.fired) })
	<-h.over
}

// hangingProbe hangs in one of its methods, whatever its context says.
type hangingProbe struct{ collect, close *hang }

func (p hangingProbe) Collect(context.Context, *probes.Round) error {
	if p.collect != nil {
		p.collect.wait()
	}
	return nil
}

func (p hangingProbe) Close() error {
	if p.close != nil {
		p.close.wait()
	}
	return nil
}

// hangingLog hangs in each commit.
type hangingLog struct {
	storage.AppendableV2
	*hang
}

func (l hangingLog) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return hangingCommit{l.AppendableV2.AppenderV2(ctx), l.hang}
}

type hangingCommit struct {
	storage.AppenderV2
	*hang
}

func (c hangingCommit) Commit() error {
	c.wait()
	return c.AppenderV2.Rollback()
}

// hangingListener hangs when it is closed.
type hangingListener struct {
	net.Listener
	*hang
}

func (l hangingListener) Close() error {
	err := l.Listener.Close()
	l.wait()
	return err
}

// hangingPart is a part of the agent that can hang.
type hangingPart struct {
	name    string
	plant   func(t *testing.T, a *Agent, h *hang) // makes it hang
	running bool                                  // only in an agent that runs
	atStop  bool                                  // it hangs only when it is to end
	named   string                                // in the error; "": a stop does not wait for it at all
}

var hangingParts = []hangingPart{
	{"a probe's round", func(_ *testing.T, a *Agent, h *hang) { plantProbe(a, hangingProbe{collect: h}, nil) }, false, false, ""},
	{"closing a probe", func(_ *testing.T, a *Agent, h *hang) { plantProbe(a, hangingProbe{close: h}, nil) }, false, true, `probe "planted" (`},
	{"a probe's commit", func(_ *testing.T, a *Agent, h *hang) { plantProbe(a, hangingProbe{}, hangingLog{a.log, h}) }, false, false, `probe "planted" (`},
	{"the scrape jobs", func(_ *testing.T, a *Agent, h *hang) {
		a.scrape = func(ctx context.Context) error { <-ctx.Done(); h.wait(); return nil }
	}, false, true, "the scrape jobs ("},
	{"a receiver", func(t *testing.T, a *Agent, h *hang) { plantReceiver(t, a.intake, "planted", h) }, false, false, "receiver planted ("},
	{"the pull endpoint", func(t *testing.T, a *Agent, h *hang) { plantReceiver(t, a.pull, "pull", h) }, false, false, "receiver pull ("},
	{"the control socket", func(_ *testing.T, a *Agent, h *hang) { a.socket = hangingListener{a.socket, h} }, false, true, "the control socket ("},
	{"a target", nil, false, true, `target "up" (`},
	{"a command", func(_ *testing.T, a *Agent, h *hang) {
		go func() { _ = a.changes.do("the test's command", func() error { h.wait(); return nil }) }()
	}, true, false, "the test's command ("},
	{"a command that changes targets", func(_ *testing.T, a *Agent, h *hang) {
		go func() {
			_ = a.changes.do("the test's command", func() error {
				return a.targets.Around(a.changes.at, func() error { h.wait(); return nil })
			})
		}()
	}, true, false, "the test's command ("},
	{"opening a target", func(_ *testing.T, a *Agent, h *hang) {
		go func() { _ = a.targets.Around(a.changes.at, func() error { h.wait(); return nil }) }()
	}, true, false, "the targets ("},
	{"closing the log", func(_ *testing.T, a *Agent, h *hang) {
		a.closeLog = func() error { h.wait(); return a.log.Close() }
	}, false, true, "closing the log ("},
}

// plantProbe has the runner run a probe; out is nil for the log.
func plantProbe(a *Agent, p probes.Probe, out storage.AppendableV2) {
	if out == nil {
		out = a.log
	}
	a.runner.Apply([]probes.Spec{{Name: "planted", Type: "planted", Identity: "planted", Probe: p, Out: out, Interval: 20 * time.Millisecond, Timeout: 10 * time.Millisecond}})
}

// plantReceiver has a set run a listener that hangs beside its server.
func plantReceiver(t *testing.T, s *receivers.Set, name string, h *hang) {
	t.Helper()
	gate := receivers.NewGate(receivers.GateOptions{Name: name, Limits: receivers.DefaultLimits(), Logger: slog.New(slog.DiscardHandler)})
	p, err := s.Plan([]receivers.Spec{{Name: name, Identity: name, Listen: "127.0.0.1:0", Gate: gate, Handler: http.NotFoundHandler(), Run: func(context.Context) { h.wait() }}})
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(p)
}

// hangingConn is a connection to a target that answers nothing and hangs when it is closed.
type hangingConn struct {
	net.Conn
	h *hang
}

func (c hangingConn) Close() error {
	c.h.wait()
	return c.Conn.Close()
}

// TestStopWhateverHangs: a stop ends in time, whichever part hangs and whatever happened before; its error names the
// part, and the log is closed in order all the same. Actions before the stop are answered in time, too.
func TestStopWhateverHangs(t *testing.T) {
	room := make(chan struct{}, 12) // most of them wait
	var all sync.WaitGroup
	for _, part := range hangingParts {
		for _, act := range []string{"nothing", "reload", "reload all", "command", "status"} {
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				if err := stopWith(t, part, act); err != nil {
					t.Errorf("%s hangs, %s: %v", part.name, act, err)
				}
			})
		}
	}
	all.Wait()
}

// stopWith does something with an agent of which a part hangs, and stops it.
func stopWith(t *testing.T, part hangingPart, act string) error {
	dir := t.TempDir()
	file, store := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "data")
	configure := func(more string) error {
		text := testProbes + "remote_write: [{name: up, url: \"http://127.0.0.1:1/\"" + more + "}]\n"
		return os.WriteFile(file, []byte(text), 0o600)
	}
	if err := configure(""); err != nil {
		return err
	}
	h, dialed := newHang(), make(chan struct{}, 1)
	dial := func(context.Context, string, string) (net.Conn, error) {
		select {
		case dialed <- struct{}{}:
		default:
		}
		if part.plant != nil {
			return nil, errors.New("connection refused")
		}
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		return hangingConn{ours, h}, nil
	}
	a, err := New(Options{ConfigFile: file, StoragePath: store, Logger: slog.New(slog.DiscardHandler), dial: dial})
	if err != nil {
		return err
	}
	a.changes.within = 300 * time.Millisecond
	if part.name != "closing the log" {
		a.closeWithin = busy // many agents share this disk
	}
	if !part.running && part.plant != nil {
		part.plant(t, a, h)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	until(t, "the agent runs", func() bool {
		for _, p := range a.runner.Status() {
			if !p.LastRun.IsZero() {
				return true
			}
		}
		return false
	})
	if part.plant == nil {
		await(t, dialed, "the target to send")
	}
	if part.running {
		part.plant(t, a, h)
	}
	if !part.atStop {
		await(t, h.fired, "the part to hang")
	}
	defer func() {
		close(h.over)
		until(t, "the log is closed", func() bool { // else it is in use
			log, err := wal.Open(wal.Options{Dir: store})
			return err == nil && log.Close() == nil
		})
		// A part that was left behind may save a file while the directory is removed; no part creates the directory again.
		until(t, "the directory is removed", func() bool { return os.RemoveAll(dir) == nil })
	}()

	began := time.Now()
	switch act {
	case "reload":
		_ = a.Reload() // an answer, whatever it is
	case "reload all":
		if err := configure(", remote_timeout: 3s"); err != nil {
			return err
		}
		_ = a.Reload()
	case "command":
		_, _ = a.manage(queues.Request{Action: queues.ActionPause, Target: "up"})
	case "status":
		a.Status()
	}
	if took := time.Since(began); took > 2*time.Second+busy {
		return fmt.Errorf("an answer after %s", took)
	}
	began = time.Now()
	stop()
	select {
	case err = <-done:
	case <-time.After(time.Minute):
		return errors.New("the stop does not end")
	}
	if took := time.Since(began); took > 2*time.Second+2*busy {
		return fmt.Errorf("the stop took %s", took)
	}
	left, ok := errors.AsType[*LeftBehind](err)
	switch {
	case part.named == "":
		return err
	case !ok:
		return fmt.Errorf("the stop says %w, and not that a part was left behind", err)
	case !strings.Contains(left.Parts, part.named):
		return fmt.Errorf("the stop names %s; want %s", left.Parts, part.named)
	case (left.Log != nil) != (part.name == "closing the log"):
		return fmt.Errorf("closing the log: %w", left.Log)
	}
	await(t, h.fired, "the part to hang")
	return nil
}

// busy is what a busy machine may add to the time of a stop.
const busy = 3 * time.Second

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("waiting in vain for %s", what)
	}
}

// TestTestOfATargetThatHangs: a running agent answers in time, and says that the test was cut
// short, where the target may take much longer.
func TestTestOfATargetThatHangs(t *testing.T) {
	over := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer silent.Close()
	defer close(over)
	r := startAgent(t, t.TempDir(), entry("up", silent.URL, ", remote_timeout: 10m"))
	r.changes.within = 200 * time.Millisecond
	began := time.Now()
	got, err := r.testTarget(t.Context(), "up")
	if took := time.Since(began); took > busy {
		t.Errorf("an answer after %s", took)
	}
	if err != nil || got.Result != check.Fail || !strings.Contains(got.Steps[len(got.Steps)-1].Text, "the test took longer than its limit of 200ms") {
		t.Errorf("%+v, %v", got, err)
	}
}
