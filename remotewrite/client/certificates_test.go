package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/testnet"
)

// Client certificates are replaced under load, first the certificate, three seconds
// later the key: nothing is lost, the new pair is in use within ten seconds of being
// complete, the connections with the former one are closed.
func TestCertificateRotation(t *testing.T) {
	ca := testnet.NewAuthority(t)
	cert, key := ca.Issue("old")
	newCert, newKey := ca.Issue("new")
	server := ca.Server()
	synctest.Test(t, func(t *testing.T) {
		dir := testnet.WriteFiles(t, map[string]string{"ca.pem": ca.Pem, "cert.pem": cert, "key.pem": key})
		g := &testnet.Guard{}
		n, stop := testnet.Serve(t, server, g.Handler(testnet.CommonName))
		defer stop()
		c := newClient(t, "{url: https://localhost/, tls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem}}", dir, Options{Dial: n.Dial})
		defer run(t, c)()
		end := sendLoad(t, c)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if g.Count("old") == 0 {
			t.Fatal("no request with the first certificate")
		}

		testnet.WriteFile(t, filepath.Join(dir, "cert.pem"), newCert)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if err := c.CredentialError(); err == nil || !strings.Contains(err.Error(), "key.pem") {
			t.Errorf("a certificate without its key is no error that names it: %v", err)
		}
		if g.Count("new") > 0 {
			t.Error("the new certificate is used without its key")
		}
		testnet.WriteFile(t, filepath.Join(dir, "key.pem"), newKey)
		took := testnet.Within(t, 10*time.Second, "new certificate in use", func() bool { return g.Count("new") > 0 })
		time.Sleep(time.Second)
		old := g.Count("old")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if g.Count("old") != old {
			t.Error("connections with the former certificate are still used")
		}
		if open, _ := n.Counts(); open > 4 {
			t.Errorf("%d connections are open", open)
		}
		if !notified(c) || c.CredentialError() != nil {
			t.Errorf("no notice, or an error: %v", c.CredentialError())
		}
		t.Logf("%d requests; new certificate after %s", end(), took)
	})
}

// Half a certificate file, and a bundle whose last certificate is cut off: the former
// content stays in use.
func TestCertificateHalfWritten(t *testing.T) {
	ca, other := testnet.NewAuthority(t), testnet.NewAuthority(t)
	cert, key := ca.Issue("old")
	server := ca.Server()
	synctest.Test(t, func(t *testing.T) {
		dir := testnet.WriteFiles(t, map[string]string{"ca.pem": ca.Pem, "cert.pem": cert, "key.pem": key})
		g := &testnet.Guard{}
		n, stop := testnet.Serve(t, server, g.Handler(testnet.CommonName))
		defer stop()
		c := newClient(t, "{url: https://localhost/, tls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem}}", dir, Options{Dial: n.Dial, ConnectionAge: time.Second})
		defer run(t, c)()
		end := sendLoad(t, c)
		for name, whole := range map[string]string{"cert.pem": cert, "key.pem": key, "ca.pem": ca.Pem} {
			for _, broken := range []string{whole[:len(whole)/2], other.Pem + whole[:len(whole)-20], "", "text"} {
				if broken == other.Pem+whole[:len(whole)-20] && name != "ca.pem" {
					continue
				}
				testnet.WriteFile(t, filepath.Join(dir, name), broken)
				testnet.Within(t, 10*time.Second, "error of "+name, func() bool { return c.CredentialError() != nil })
				if text := c.CredentialError().Error(); !strings.Contains(text, name) {
					t.Errorf("error does not name %s: %s", name, text)
				}
				time.Sleep(5 * time.Second)
				testnet.WriteFile(t, filepath.Join(dir, name), whole)
				testnet.Within(t, 10*time.Second, "no error", func() bool { return c.CredentialError() == nil })
			}
		}
		if notified(c) {
			t.Error("notice of a change that is none")
		}
		if n := end(); n < 1000 {
			t.Errorf("only %d requests", n)
		}
	})
}

