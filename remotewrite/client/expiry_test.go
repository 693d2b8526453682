package client

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/testnet"
)

func TestWarnAt(t *testing.T) {
	end := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for _, tc := range []struct {
		life, want time.Duration // 0: not known, never
	}{{0, 14 * day}, {3650 * day, 14 * day}, {365 * day, 14 * day}, {90 * day, 9 * day}, {day, 144 * time.Minute}, {-day, 14 * day}} {
		e := Expiry{Until: end}
		if tc.life != 0 {
			e.From = end.Add(-tc.life)
		}
		if got := end.Sub(e.WarnAt()); got != tc.want {
			t.Errorf("of %s: %s before the end, want %s", tc.life, got, tc.want)
		}
		if e.Renewed = true; !e.WarnAt().IsZero() {
			t.Error("a warning of what is renewed")
		}
	}
}

func TestExpiryOf(t *testing.T) {
	ca := testnet.NewAuthority(t)
	soon := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	cert, key := ca.IssueUntil("x", soon)
	for _, tc := range []struct {
		text, what string
		from, end  time.Time
	}{
		{ca.Pem + cert + key, "certificate", time.Unix(0, 0), soon},
		{webToken(`{"iat": 1000, "nbf": 1100, "exp": 2000}`) + "\n", "token", time.Unix(1100, 0), time.Unix(2000, 0)},
		{webToken(`{"exp": 2000.5}`), "token", time.Time{}, time.Unix(2000, 0)},
		{webToken(`{"iat": 3000, "exp": 2000}`), "token", time.Time{}, time.Unix(2000, 0)},
		{webToken(`{"exp": 1e300}`), "", time.Time{}, time.Time{}},
		{webToken(`{"exp": "soon"}`), "", time.Time{}, time.Time{}},
		{webToken(`not json`), "", time.Time{}, time.Time{}},
		{"a.b.c", "", time.Time{}, time.Time{}},
		{"opaque", "", time.Time{}, time.Time{}},
		{"", "", time.Time{}, time.Time{}},
	} {
		e, ok := ExpiryOf([]byte(tc.text))
		if ok != (tc.what != "") || ok && (e.What != tc.what || !e.Until.Equal(tc.end) || !e.From.Equal(tc.from)) {
			t.Errorf("%.40q: %+v %t", tc.text, e, ok)
		}
	}
}

// The ends of authority, client certificate, receiver certificate and token are exported and listed; an end that a new
// file no longer has is removed.
func TestExpiriesShown(t *testing.T) {
	ca := testnet.NewAuthority(t)
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	cert, key := ca.IssueUntil("client", year(2041))
	server := ca.ServerWith(ca.IssueUntil("h.example", year(2042)))
	synctest.Test(t, func(t *testing.T) {
		m := &shown{}
		dir := testnet.WriteFiles(t, map[string]string{"ca.pem": ca.Pem, "cert.pem": cert, "key.pem": key, "token": webToken(`{"iat": 1000, "exp": 2240611200}`)})
		n, stop := testnet.Serve(t, server, func(http.ResponseWriter, *http.Request) {})
		defer stop()
		c := newClient(t, "{url: https://h.example/, bearer_token_file: token, tls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem}}", dir, Options{Dial: n.Dial, Metrics: m})
		defer run(t, c)()
		listed := func() string {
			var all []string
			for _, e := range c.Expiries() {
				all = append(all, e.What+" "+e.Until.UTC().Format("2006"))
			}
			return strings.Join(all, ", ")
		}
		if got := listed(); got != "token 2041, certificate of the authority 2099, client certificate 2041" {
			t.Errorf("before a request: %s", got)
		}
		if a := c.EmptyWrite(t.Context()); a.Status != 200 {
			t.Fatalf("%+v", a)
		}
		if got := listed(); got != "token 2041, certificate of the authority 2099, client certificate 2041, receiver's certificate 2042" {
			t.Errorf("after a request: %s", got)
		}
		for role, y := range map[string]int{"ca": 2099, "client": 2041, "server": 2042} {
			if got := m.end(role); !got.Equal(year(y)) && (role != "ca" || !got.Equal(ca.Cert.NotAfter)) {
				t.Errorf("%s ends at %v", role, got)
			}
		}
		if len(m.ends) != 3 || m.end("").Unix() != 2240611200 {
			t.Errorf("%v, token ends at %v", m.ends, m.end(""))
		}
		testnet.WriteFile(t, filepath.Join(dir, "token"), "opaque")
		testnet.Within(t, 10*time.Second, "no end of a token", func() bool { return m.end("").IsZero() })
		if got := listed(); strings.Contains(got, "token") {
			t.Errorf("after the token says nothing: %s", got)
		}
		synctest.Wait()
		c.Close()
	})
}

// The expiry of a receiver's expired certificate is shown although it is not trusted; an unverified
// receiver shows its own certificate.
func TestReceiverExpired(t *testing.T) {
	ca := testnet.NewAuthority(t)
	over := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	config := ca.ServerWith(ca.IssueUntil("x", over))
	config.ClientAuth = tls.NoClientCert
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS, s.Config.ErrorLog = config, testnet.Discard()
	s.StartTLS()
	defer s.Close()
	dir := testnet.WriteFiles(t, map[string]string{"ca.pem": ca.Pem})
	for _, keys := range []string{"ca_file: ca.pem", "insecure_skip_verify: true"} {
		c := newClient(t, "{url: '"+s.URL+"', tls_config: {"+keys+"}}", dir, Options{})
		a := c.EmptyWrite(t.Context())
		all := c.Expiries()
		if last := all[len(all)-1]; (a.Status == 200) != strings.HasPrefix(keys, "insecure") || last.What != "receiver's certificate" || !last.Until.Equal(over) {
			t.Errorf("%s: %+v, %+v", keys, a, all)
		}
	}
}
