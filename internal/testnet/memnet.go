package testnet

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Net is a network in memory, for tests in a synctest bubble: connections to any
// address reach one server.
type Net struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	pumps  sync.WaitGroup

	mu   sync.Mutex
	open int // connections at the server
	all  int // ever
}

// Serve runs an HTTP server on a network in memory, with TLS if config is not nil. The returned
// stop ends it and its handlers; call it inside the bubble.
func Serve(t testing.TB, config *tls.Config, h http.HandlerFunc) (n *Net, stop func()) {
	t.Helper()
	n = &Net{conns: make(chan net.Conn), closed: make(chan struct{})}
	var handlers sync.WaitGroup
	counted := func(w http.ResponseWriter, r *http.Request) {
		handlers.Add(1)
		defer handlers.Done()
		h(w, r)
	}
	s := &http.Server{Handler: http.HandlerFunc(counted), TLSConfig: config, ConnState: n.state, ErrorLog: Discard(), ReadHeaderTimeout: time.Hour}
	done := make(chan error, 1)
	go func() {
		if config != nil {
			done <- s.ServeTLS(n, "", "")
		} else {
			done <- s.Serve(n)
		}
	}()
	return n, func() {
		_ = s.Close()
		handlers.Wait()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("server: %v", err)
		}
		n.pumps.Wait() // their write deadlines may take a while, and the bubble must not end before
	}
}

func (n *Net) state(_ net.Conn, s http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch s {
	case http.StateNew:
		n.open++
		n.all++
	case http.StateClosed, http.StateHijacked:
		n.open--
	}
}

// Counts returns how many connections are open and how many there were.
func (n *Net) Counts() (open, all int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open, n.all
}

// Dial implements client.DialFunc.
func (n *Net) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	s := NewSocket(server, &n.pumps)
	select {
	case n.conns <- s:
		return client, nil
	case <-n.closed:
		_ = s.Close()
		return nil, net.ErrClosed
	case <-ctx.Done():
		_ = s.Close()
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (n *Net) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]: new connections are refused, open ones continue.
func (n *Net) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr implements [net.Listener]. It returns the same loopback address always.
func (n *Net) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// socket is an end of a net.Pipe that buffers writes, as the kernel does:
// without a buffer, a TLS client that sends an alert and a server that is still writing would wait
// for each other.
type socket struct {
	net.Conn
	out  chan []byte
	over chan struct{}
	once sync.Once
}

// NewSocket returns an end of a [net.Pipe] that buffers up to 1,024 writes. pumps waits for its goroutine, which ends after
// Close.
func NewSocket(c net.Conn, pumps *sync.WaitGroup) *socket {
	s := &socket{Conn: c, out: make(chan []byte, 1024), over: make(chan struct{})}
	pumps.Go(s.pump)
	return s
}

// pump writes the buffered data. It ends when the socket is closed and the buffer is empty, or a write fails.
func (s *socket) pump() {
	defer func() { _, _ = s.Close(), s.Conn.Close() }()
	for {
		select {
		case b := <-s.out:
			if _, err := s.Conn.Write(b); err != nil {
				return
			}
		case <-s.over:
			if len(s.out) == 0 {
				return
			}
		}
	}
}

func (s *socket) Write(p []byte) (int, error) {
	select {
	case <-s.over:
		return 0, net.ErrClosed
	case s.out <- bytes.Clone(p):
		return len(p), nil
	}
}

// SetWriteDeadline does nothing: writing never waits. crypto/tls sets an expired one when
// it closes, which must not lose buffered data.
func (s *socket) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the read deadline only.
func (s *socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

func (s *socket) Close() error {
	s.once.Do(func() {
		close(s.over)
		_ = s.Conn.SetWriteDeadline(time.Now().Add(time.Second)) // for buffered data
	})
	return s.SetReadDeadline(time.Unix(1, 0)) // ends a Read
}

// Discard returns a logger that prints nothing, for [http.Server.ErrorLog].
func Discard() *log.Logger { return log.New(io.Discard, "", 0) }
