package check

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestCheckOddReceivers: the verdict on a receiver that is none, or does not want this agent, names the cause and what helps.
func TestCheckOddReceivers(t *testing.T) {
	answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	secure := func(config *tls.Config, change func(*http.Server)) string {
		s := httptest.NewUnstartedServer(answers)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.TLS = config
		if change != nil {
			change(s.Config)
		}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL
	}
	says := func(text string, status int) string {
		return receiver(t, false, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}).URL
	}
	nameless, key := certificate(t, time.Hour) // without a subject alternative name
	pair, err := tls.X509KeyPair([]byte(nameless), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	ca := write(t, t.TempDir()+"/ca.pem", nameless, 0o600)
	onlyHTTP2 := func(s *http.Server) {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP2(true)
	}
	for name, c := range map[string]struct {
		url, more  string
		text, with string // in the group's text; what helps
	}{
		"TLS without a name":     {secure(&tls.Config{Certificates: []tls.Certificate{pair}}, nil), "tls_config: {ca_file: " + ca + "}", "it has none", "subject alternative name"},
		"old TLS":                {secure(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, nil), "", "protocol version", "min_version"},
		"a client certificate":   {secure(&tls.Config{ClientAuth: tls.RequireAnyClientCert}, nil), "tls_config: {insecure_skip_verify: true}", "asks for a client certificate, and none is configured", ""},
		"a certificate, TLS 1.2": {secure(&tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}, nil), "tls_config: {insecure_skip_verify: true}", "handshake failure", "cert_file and key_file"},
		"HTTP/2 only":            {secure(&tls.Config{NextProtos: []string{"h2"}}, onlyHTTP2), "tls_config: {insecure_skip_verify: true}", "fail", "enable_http2: true"},
		"a mail server":          {"http://" + greeter(t, "220 mail.example ESMTP\r\n"), "", "malformed HTTP", "host and port"},
		"words of success":       {says(`{"error":"unauthorized"}`, http.StatusOK), "", `with the words "{\"error\":\"unauthorized\"}"`, ""},
		"too large":              {says("", http.StatusRequestEntityTooLarge), "", "413", "client_max_body_size"},
		"the proxy refuses":      {"http://receiver.invalid/", "proxy_url: " + says("no", http.StatusForbidden), "403", "the proxy refuses"},
		"a clock years away":     {receiver(t, false, date(-100*24*time.Hour)).URL, "", "100 days ahead", "set the clock"},
	} {
		t.Run(name, func(t *testing.T) {
			more := c.more
			if more != "" {
				more = ", " + more
			}
			g := group(t, check(t, Live, fmt.Sprintf("remote_write: [{name: x, url: %q%s}]\n", c.url, more)), GroupTarget)
			all := fmt.Sprint(g.Steps)
			if !strings.Contains(all, c.text) || !strings.Contains(worst(g).Try, c.with) {
				t.Errorf("%s\nwant %q, and to try %q", all, c.text, c.with)
			}
		})
	}
}

// greeter listens at the address that it returns, and says a text to each client before it asks anything.
func greeter(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, text)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn) // until the client goes
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}
