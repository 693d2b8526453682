package client

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/remotewrite/config"
)

// Each answer of a server, over http:// and https://, and what a person is told to do about it.
func TestFailureOfStatus(t *testing.T) {
	for _, tc := range []struct {
		status int
		body   string
		want   Kind
		hint   string
	}{
		{204, "", NoFailure, ""},
		{200, "<html><title>Sign in</title></html>", Page, "a login or a portal"},
		{301, "", Redirect, "write the final URL"},
		{400, "out of order sample", Refused, "change the path"},
		{400, "<html><title>400 No required SSL certificate was sent</title></html>", ClientCertificate, "cert_file and key_file"},
		{400, "The plain HTTP request was sent to HTTPS port", SchemeTLS, "https://"},
		{401, "", Credentials, "requires credentials"},
		{403, "", Forbidden, "requires credentials"},
		{404, "", Path, "/api/v1/push"},
		{404, "remote write receiver needs to be enabled with --web.enable-remote-write-receiver", ReceiverOff, "start that Prometheus with --web.enable-remote-write-receiver"},
		{404, "remote write receiver needs to be enabled with --enable-feature=remote-write-receiver", ReceiverOff, "start that Prometheus with --web.enable-remote-write-receiver"},
		{405, "", Method, "/api/v1/push"},
		{409, "", Refused, "change the path"},
		{413, "", TooLarge, "client_max_body_size"},
		{415, "", Message, "protobuf_message: auto"},
		{422, "", Refused, "change the path"},
		{429, "", RateLimit, "ingestion_rate"},
		{429, "per-user series limit of 150000 exceeded", SeriesLimit, ""},
		{500, "", ServerError, "log"},
		{502, "", Gateway, "behind that proxy"},
		{503, "", Unavailable, "overloaded"},
		{504, "", Gateway, "behind that proxy"},
	} {
		t.Run(http.StatusText(tc.status), func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body)) // a 204 has none
			})
			c := newClient(t, "url: "+s.URL, "", Options{})
			a := c.EmptyWrite(t.Context())
			if a.Failure.Kind != tc.want || !strings.Contains(a.Failure.Remedy, tc.hint) {
				t.Errorf("%+v, want %v, %q", a.Failure, tc.want, tc.hint)
			}
			refuses := strings.Contains(a.Failure.Words, "refuses access")
			if access := tc.want == Credentials || tc.want == Forbidden || tc.want == ClientCertificate; refuses != access {
				t.Errorf("words %q", a.Failure.Words)
			}
		})
	}
}

// Requests without an answer of the receiver. The text of an error decides nothing, so secrets in it, which are cut
// out, change nothing.
func TestFailureWithoutAnAnswer(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("refused"), 0o600); err != nil { // a word of the errors
		t.Fatal(err)
	}
	for name, text := range map[string]string{"lines": "one\ntwo", "empty": "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + deaf.Addr().String()
	_ = deaf.Close() // so that a connection is refused
	picky := httptest.NewUnstartedServer(http.NotFoundHandler())
	picky.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	picky.Config.ErrorLog = log.New(io.Discard, "", 0)
	picky.StartTLS()
	defer picky.Close()
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	denying := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })

	for _, tc := range []struct {
		name, entry string
		want        Kind
	}{
		{"refused connection", "url: " + closed, ConnectionRefused},
		{"refused connection, its text is a secret", "url: " + closed + "\nauthorization: {credentials_file: secret}", ConnectionRefused},
		{"no such file", "url: " + closed + "\nauthorization: {credentials_file: missing}", FileMissing},
		{"a token of two lines", "url: " + closed + "\nauthorization: {credentials_file: lines}", FileUnusable},
		{"a token that is a directory", "url: " + closed + "\nauthorization: {credentials_file: .}", FileUnusable},
		{"an empty token", "url: " + closed + "\nauthorization: {credentials_file: empty}", FileUnusable},
		{"proxy away", "url: " + plain.URL + "\nproxy_url: " + closed, Proxy},
		{"proxy denies the tunnel", "url: " + picky.URL + "\nproxy_url: " + denying.URL, Proxy},
		{"no token", "url: " + plain.URL + "\noauth2: {client_id: x, client_secret_file: secret, token_url: " + denying.URL + "}", Token},
		{"unknown authority", "url: " + picky.URL, UnknownAuthority},
		{"no client certificate", "url: " + picky.URL + "\ntls_config: {insecure_skip_verify: true}", ClientCertificate},
		{"a version of TLS that the receiver does not speak", "url: " + picky.URL + "\ntls_config: {insecure_skip_verify: true, max_version: TLS11, min_version: TLS10}", TLSVersion},
		{"no TLS", "url: " + strings.Replace(plain.URL, "http:", "https:", 1), SchemePlain},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newClient(t, tc.entry, dir, Options{})
			a := c.EmptyWrite(t.Context())
			// With TLS 1.3 a server refuses a certificate after the handshake, while net/http may be writing. Then the
			// error may be that of the write, and the alert is lost. The target's next attempt gets it.
			for tries := 0; tc.want == ClientCertificate && a.Failure.Kind == Cut && tries < 20; tries++ {
				a = c.EmptyWrite(t.Context())
			}
			if a.Failure.Kind != tc.want || a.Err == nil || a.Failure.Words == "" || a.Failure.Remedy == "" {
				t.Errorf("%+v, want %v: %v", a.Failure, tc.want, a.Err)
			}
		})
	}
}

// Each kind has a name of its own, words and a remedy.
func TestFailureNames(t *testing.T) {
	seen := map[string]bool{}
	for k := range numKinds {
		if seen[k.String()] || k.String() == "" != (k == NoFailure) {
			t.Errorf("%d is called %q", k, k)
		}
		seen[k.String()] = true
		f := siteOf(&config.Config{}).failure(k, "detail")
		if k != NoFailure && (f.Words == "" || f.Remedy == "") || strings.ContainsAny(f.Words+f.Remedy, "{}") {
			t.Errorf("%s: %+v", k, f)
		}
	}
}

// A redirect says where it leads, without secrets; a refused certificate whose it is and who issued it; a page and a
// refusal name the file of the token.
func TestFailureTellsWhere(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("CANARY-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	moved := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://user:CANARY-pass@other.example/CANARY-token/write?key=CANARY-key")
		w.WriteHeader(http.StatusPermanentRedirect)
	})
	c := newClient(t, "url: "+moved.URL+"\nauthorization: {credentials_file: token}", dir, Options{})
	if a := c.EmptyWrite(t.Context()); a.Failure.Kind != Redirect || !strings.Contains(a.String(), "to https://other.example/<secret>/write") || strings.Contains(a.String(), "CANARY") {
		t.Errorf("a redirect: %+v, %s", a.Failure, a.String())
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	c = newClient(t, "url: "+s.URL, dir, Options{})
	if a := c.EmptyWrite(t.Context()); a.Failure.Kind != UnknownAuthority || !strings.Contains(a.Failure.Words, `certificate of "O=Acme Co", issued by "O=Acme Co"`) {
		t.Errorf("an unknown authority: %+v, %s", a.Failure, a.String())
	}
	entry := &config.Config{}
	entry.HTTP.BearerTokenFile = "/etc/a.token"
	for _, k := range []Kind{Page, Credentials, Forbidden} {
		if f := siteOf(entry).failure(k, ""); len(entry.CredentialFiles()) > 0 && !strings.Contains(f.Remedy, "/etc/a.token") {
			t.Errorf("%v: %s", k, f.Remedy)
		}
	}
}
