package agent

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/check"
	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/remotewrite/deadletter"
	"hwsagent/wal"
)

func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.values)
}

// lives is in how many lives of the agent something came.
func (s *sink) lives() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.values {
		if v == 1 {
			n++
		}
	}
	return n
}

// complete fails the test unless the sink has every value of so many lives of the agent,
// in each of which the canary counts from 1.
func (s *sink) complete(t *testing.T, lives int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	last := 0.0
	for _, v := range s.values {
		if v == 1 {
			last, lives = 0, lives-1
		}
		if v != last+1 {
			t.Fatalf("%v after %v: %v", v, last, s.values)
		}
		last = v
	}
	if lives != 0 {
		t.Errorf("%d lives are missing: %v", lives, s.values)
	}
}

// change does something through the control socket, as the command line does.
func change(t *testing.T) func(c queues.Change, err error) queues.Change {
	return func(c queues.Change, err error) queues.Change {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if !c.Ledger.Balanced {
			t.Errorf("after %s at %s the account is %+v", c.Action, c.Target, c.Ledger)
		}
		return c
	}
}

// A pause lasts over a restart, costs nothing, shows everywhere, and ends.
func TestPause(t *testing.T) {
	storage := t.TempDir()
	a, b := newSink(t), newSink(t)
	entries := []string{entry("a", a.URL, ""), entry("b", b.URL, "")}
	r := startAgent(t, storage, entries...)
	must, m := change(t), queues.Manager{Storage: storage}
	until(t, "both receive", func() bool { return a.last() > 3 && b.last() > 3 })
	if c := must(m.Pause(t.Context(), "a")); !c.Running || c.PausedSince.IsZero() {
		t.Errorf("%+v", c)
	}
	before := a.count()
	for life := range 2 {
		other := b.count()
		until(t, "the other one goes on", func() bool { return b.count() > other+5 })
		if a.count() != before {
			t.Fatalf("a paused target got something: %v", a.values)
		}
		until(t, "the status tells", func() bool {
			s, ok := r.target("a")
			return ok && s.State == status.StatePaused && s.PendingSamples > 5 && !s.OldestPending.IsZero() && s.LagSeconds > 0 && !s.PausedSince.IsZero()
		})
		families, err := r.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		paused := 0.0
		for _, f := range families {
			for _, metric := range f.GetMetric() {
				if strings.Contains(metric.String(), `"paused"`) && strings.Contains(metric.String(), `"a"`) {
					paused += metric.GetGauge().GetValue()
				}
			}
		}
		if paused != 1 {
			t.Errorf("life %d: the metric of the state paused is %v", life, paused)
		}
		r.end()
		if s, err := queues.OfflineStatus(storage, time.Now()); err != nil || s.Targets[0].PausedSince.IsZero() {
			t.Errorf("offline: %+v, %v", s.Targets, err)
		}
		r = startAgent(t, storage, entries...)
	}
	must(m.Resume(t.Context(), "a"))
	until(t, "both have something of the third life", func() bool { return a.lives() == 3 && b.lives() == 3 })
	r.end()
	a.complete(t, 3)
	b.complete(t, 3)
}

