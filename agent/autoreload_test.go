package agent

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestAutoReload: with config.auto_reload the agent loads what its files have become, once, and says what changed without
// secrets. A mistake changes nothing and stands in the status until the file, or a file that it names, is right again. An empty file is not loaded.
func TestAutoReload(t *testing.T) {
	a, dir := newSink(t), t.TempDir()
	token := filepath.Join(dir, "token")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(token, "first-hunter2\n")
	r := &running{t: t, file: filepath.Join(dir, "agent.yaml"), done: make(chan error, 1), extra: "\nconfig: {auto_reload: true}\n"}
	with := func(keys string) { r.configure(entry("a", a.URL, ", bearer_token: '${file:"+token+"}'"+keys)) }
	with("")
	var logged lockedBuffer
	var err error
	r.Agent, err = New(Options{ConfigFile: r.file, StoragePath: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&logged, nil)), autoReloadEvery: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	runStarted(t, r)
	reloads := func() int { return strings.Count(logged.String(), "The configuration was reloaded") }
	reloaded := func(what, change string, times int) {
		t.Helper()
		until(t, what, func() bool { return reloads() >= times })
		if n := reloads(); n != times || !strings.Contains(logged.String(), change) {
			t.Errorf("%s: %d reloads, want %d, one of them with %q:\n%s", what, n, times, change, logged.String())
		}
	}

	with(", remote_timeout: 7s")
	reloaded("a key changes", `remote_timeout: 30s → 7s`, 1)
	write(token, "other-hunter2\n")
	reloaded("a file of ${file:…} changes", `<secret> changed`, 2)

	with(", remote_timeout: soon")
	until(t, "the mistake is in the status", func() bool { return strings.Contains(r.Status().Config.ReloadError, "soon") })
	write(r.file, "\n")
	until(t, "the empty file is in the log", func() bool { return strings.Contains(logged.String(), "is empty") })
	with(", remote_timeout: 7s")
	until(t, "the status has no mistake", func() bool { return r.Status().Config.ReloadError == "" })
	reloaded("the file is as before the mistake", "changes=0", 3)

	missing := filepath.Join(dir, "missing")
	with(", remote_timeout: '${file:" + missing + "}'")
	until(t, "the missing file is in the status", func() bool { return strings.Contains(r.Status().Config.ReloadError, "missing") })
	write(missing, "9s\n")
	reloaded("a file of a failed attempt appears", "remote_timeout: 7s → 9s", 4)

	r.extra = ""
	with(", remote_timeout: 7s")
	reloaded("auto_reload is switched off", "config.auto_reload", 5)
	with(", remote_timeout: 8s")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.end()
	if n := reloads(); n != 6 || strings.Contains(logged.String(), "hunter2") {
		t.Errorf("%d reloads, want 6, without secrets:\n%s", n, logged.String())
	}
}
