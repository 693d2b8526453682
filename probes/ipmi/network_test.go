package ipmi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// network is a simulated BMC at a UDP socket. It knows both cipher suites, and misbehaves on request.
type network struct {
	suites   []*suite
	password string
	status   byte                         // of Open Session or RAKP 2
	vexing   func(packet []byte) [][]byte // what is sent for one answer; nil: the answer

	mu       sync.Mutex
	sessions int // open ones
	opened   int // ever
}

func (n *network) count() (open, ever int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sessions, n.opened
}

func (n *network) serve(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); n.talk(conn) }()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return conn.LocalAddr().String()
}

func (n *network) talk(conn net.PacketConn) {
	f := newFake(fullRecord(1, 1, "a"), fullRecord(2, 2, "b"))
	var k *keys
	var s *suite
	var ours, theirs, number, answered, guid, who []byte // ours is the console's ID here
	for buffer := make([]byte, 2048); ; {
		size, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		payload, _, body, _, err := parsePacket(buffer[:size])
		if err != nil {
			continue
		}
		body = bytes.Clone(body)
		var answer []byte
		switch payload {
		case payloadOpenRequest:
			ours, theirs, s = body[4:8], []byte{9, 8, 7, 6}, nil
			for _, one := range n.suites {
				if one.auth == body[12] && one.integrity == body[20] {
					s = one
				}
			}
			if n.status != 0 || s == nil {
				answer = plain(payloadOpenResponse, append([]byte{0, cmp.Or(n.status, 0x11), 0, 0}, ours...))
				break
			}
			answer = plain(payloadOpenResponse, slices.Concat([]byte{0, 0, 0, 0}, ours, theirs, body[8:32]))
		case payloadRAKP1:
			number, who, answered, guid = body[8:24], append([]byte{body[24], body[27]}, body[28:]...), bytes.Repeat([]byte{5}, 16), bytes.Repeat([]byte{6}, 16)
			answer = plain(payloadRAKP2, slices.Concat([]byte{0, 0, 0, 0}, ours, answered, guid, s.sign([]byte(n.password), ours, theirs, number, answered, guid, who)))
		case payloadRAKP3:
			key := s.sign([]byte(n.password), number, answered, who)
			k, _ = newKeys(s, key)
			k.ours, k.theirs = binary.LittleEndian.Uint32(theirs), binary.LittleEndian.Uint32(ours)
			n.mu.Lock()
			n.sessions, n.opened = n.sessions+1, n.opened+1
			n.mu.Unlock()
			answer = plain(payloadRAKP4, slices.Concat([]byte{0, 0, 0, 0}, ours, s.sign(key, number, theirs, guid)[:s.check]))
		default:
			m, err := k.open(buffer[:size])
			if err != nil {
				continue
			}
			netFn, command := m[1]>>2, m[5]
			data, err := f.ask(context.Background(), 0, netFn, command, m[6:len(m)-1]...)
			if netFn == netApp && (command == setPrivilege || command == closeSession) {
				err = nil
			}
			if netFn == netApp && command == closeSession {
				n.mu.Lock()
				n.sessions--
				n.mu.Unlock()
			}
			code := byte(0)
			if refused := completion(0); errors.As(err, &refused) {
				code = byte(refused)
			}
			reply := []byte{remoteConsole, (netFn | 1) << 2, 0, bmc, m[4], command, code}
			reply[2] = checksum(reply[:2])
			reply = append(reply, data...)
			reply = append(reply, checksum(reply[3:]))
			answer = k.seal(reply, [aes.BlockSize]byte{1, byte(k.sequence)})
		}
		all := [][]byte{answer}
		if n.vexing != nil {
			all = n.vexing(answer)
		}
		for _, p := range all {
			_, _ = conn.WriteTo(p, from)
		}
	}
}

func quick(address string) Config {
	retries := 1
	return Config{Target: address, Username: "u", Password: "pass-word", PacketTimeout: model.Duration(5 * time.Second), Retries: &retries}
}

// TestSuites: 17 is tried first, then 3, and the accepted suite is remembered; each round has one session, which is closed.
func TestSuites(t *testing.T) {
	for _, tc := range []struct {
		name string
		has  []*suite
		want *suite
	}{{"17", []*suite{suite17}, suite17}, {"3", []*suite{suite3}, suite3}, {"both", []*suite{suite3, suite17}, suite17}} {
		n := &network{suites: tc.has, password: "pass-word"}
		c := quick(n.serve(t))
		d := &dialer{config: &c, address: c.Target}
		p := newProbe(t, c)
		p.open = d.open
		for range 2 {
			if got, err := round(t, p); err != nil || !strings.Contains(got, `name="b"} 42`) || d.taken != tc.want {
				t.Errorf("%s: %v\n%s", tc.name, err, got)
			}
		}
		if open, ever := n.count(); open != 0 || ever != 2 {
			t.Errorf("%s: %d sessions are open, of %d", tc.name, open, ever)
		}
	}
}

