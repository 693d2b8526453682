package snmp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes/devices"
)

// session is the persistent connection to one device. It is used by one goroutine at a time.
type session struct {
	endpoint endpoint
	auth     Auth
	timeout  time.Duration // of one packet
	retries  int
	log      *slog.Logger

	line *line // nil while there is no connection
	// met means that the device has sent its engine ID over line: it is there, regardless of
	// later failures.
	met     bool
	secrets secrets // with which line was made

	// bulk is how many variables one GETBULK asks for: the module's preference, but at most
	// learned. learned only decreases: to a number that the device answered after it had refused
	// or ignored a larger one.
	bulk, learned int
	config        Config
	// unconnected accepts answers from any address.
	unconnected bool
	pace        *devices.Pace
	// buffers belong to the current round; nil between rounds.
	buffers *buffers
	// renewed means that this round has used its one new connection.
	renewed bool
	// read, if set, is called for every accepted variable.
	read  func(oid)
	stats stats
}

// line is what a device keeps of its connection between rounds. gosnmp's client, with a buffer of 64 KiB, belongs to the room of a round.
type line struct {
	*tap
	sent func(*gosnmp.GoSNMP)
	// Of version 3, with the engine ID and the clock of the device: they must not outlive a connection, as answers of a
	// device with a new engine ID would be ignored.
	usm     *gosnmp.UsmSecurityParameters
	context string // the engine ID of requests
}

// stats counts the packets of a module.
type stats struct{ sent, retried, pdus int }

func newSession(c *Config, log *slog.Logger) (*session, error) {
	e, err := parseTarget(c.Target)
	if err != nil {
		return nil, fmt.Errorf("parse target: %w", err)
	}
	s := &session{endpoint: e, auth: c.Auth, log: log, config: *c, learned: maxRepetitions}
	s.tune(walkParams{})
	return s, nil
}

// tune sets the packet parameters: from the probe's configuration, else from the module, else
// the defaults.
func (s *session) tune(p walkParams) {
	c := &s.config
	s.timeout = cmp.Or(time.Duration(c.PacketTimeout), p.timeout, DefaultPacketTimeout)
	s.bulk = min(s.learned, cmp.Or(c.MaxRepetitions, p.maxRepetitions, DefaultMaxRepetitions))
	s.retries = *cmp.Or(c.Retries, p.retries, new(DefaultRetries))
}

// begin prepares the connection for a round: it closes the old one if a password file was
// replaced.
func (s *session) begin(ctx context.Context) error {
	s.renewed = false
	now, err := s.auth.load()
	if err != nil {
		return because(devices.Secret, err)
	}
	if now != s.secrets {
		s.close()
		s.secrets = now
	}
	if s.line == nil {
		return s.connect(ctx)
	}
	return nil
}

func (s *session) connect(ctx context.Context) error {
	g := &gosnmp.GoSNMP{
		Target: s.endpoint.host, Port: s.endpoint.port, Transport: s.endpoint.network,
		Context: ctx, Timeout: s.timeout,
	}
	usm := s.auth.usm(s.secrets)
	s.auth.apply(g, s.secrets, usm)
	if err := g.Connect(); err != nil {
		return because(connectReason(err), fmt.Errorf("connect to %s: %w", s.endpoint, err))
	}
	if s.unconnected && s.endpoint.network == "udp" {
		if err := unconnect(g); err != nil {
			return fmt.Errorf("open a socket for answers from any address: %w", err)
		}
	}
	// With v3 the signature covers the whole message, and a TCP stream has no packet boundaries: gosnmp reads both itself.
	brief := s.endpoint.network == "udp" && s.auth.version() != 3
	s.line = &line{tap: &tap{Conn: g.Conn, brief: brief}, usm: usm, sent: func(*gosnmp.GoSNMP) { s.stats.sent++ }}
	s.met = false
	return nil
}

// close closes the connection; the next round makes a new one.
func (s *session) close() {
	if s.line == nil {
		return
	}
	if err := s.line.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.log.Debug("Cannot close the socket", "device", s.endpoint.String(), "err", err)
	}
	s.line = nil
}

// dial returns the buffers' client, set up for one request over the line. It makes no retries: request does these, as a retried bulk request asks
// for less.
func (s *session) dial(ctx context.Context) (*gosnmp.GoSNMP, error) {
	g, err := s.buffers.client()
	if err != nil {
		return nil, err
	}
	s.line.buffers = s.buffers
	s.auth.apply(g, s.secrets, s.line.usm)
	g.Conn, g.Transport, g.Context, g.Timeout = s.line, s.endpoint.network, ctx, s.timeout
	g.ContextEngineID, g.OnSent = s.line.context, s.line.sent
	return g, nil
}