// Skipped samples are counted as skipped and never sent; younger ones are sent.
func TestSkipInAnOutage(t *testing.T) {
	storage := t.TempDir()
	down := newSink(t)
	away := true
	down.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, h *http.Request) {
		if down.mu.Lock(); away {
			down.mu.Unlock()
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		down.mu.Unlock()
		down.ServeHTTP(w, h)
	})
	r := startAgent(t, storage, entry("a", down.URL, ""))
	must, m := change(t), queues.Manager{Storage: storage}
	until(t, "something waits", func() bool { s, ok := r.target("a"); return ok && s.PendingSamples > 10 })
	now := time.Now()
	dry := must(m.Skip(t.Context(), "a", now, true))
	if s, _ := r.target("a"); !dry.DryRun || dry.Samples < 3 || s.Ledger.Lost != 0 {
		t.Errorf("a dry run: %+v; %+v", dry, s.Ledger)
	}
	c := must(m.Skip(t.Context(), "a", now, false))
	if c.DryRun || c.Samples != dry.Samples || c.Ledger.Dropped["skipped"] != c.Samples || !c.Newest.Before(now) {
		t.Errorf("%+v", c)
	}
	down.mu.Lock()
	away = false
	down.mu.Unlock()
	until(t, "the rest is delivered", func() bool { return down.count() > 10 })
	r.end()
	if down.values[0] < 3 {
		t.Errorf("what was skipped is sent: %v", down.values)
	}
	down.inOrder(t, down.values[0])
	s, err := queues.OfflineStatus(storage, time.Now())
	if err != nil || !s.Targets[0].Ledger.Balanced || s.Targets[0].Ledger.Lost != c.Samples {
		t.Errorf("%v, %+v", err, s.Targets[0].Ledger)
	}

	// Without the agent, what is left.
	c = must(m.Skip(t.Context(), "a", time.Now(), false))
	if c.Running || c.Ledger.Pending != 0 {
		t.Errorf("offline: %+v", c)
	}
}

// A renamed target goes on where it was, whether the agent runs or not.
func TestAdopt(t *testing.T) {
	for _, running := range []bool{true, false} {
		storage := t.TempDir()
		s := newSink(t)
		r := startAgent(t, storage, entry("old", s.URL, ""))
		must, m := change(t), queues.Manager{Storage: storage}
		until(t, "it receives", func() bool { return s.last() > 3 })
		if running {
			for name, says := range map[string]string{"new": "still in", "other": "still in"} {
				if _, err := m.Adopt(t.Context(), "old", name); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("adopt as %s before the file has it: %v", name, err)
				}
			}
			r.configure(entry("new", s.URL, ""))
			if _, err := m.Adopt(t.Context(), "old", "other"); err == nil || !strings.Contains(err.Error(), "is not in") {
				t.Errorf("adopt under a name that is not in the file: %v", err)
			}
			if _, err := m.Adopt(t.Context(), "nobody", "new"); !errors.Is(err, config.ErrNoSuchTarget) {
				t.Errorf("adopt of nobody: %v", err)
			}
		} else {
			r.end()
		}
		if c := must(m.Adopt(t.Context(), "old", "new")); c.From != "old" || c.Target != "new" || c.Running != running {
			t.Errorf("%+v", c)
		}
		if !running {
			r = startAgent(t, storage, entry("new", s.URL, ""))
		}
		before := s.count()
		until(t, "the new name receives", func() bool { return s.count() > before+3 })
		if all := r.Status().Targets; len(all) != 1 || all[0].Name != "new" || !all[0].Ledger.Balanced || all[0].Ledger.Delivered < uint64(before) {
			t.Errorf("running=%v: targets %+v", running, all)
		}
		r.end()
		lives := 1
		if !running {
			lives = 2
		}
		s.complete(t, lives)
	}
}

// If the configuration with the new name cannot be put in place, all is as it was.
func TestAdoptTakenBack(t *testing.T) {
	storage := t.TempDir()
	s := newSink(t)
	r := startAgent(t, storage, entry("old", s.URL, ""))
	until(t, "it receives", func() bool { return s.last() > 3 })
	free := blockSavepoints(t, storage)
	r.configure(entry("new", s.URL, ""), entry("third", s.URL, ""))
	if _, err := (queues.Manager{Storage: storage}).Adopt(t.Context(), "old", "new"); err == nil || !strings.Contains(err.Error(), "the queue has its former name again") {
		t.Fatalf("adopted: %v", err)
	}
	free()
	before := s.last()
	until(t, "the old name receives", func() bool { return s.last() > before+3 })
	if all := r.Status().Targets; len(all) != 1 || all[0].Name != "old" || !all[0].Ledger.Balanced {
		t.Errorf("targets %+v", all)
	}
	r.end()
	s.inOrder(t, 1)
}

