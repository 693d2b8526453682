package client

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
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
