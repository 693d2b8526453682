//go:build linux

package crashlab

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"hwsagent/e2e/hostile"
	"hwsagent/e2e/mutate"
)

// server is a peer that the agent asks: an exporter, a receiver, a list of targets, a token
// endpoint. It plays what its deck deals.
type server struct {
	name    string
	tls     *tls.Config // nil: none. Its NextProtos say whether it speaks HTTP/2
	address string
	right   func(*rand.Rand) mutate.Answer
	// contents are those that the body of an answer may have.
	contents []mutate.Content
	compress bool // every second wrong content

	protocol, content *deck // which it plays from in turn

	mu       sync.Mutex
	listener net.Listener // nil while it is gone
	conns    map[net.Conn]bool
	serving  sync.WaitGroup
	asked    int // requests, ever
}

// maxRequest bounds what a server reads of a request.
const maxRequest = 16 << 20

func (s *server) http2() bool { return s.tls != nil && s.tls.NextProtos[0] == "h2" }

// kinds returns the ways in which it answers wrongly on a stream of HTTP/2, or over HTTP/1.1: by the
// protocol, and by the content.
func (s *server) kinds(stream uint32) (protocol, content []mutate.Kind) {
	plain := s.right(rand.New(rand.NewPCG(0, 0)))
	if s.http2() {
		return mutate.HTTP2(nil, stream, func(rnd *rand.Rand) []mutate.Frame { return s.right(rnd).Frames(stream) }), plain.Framed(stream, s.contents)
	}
	return mutate.Answers(s.right), plain.With(s.contents, s.compress)
}

func (s *server) open() error {
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.listener, s.conns = l, map[net.Conn]bool{}
	s.mu.Unlock()
	s.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			s.mu.Lock()
			if s.listener == nil {
				c.Close()
			}
			s.conns[c] = true
			s.mu.Unlock()
			s.serving.Go(func() {
				s.serve(c.(*net.TCPConn))
				c.Close()
				s.mu.Lock()
				delete(s.conns, c)
				s.mu.Unlock()
			})
		}
	})
	return nil
}

// shut takes the server away, with all its connections.
func (s *server) shut() {
	s.mu.Lock()
	if s.listener != nil {
		s.listener.Close()
	}
	s.listener = nil
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

func (s *server) serve(tcp *net.TCPConn) {
	c := mutate.Conn{Conn: tcp, TCP: tcp}
	if s.tls != nil {
		t := tls.Server(tcp, s.tls)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if t.HandshakeContext(ctx) != nil {
			return
		}
		c.Conn = t
	}
	lines := bufio.NewReader(c.Conn)
	if !s.http2() {
		for s.http1(c, lines) {
		}
		return
	}
	preface := make([]byte, len(http2.ClientPreface))
	f := http2.NewFramer(c.Conn, lines)
	if _, err := io.ReadFull(lines, preface); err != nil || f.WriteSettings() != nil {
		return
	}
	for {
		stream, _, err := hostile.ReadHTTP2(f)
		if err != nil {
			return
		}
		if !s.answer(c, stream) {
			return
		}
	}
}

func (s *server) http1(c mutate.Conn, lines *bufio.Reader) bool {
	req, err := http.ReadRequest(lines)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(req.Body, maxRequest)); err != nil {
		return false
	}
	return s.answer(c, 0)
}

func (s *server) answer(c mutate.Conn, stream uint32) bool {
	s.mu.Lock()
	s.asked++
	n := uint64(s.asked)
	s.mu.Unlock()
	protocol, content := s.kinds(stream)
	script, wrong := mutate.Script{}, false
	if n%2 == 0 {
		script, wrong = s.protocol.deal(s.name, protocol)
	} else {
		script, wrong = s.content.deal(s.name, content)
	}
	if wrong {
		return script.Play(c)
	}
	a := s.right(rand.New(rand.NewPCG(s.protocol.of.seed, n)))
	if s.http2() {
		return mutate.Sent(a.Frames(stream)).Play(c)
	}
	if s.compress && n%2 == 0 {
		a = a.Gzipped()
	}
	return a.Script().Play(c)
}

// writer is a peer that leaves files, or what a command prints.
type writer struct {
	name, file string
	deck       *deck
	right      func(*rand.Rand) []byte
	contents   []mutate.Content

	stop    context.CancelFunc
	serving sync.WaitGroup
}

// newContents is how often a writer writes.
const newContents = 400 * time.Millisecond

func (w *writer) open() error {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	w.serving.Go(func() {
		for rnd := rand.New(rand.NewPCG(w.deck.of.seed, 0)); ctx.Err() == nil; {
			script, ok := w.deck.deal(w.name, mutate.Plain(w.contents))
			body := mutate.Of(w.right(rnd))
			if ok {
				body = nil
				for _, step := range script.Steps {
					body = append(body, mutate.Piece{Bytes: step.Bytes, Times: step.Times})
				}
			}
			_ = w.write(body) // the disk is the machine's
			select {
			case <-ctx.Done():
			case <-time.After(newContents):
			}
		}
	})
	return nil
}

func (w *writer) write(body mutate.Body) error {
	f, err := os.Create(w.file + ".new")
	if err != nil {
		return err
	}
	for _, p := range body {
		for range max(1, p.Times) {
			if _, err := f.Write(p.Bytes); err != nil {
				f.Close()
				return err
			}
		}
	}
	return errors.Join(f.Close(), os.Rename(w.file+".new", w.file))
}

func (w *writer) shut() {
	if w.stop != nil {
		w.stop()
	}
	w.serving.Wait()
}

// mutant is anything that the agent meets.
type mutant interface {
	open() error
	shut()
}

func openAll(t *testing.T, all []mutant) {
	t.Helper()
	for _, p := range all {
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
	}
}
