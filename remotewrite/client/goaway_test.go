package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/config"
)

// TestServerThatEndsEachConnection: an HTTP/2 server that says GOAWAY to every connection
// without having taken the request costs few connections for each request, and the request
// fails with the reason, so that the target waits as after any other error of the network.
func TestServerThatEndsEachConnection(t *testing.T) {
	ca := testnet.NewAuthority(t)
	certPEM, keyPEM := ca.Issue("h.example")
	cert, err := tls.X509KeyPair([]byte(certPEM), []byte(keyPEM))
	if err != nil {
		t.Fatal(err)
	}
	dir := testnet.WriteFiles(t, map[string]string{"ca.pem": ca.Pem})
	for name, awaits := range map[string]bool{"at once": false, "instead of an answer": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &memConns{serve: func(raw net.Conn) {
					c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}})
					lines := bufio.NewReader(c)
					if _, err := io.ReadFull(lines, make([]byte, len(http2.ClientPreface))); err != nil {
						return
					}
					f := http2.NewFramer(c, lines)
					if f.WriteSettings() != nil {
						return
					}
					for frame := http2.Frame(nil); awaits; {
						if frame, err = f.ReadFrame(); err != nil {
							return
						}
						if _, head := frame.(*http2.HeadersFrame); head {
							break
						}
					}
					_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
					_, _ = io.Copy(io.Discard, lines)
				}}
				defer n.served.Wait()
				c := newClient(t, "{url: https://h.example/, enable_http2: true, tls_config: {ca_file: ca.pem}, remote_timeout: 10s}", dir, Options{Dial: n.dial})
				defer c.Close()
				a := c.Send(t.Context(), Request{Body: []byte("x")})
				if n.count() == 0 || n.count() > maxDials {
					t.Errorf("%d connections for one request, want at most %d", n.count(), maxDials)
				}
				if v := Judge(a, config.Policy{}).Verdict; v != Retry || a.Err == nil || !strings.Contains(a.Err.Error(), "ended 3 new connections in a row") {
					t.Errorf("%s: %s", v, a)
				}
				if a.Took > 10*time.Second {
					t.Errorf("it took %s", a.Took)
				}
			})
		})
	}
}

// TestDialsOfARequestAreCounted: by the request that they are made for, and only up to the
// limit.
func TestDialsOfARequestAreCounted(t *testing.T) {
	dials := 0
	dial := limitDials(func(context.Context, string, string) (net.Conn, error) {
		dials++
		return nil, io.EOF
	})
	first, second := withTrace(t.Context()), withTrace(t.Context())
	for range 5 {
		_, _ = dial(first, "tcp", "h:1")
	}
	if dials != maxDials {
		t.Errorf("%d connections for one request, want %d", dials, maxDials)
	}
	if _, _ = dial(second, "tcp", "h:1"); dials != maxDials+1 {
		t.Error("another request has no connection of its own")
	}
	if _, _ = dial(t.Context(), "tcp", "h:1"); dials != maxDials+2 {
		t.Error("what is no request of a target is limited")
	}
}
