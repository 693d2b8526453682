package nut

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/probes"
)

// upsd is one that the tests wrote: it answers by a script.
type upsd struct {
	address string
	answer  func(line string) string // what is sent, to the byte; "" hangs, "\x00" at the end is the end of the connection
	secure  *tls.Config
	stop    func() // ends it, once all have left

	mu    sync.Mutex
	heard []string
}

func (u *upsd) lines() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.heard)
}

// serve starts it; it ends with the test.
func (u *upsd) serve(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.address = l.Addr().String()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { u.talk(conn) })
		}
	})
	u.stop = func() { _ = l.Close(); all.Wait() }
	t.Cleanup(u.stop)
}

func (u *upsd) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for in := bufio.NewScanner(conn); in.Scan(); {
		u.mu.Lock()
		u.heard = append(u.heard, in.Text())
		u.mu.Unlock()
		if in.Text() == "LOGOUT" {
			return
		}
		if in.Text() == "STARTTLS" && u.secure != nil {
			_, _ = conn.Write([]byte("OK STARTTLS\n"))
			secure := tls.Server(conn, u.secure)
			if err := secure.Handshake(); err != nil {
				_, _ = io.Copy(io.Discard, conn) // a reset for unread bytes would overtake the alert
				return
			}
			conn, in = secure, bufio.NewScanner(secure)
			continue
		}
		text, over := strings.CutSuffix(u.answer(in.Text()), "\x00")
		if _, err := conn.Write([]byte(text)); err != nil || over {
			return
		}
	}
}

// of answers for devices that have these variables, one name: value a line, as dummy-ups reads them.
func of(devices map[string]string) func(string) string {
	return func(line string) string {
		var b strings.Builder
		words := strings.Fields(line)
		switch {
		case line == "LIST UPS":
			b.WriteString("BEGIN LIST UPS\n")
			for name := range devices {
				fmt.Fprintf(&b, "UPS %s \"A device\"\n", name)
			}
			b.WriteString("END LIST UPS\n")
		case len(words) == 3 && words[0] == "LIST":
			text, ok := devices[words[2]]
			if !ok {
				return "ERR UNKNOWN-UPS\n"
			} else if code, bad := strings.CutPrefix(text, "ERR "); bad {
				return "ERR " + code + "\n"
			}
			b.WriteString("BEGIN " + line + "\n")
			for _, v := range parseDev(text) {
				fmt.Fprintf(&b, "VAR %s %s %s\n", words[2], v.name, quote(v.value))
			}
			b.WriteString("END " + line + "\n")
		case words[0] == "USERNAME" || words[0] == "PASSWORD":
			return "OK\n"
		default:
			return "ERR UNKNOWN-COMMAND\n"
		}
		return b.String()
	}
}

// parseDev reads the format of dummy-ups(8).
func parseDev(text string) []variable {
	var all []variable
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.HasPrefix(name, "#") || strings.ContainsAny(name, " \t") {
			continue
		}
		value = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(strings.TrimSpace(value))
		all = append(all, variable{name, value})
	}
	return all
}

// texts of the samples of a round, sorted, and the round's error.
func round(t *testing.T, p *Probe) (string, error) {
	t.Helper()
	r := probes.NewRound(0)
	err := p.Collect(t.Context(), r)
	return text(t, r), err
}

func text(t *testing.T, r *probes.Round) string {
	t.Helper()
	var lines []string
	for _, s := range r.Samples() {
		if strings.HasPrefix(s.Family.Name, "hwsagent_device_") {
			continue // the time is in them
		}
		var labels []string
		for i := 0; i < len(s.Labels); i += 2 {
			if s.Labels[i+1] != "" {
				labels = append(labels, fmt.Sprintf("%s=%q", s.Labels[i], s.Labels[i+1]))
			}
		}
		slices.Sort(labels)
		lines = append(lines, fmt.Sprintf("%s{%s} %v\n", s.Family.Name, strings.Join(labels, ","), s.Value))
	}
	slices.Sort(lines)
	series := make(map[string]bool)
	for _, l := range lines {
		name := l[:strings.LastIndexByte(l, ' ')]
		if series[name] {
			t.Errorf("the series %s is there twice", name)
		}
		series[name] = true
	}
	return strings.Join(lines, "")
}

func newProbe(t *testing.T, c Config) *Probe {
	t.Helper()
	p, err := New(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// certificate returns one for 127.0.0.1, and the file of the authority that signed it, itself.
func certificate(t *testing.T) (conf *tls.Config, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "upsd"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, file
}
