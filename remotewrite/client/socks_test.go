package client

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
)

// socksProxy is a SOCKS5 proxy (RFC 1928) that leads every name to one address, and asks
// for user and password (RFC 1929) if it has them.
type socksProxy struct {
	listener       net.Listener
	to             string
	user, password string
	refuse         byte // the reply to a request; 0: granted

	mu    sync.Mutex
	asked []string // host:port
}

func startSocks(t testing.TB, p *socksProxy) *socksProxy {
	t.Helper()
	var err error
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := p.listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_ = p.serve(conn) // the client's error tells
			})
		}
	})
	t.Cleanup(func() {
		_ = p.listener.Close()
		wg.Wait()
	})
	return p
}

func (p *socksProxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func (p *socksProxy) serve(conn net.Conn) error {
	r := bufio.NewReader(conn)
	if err := p.greet(conn, r); err != nil {
		return err
	}
	head := make([]byte, 5) // version, command, reserved, kind of address, length of a name
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	if head[3] != 3 {
		return fmt.Errorf("an address of kind %d: the client has resolved the name", head[3])
	}
	name := make([]byte, int(head[4])+2)
	if _, err := io.ReadFull(r, name); err != nil {
		return err
	}
	host, port := string(name[:head[4]]), int(name[head[4]])<<8|int(name[head[4]+1])
	p.mu.Lock()
	p.asked = append(p.asked, net.JoinHostPort(host, strconv.Itoa(port)))
	p.mu.Unlock()
	if _, err := conn.Write([]byte{5, p.refuse, 0, 1, 0, 0, 0, 0, 0, 0}); err != nil || p.refuse != 0 {
		return err
	}
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		return err
	}
	return splice(conn, r, out)
}

func (p *socksProxy) greet(conn net.Conn, r *bufio.Reader) error {
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	if _, err := r.Discard(int(head[1])); err != nil {
		return err
	}
	if p.user == "" {
		_, err := conn.Write([]byte{5, 0})
		return err
	}
	if _, err := conn.Write([]byte{5, 2}); err != nil {
		return err
	}
	var said [2]string // user, password
	if _, err := r.Discard(1); err != nil {
		return err
	}
	for i := range said {
		n, err := r.ReadByte()
		if err != nil {
			return err
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		said[i] = string(b)
	}
	if said != [2]string{p.user, p.password} {
		_, _ = conn.Write([]byte{1, 1})
		return fmt.Errorf("refused %q", said)
	}
	_, err := conn.Write([]byte{1, 0})
	return err
}

// splice copies in both directions until one side ends.
func splice(in net.Conn, from io.Reader, out net.Conn) error {
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(out, from)
		_ = out.Close()
		done <- err
	}()
	_, err := io.Copy(in, out)
	_ = in.Close()
	<-done
	return err
}
