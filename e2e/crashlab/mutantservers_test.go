//go:build linux

package crashlab

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"
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

// kinds are the ways in which it answers wrongly on a stream of HTTP/2, or over HTTP/1.1: by the
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

// device is a peer that speaks SNMP over UDP.
type device struct {
	name    string
	deck    *deck
	address string

	mu      sync.Mutex
	conn    net.PacketConn // nil while it is gone
	serving sync.WaitGroup
	asked   int
}

// variables are those of a device, in their order.
func variables() []gosnmp.SnmpPDU {
	v := func(oid string, kind gosnmp.Asn1BER, value any) gosnmp.SnmpPDU {
		return gosnmp.SnmpPDU{Name: ".1.3.6.1.2.1." + oid, Type: kind, Value: value}
	}
	return []gosnmp.SnmpPDU{
		v("1.1.0", gosnmp.OctetString, []byte("a device")), v("1.3.0", gosnmp.TimeTicks, uint32(4711)), v("1.5.0", gosnmp.OctetString, []byte("mutant")),
		v("2.2.1.1.1", gosnmp.Integer, 1), v("2.2.1.1.2", gosnmp.Integer, 2), v("2.2.1.2.1", gosnmp.OctetString, []byte("eth0")), v("2.2.1.2.2", gosnmp.OctetString, []byte("eth1")),
		v("2.2.1.10.1", gosnmp.Counter32, uint32(7)), v("2.2.1.10.2", gosnmp.Counter32, uint32(8)),
		v("31.1.1.1.1.1", gosnmp.OctetString, []byte("e0")), v("31.1.1.1.6.1", gosnmp.Counter64, uint64(1)<<60),
	}
}

// right is what a device answers (RFC 3416, section 4.2).
func right(req *gosnmp.SnmpPacket) []byte {
	answer := &gosnmp.SnmpPacket{Version: req.Version, Community: req.Community, RequestID: req.RequestID, PDUType: gosnmp.GetResponse}
	all := variables()
	for _, v := range req.Variables {
		at, found := slices.BinarySearchFunc(all, v.Name, func(p gosnmp.SnmpPDU, name string) int { return compareOIDs(p.Name, name) })
		repeat := 1
		if req.PDUType == gosnmp.GetBulkRequest {
			repeat = int(req.MaxRepetitions)
		}
		if req.PDUType != gosnmp.GetRequest && found {
			at++
		}
		for ; repeat > 0 && at < len(all) && (found || req.PDUType != gosnmp.GetRequest); repeat-- {
			answer.Variables = append(answer.Variables, all[at])
			at++
		}
		if repeat > 0 {
			answer.Variables = append(answer.Variables, gosnmp.SnmpPDU{Name: v.Name, Type: gosnmp.EndOfMibView})
		}
	}
	b, err := answer.MarshalMsg()
	if err != nil {
		return nil // a request that nothing can answer
	}
	return b
}

// compareOIDs compares by numbers.
func compareOIDs(a, b string) int {
	var x, y []int
	for _, p := range []struct {
		text string
		to   *[]int
	}{{a, &x}, {b, &y}} {
		n := 0
		for _, c := range p.text[1:] + "." {
			if c == '.' {
				*p.to = append(*p.to, n)
				n = 0
			} else {
				n = n*10 + int(c-'0')
			}
		}
	}
	return slices.CompareFunc(x, y, cmp.Compare[int])
}

// deviceKinds are the ways to answer wrongly: by one datagram, by none, and by a walk that does
// not end.
func deviceKinds(req *gosnmp.SnmpPacket) []mutate.Kind {
	var all []mutate.Kind
	for _, c := range mutate.BER(func(*rand.Rand) []byte { return right(req) }) {
		all = append(all, mutate.Kind{Name: c.Name, Make: func(rnd *rand.Rand) mutate.Script {
			return mutate.Script{Steps: []mutate.Step{{Bytes: c.Make(rnd).Bytes()}}}
		}})
	}
	answer := func(name string, f func(rnd *rand.Rand, p *gosnmp.SnmpPacket)) {
		all = append(all, mutate.Kind{Name: name, Make: func(rnd *rand.Rand) mutate.Script {
			p := &gosnmp.SnmpPacket{Version: req.Version, Community: req.Community, RequestID: req.RequestID, PDUType: gosnmp.GetResponse, Variables: slices.Clone(req.Variables)}
			f(rnd, p)
			b, _ := p.MarshalMsg() // nothing is sent if it cannot be written
			return mutate.Script{Steps: []mutate.Step{{Bytes: b}}}
		}})
	}
	answer("a walk without end", func(rnd *rand.Rand, p *gosnmp.SnmpPacket) {
		for i := range p.Variables {
			p.Variables[i] = gosnmp.SnmpPDU{Name: p.Variables[i].Name + ".1", Type: gosnmp.Integer, Value: rnd.IntN(100)}
		}
	})
	answer("a walk in place", func(_ *rand.Rand, p *gosnmp.SnmpPacket) {
		for i := range p.Variables {
			p.Variables[i].Type, p.Variables[i].Value = gosnmp.OctetString, []byte("again")
		}
	})
	answer("a walk backwards", func(_ *rand.Rand, p *gosnmp.SnmpPacket) {
		for i := range p.Variables {
			p.Variables[i] = gosnmp.SnmpPDU{Name: ".1.3.6.1.2.1.1.1.0", Type: gosnmp.OctetString, Value: []byte("back")}
		}
	})
	answer("an error of SNMP", func(rnd *rand.Rand, p *gosnmp.SnmpPacket) {
		p.Error, p.ErrorIndex = gosnmp.SNMPError(rnd.IntN(30)), uint8(rnd.IntN(256))
	})
	answer("the answer to another request", func(rnd *rand.Rand, p *gosnmp.SnmpPacket) { p.RequestID ^= 1 << rnd.IntN(31) })
	answer("a value of 60 KB", func(_ *rand.Rand, p *gosnmp.SnmpPacket) {
		p.Variables = []gosnmp.SnmpPDU{{Name: ".1.3.6.1.2.1.1.1.0", Type: gosnmp.OctetString, Value: make([]byte, 60_000)}}
	})
	return append(all, mutate.Kind{Name: "silence", Make: func(*rand.Rand) mutate.Script { return mutate.Script{} }},
		mutate.Kind{Name: "the answer many times", Make: func(*rand.Rand) mutate.Script {
			return mutate.Script{Steps: []mutate.Step{{Bytes: right(req), Times: 50}}}
		}})
}

func (d *device) open() error {
	conn, err := net.ListenPacket("udp", d.address)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.conn = conn
	d.mu.Unlock()
	d.serving.Go(func() {
		codec, buf := &gosnmp.GoSNMP{Version: gosnmp.Version2c}, make([]byte, 65536)
		for {
			n, from, err := conn.ReadFrom(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			req, err := codec.SnmpDecodePacket(slices.Clone(buf[:n]))
			if err != nil {
				continue // not from an agent, or about a port that is closed
			}
			d.mu.Lock()
			d.asked++
			d.mu.Unlock()
			script, ok := d.deck.deal(d.name, deviceKinds(req))
			if !ok {
				script = mutate.Script{Steps: []mutate.Step{{Bytes: right(req)}}}
			}
			for _, step := range script.Steps {
				for range max(1, step.Times) {
					_, _ = conn.WriteTo(step.Bytes, from) // one that is too long, or to nobody
				}
			}
		}
	})
	return nil
}

func (d *device) shut() {
	d.mu.Lock()
	if d.conn != nil {
		d.conn.Close()
	}
	d.conn = nil
	d.mu.Unlock()
	d.serving.Wait()
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
