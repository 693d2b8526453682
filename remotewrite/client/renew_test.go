package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A target whose name leads elsewhere meanwhile gets the requests there after a few answers with 5xx on the kept connection,
// which the old server keeps alive. Nothing else makes new connections, and neither do such answers within a minute.
func TestFailingConnectionsAreRenewed(t *testing.T) {
	var status atomic.Int32
	answer := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }
	before, after := httptest.NewServer(http.HandlerFunc(answer)), httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer before.Close()
	defer after.Close()
	var address atomic.Value
	address.Store(before.Listener.Addr().String())
	c := newClient(t, "url: http://receiver.test/", "", Options{Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address.Load().(string))
	}})
	defer c.Close()
	send := func(answers, want int) {
		t.Helper()
		status.Store(int32(answers))
		if a := c.Send(t.Context(), Request{Body: []byte("x")}); a.Status != want {
			t.Errorf("answered %+v, want %d", a, want)
		}
	}
	send(204, 204)
	address.Store(after.Listener.Addr().String())
	for range 5 {
		send(503, 503) // the connection is young
	}
	c.current.born = time.Now().Add(-2 * time.Minute)
	send(204, 204)
	for _, answers := range []int{503, 500, 400, 429, 502, 503} {
		send(answers, answers) // never three in a row
	}
	send(504, 504)
	send(503, 200)
}

// A fresh request does not use the connection that is kept; others do.
func TestFreshRequestGetsANewConnection(t *testing.T) {
	for _, tls := range []bool{false, true} {
		var opened atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
		}
		entry := "url: http://receiver.test/"
		if tls {
			entry = "{url: https://receiver.test/, tls_config: {insecure_skip_verify: true}}"
			server.EnableHTTP2 = true
			server.StartTLS()
		} else {
			server.Start()
		}
		c := newClient(t, entry, "", Options{Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, server.Listener.Addr().String())
		}})
		for i, want := range []int32{1, 1, 2, 2} {
			a := c.Send(t.Context(), Request{Body: []byte("x"), Fresh: i == 2})
			if n := opened.Load(); a.Status != 200 || n != want {
				t.Errorf("TLS %t, request %d: %+v over connection %d, want %d", tls, i, a, n, want)
			}
		}
		c.Close()
		server.Close()
	}
}

// countedConn counts the end of a connection, once.
type countedConn struct {
	net.Conn
	closed *atomic.Int32
	once   sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.closed.Add(1) })
	return c.Conn.Close()
}

// No connection is closed while a request uses the same pool: net/http makes a connection idle before it passes the answer on, and
// closing it in between turns the answer into an error. A stopping queue sends its last samples beside the end of Run.
func TestConnectionsCloseAfterTheirRequests(t *testing.T) {
	began, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) == "slow" {
			began <- struct{}{}
			<-answer
		}
	}))
	defer server.Close()
	for name, end := range map[string]func(c *Client, l *generation){
		"end of Run":    func(c *Client, _ *generation) { run(t, c)() },
		"Close":         func(c *Client, _ *generation) { c.Close() },
		"leave":         func(c *Client, l *generation) { c.leave(l) },
		"fresh request": func(c *Client, _ *generation) { c.Send(t.Context(), Request{Body: []byte("x"), Fresh: true}) },
		"aged generation": func(c *Client, l *generation) {
			l.born = l.born.Add(-time.Hour)
			c.Send(t.Context(), Request{Body: []byte("x")})
		},
		"new credentials": func(c *Client, l *generation) { l.creds.print = [32]byte{}; _ = c.reload(true) },
	} {
		var closed, dialed atomic.Int32
		c := newClient(t, "url: "+server.URL, "", Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, address)
			dialed.Add(1)
			return &countedConn{Conn: conn, closed: &closed}, err
		}})
		l := c.current
		slow := make(chan Answer)
		go func() { slow <- c.Send(t.Context(), Request{Body: []byte("slow")}) }()
		<-began
		c.Send(t.Context(), Request{Body: []byte("x")}) // its connection is idle now
		end(c, l)
		if n := closed.Load(); n != 0 {
			t.Errorf("%s: %d connections were closed beside a request", name, n)
		}
		answer <- struct{}{}
		if a := <-slow; a.Status != http.StatusOK {
			t.Errorf("%s: the request beside it got %+v", name, a)
		}
		c.Close()
		if closed.Load() != dialed.Load() || dialed.Load() < 2 {
			t.Errorf("%s: %d of %d connections were closed in the end", name, closed.Load(), dialed.Load())
		}
	}
}