// hangUp keeps what g has learned. Then neither g nor the line keeps the other's memory alive between requests.
func (s *session) hangUp(g *gosnmp.GoSNMP) {
	s.line.context, s.line.buffers = g.ContextEngineID, nil
	g.Conn, g.SecurityParameters, g.Context, g.OnSent = nil, nil, nil, nil
}

// send sends one request once and waits for its answer. A canceled ctx interrupts it.
func (s *session) send(ctx context.Context, do func(*gosnmp.GoSNMP) (*gosnmp.SnmpPacket, error)) (*gosnmp.SnmpPacket, error) {
	g, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, s.line.interrupt)
	p, err := do(g)
	s.hangUp(g)
	s.met = s.line.usm != nil && s.line.usm.AuthoritativeEngineID != ""
	if !stop() { // the socket was interrupted and cannot be used again
		s.close()
		if err != nil {
			return nil, ctx.Err()
		}
	}
	if err == nil && p == nil {
		err = errNoPacket
	}
	return p, err
}

var errNoPacket = errors.New("no packet")

// request sends one request, again after a timeout, and once a round over a new connection
// after any other fault: a new engine ID, a restarted agent behind TCP, and an answer that
// the decoder cannot handle all appear as such a fault. size is the number of variables to
// ask for. From the second retry on it is halved, for this request, as a network that drops
// large answers looks just like packet loss.
func (s *session) request(ctx context.Context, size int, do func(g *gosnmp.GoSNMP, size int) (*gosnmp.SnmpPacket, error)) (*gosnmp.SnmpPacket, int, error) {
	start := time.Now()
	for try := 0; ; {
		if err := over(ctx); err != nil {
			return nil, size, s.explain(ctx, err, try, time.Since(start))
		}
		if s.line == nil {
			if err := s.connect(ctx); err != nil {
				return nil, size, err
			}
		}
		if err := s.pace.Wait(ctx); err != nil {
			return nil, size, err
		}
		p, err := s.send(ctx, func(g *gosnmp.GoSNMP) (*gosnmp.SnmpPacket, error) { return do(g, size) })
		if err == nil && p.PDUType != gosnmp.GetResponse {
			err = fmt.Errorf("%w: it answers a request with a %s", errNotAnAgent, p.PDUType)
		}
		if err == nil {
			return p, size, nil
		}
		timedOut := isTimeout(err)
		fault := s.explain(ctx, err, try+1, time.Since(start))
		switch {
		case over(ctx) != nil:
			return nil, size, fault
		case timedOut && try < s.retries:
			try++
			s.stats.retried++
			if try > 1 {
				size = max(1, size/2)
			}
		case !timedOut && !s.renewed:
			s.log.Debug("Connecting again", "device", s.endpoint.String(), "err", err)
			s.renewed = true
			s.close()
		default:
			s.close()
			return nil, size, fault
		}
	}
}

// errNotAnAgent is an answer that gosnmp decodes although it is not a Response-PDU, the only valid
// answer to a request (RFC 3416 section 4.2). An echo service sends the request itself back.
var errNotAnAgent = errors.New("an echo or another program listens there, not an SNMP agent")

// over returns why ctx has ended. The socket has ctx's deadline, too, and may report it slightly
// before ctx does.
func over(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// isTimeout distinguishes a missing answer from every other fault.
func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, gosnmp.ErrMaxRetriesExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout() ||
		err != nil && strings.Contains(err.Error(), "i/o timeout")
}

// tap is the socket under gosnmp. It leaves the last answer in the buffers, since a Report in it is more
// informative than gosnmp's error. It hides the end of a TCP stream, after which gosnmp would
// reconnect by itself and lose the tap.
type tap struct {
	net.Conn
	// brief means that each read returns one whole packet, whose variables gosnmp need not see.
	brief   bool
	buffers *buffers // of the waiting request
}

// maxReport is more than a USM report takes, with an engine ID and user name of maximum
// length.
const maxReport = 512

func (t *tap) Read(b []byte) (int, error) {
	t.buffers.decoded = false
	into := b
	if t.brief {
		into = t.buffers.packet
	}
	n, err := t.Conn.Read(into)
	if n > 0 {
		t.buffers.last = append(t.buffers.last[:0], into[:min(n, maxReport)]...)
	}
	if n == 0 && errors.Is(err, io.EOF) {
		err = errHungUp
	}
	if t.brief {
		n = t.hand(b, into[:n])
	}
	return n, err
}

// hand copies a packet to gosnmp, or only a brief of it if it could be decoded here.
func (t *tap) hand(b, packet []byte) int {
	if t.buffers.message.Decode(packet) {
		if brief := t.buffers.message.AppendBrief(b[:0]); len(brief) <= len(b) {
			t.buffers.decoded = true
			return len(brief)
		}
	}
	return copy(b, packet)
}

var errHungUp = errors.New("the device closed the connection")

// interrupt makes a Read in progress and all later ones fail.
func (t *tap) interrupt() { _ = t.Close() }
