//go:build linux

package crashlab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
)

// peer is a receiver that speaks HTTP by hand, so that it can stop anywhere in it. It
// notes what it stored and when, and what the sender cannot know that it has stored.
type peer struct {
	t      *testing.T
	listen func() (net.Listener, error)
	oracle *receiver.Oracle

	mu       sync.Mutex
	listener net.Listener // nil while the port is closed
	trick    trick
	conns    map[net.Conn]bool
	came     map[uint64]time.Time // when each number of the canary's series 0 came first
	accepted int                  // connections, ever
	requests int                  // whose head could be read, ever
	tricked  int                  // of these, those that a trick was played on
	unsure   uint64               // samples stored of requests whose answer was withheld
	doubt    bool                 // a fault is on: no answer is sure to arrive

	serving sync.WaitGroup
}

// trick is what a peer does about a request once it has its head; the body is still to
// be read. It returns false when the connection is to be closed.
type trick func(c *exchange) bool

// exchange is one request at a peer.
type exchange struct {
	p    *peer
	conn *net.TCPConn
	req  *http.Request
}

func newPeer(t *testing.T, listen func() (net.Listener, error)) *peer {
	t.Helper()
	p := &peer{t: t, listen: listen, oracle: receiver.NewOracle(), conns: map[net.Conn]bool{}, came: map[uint64]time.Time{}}
	p.open()
	t.Cleanup(func() {
		p.shut()
		p.cut(false)
		p.serving.Wait()
	})
	return p
}

// open opens the port.
func (p *peer) open() {
	p.t.Helper()
	l, err := p.listen()
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.listener = l
	p.mu.Unlock()
	p.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			p.mu.Lock()
			p.accepted++
			p.conns[conn] = true
			late := p.listener != l
			p.mu.Unlock()
			if late { // accepted while shut was at work
				conn.Close()
			}
			p.serving.Go(func() { p.serve(conn.(*net.TCPConn)) })
		}
	})
}

// address returns the host:port while the port is open.
func (p *peer) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listener.Addr().String()
}

// shut closes the port; connections stay.
func (p *peer) shut() {
	p.mu.Lock()
	l := p.listener
	p.listener = nil
	p.mu.Unlock()
	if l != nil {
		l.Close()
	}
}

// cut ends all connections, by a reset if hard.
func (p *peer) cut(hard bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if hard {
			_ = c.(*net.TCPConn).SetLinger(0)
		}
		c.Close()
	}
}

// sources returns the ports of the connections that are open.
func (p *peer) sources() (ports []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		ports = append(ports, c.RemoteAddr().(*net.TCPAddr).Port)
	}
	return ports
}

// play plays a trick on requests from now on, none if nil.
func (p *peer) play(k trick) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trick = k
}

// doubtful says whether answers may be lost on their way from now on.
func (p *peer) doubtful(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubt = on
}

// peerCounts is a snapshot of a peer's figures.
type peerCounts struct {
	accepted, requests, tricked int
	unsure                      uint64
}

func (p *peer) counts() peerCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return peerCounts{p.accepted, p.requests, p.tricked, p.unsure}
}

func (p *peer) serve(conn *net.TCPConn) {
	defer func() {
		conn.Close()
		p.mu.Lock()
		delete(p.conns, conn)
		p.mu.Unlock()
	}()
	for lines := bufio.NewReader(conn); ; {
		req, err := http.ReadRequest(lines)
		if err != nil {
			return // the sender has gone
		}
		x := &exchange{p: p, conn: conn, req: req}
		p.mu.Lock()
		p.requests++
		k := p.trick
		if k != nil {
			p.tricked++
		}
		p.mu.Unlock()
		if k == nil {
			k = (*exchange).accept
		}
		if !k(x) {
			return
		}
	}
}

// accept is what a peer does that plays no trick.
func (x *exchange) accept() bool { return x.store(false) && x.say("HTTP/1.1 204 No Content\r\n\r\n") }

// say writes; it returns false if the client has gone.
func (x *exchange) say(text string) bool {
	_, err := io.WriteString(x.conn, text)
	return err == nil
}

