package hostile

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/prometheus/prompb"
)

// Options configure a server. The zero value is plain HTTP/1.1 on a port of loopback.
type Options struct {
	Address string // host:port; "": a free port of 127.0.0.1
	Certs   *Certs // nil: no TLS
	HTTP2   bool   // instead of HTTP/1.1; needs Certs

	// Sink is called with the stored series, one call at a time; it must not keep them. nil: discard them.
	Sink func([]prompb.TimeSeries)
	// Elsewhere is the host:port that redirects point to.
	Elsewhere string
}

// Server is a receiver that behaves normally until it plays a behaviour. All methods are safe for concurrent use.
type Server struct {
	o    Options
	addr string // host:port

	listening sync.Mutex // one open or shut at a time
	serving   sync.WaitGroup
	sink      sync.Mutex // one Sink call at a time

	mu       sync.Mutex
	listener net.Listener // nil while the port is closed
	playing  *Behaviour   // nil: well
	since    time.Time    // when it began
	conns    map[net.Conn]bool
	counts   Counts
	doubt    bool // answers may not arrive
}

// Counts are a server's figures.
type Counts struct {
	Connections int // ever
	Opened      int // connections since Play
	Requests    int // requests with a readable head, in all
	Fired       int // connections or requests met by the behaviour, since Play
	Seen        int // requests since Play
	// Unsure is how many samples were stored without the sender being able to know.
	Unsure uint64
	// Early is by how much, at worst, a request came before the end of a requested Pause.
	Early time.Duration
	// Authorizations are the received headers of that name; Cookies likewise.
	Authorizations map[string]bool
	Cookies        int
	// Wrong describes how a request violated the protocol, "" if none did.
	Wrong string

	asked time.Time // the end of a pause requested by an answer
}

// Start starts a listening server.
func Start(o Options) (*Server, error) {
	s := &Server{o: o, addr: o.Address, conns: map[net.Conn]bool{}}
	if s.addr == "" {
		s.addr = "127.0.0.1:0"
	}
	s.counts.Authorizations = map[string]bool{}
	return s, s.open()
}

func (s *Server) open() error {
	s.listening.Lock()
	defer s.listening.Unlock()
	if s.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("start a hostile server: %w", err)
	}
	s.mu.Lock()
	s.listener, s.addr = l, l.Addr().String()
	s.mu.Unlock()
	s.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			s.mu.Lock()
			s.conns[c] = true
			s.counts.Connections++
			s.counts.Opened++
			s.mu.Unlock()
			s.serving.Go(func() { s.serve(c.(*net.TCPConn)) })
		}
	})
	return nil
}

func (s *Server) shut() {
	s.listening.Lock()
	defer s.listening.Unlock()
	s.mu.Lock()
	l := s.listener
	s.listener = nil
	s.mu.Unlock()
	if l != nil {
		l.Close()
	}
}

// Stop closes the port and all connections, and waits for their goroutines.
func (s *Server) Stop() {
	s.shut()
	s.cut()
	s.serving.Wait()
}

func (s *Server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
		delete(s.conns, c)
	}
}

// URL returns the address for writes.
func (s *Server) URL() string {
	scheme := "http"
	if s.o.Certs != nil {
		scheme = "https"
	}
	return scheme + "://" + s.addr + "/api/v1/write"
}

// Play makes the server misbehave from now on; nil: behave normally again. It cuts requests in flight, as if the server
// had been restarted.
func (s *Server) Play(b *Behaviour) error {
	s.mu.Lock()
	s.playing, s.since = b, time.Now()
	s.doubt = true // cutting may take answers away
	if b != nil {
		s.counts.Fired, s.counts.Seen, s.counts.Opened, s.counts.Early, s.counts.asked = 0, 0, 0, 0, time.Time{}
	}
	s.mu.Unlock()
	s.cut()
	s.mu.Lock()
	s.doubt = false
	s.mu.Unlock()
	if b != nil && b.shut {
		s.shut()
		s.mu.Lock()
		s.counts.Fired++ // attempts on a closed port cannot be seen
		s.mu.Unlock()
		return nil
	}
	return s.open()
}

// Counts returns the figures so far.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Authorizations = maps.Clone(c.Authorizations)
	return c
}

// conn is one connection.
type conn struct {
	net.Conn
	s     *Server
	born  time.Time
	tcp   *net.TCPConn
	lines *bufio.Reader
}

func (s *Server) serve(tcp *net.TCPConn) {
	c := &conn{Conn: tcp, s: s, born: time.Now(), tcp: tcp}
	defer func() {
		_ = c.Close()
		_ = tcp.Close() // also if TLS would wait to say goodbye
		s.mu.Lock()
		delete(s.conns, tcp)
		s.mu.Unlock()
	}()
	b := s.plays()
	if b != nil && b.raw != nil {
		s.fired()
		b.raw(c)
		return
	}
	if s.o.Certs != nil && !c.handshake(b) {
		return
	}
	c.lines = bufio.NewReader(c.Conn)
	switch {
	case b != nil && b.plain != nil:
		s.fired()
		b.plain(c)
	case s.o.HTTP2:
		c.http2(b)
	default:
		c.http1()
	}
}

// handshake starts TLS on the connection.
func (c *conn) handshake(b *Behaviour) bool {
	conf := c.s.o.Certs.Config(c.s.o.HTTP2)
	if b != nil && b.shake != nil {
		c.s.fired()
		b.shake(conf, c.s.o.Certs)
	}
	t := tls.Server(c.tcp, conf)
	if err := t.Handshake(); err != nil {
		return false
	}
	c.Conn = t
	return true
}

// http1 serves requests of HTTP/1.1.
func (c *conn) http1() {
	for {
		req, err := http.ReadRequest(c.lines)
		if err != nil {
			return // the sender has gone
		}
		x := &Exchange{c: c, Request: req}
		b := c.met(req)
		do := (*Exchange).accept
		if b != nil && b.answer != nil {
			do = b.answer
		}
		if !do(x) {
			return
		}
		_ = req.Body.Close() // discards the unread rest
	}
}

// plays returns the present behaviour.
func (s *Server) plays() *Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.playing
}

func (s *Server) fired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Fired++
}

// met counts a request, and returns the behaviour for it.
func (c *conn) met(req *http.Request) *Behaviour {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	b, n, now := s.playing, &s.counts, time.Now()
	n.Requests++
	before := c.born.Before(s.since) // Play closes this connection
	if !before {
		n.Seen++
	}
	for _, a := range req.Header["Authorization"] {
		n.Authorizations[a] = true
	}
	n.Cookies += len(req.Header["Cookie"])
	if b == nil {
		return nil
	}
	n.Fired++
	if b.Pause > 0 {
		if !n.asked.IsZero() {
			n.Early = max(n.Early, n.asked.Sub(now))
		}
		if !before { // else its answer may be cut off, and the sender may repeat the request at once
			n.asked = now.Add(b.Pause)
		}
	}
	return b
}