// TestVexing: packets that are late, doubled, out of order, cut, longer than they are or changed on the way are passed over.
func TestVexing(t *testing.T) {
	late := func() func([]byte) [][]byte {
		var held []byte
		return func(p []byte) [][]byte {
			all := [][]byte{p}
			if held != nil {
				all = [][]byte{held, p}
			}
			held = p
			return all
		}
	}
	for name, vexing := range map[string]func([]byte) [][]byte{
		"doubled": func(p []byte) [][]byte { return [][]byte{p, p} },
		"late":    late(),
		"cut": func(p []byte) [][]byte {
			var all [][]byte
			for i := 0; i < len(p); i += 3 {
				all = append(all, p[:i])
			}
			return append(all, p)
		},
		"lengths": func(p []byte) [][]byte {
			long, short, empty := bytes.Clone(p), bytes.Clone(p), bytes.Clone(p)
			long[14], long[15] = 0xff, 0xff
			short[14] = 3
			empty[14], empty[15] = 0, 0
			return [][]byte{long, short, empty, p}
		},
		"changed": func(p []byte) [][]byte {
			var all [][]byte
			for i := 16; i < len(p) && p[5] == encrypted|authenticated; i += 5 {
				c := bytes.Clone(p)
				c[i] ^= 0x40
				all = append(all, c)
			}
			return append(all, p)
		},
		"rubbish": func(p []byte) [][]byte { return [][]byte{{}, {6}, bytes.Repeat([]byte{0xff}, 1400), p} },
	} {
		n := &network{suites: []*suite{suite17}, password: "pass-word", vexing: vexing}
		got, err := round(t, newProbe(t, quick(n.serve(t))))
		if err != nil || !strings.Contains(got, `name="a"} 41`) || !strings.Contains(got, `name="b"} 42`) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// TestLost: each packet's first answer is lost; retries make up for it.
func TestLost(t *testing.T) {
	var sent atomic.Int32
	n := &network{suites: []*suite{suite17}, password: "pass-word", vexing: func(p []byte) [][]byte {
		if n := sent.Add(1); n == 2 || n == 9 {
			return nil
		}
		return [][]byte{p}
	}}
	c := quick(n.serve(t))
	retries := 5
	c.PacketTimeout, c.Retries = model.Duration(time.Second), &retries
	if got, err := round(t, newProbe(t, c)); err != nil || !strings.Contains(got, `name="b"} 42`) || sent.Load() < 14 {
		t.Errorf("%d sent: %v\n%s", sent.Load(), err, got)
	}
}

// TestRefusals explains what a BMC says at login.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		status byte
		want   string
	}{
		{0x01, "no session left"}, {0x11, "does not take the cipher suite"}, {0x09, "may not have the privilege user"},
	} {
		n := &network{suites: []*suite{suite17, suite3}, password: "pass-word", status: tc.status}
		if _, err := round(t, newProbe(t, quick(n.serve(t)))); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%02x: %v", tc.status, err)
		}
	}
	n := &network{suites: []*suite{suite17, suite3}, password: "another"}
	p := newProbe(t, quick(n.serve(t)))
	for range 3 {
		if _, err := round(t, p); err == nil || !strings.Contains(err.Error(), "or the account is locked") {
			t.Errorf("a wrong password: %v", err)
		}
	}
	if open, ever := n.count(); open != 0 || ever != 0 {
		t.Errorf("%d sessions were opened", ever)
	}
	silent := &network{vexing: func([]byte) [][]byte { return nil }}
	c := quick(silent.serve(t))
	c.PacketTimeout = model.Duration(20 * time.Millisecond)
	if _, err := round(t, newProbe(t, c)); err == nil || !strings.Contains(err.Error(), "the BMC is down") {
		t.Errorf("silence: %v", err)
	}
	away := newProbe(t, c)
	r := probes.NewRound(0)
	if err := away.Collect(t.Context(), r); err == nil || len(r.Samples()) != 3 || r.Samples()[2].Labels[1] != "timeout" {
		t.Errorf("silence: %v, %v", err, r.Samples())
	}
	if _, err := round(t, newProbe(t, Config{Target: "/dev/ipmi250"})); err == nil || !strings.Contains(err.Error(), "modprobe ipmi_devintf") {
		t.Errorf("no device: %v", err)
	}
}

// TestFlood: a BMC, or something in its place, that sends without end and answers nothing costs a round no longer than its time.
func TestFlood(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		buffer := make([]byte, 1400)
		_, to, err := conn.ReadFrom(buffer)
		for err == nil {
			_, err = conn.WriteTo(buffer, to)
		}
	})
	t.Cleanup(func() { _ = conn.Close(); all.Wait() })
	c := quick(conn.LocalAddr().String())
	c.PacketTimeout = model.Duration(100 * time.Millisecond)
	done := make(chan error, 1)
	go func() {
		_, err := round(t, newProbe(t, c))
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("the error is %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the round does not end")
	}
}