// A queue can be dropped when the configuration has it no more, and then it is gone.
func TestDrop(t *testing.T) {
	storage := t.TempDir()
	a := newSink(t)
	r := startAgent(t, storage, entry("a", a.URL, ""), entry("b", "http://127.0.0.1:1/", ""))
	m := queues.Manager{Storage: storage}
	until(t, "something waits", func() bool { s, ok := r.target("b"); return ok && s.PendingSamples > 3 })
	if _, err := m.Drop(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), "is in the configuration") {
		t.Errorf("a configured target is dropped: %v", err)
	}
	r.configure(entry("a", a.URL, ""))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if s, ok := r.target("b"); !ok || s.State != status.StateOrphan || !strings.Contains(s.Why, "for another") {
		t.Errorf("orphan: %+v", s)
	}
	c, err := m.Drop(t.Context(), "b")
	if err != nil || c.Samples < 3 || c.Ledger.Pending != c.Samples {
		t.Errorf("%+v, %v", c, err)
	}
	if _, ok := r.target("b"); ok {
		t.Error("it is still there")
	}
	if _, err := os.Stat(deadletter.Dir(storage, "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its dead letters are still there: %v", err)
	}
	if _, err := m.Drop(t.Context(), "b"); !errors.Is(err, config.ErrNoSuchTarget) {
		t.Errorf("dropped twice: %v", err)
	}
	// Without its socket, the agent has the directory and cannot be asked.
	if err := os.Remove(filepath.Join(storage, "control.sock")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Drop(t.Context(), "a"); !errors.Is(err, queues.ErrNotListening) {
		t.Errorf("without a socket: %v", err)
	}
	// Without the agent, the file tells what is configured.
	r.end()
	if c, err := (queues.Manager{Storage: storage, Config: r.file}).Drop(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "remove its entry first") {
		t.Errorf("a configured target is dropped: %+v, %v", c, err)
	}
	if c, err := m.Drop(t.Context(), "a"); err != nil || c.Running {
		t.Errorf("without a file: %+v, %v", c, err)
	}
}

