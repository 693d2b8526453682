package web

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/agent/status"
)

// TestStream: the page's main element comes at once, and again with what is new, one line of data each; as many as may be are
// served; and the end of the server ends them.
func TestStream(t *testing.T) {
	var version atomic.Value
	version.Store("one")
	s, err := New(Options{Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Status: func() status.Status {
		s := fleet(1)
		s.Version = version.Load().(string)
		return status.Judge(s)
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	address := "http://" + s.Addr().String() + "/api/v1/stream?page="
	open := func(page string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+page, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	resp := open("%2F")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		t.Helper()
		var data strings.Builder
		for lines.Scan() {
			line := lines.Text()
			if line == "" {
				return data.String()
			}
			if line != "event: main" && !strings.HasPrefix(line, "data: ") {
				t.Fatalf("the line %q", line)
			}
			data.WriteString(strings.TrimPrefix(line, "data: ") + "\n")
		}
		return ""
	}
	if got := next(); !strings.HasPrefix(got, "event: main\n<main id=\"main\" data-title=") || !strings.Contains(got, "hwsagent one") || !strings.Contains(got, "</main>") {
		t.Errorf("at first %.300s", got)
	}
	version.Store("two")
	if got := next(); !strings.Contains(got, "hwsagent two") {
		t.Errorf("and then %.300s", got)
	}
	if got := open("%2Ftargets"); got.StatusCode != http.StatusOK {
		t.Errorf("the targets' page: %d", got.StatusCode)
	}
	lines = bufio.NewScanner(open("%2Fsearch%3Fq%3Dreceiver-00").Body)
	if got := next(); !strings.Contains(got, "<h2>Search for receiver-00 <small>1 target</small>") {
		t.Errorf("a search: %.600s", got)
	}
	if got := open("x"); got.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown page: %d", got.StatusCode)
	}
	for range maxStreams - 2 {
		open("%2F")
	}
	if got := open("%2F"); got.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more than may be: %d", got.StatusCode)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if lines.Scan() && next() != "" && lines.Err() == nil && lines.Scan() {
		t.Error("the stream goes on after the end of the server")
	}
}

// TestStreamEndsWithItsReader: a reader that goes makes room for another.
func TestStreamEndsWithItsReader(t *testing.T) {
	h := newHandlers(Options{Status: func() status.Status { return status.Judge(fleet(1)) }})
	srv := httptest.NewServer(h.routes())
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/api/v1/stream?page=/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n := h.streams.open.Load(); n != 1 {
		t.Errorf("%d readers", n)
	}
	cancel()
	for deadline := time.Now().Add(30 * time.Second); h.streams.open.Load() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the reader still counts")
		}
	}
}

func TestEvent(t *testing.T) {
	if got, want := string(event("main", "a\r\nb\rc\nd")), "event: main\ndata: a\ndata: b\ndata: c\ndata: d\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestStreamHead: HEAD has no body to send, so its answer ends, and takes no place of a reader.
func TestStreamHead(t *testing.T) {
	h := newHandlers(Options{Status: func() status.Status { return status.Judge(fleet(1)) }})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	answer := httptest.NewRecorder()
	h.routes().ServeHTTP(deadlines{answer}, httptest.NewRequestWithContext(ctx, http.MethodHead, "/api/v1/stream?page=/", nil))
	if ctx.Err() != nil {
		t.Error("the answer to HEAD did not end before its client went away")
	}
	if answer.Body.Len() > 0 || answer.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("%d bytes of %q", answer.Body.Len(), answer.Header().Get("Content-Type"))
	}
}

// deadlines accepts deadlines, as a connection does.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetWriteDeadline(time.Time) error { return nil }

// TestSlowReader: a client that does not read its answer is disconnected; one that
// waits for a profile is not.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := strings.Repeat("x", 1<<20)
		s := &Server{o: Options{Logger: slog.New(slog.DiscardHandler)}, streams: &streams{ending: make(chan struct{})}}
		sent := make(chan error, 1)
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/debug/pprof/profile" {
				time.Sleep(3 * answerTimeout)
			}
			_, err := w.Write([]byte(answer))
			sent <- err
		})
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.serve(ctx, handler, func(srv *http.Server) error { return srv.Serve(l) }) }()
		ask := func(request string, read bool) error {
			here, there := net.Pipe()
			defer here.Close()
			l.conns <- there
			if _, err := here.Write([]byte(request)); err != nil {
				t.Error(err)
			}
			if read {
				go func() { _, _ = io.Copy(io.Discard, here) }()
			}
			return <-sent
		}
		began := time.Now()
		if err := ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", false); err == nil || time.Since(began) != answerTimeout {
			t.Errorf("an answer without a reader: %v after %v", err, time.Since(began))
		}
		if err := ask("GET /debug/pprof/profile HTTP/1.1\r\nHost: localhost\r\n\r\n", true); err != nil {
			t.Errorf("a profile that takes long: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }
