package ipmi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// fake is a BMC's other side that the tests wrote: commands and their answers, behind a link.
type fake struct {
	answers map[[2]byte]func(data []byte) ([]byte, error)
	asked   int
	closed  int
	dead    int // after as many commands it answers nothing; 0 never
}

func (f *fake) ask(ctx context.Context, _, netFn, command byte, data ...byte) ([]byte, error) {
	f.asked++
	if f.dead > 0 && f.asked > f.dead {
		return nil, errSilent
	}
	if answer := f.answers[[2]byte{netFn, command}]; answer != nil {
		return answer(data)
	}
	return nil, invalidCommand
}

func (f *fake) close(context.Context) { f.closed++ }

// always is an answer that does not depend on the request.
func always(b ...byte) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return b, nil }
}

// fullRecord is a record of an analog sensor in degrees, of that number and name.
func fullRecord(id uint16, number byte, name string) []byte {
	r := make([]byte, 48, 64)
	binary.LittleEndian.PutUint16(r, id)
	r[2], r[3], r[5], r[7], r[8], r[9] = 0x51, fullSensor, bmc, number, 3, 1
	r[11], r[12], r[13], r[18], r[21] = 1<<2, typeTemperature, threshold, 0x3f, unitCelsius
	r[24] = 1
	r[47] = 0xc0 | byte(len(name))
	r = append(r, name...)
	r[4] = byte(len(r) - recordHeader)
	return r
}

// newFake is a BMC with these records, of which each sensor reads 40 + its number.
func newFake(records ...[]byte) *fake {
	f := &fake{}
	f.answers = map[[2]byte]func([]byte) ([]byte, error){
		{netApp, getDeviceID}:        always(0x20, 1, 9, 8, 2, 0, 0x91, 0x12, 0, 1, 0),
		{netChassis, getChassis}:     always(1, 0, 0),
		{netStorage, getRepository}:  always(0x51, byte(len(records)), 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0),
		{netStorage, reserveRecords}: always(1, 0),
		{netStorage, getLogInfo}:     always(0x51, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		{netSensor, getReading}:      func(d []byte) ([]byte, error) { return []byte{40 + d[0], 0x40, 0}, nil },
		{netSensor, getThresholds}:   always(0x38, 0, 0, 0, 80, 90, 100),
		{netStorage, getRecord}: func(d []byte) ([]byte, error) {
			id, at, n := binary.LittleEndian.Uint16(d[2:]), int(d[4]), int(d[5])
			for i, r := range records {
				if own := binary.LittleEndian.Uint16(r); own != id && !(id == 0 && i == 0) {
					continue
				}
				next := []byte{0xff, 0xff}
				if i+1 < len(records) {
					next = records[i+1][:2]
				}
				if at > len(r) {
					return nil, cannotReturn
				}
				rest := r[at:]
				if n != wholePart {
					rest = rest[:min(n, len(rest))]
				}
				return append(slices.Clone(next), rest...), nil
			}
			return nil, notPresent
		},
	}
	return f
}

func probeOf(t *testing.T, f *fake) *Probe {
	t.Helper()
	p := newProbe(t, Config{Target: "192.0.2.1", Username: "u", Password: "pass-word"})
	p.open = func(context.Context, bool) (link, error) { return f, nil }
	return p
}

// TestOddRecords: what cannot be understood costs itself.
func TestOddRecords(t *testing.T) {
	short := fullRecord(2, 2, "lies")
	short[4] = 200 // says that it is longer than it is
	stub := []byte{3, 0, 0x51, fullSensor, 2, 0, 0}
	other := []byte{4, 0, 0x51, 0xc0, 1, 0}
	f := newFake(fullRecord(1, 1, "first"), short, stub, other, fullRecord(9, 9, "last"))
	got, err := round(t, probeOf(t, f))
	if err != nil || !strings.Contains(got, `ipmi_temperature_celsius{id="1",name="first"} 41`) || !strings.Contains(got, `ipmi_temperature_celsius{id="9",name="last"} 49`) ||
		!strings.Contains(got, "ipmi_records_unread{} 2\n") || !strings.Contains(got, `hw_temperature_limit_celsius{hw_id="ipmi:20.0.09",hw_limit_type="high.critical",hw_name="last",hw_parent="ipmi:processor.1"} 90`) {
		t.Errorf("%v\n%s", err, got)
	}
	if f.closed != 1 {
		t.Errorf("closed %d times", f.closed)
	}
}

// TestParts: a BMC that returns 16 bytes at a time, and loses reservations.
func TestParts(t *testing.T) {
	f := newFake(fullRecord(1, 1, "first sensor"), fullRecord(2, 2, "second"))
	whole, lost := f.answers[[2]byte{netStorage, getRecord}], 0
	f.answers[[2]byte{netStorage, getRecord}] = func(d []byte) ([]byte, error) {
		if d[5] > smallPart {
			return nil, cannotReturn
		}
		if lost++; lost%5 == 0 {
			return nil, reservationLost
		}
		return whole(d)
	}
	got, err := round(t, probeOf(t, f))
	if err != nil || !strings.Contains(got, `name="first sensor"} 41`) || !strings.Contains(got, `name="second"} 42`) || lost < 5 {
		t.Errorf("%d asked: %v\n%s", lost, err, got)
	}
}

// TestCircle: records that lead back to themselves end.
func TestCircle(t *testing.T) {
	f := newFake(fullRecord(1, 1, "a"), fullRecord(2, 2, "b"))
	get := f.answers[[2]byte{netStorage, getRecord}]
	f.answers[[2]byte{netStorage, getRecord}] = func(d []byte) ([]byte, error) {
		b, err := get(d)
		if err == nil && b[0] == 0xff {
			b[0], b[1] = 1, 0
		}
		return b, err
	}
	got, err := round(t, probeOf(t, f))
	if err != nil || !strings.Contains(got, "ipmi_sensors{} ") || f.asked > 100 {
		t.Errorf("%d asked: %v\n%s", f.asked, err, got)
	}
}

// TestCache: records are read again only when the BMC says that they changed.
func TestCache(t *testing.T) {
	f := newFake(fullRecord(1, 1, "a"))
	p := probeOf(t, f)
	for range 3 {
		if _, err := round(t, p); err != nil {
			t.Fatal(err)
		}
	}
	before := p.records
	f.answers[[2]byte{netStorage, getRepository}] = always(0x51, 1, 0, 0, 0, 9, 9, 9, 9, 0, 0, 0, 0, 0)
	if _, err := round(t, p); err != nil || p.records == before {
		t.Errorf("%v; the records were not read again", err)
	}
}

// TestDies: a BMC that stops answering after any number of commands: what was read is kept, the session is closed, the round ends.
func TestDies(t *testing.T) {
	for dead := 1; dead < 18; dead++ {
		f := newFake(fullRecord(1, 1, "a"), fullRecord(2, 2, "b"))
		f.dead = dead
		p := probeOf(t, f)
		got, err := round(t, p)
		if all := f.asked <= dead; (err == nil) != all || f.closed != 1 || f.asked > dead+1 {
			t.Errorf("after %d: %d asked, %d closed, %v\n%s", dead, f.asked, f.closed, err, got)
		}
		f.dead = 0
		if got, err := round(t, p); err != nil || !strings.Contains(got, `name="b"} 42`) {
			t.Errorf("after it came back: %v\n%s", err, got)
		}
	}
}

// TestShortAnswers: each answer is cut at each length; nothing breaks, and the other parts are read.
func TestShortAnswers(t *testing.T) {
	for key := range newFake().answers {
		for n := range 20 {
			f := newFake(fullRecord(1, 1, "a"))
			whole := f.answers[key]
			f.answers[key] = func(d []byte) ([]byte, error) {
				b, err := whole(d)
				return b[:min(n, len(b))], err
			}
			r := probes.NewRound(0)
			err := probeOf(t, f).Collect(t.Context(), r)
			if len(r.Samples()) == 0 || err != nil && !errors.Is(err, probes.ErrPartial) || f.asked > 3000 {
				t.Errorf("%x cut at %d: %d samples, %d asked, %v", key, n, len(r.Samples()), f.asked, err)
			}
			_ = text(t, r)
		}
	}
}

func TestPower(t *testing.T) {
	f := newFake()
	watts := []byte{groupDCMI, 0x2c, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40}
	f.answers[[2]byte{netGroup, getPower}] = always(watts...)
	got, err := round(t, probeOf(t, f))
	if err != nil || !strings.Contains(got, "ipmi_dcmi_power_consumption_watts{} 300\n") || !strings.Contains(got, `hw_host_power_watts{hw_quality="measured"} 300`) {
		t.Errorf("%v\n%s", err, got)
	}
	watts[17] = 0 // not measured at present
	if got, err := round(t, probeOf(t, f)); err != nil || strings.Contains(got, "watts") || !strings.Contains(got, `ipmi_up{collector="dcmi"} 0`) {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestStates reads each state of the tables.
func TestStates(t *testing.T) {
	for _, tc := range []struct {
		kind, reading byte
		states        uint16
		want          hw.Status
	}{
		{typeTemperature, threshold, 0, ok}, {typeTemperature, threshold, 1, degraded}, {typeTemperature, threshold, 8, degraded}, {typeTemperature, threshold, 0b011000, failed},
		{typeTemperature, threshold, 4, failed}, {typePowerSupply, specific, 1, ok}, {typePowerSupply, specific, 0b11, failed}, {typePowerSupply, specific, 0b1001, degraded},
		{typePowerSupply, specific, 0b101, ok | predicted}, {typeDriveSlot, specific, 0b11, failed}, {typeDriveSlot, specific, 0b101, ok | predicted}, {typeIntrusion, specific, 0, ok},
		{typeIntrusion, specific, 1, degraded}, {typeMemory, specific, 1 << 6, ok}, {typeMemory, specific, 1<<6 | 2, failed}, {typeBattery, specific, 4, ok}, {typeBattery, specific, 1, degraded},
		{typeFan, 0x0b, 1, ok}, {typeFan, 0x0b, 2, degraded}, {typeFan, 0x0b, 1 << 5, failed}, {typeFan, 4, 2, ok | predicted}, {0xc1, specific, 1, 0}, {typeFan, 0x70, 1, 0},
	} {
		r := reading{sensor: &sensor{kind: tc.kind, reading: tc.reading}, there: true, known: true, states: tc.states}
		if got := r.status(); got != tc.want {
			t.Errorf("type %02x, %02x, states %b: %q, want %q", tc.kind, tc.reading, tc.states, got, tc.want)
		}
	}
	if got := (&reading{sensor: &sensor{}}).status(); got != hw.Unknown {
		t.Errorf("a sensor that says nothing is %q", got)
	}
}

func TestValue(t *testing.T) {
	for _, tc := range []struct {
		name   string
		s      sensor
		raw    byte
		want   float64
		wanted bool
	}{
		{"plain", sensor{factors: factors{m: 1}}, 200, 200, true},
		{"scaled", sensor{factors: factors{m: 63, rExp: -3}}, 205, 12.915, true},
		{"offset", sensor{factors: factors{m: 2, b: 5, bExp: 1, rExp: -1}}, 10, 7, true},
		{"big", sensor{factors: factors{m: 1, rExp: 2}}, 3, 300, true},
		{"small offset", sensor{factors: factors{m: 1, b: 5, bExp: -2}}, 1, 1.05, true},
		{"twos' complement", sensor{format: 2, factors: factors{m: 1}}, 0xfb, -5, true},
		{"ones' complement", sensor{format: 1, factors: factors{m: 1}}, 0xfa, -5, true},
		{"1/x", sensor{linear: 7, factors: factors{m: 1}}, 4, 0.25, true},
		{"1/0", sensor{linear: 7, factors: factors{m: 1}}, 0, 0, false},
		{"square root", sensor{linear: 10, factors: factors{m: 1}}, 81, 9, true},
		{"unknown", sensor{linear: 12, factors: factors{m: 1}}, 1, 0, false},
	} {
		got, ok := tc.s.value(tc.raw)
		if ok != tc.wanted || ok && math.Abs(got-tc.want) > 1e-12 || ok && tc.name == "scaled" && got != 12.915 {
			t.Errorf("%s is %v, %t", tc.name, got, ok)
		}
	}
	if f := parseFactors([]byte{0xff, 0xc0, 0x01, 0x80, 0, 0xd2}); f != (factors{m: -1, b: -511, rExp: -3, bExp: 2}) {
		t.Errorf("the factors are %+v", f)
	}
}

func TestText(t *testing.T) {
	for _, tc := range []struct {
		typeLength byte
		b          []byte
		want       string
	}{
		{0xc3, []byte("abc"), "abc"}, {0xc5, []byte("ab"), "ab"}, {0xc2, []byte{0xb0, 'C'}, "°C"},
		{0x83, []byte{0x29, 0xdc, 0xa6}, "IPM"}, // the example of section 43.15
		{0x44, []byte{0x21, 0xc3}, "123."}, {0x9f, []byte{1}, "!"}, {0xc0, nil, ""},
	} {
		if got := parseText(tc.typeLength, tc.b); got != tc.want {
			t.Errorf("%02x %x is %q, want %q", tc.typeLength, tc.b, got, tc.want)
		}
	}
}

func TestConfig(t *testing.T) {
	three, many := 3, 21
	for _, tc := range []struct {
		c    Config
		want string
	}{
		{Config{Target: "192.0.2.1", Username: "u", Password: "p", Retries: &three}, ""}, {Config{Target: "/dev/ipmi0"}, ""}, {Config{Target: "[2001:db8::1]:6230", Username: "u", PasswordFile: "f"}, ""},
		{Config{}, "target: is missing"}, {Config{Target: "https://bmc", Username: "u", Password: "p"}, "target: "}, {Config{Target: "b:0", Username: "u", Password: "p"}, "target: "},
		{Config{Target: "b"}, "username: is missing"}, {Config{Target: "b", Username: "u"}, "password: is missing"}, {Config{Target: "b", Username: "u", Password: "p", PasswordFile: "f"}, "not both"},
		{Config{Target: "b", Username: strings.Repeat("u", 17), Password: "p"}, "longer than 16"}, {Config{Target: "b", Username: "u", Password: config.Secret(strings.Repeat("p", 21))}, "longer than 20"},
		{Config{Target: "/dev/ipmi0", Username: "u"}, "has no login"}, {Config{Target: "b", Username: "u", Password: "p", Privilege: "root"}, "privilege: "},
		{Config{Target: "b", Username: "u", Password: "p", CipherSuite: 1}, "cipher_suite: "}, {Config{Target: "b", Username: "u", Password: "p", Retries: &many}, "retries: "},
		{Config{Target: "b", Username: "u", Password: "p", PacketTimeout: model.Duration(-1)}, "packet_timeout: "},
	} {
		err := tc.c.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.c, err, tc.want)
		}
	}
}

// network is a BMC at a UDP socket that the tests wrote. It knows both cipher suites, and misbehaves as it is told.
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

// TestSuites: 17 is tried first, then 3, and what the BMC took is remembered; each round has one session, which is closed.
func TestSuites(t *testing.T) {
	for _, tc := range []struct {
		name string
		has  []*suite
		want *suite
	}{{"17", []*suite{suite17}, suite17}, {"3", []*suite{suite3}, suite3}, {"both", []*suite{suite3, suite17}, suite17}} {
		n := &network{suites: tc.has, password: "pass-word"}
		c := quick(n.serve(t))
		d := &door{config: &c, address: c.Target}
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
	var held []byte
	for name, vexing := range map[string]func([]byte) [][]byte{
		"doubled": func(p []byte) [][]byte { return [][]byte{p, p} },
		"late": func(p []byte) [][]byte {
			all := [][]byte{p}
			if held != nil {
				all = [][]byte{held, p}
			}
			held = p
			return all
		},
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
		held = nil
		n := &network{suites: []*suite{suite17}, password: "pass-word", vexing: vexing}
		got, err := round(t, newProbe(t, quick(n.serve(t))))
		if err != nil || !strings.Contains(got, `name="a"} 41`) || !strings.Contains(got, `name="b"} 42`) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// TestLost: each packet's first answer is lost; retries make up for it.
func TestLost(t *testing.T) {
	sent := 0
	n := &network{suites: []*suite{suite17}, password: "pass-word", vexing: func(p []byte) [][]byte {
		if sent++; sent == 2 || sent == 9 {
			return nil
		}
		return [][]byte{p}
	}}
	c := quick(n.serve(t))
	retries := 5
	c.PacketTimeout, c.Retries = model.Duration(time.Second), &retries
	if got, err := round(t, newProbe(t, c)); err != nil || !strings.Contains(got, `name="b"} 42`) || sent < 14 {
		t.Errorf("%d sent: %v\n%s", sent, err, got)
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

func FuzzRecord(f *testing.F) {
	f.Add(fullRecord(1, 1, "name"))
	f.Add([]byte{2, 0, 0x51, compactSensor, 30, bmc, 0, 7, 3, 1, 0, 0, 8, specific, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x13, 0x82, 0, 0, 0, 0, 0, 0, 0xc3, 'a', 'b', 'c'})
	f.Add([]byte{3, 0, 0x51, fruLocator, 13, bmc, 1, 0x80, 0, 0, 0, 0, 10, 1, 0, 0xc2, 'x', 'y'})
	f.Fuzz(func(t *testing.T, b []byte) {
		sensors, _, err := parseRecord(b)
		if err != nil {
			return
		}
		for i := range sensors {
			s := &sensors[i]
			if v, ok := s.value(0x80); ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
				t.Errorf("%+v gives %v", s, v)
			}
			one := reading{sensor: s, there: true, known: true, states: 0xff, value: 1, valued: s.analog}
			_, _ = one.component()
			_ = one.status()
		}
	})
}

func FuzzInventory(f *testing.F) {
	f.Add([]byte{1, 0, 0, 1, 0, 0, 0, 0xfe, 1, 2, 0, 0, 0, 0, 0xc2, 'a', 'b', 0xc1, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, b []byte) {
		if len(b) > 7 {
			b[7] = checksum(b[:7])
		}
		_, _ = parseInventory(b)
	})
}

// FuzzPacket has any bytes for a packet, before and within a session, also rightly signed.
func FuzzPacket(f *testing.F) {
	k, err := newKeys(suite17, []byte("key"))
	if err != nil {
		f.Fatal(err)
	}
	k.ours, k.theirs = 7, 7
	f.Add(k.seal(message(0, netApp, getDeviceID, 1, nil), [aes.BlockSize]byte{}))
	f.Add(plain(payloadRAKP2, make([]byte, 80)))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = openPlain(b, payloadRAKP2)
		if m, err := k.open(b); err == nil {
			_, _, _ = parseMessage(m, netApp, getDeviceID, 1)
		}
		if len(b) > len(rmcp)+sessionHeader+k.suite.trail {
			signed := b[:len(b)-k.suite.trail]
			b = append(bytes.Clone(signed), k.suite.sign(k.signing, signed[len(rmcp):])[:k.suite.trail]...)
			if m, err := k.open(b); err == nil {
				_, _, _ = parseMessage(m, netApp, getDeviceID, 1)
			}
		}
		if len(b) >= 16 {
			_ = parseEvent(b[:16])
		}
	})
}

// FuzzAnswers has any bytes for the answers of a BMC, one after another.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{0x20, 1, 9, 8, 2, 0, 0x91, 0x12, 0, 1, 0}, uint8(11))
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		p, err := New(Config{Target: "192.0.2.1", Username: "u", Password: "pass-word"}, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		l := &rubbish{b: b, size: int(size%40) + 1}
		p.open = func(context.Context, bool) (link, error) { return l, nil }
		r := probes.NewRound(0)
		_ = p.Collect(context.Background(), r)
		for _, s := range r.Samples() {
			if len(s.Labels)%2 != 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}

// rubbish is a BMC that answers with any bytes, and at last with nothing.
type rubbish struct {
	b    []byte
	size int
}

func (l *rubbish) ask(context.Context, byte, byte, byte, ...byte) ([]byte, error) {
	if len(l.b) == 0 {
		return nil, errSilent
	}
	n := min(l.size, len(l.b))
	answer := l.b[:n:n]
	l.b = l.b[n:]
	return answer, nil
}

func (l *rubbish) close(context.Context) {}

// TestDocumentation holds docs/probes/ipmi.md and the code together.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/probes/ipmi.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range newFamilies() {
		if !regexp.MustCompile("`ipmi_" + name + "[`{]").Match(page) {
			t.Errorf("ipmi_%s is not in the table", name)
		}
	}
}
