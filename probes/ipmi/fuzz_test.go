package ipmi

import (
	"bytes"
	"context"
	"crypto/aes"
	"log/slog"
	"math"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hwsagent/probes"
)

func FuzzRecord(f *testing.F) {
	f.Add(fullRecord(1, 1, "name"))
	f.Add(locatorRecord(3, 5, 32, 1, "DIMM"))
	f.Add([]byte{2, 0, 0x51, compactSensor, 30, bmc, 0, 7, 3, 1, 0, 0, 8, specific, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x13, 0x82, 0, 0, 0, 0, 0, 0, 0xc3, 'a', 'b', 'c'})
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := parsePart(b); ok && p.id() == "" {
			t.Errorf("%+v has no ID", p)
		}
		sensors, err := parseRecord(b)
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

// packets is the other side of a login: it gives packets one after another, and then nothing.
type packets struct {
	net.Conn
	all [][]byte
}

func (c *packets) Read(b []byte) (int, error) {
	if len(c.all) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(b, c.all[0])
	c.all = c.all[1:]
	return n, nil
}

func (c *packets) SetDeadline(time.Time) error { return nil }

// Write gives the next answer the session ID of the console, without which it would be passed over.
func (c *packets) Write(b []byte) (int, error) {
	ours := b[16:]
	if b[5] != payloadOpenRequest || len(ours) < 8 {
		return len(b), nil
	}
	for _, p := range c.all {
		if len(p) >= 24 {
			copy(p[20:24], ours[4:8])
		}
	}
	return len(b), nil
}

// FuzzLogin has any bytes for a BMC's answers to a login. None makes a session, as the fuzzer does not know the password.
func FuzzLogin(f *testing.F) {
	f.Add(append([]byte{0, 0, 2, 0}, make([]byte, 32)...), make([]byte, 72), make([]byte, 24))
	f.Add([]byte{0, 0x11}, []byte{0, 0x0d}, []byte{})
	opened := make([]byte, 36)
	opened[16], opened[24], opened[32] = suite17.auth, suite17.integrity, confidentiality
	f.Add(opened, make([]byte, 72), make([]byte, 24))
	f.Fuzz(func(t *testing.T, open, second, fourth []byte) {
		for _, s := range []*suite{suite17, suite3} {
			c := &lan{conn: &packets{all: [][]byte{plain(payloadOpenResponse, open), plain(payloadRAKP2, second), plain(payloadRAKP4, fourth)}}, patience: time.Second}
			err := c.begin(t.Context(), &login{user: "u", password: "pass-word", privilege: 2}, s)
			if err == nil {
				t.Error("a session without the password")
			}
			d := &dialer{config: &Config{Username: "u"}, address: "192.0.2.1:623"}
			if text := d.explain(err).Error(); text == "" || strings.Contains(text, "pass-word") {
				t.Errorf("the error is %q", text)
			}
		}
	})
}

// FuzzTexts: names and identifiers from any bytes can be labels once they are made valid, and a UUID has its form.
func FuzzTexts(f *testing.F) {
	f.Add(byte(0x85), []byte{0x21, 0x43, 0x65, 0x87, 0x09, 0xba, 0xdc, 0xfe, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		if text := parseText(kind, b); len([]rune(text)) > 31 || !utf8.ValidString(text) {
			t.Errorf("%q", text)
		}
		if text := field(kind, b); !utf8.ValidString(text) {
			t.Errorf("%q", text)
		}
		if u := parseUUID(b); u != "" && !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(u) {
			t.Errorf("%q", u)
		}
	})
}
