package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/agent/control"
	"hwsagent/agent/status"
)

// silentStorage has a storage directory with the socket of an agent.
func silentStorage(t *testing.T) (dir string, l net.Listener) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := control.Listen(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return dir, l
}

// An agent whose process is stopped takes connections, as the kernel does that for it, and
// never answers: each command says so soon, and what to do.
func TestSilentAgent(t *testing.T) {
	dir, _ := silentStorage(t)
	file := write(t, "agent.yaml", "wal: {max_bytes: 1MiB, min_free_bytes: 1MiB}\n")
	var commands sync.WaitGroup
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"status"}, status.ExitSilent},
		{[]string{"healthy"}, status.ExitSilent},
		{[]string{"reload"}, status.ExitSilent},
		{[]string{"targets"}, status.ExitSilent},
		{[]string{"targets", "test", "a"}, status.ExitSilent},
		{[]string{"targets", "pause", "a"}, status.ExitSilent},
		{[]string{"targets", "resume", "a"}, status.ExitSilent},
		{[]string{"targets", "skip", "a", "--before", "now", "--yes"}, status.ExitSilent},
		{[]string{"targets", "adopt", "a", "b"}, status.ExitSilent},
		{[]string{"targets", "drop", "a", "--yes"}, status.ExitSilent},
		{[]string{"targets", "rejected", "a", "--clear"}, status.ExitSilent},
		{[]string{"check", "--no-network"}, status.ExitOK}, // a warning
	} {
		commands.Go(func() {
			began := time.Now()
			code, stdout, stderr := hwsagent(t, append(c.args, "--storage.path", dir, "--config.file", file)...)
			if said := stdout + stderr; code != c.code || !strings.Contains(said, "does not answer within 5s") || !strings.Contains(said, "hwsagent") {
				t.Errorf("hwsagent %s: exit %d, want %d, after %v\n%s%s", strings.Join(c.args, " "), code, c.code, time.Since(began), stdout, stderr)
			}
		})
	}
	commands.Wait()
}

// What takes its time at an agent that lives is waited for.
func TestSlowAgentIsNotSilent(t *testing.T) {
	dir, l := silentStorage(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/-/healthy", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /control/reload", func(w http.ResponseWriter, h *http.Request) {
		select {
		case <-time.After(6 * time.Second):
			_, _ = io.WriteString(w, `{"schema":1,"reloaded":true,"file":"agent.yaml","changes":[],"warnings":[]}`)
		case <-h.Context().Done():
		}
	})
	srv := &http.Server{Handler: mux}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	if code, stdout, stderr := hwsagent(t, "reload", "--storage.path", dir); code != status.ExitOK || stdout != "reloaded agent.yaml; nothing has changed\n" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	<-served
}
