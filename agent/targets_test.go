package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/remotewrite/deadletter"
	"hwsagent/wal"
)

// blockSavepoints puts directories where savepoints are kept, in place of the files if these are there.
func blockSavepoints(t *testing.T, storage string) (free func()) {
	t.Helper()
	var blocked []string
	for _, name := range []string{"records.0", "records.1"} {
		file := filepath.Join(storage, "savepoints", name)
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(file, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		blocked = append(blocked, file)
	}
	return func() {
		for _, file := range blocked {
			if err := os.RemoveAll(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// savepoints returns the targets that have one on disk.
func savepoints(t *testing.T, storage string) (names []string) {
	t.Helper()
	in, err := wal.Glance(storage)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range in.Targets {
		names = append(names, target.Name)
	}
	return names
}

// An agent that cannot remember where a new target begins does not start, and collects
// nothing.
func TestStartWithoutSavepoint(t *testing.T) {
	storage := t.TempDir()
	a, b := newSink(t), newSink(t)
	free := blockSavepoints(t, storage)
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml")}
	r.configure(entry("a", a.URL, ""), entry("b", b.URL, ""))
	_, err := New(Options{ConfigFile: r.file, StoragePath: storage, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Fatal("the agent starts without a savepoint")
	}
	for _, says := range []string{filepath.Join(storage, "savepoints"), "records.0 is not a regular file: move it away"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the error does not say %q: %v", says, err)
		}
	}
	free()
	if s, err := queues.OfflineStatus(storage, time.Now()); err != nil || s.WAL.Appended != 0 {
		t.Errorf("%d samples were logged, %v", s.WAL.Appended, err)
	}
	if got := savepoints(t, storage); len(got) > 0 {
		t.Errorf("savepoints are left: %q", got)
	}
	r = startAgent(t, storage, entry("a", a.URL, ""), entry("b", b.URL, ""))
	until(t, "both receive", func() bool { return a.last() > 3 && b.last() > 3 })
	r.end()
	a.inOrder(t, 1)
	b.inOrder(t, 1)
}

// A reload that cannot make a new target's savepoint changes nothing, stays visible, and
// leaves no savepoint of its other new targets.
func TestReloadWithoutSavepoint(t *testing.T) {
	storage := t.TempDir()
	a, b, c := newSink(t), newSink(t), newSink(t)
	r := startAgent(t, storage, entry("a", a.URL, ""))
	until(t, "it receives", func() bool { return a.last() > 3 })
	running := r.targets.All()[0]
	free := blockSavepoints(t, storage)

	r.configure(entry("b", b.URL, ""), entry("c", c.URL, ""))
	err := r.Reload()
	if err == nil || !strings.Contains(err.Error(), filepath.Join(storage, "savepoints")) || !strings.Contains(err.Error(), "before anything is collected") {
		t.Fatalf("reloaded without a savepoint: %v", err)
	}
	if now := r.targets.All(); len(now) != 1 || now[0] != running {
		t.Error("a failed reload changed the targets")
	}
	if s := r.Status(); !strings.Contains(s.Config.ReloadError, "savepoints") || len(s.Targets) != 1 || len(s.Problems) == 0 {
		t.Errorf("the status after a failed reload: %+v", s)
	}
	before := a.last()
	until(t, "the old target goes on", func() bool { return a.last() > before+3 })

	free()
	until(t, "the savepoints are there again", func() bool { return fmt.Sprint(savepoints(t, storage)) == "[a]" })
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	until(t, "the new ones receive", func() bool { return b.last() > before+3 && c.last() > before+3 })
	if s := r.Status(); s.Config.ReloadError != "" {
		t.Errorf("the reload worked, and the status still says %q", s.Config.ReloadError)
	}
	r.end()
	a.inOrder(t, 1)
	if len(b.values) == 0 || b.values[0] <= before {
		t.Errorf("a target that begins now got what came before: %v", b.values)
	}
}

// A target whose dead letters cannot be kept keeps neither the agent from starting nor the
// other targets from delivering, and runs when they can; across a reload and restarts the
// log keeps everything for it from the first sample on.
func TestTargetThatCannotBeOpened(t *testing.T) {
	a, b := newSink(t), newSink(t)
	storage := t.TempDir()
	blocker := deadletter.Dir(storage, "b")
	if err := errors.Join(os.MkdirAll(filepath.Dir(blocker), 0o700), os.WriteFile(blocker, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	r := startAgent(t, storage, entry("a", a.URL, ""), entry("b", b.URL, ""))
	until(t, "the other target receives", func() bool { return a.last() > 3 })
	s, there := r.target("b")
	if !there || s.State != status.StateStopped || !strings.Contains(s.Why, "deadletters") || !strings.Contains(fmt.Sprint(r.Status().Problems), "target b") {
		t.Errorf("status %+v", s)
	}
	if s.PendingSamples == 0 || s.PendingSamples != s.Ledger.Pending || !s.Ledger.Balanced {
		t.Errorf("what is kept for it does not show: %+v", s)
	}
	if err := r.Reload(); err != nil {
		t.Errorf("reload: %v", err)
	}
	r.end()
	r = startAgent(t, storage, entry("a", a.URL, ""), entry("b", b.URL, ""))
	before := a.last()
	until(t, "the other target receives again", func() bool { return a.last() != before })
	if err := os.Remove(blocker); err != nil {
		t.Fatal(err)
	}
	until(t, "it has everything", func() bool { s, _ := r.target("b"); return s.State == status.StateOK && s.PendingSamples < 20 })
	if s, _ := r.target("b"); s.Ledger.Lost != 0 || !s.Ledger.Balanced {
		t.Errorf("ledger %+v", s.Ledger)
	}
	r.end()
	if b.values[0] != 1 {
		t.Errorf("the first value at the target is %v, want 1", b.values[0])
	}
}