// The receiver gets a certificate of another authority; the CA file follows. Requests
// fail meanwhile, and go on at once, because the failure has the file read.
func TestAuthorityRotation(t *testing.T) {
	first, second := testnet.NewAuthority(t), testnet.NewAuthority(t)
	firstServer, secondServer := first.Server(), second.Server()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		use := firstServer
		config := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			mu.Lock()
			defer mu.Unlock()
			c := use.Clone()
			c.ClientAuth = tls.NoClientCert
			return c, nil
		}, Certificates: firstServer.Certificates}
		dir := testnet.WriteFiles(t, map[string]string{"ca.pem": first.Pem})
		n, stop := testnet.Serve(t, config, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		defer stop()
		c := newClient(t, "{url: https://localhost/, tls_config: {ca_file: ca.pem}}", dir, Options{Dial: n.Dial, ConnectionAge: time.Millisecond})
		defer run(t, c)()
		if a := c.EmptyWrite(t.Context()); a.Status != 200 {
			t.Fatalf("%+v", a)
		}
		mu.Lock()
		use = secondServer
		mu.Unlock()
		time.Sleep(time.Second)
		a := c.EmptyWrite(t.Context())
		if _, is := errors.AsType[x509.UnknownAuthorityError](a.Err); !is {
			t.Fatalf("%+v", a)
		}
		// Kubernetes style: the file is a symbolic link into a directory that is replaced.
		link := testnet.WriteFiles(t, map[string]string{"data": second.Pem})
		if err := os.Remove(filepath.Join(dir, "ca.pem")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(link, "data"), filepath.Join(dir, "ca.pem")); err != nil {
			t.Fatal(err)
		}
		if a := c.EmptyWrite(t.Context()); a.Err == nil {
			t.Fatalf("%+v", a)
		}
		if !notified(c) {
			t.Error("no notice of the change")
		}
		if a := c.EmptyWrite(t.Context()); a.Status != 200 {
			t.Errorf("%+v", a)
		}
	})
}

// Over real sockets: mutual TLS, inline and from files, a receiver that refuses
// clients without a certificate, HTTP/2 when asked for.
func TestMutualTLS(t *testing.T) {
	ca := testnet.NewAuthority(t)
	cert, key := ca.Issue("client")
	indent := func(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }
	dir := testnet.WriteFiles(t, map[string]string{"ca.pem": ca.Pem, "cert.pem": cert, "key.pem": key})
	for _, tc := range []struct {
		name, entry string
		status      int
		major       int
	}{
		{"files", "tls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem}", 200, 1},
		{"inline", fmt.Sprintf("tls_config:\n  ca: |\n    %s\n  cert: |\n    %s\n  key: |\n    %s", indent(ca.Pem), indent(cert), indent(key)), 200, 1},
		{"server name", "tls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem, server_name: localhost, min_version: TLS13}", 200, 1},
		{"wrong server name", "tls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem, server_name: other.example}", 0, 0},
		{"no authority", "tls_config: {cert_file: cert.pem, key_file: key.pem}", 0, 0},
		{"skip verification", "tls_config: {insecure_skip_verify: true, cert_file: cert.pem, key_file: key.pem}", 200, 1},
		{"no certificate", "tls_config: {ca_file: ca.pem}", 0, 0},
		{"too old", "tls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem, max_version: TLS11}", 0, 0},
		{"http2", "tls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem}\nenable_http2: true", 200, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			major := 0
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				major = r.ProtoMajor
				if testnet.CommonName(r) != "client" {
					t.Errorf("client is %s", testnet.CommonName(r))
				}
			}))
			s.TLS = ca.Server()
			s.EnableHTTP2 = true
			s.Config.ErrorLog = testnet.Discard()
			s.StartTLS()
			defer s.Close()
			c := newClient(t, "url: "+s.URL+"\n"+tc.entry, dir, Options{})
			a := c.EmptyWrite(t.Context())
			if a.Status != tc.status || major != tc.major {
				t.Errorf("HTTP/%d: %+v", major, a)
			}
			c.Close()
		})
	}
}
