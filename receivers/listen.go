package receivers

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// socket is a listening socket that one server can pass to the next.
type socket struct {
	tcp *net.TCPListener
}

func listen(address string) (*socket, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("listen on %s: not a TCP socket", address), l.Close())
	}
	return &socket{tcp}, nil
}

// share returns the socket for one server: closing it ends Accept and leaves the socket open.
func (s *socket) share(limit int, refused func()) (net.Listener, error) {
	if err := s.tcp.SetDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("listen again: %w", err)
	}
	return &bounded{Listener: shared{s.tcp}, limit: int64(limit), refused: refused}, nil
}

type shared struct{ *net.TCPListener }

// writeBuffer bounds the part of an answer that the kernel holds until its reader takes it, in bytes. Linux doubles the bound, and lets
// the server write on when a third of the buffer is free. A third of Linux's largest default buffer is more than a megabyte: a reader of
// the pull endpoint that takes half a megabyte a second would seem to take nothing for seconds.
const writeBuffer = 256 << 10

// Accept implements [net.Listener].
func (s shared) Accept() (net.Conn, error) {
	c, err := s.AcceptTCP()
	if err != nil {
		return nil, err
	}
	_ = c.SetWriteBuffer(writeBuffer) // without it the connection works; only slow readers look slower
	return c, nil
}

// Close makes Accept return. The socket keeps listening, for the next server.
func (s shared) Close() error { return s.SetDeadline(time.Unix(1, 0)) }

// bounded closes connections beyond a limit at once: open ones continue, and new ones do not wait for an idle
// connection.
type bounded struct {
	net.Listener
	limit   int64
	open    atomic.Int64
	refused func()
}

// Accept implements [net.Listener].
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= b.limit {
			return &counted{Conn: c, end: sync.OnceFunc(func() { b.open.Add(-1) })}, nil
		}
		b.open.Add(-1)
		b.refused()
		_ = c.Close() // an error does not matter, the connection is over
	}
}

type counted struct {
	net.Conn
	end func()
}

// Close implements [net.Conn].
func (c *counted) Close() error {
	c.end()
	return c.Conn.Close()
}