// store reads the body and stores it. withheld: the sender will not learn of it.
func (x *exchange) store(withheld bool) bool {
	body, err := io.ReadAll(io.LimitReader(x.req.Body, 16<<20))
	if err != nil {
		return false
	}
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		x.p.t.Errorf("decode a request: %v", err)
		return false
	}
	var w prompb.WriteRequest
	if err := w.Unmarshal(raw); err != nil {
		x.p.t.Errorf("decode a request: %v", err)
		return false
	}
	now, samples := time.Now(), 0
	p := x.p
	p.mu.Lock()
	for _, ts := range w.Timeseries {
		samples += len(ts.Samples)
		if receiver.Label(ts, "__name__") != receiver.CanaryName || receiver.Label(ts, "series") != "0" {
			continue
		}
		for _, s := range ts.Samples {
			if n := uint64(s.Value); p.came[n].IsZero() {
				p.came[n] = now
			}
		}
	}
	if withheld || p.doubt {
		p.unsure += uint64(samples)
	}
	p.mu.Unlock()
	p.oracle.Add(w.Timeseries)
	return true
}

// wait waits until the sender gives up, or the peer is cut.
func (x *exchange) wait() bool {
	_, _ = io.Copy(io.Discard, x.conn)
	return false
}

// repeat writes a text again and again until the client has gone.
func (x *exchange) repeat(text string, every time.Duration) bool {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		x.wait()
	}()
	defer func() { <-gone }()
	defer x.conn.Close()
	for {
		if !x.say(text) {
			return false
		}
		if every == 0 {
			continue
		}
		select {
		case <-gone:
			return false
		case <-time.After(every):
		}
	}
}

// The tricks. All but the last two store the request first.
var tricks = map[string]trick{
	"hangs before the answer": func(x *exchange) bool { return x.store(true) && x.wait() },
	"hangs in the answer's head": func(x *exchange) bool {
		return x.store(true) && x.say("HTTP/1.1 204 No Content\r\nDate: Mo") && x.wait()
	},
	"hangs in the answer's body": func(x *exchange) bool {
		return x.store(false) && x.say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nwell, ") && x.wait()
	},
	"answers without end": func(x *exchange) bool {
		return x.store(false) && x.say("HTTP/1.1 200 OK\r\n\r\n") && x.repeat(string(make([]byte, 64<<10)), 0)
	},
	"answers with a head without end": func(x *exchange) bool {
		return x.store(true) && x.say("HTTP/1.1 200 OK\r\n") && x.repeat(fmt.Sprintf("X-Much: %01000d\r\n", 0), 0)
	},
	"says 100 Continue for ever": func(x *exchange) bool {
		return x.store(true) && x.repeat("HTTP/1.1 100 Continue\r\n\r\n", time.Millisecond)
	},
	"answers a byte a second": func(x *exchange) bool {
		return x.store(true) && x.say("HTTP/1.1 204 No Con") && x.repeat("t", time.Second)
	},
	"answers a body of a byte a second": func(x *exchange) bool {
		return x.store(false) && x.say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n") && x.repeat("t", time.Second)
	},
	"answers garbage": func(x *exchange) bool {
		return x.store(true) && x.say("\x00\x01SSH-2.0-OpenSSH_9.2p1\r\n\r\n") && false
	},
	"closes instead of answering": func(x *exchange) bool { return x.store(true) && false },
	"resets instead of answering": func(x *exchange) bool { return x.store(true) && x.reset() },
	"resets in the answer's body": func(x *exchange) bool {
		return x.store(false) && x.say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nwell, ") && x.reset()
	},
	"closes after the request's head": func(*exchange) bool { return false },
	"resets in the request's body": func(x *exchange) bool {
		_, err := io.ReadFull(x.req.Body, make([]byte, 10))
		return err == nil && x.reset()
	},
}

// reset ends the connection so that the sender sees ECONNRESET.
func (x *exchange) reset() bool {
	if err := errors.Join(x.conn.SetLinger(0), x.conn.Close()); err != nil {
		x.p.t.Error(err)
	}
	return false
}

// freshAfter returns when the first number arrived that was tried after since; false if none
// has.
func (p *peer) freshAfter(w *witness, since time.Time) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	first := time.Duration(-1)
	for n, at := range p.came {
		if d := at.Sub(since); w.tried[n].After(since) && (first < 0 || d < first) {
			first = d
		}
	}
	return first, first >= 0
}

// lags returns how long each number that was tried in that stretch of time took to arrive.
func (p *peer) lags(w *witness, from, to time.Time) (lags []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, at := range p.came {
		if tried := w.tried[n]; tried.After(from) && tried.Before(to) {
			lags = append(lags, at.Sub(tried))
		}
	}
	return lags
}
