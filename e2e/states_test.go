package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"html"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

// answers is a receiver that answers every request alike.
func answers(t *testing.T, status int, header, value, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if header != "" {
			w.Header().Set(header, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// certified is a receiver with a certificate of its own that ends at that time.
func certified(t *testing.T, end time.Time) (url string, certificate []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "receiver.plant"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: end,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	if certificate, err = x509.CreateCertificate(rand.Reader, c, c, key.Public(), key); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, certificate
}

// tags are those of HTML.
var tags = regexp.MustCompile(`(?s)<(script|style).*?</(script|style)>|<[^>]*>`)

// TestStatesAreUnderstood: each way in which a target can fail is made by a real part that fails, and the page alone, and
// `hwsagent status` alone, say the cause, since when, what it costs, and what to do.
func TestStatesAreUnderstood(t *testing.T) {
	t.Parallel()
	expired, authority := certified(t, time.Now().Add(-24*time.Hour))
	other, _ := certified(t, time.Now().Add(24*time.Hour))
	dir := t.TempDir()
	ca := writeFile(t, dir+"/ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority})))
	states := []struct{ name, url, more, cause, try string }{
		{"unauthorized", answers(t, 401, "", "", "who are you"), "    bearer_token_file: " + writeFile(t, dir+"/token", "x") + "\n", "401 Unauthorized: who are you", "put a valid token, password or certificate into " + dir + "/token"},
		{"forbidden", answers(t, 403, "", "", "not you"), "", "403 Forbidden: not you", "the receiver wants credentials"},
		{"expired", expired, "    tls_config: {ca_file: " + ca + "}\n", "certificate has expired or is not yet valid", "another certificate"},
		{"wrong-ca", other, "    tls_config: {ca_file: " + ca + "}\n", "receiver.plant", "put its certificate into " + ca},
		{"wrong-path", answers(t, 404, "", "", "404 page not found"), "", "404 Not Found", "/api/v1/write"},
		{"receiver-off", answers(t, 404, "", "", "remote write receiver needs to be enabled with --web.enable-remote-write-receiver"), "", "remote write receiver needs to be enabled", "start that Prometheus with --web.enable-remote-write-receiver"},
		{"redirect", answers(t, 302, "Location", "http://elsewhere.example/login", ""), "", "http://elsewhere.example/login", "write the final URL"},
		{"no-name", "http://no-such-host.invalid/", "", "no-such-host.invalid", "look at the receiver's log, and at what lies between"},
		{"too-many", answers(t, 429, "", "", "slow down"), "", "429 Too Many Requests: slow down", "keeps it and goes on to retry"},
		{"overloaded", answers(t, 503, "", "", "later"), "", "503 Service Unavailable: later", "keeps it and goes on to retry"},
		{"signed", answers(t, 403, "Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), "Signature expired"), "    sigv4: {region: x, access_key: a, secret_key: secret}\n", "clock is ", "set this host's clock"},
		{"nothing-there", "http://127.0.0.1:1/", "", "connection refused", "look at the receiver's log"},
	}
	config := "global: {scrape_interval: 1s}\nprobes: [{type: canary, series: 3, interval: 200ms, timeout: 200ms}]\nremote_write:\n"
	for _, s := range states {
		config += entry(s.name, s.url, s.more)
	}
	a := startAgent(t, config)
	eventually(t, 60*time.Second, func() string {
		for _, tg := range a.status().Targets {
			if tg.LastError == "" || tg.PendingSamples == 0 {
				return fmt.Sprintf("target %s: %q, %d waiting", tg.Name, tg.LastError, tg.PendingSamples)
			}
		}
		return ""
	})
	eventually(t, 60*time.Second, func() string {
		_, body, err := a.ask(http.MethodGet, "/")
		if err != nil {
			return err.Error()
		}
		stdout, stderr, code := hwsagent(t, "status", "--storage.path", a.storage)
		if code != exitTarget {
			return fmt.Sprintf("exit code %d\n%s", code, stderr)
		}
		for where, text := range map[string]string{"the page": plainHTML(body), "status": strings.Join(strings.Fields(stdout), " ")} {
			for _, s := range states {
				// A finding goes from whose it is, by the cause, to what to do; in between it says the rest.
				of := regexp.MustCompile(`\b` + s.name + `\b[^:]*: [^…]*?` + regexp.QuoteMeta(s.cause) + `(.*?)` + regexp.QuoteMeta(s.try)).FindStringSubmatch(text)
				if of == nil {
					return fmt.Sprintf("%s: %s does not say cause %q and what to do %q\n%s", s.name, where, s.cause, s.try, text)
				}
				for what, words := range map[string]string{"since when": `\d+ s behind|Held for \d+ s`, "what it costs": "nothing is lost", "what waits": `\d samples wait on disk`, "what to do": "Try: "} {
					if !regexp.MustCompile(words).MatchString(of[1]) {
						return fmt.Sprintf("%s: %s does not say %s: %q\n%s", s.name, where, what, words, text)
					}
				}
			}
		}
		return ""
	})
}

// plainHTML is the text of a page, in one line.
func plainHTML(page string) string {
	text := tags.ReplaceAllString(page, " ")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}