// TestDropUnreadableLetters: dead letters that cannot be read are removed with the queue. If they cannot be removed either, the error says that the
// queue is gone, and what is left to do.
func TestDropUnreadableLetters(t *testing.T) {
	for _, stays := range []bool{false, true} {
		storage := t.TempDir()
		log, err := wal.Open(wal.Options{Dir: storage})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(log.Enroll([]wal.Enrolment{{Name: "b"}}), log.Close()); err != nil {
			t.Fatal(err)
		}
		dir := deadletter.Dir(storage, "b")
		inTheWay := filepath.Join(dir, "letters.jsonl")
		if stays {
			inTheWay = filepath.Join(inTheWay, "x")
		}
		if err := os.MkdirAll(inTheWay, 0o700); err != nil {
			t.Fatal(err)
		}
		c, err := queues.Manager{Storage: storage}.Drop(t.Context(), "b")
		if !stays {
			if _, left := os.Stat(dir); err != nil || !errors.Is(left, os.ErrNotExist) || !strings.Contains(c.UnreadLetters, "letters.jsonl") {
				t.Errorf("%+v, %v; its dead letters: %v", c, err, left)
			}
		} else if err == nil || !strings.Contains(err.Error(), `the queue of "b", with 0 pending samples, is removed`) || !strings.Contains(err.Error(), "remove the directory "+dir) {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// Dead letters are shown with what the receiver said, and forgotten on request; the next
// one is kept again.
func TestRejected(t *testing.T) {
	storage := t.TempDir()
	s := newSink(t)
	s.refuse = func(v float64) bool { return int(v)%20 == 5 }
	r := startAgent(t, storage, entry("a", s.URL, ""))
	m := queues.Manager{Storage: storage}
	letters := func() queues.Rejections {
		t.Helper()
		r, err := queues.Rejected(storage, "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	until(t, "two samples are refused", func() bool { return letters().Kept >= 2 })
	got := letters()
	if l := got.Letters; len(l) != 1 || l[0].Status != 400 || !strings.Contains(l[0].Text, "bad luck") || l[0].Time.IsZero() || l[0].Timestamp == 0 {
		t.Errorf("%+v", got)
	}
	var text strings.Builder
	if err := got.WriteText(&text); err != nil || !strings.Contains(text.String(), "bad luck") || !strings.Contains(text.String(), "older") {
		t.Errorf("%v\n%s", err, text.String())
	}
	c, err := m.Clear(t.Context(), "a")
	if err != nil || c.Letters < 2 || !c.Running {
		t.Errorf("%+v, %v", c, err)
	}
	if n := letters().Kept; n > 1 {
		t.Errorf("%d letters are left", n)
	}
	until(t, "another sample is refused", func() bool { return letters().Kept > 0 })
	r.end()
	c, err = m.Clear(t.Context(), "a")
	if err != nil || c.Letters == 0 || c.Running || letters().Kept != 0 {
		t.Errorf("offline: %+v, %v", c, err)
	}
	if _, err := queues.Rejected(storage, "nobody", 0); !errors.Is(err, config.ErrNoSuchTarget) || !strings.Contains(err.Error(), "it has those of a") {
		t.Errorf("of nobody: %v", err)
	}
}

// A test says what fails; when all is well, a target that is held is tried at once.
func TestTargetTest(t *testing.T) {
	storage := t.TempDir()
	s := newSink(t)
	var locked = true
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, h *http.Request) {
		s.mu.Lock()
		no := locked
		s.mu.Unlock()
		if no {
			http.Error(w, "no key, no entry", http.StatusUnauthorized)
			return
		}
		s.ServeHTTP(w, h)
	})
	r := startAgent(t, storage, entry("a", s.URL, ""))
	until(t, "it is held", func() bool { st, ok := r.target("a"); return ok && st.State == status.StateHeld })
	got, err := TestTarget(t.Context(), storage, "none", "a")
	var text strings.Builder
	if err != nil || got.Result != check.Fail || !got.Running || got.WriteText(&text) != nil || !strings.Contains(text.String(), "no key, no entry") {
		t.Errorf("%+v, %v\n%s", got, err, text.String())
	}
	s.mu.Lock()
	locked = false
	s.mu.Unlock()
	if got, err = TestTarget(t.Context(), storage, "none", "a"); err != nil || got.Result != check.OK {
		t.Errorf("%+v, %v", got, err)
	}
	until(t, "it receives", func() bool { return s.last() > 3 })
	if _, err := TestTarget(t.Context(), storage, "none", "nobody"); !errors.Is(err, config.ErrNoSuchTarget) {
		t.Errorf("of nobody: %v", err)
	}
	r.end()
	if got, err = TestTarget(t.Context(), storage, r.file, "a"); err != nil || got.Result != check.OK || got.Running {
		t.Errorf("without the agent: %+v, %v", got, err)
	}
}

// What changes queues is not to be had on the page's address, which any local user reaches.
func TestControlIsNotOnThePage(t *testing.T) {
	s := newSink(t)
	storage, file := t.TempDir(), filepath.Join(t.TempDir(), "agent.yaml")
	r := &running{t: t, file: file, done: make(chan error, 1)}
	r.configure(entry("a", s.URL, ""))
	r = startAgentWith(t, r, storage, "127.0.0.1:0")
	until(t, "it receives", func() bool { return s.last() > 1 })
	resp, err := http.Post("http://"+r.web.Addr().String()+"/control/pause?target=a", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("the page's address answers %s", resp.Status)
	}
	for _, path := range []string{"/control/pause?target=nobody", "/control/nonsense?target=a", "/control/skip?target=a&before=x"} {
		if code, body, err := control.Do(t.Context(), storage, http.MethodPost, path); err != nil || code != http.StatusConflict {
			t.Errorf("%s: %d %s %v", path, code, body, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
