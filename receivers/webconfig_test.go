package receivers_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// aliceMayWrite are users of a web configuration: alice, with the password alice123.
const aliceMayWrite = "basic_auth_users: {alice: $2a$04$ztozqrw3GrFFr1lXnNgmZuQlFOauouDGBQvpVm4v/OeMHwBLOCDO2}\n"

// certificate writes a certificate for 127.0.0.1 with its key into dir.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "agent"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return pool
}

// An address that other hosts can reach needs both TLS and users; then other clients are refused, and users get HTTP/2
// where it is supported.
func TestWebConfig(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	file := filepath.Join(dir, "web.yml")
	const withTLS = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"
	for text, ok := range map[string]bool{
		aliceMayWrite:           false,
		withTLS:                 false,
		withTLS + aliceMayWrite: true,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := receivers.CheckWebConfig(file, "0.0.0.0:1"); (err == nil) != ok {
			t.Errorf("%q on every address: %v", text, err)
		}
		if err := receivers.CheckWebConfig(file, "127.0.0.1:1"); err != nil {
			t.Errorf("%q on loopback: %v", text, err)
		}
	}
	if err := os.WriteFile(file, []byte(withTLS+aliceMayWrite), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &receivertest.Log{}
	set := receivers.NewSet(slog.New(slog.DiscardHandler), time.Second)
	p, err := set.Plan([]receivers.Spec{{
		Name: "x", Listen: "0.0.0.0:0", WebConfigFile: file, Gate: l.Gate("x", receivers.DefaultLimits()), HTTP2: true,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	set.Apply(p)
	done := make(chan struct{})
	go func() {
		defer close(done)
		set.Run(t.Context())
	}()
	t.Cleanup(func() { <-done })
	_, port, err := net.SplitHostPort(set.Status()[0].Address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 2 * time.Minute} // a password is slow to check, on a busy machine very
	for _, tc := range []struct {
		user, password string
		status         int
	}{{"", "", 401}, {"alice", "wrong", 401}, {"alice", "alice123", 200}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://127.0.0.1:"+port+"/", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		if tc.user != "" {
			r.SetBasicAuth(tc.user, tc.password)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != tc.status || tc.status == 200 && string(said) != "HTTP/2.0" {
			t.Errorf("%+v: %d %s %v", tc, resp.StatusCode, said, err)
		}
	}
}
