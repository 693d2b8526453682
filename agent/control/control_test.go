package control

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRoundTrip(t *testing.T) {
	for name, dir := range map[string]string{
		"short": t.TempDir(),
		"long":  filepath.Join(t.TempDir(), strings.Repeat("d", 120)),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if _, _, err := Do(t.Context(), dir, "GET", "/x"); !errors.Is(err, ErrNotRunning) {
				t.Fatalf("without an agent: %v, want ErrNotRunning", err)
			}
			l, err := Listen(dir, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusTeapot)
				_, _ = io.WriteString(w, r.Method+" "+r.URL.Path)
			})}
			done := make(chan error)
			go func() { done <- srv.Serve(l) }()
			if fi, err := os.Stat(filepath.Join(dir, socketName)); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("socket mode %v, %v; want 0600", fi.Mode(), err)
			}
			status, body, err := Do(t.Context(), dir, "POST", "/a/b")
			if err != nil || status != http.StatusTeapot || string(body) != "POST /a/b" {
				t.Errorf("got %d %q %v", status, body, err)
			}
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
			<-done
			if _, _, err := Do(t.Context(), dir, "GET", "/x"); !errors.Is(err, ErrNotRunning) {
				t.Errorf("after Close: %v, want ErrNotRunning", err)
			}
		})
	}
}

// TestGoneAmidTheAnswer: an agent killed during a query counts as not running. A command may have been carried out, so
// its error must not say that the agent does not run.
func TestGoneAmidTheAnswer(t *testing.T) {
	for method, gone := range map[string]bool{"GET": true, "POST": false} {
		t.Run(method, func(t *testing.T) {
			dir := t.TempDir()
			l, err := Listen(dir, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			go func() {
				conn, err := l.Accept()
				if err == nil {
					_, err = conn.Read(make([]byte, 10))
				}
				// As by SIGKILL: everything is closed, the file stays.
				err = errors.Join(err, l.(*listener).socket.Close())
				if conn != nil {
					err = errors.Join(err, conn.Close())
				}
				ended <- err
			}()
			_, _, err = Do(t.Context(), dir, method, "/x")
			if err == nil || errors.Is(err, ErrNotRunning) != gone {
				t.Errorf("%v, want ErrNotRunning: %t", err, gone)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSocketOfAKilledAgentIsReplaced(t *testing.T) {
	dir := t.TempDir()
	first, err := Listen(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	// As after SIGKILL: the descriptor is closed, the file stays.
	if err := first.(*listener).socket.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Do(t.Context(), dir, "GET", "/"); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("a dead socket: %v, want ErrNotRunning", err)
	}
	second, err := Listen(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// Something that cannot be removed stands in place of the socket: the agent starts without it, and makes it when it can.
func TestListenTriesAgain(t *testing.T) {
	dir := t.TempDir()
	inPlace := filepath.Join(dir, socketName)
	if err := os.MkdirAll(filepath.Join(inPlace, "not empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	all, err := Listen(dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if said := log.String(); !strings.Contains(said, "Cannot make the control socket") || !strings.Contains(said, "not empty") {
		t.Fatalf("logged %q", said)
	}
	l := all.(*listener)
	l.every = time.Millisecond
	accepted := make(chan error)
	accept := func() {
		c, err := l.Accept()
		if err == nil {
			err = c.Close()
		}
		accepted <- err
	}
	go accept()
	if err := os.Remove(filepath.Join(inPlace, "not empty")); err != nil { // the listener removes what is empty
		t.Fatal(err)
	}
	for {
		c, err := net.Dial("unix", inPlace)
		if err == nil {
			_ = c.Close()
			break
		}
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	go accept()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if _, err := os.Stat(inPlace); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}

	// Closed before the socket could be made.
	if err := os.MkdirAll(filepath.Join(inPlace, "not empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if all, err = Listen(dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	l = all.(*listener)
	go accept()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
}
