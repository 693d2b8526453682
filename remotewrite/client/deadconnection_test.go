package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"hwsagent/internal/testnet"
)

// mute is a network whose connections can die silently, as with an address
// translator that loses its state: writes vanish, and no data comes.
type mute struct {
	mu    sync.Mutex
	conns []*muteConn
}

type muteConn struct {
	net.Conn
	dead   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (m *mute) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &muteConn{Conn: conn, dead: make(chan struct{}), closed: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conns = append(m.conns, c)
	return c, nil
}

// forget makes all present connections dead and returns how many there ever were.
func (m *mute) forget() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		select {
		case <-c.dead:
		default:
			close(c.dead)
		}
	}
	return len(m.conns)
}

// end closes the connections that the client still believes to be alive.
func (m *mute) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		_ = c.Close() // it may be closed
	}
}

func (c *muteConn) Write(p []byte) (int, error) {
	select {
	case <-c.dead:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

func (c *muteConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.dead:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *muteConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// Silently dead connections cost one request that waits for its answer, not one
// each, even over HTTP/2, where cancelling a request does not end the connection.
func TestForgottenConnections(t *testing.T) {
	for name, entry := range map[string]string{"HTTP/1.1": "", "HTTP/2": "enable_http2: true\n"} {
		t.Run(name, func(t *testing.T) {
			const shards = 5
			var together sync.WaitGroup
			together.Add(shards)
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Retry-Attempt") == "1" {
					together.Done()
					together.Wait() // so that none goes on another's connection
				}
			}))
			s.EnableHTTP2 = true
			s.Config.ErrorLog = testnet.Discard()
			s.StartTLS()
			defer s.Close()
			network := &mute{}
			defer network.end()
			c := newClient(t, "url: "+s.URL+"\nremote_timeout: 500ms\ntls_config: {insecure_skip_verify: true}\n"+entry, "", Options{Dial: network.dial})
			defer c.Close()
			var sending sync.WaitGroup
			for range shards {
				sending.Go(func() {
					if a := c.Send(t.Context(), Request{Body: []byte("x"), Attempt: 1}); a.Status != 200 {
						t.Errorf("before: %+v", a)
					}
				})
			}
			sending.Wait()
			before := network.forget()
			if a := c.Send(t.Context(), Request{Body: []byte("x")}); !errors.Is(a.Err, errNoAnswer) {
				t.Fatalf("on a dead connection: %+v", a)
			}
			if a := c.Send(t.Context(), Request{Body: []byte("x")}); a.Status != 200 {
				t.Errorf("the one after it: %+v", a)
			}
			after := network.forget()
			if after == before {
				t.Error("there is no new connection")
			}
		})
	}
}
