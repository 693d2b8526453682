package client

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/config"
)

// A redirect is answered as it is: neither body nor credentials go anywhere else, be
// it another port, another host, or the same server.
func TestSendFollowsNoRedirect(t *testing.T) {
	var leaked atomic.Int64
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		leaked.Add(1)
		t.Errorf("%s %s reached the other server: %v", r.Method, r.URL, r.Header)
	})
	otherHost := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{other.URL + "/x", otherHost + "/x", "/again", "//" + strings.TrimPrefix(other.URL, "http://")} {
			for _, entry := range []string{"bearer_token: abc", "basic_auth: {username: u, password: p}", "{headers: {X-Scope-OrgID: t}, follow_redirects: true}"} {
				requests := 0
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					requests++
					http.Redirect(w, r, to, status)
				})
				text := "url: " + s.URL + "/push\n" + entry
				if rest, flow := strings.CutPrefix(entry, "{"); flow {
					text = "{url: " + s.URL + ", " + rest
				}
				a := newClient(t, text, "", Options{}).Send(t.Context(), Request{Body: []byte("secret samples")})
				if a.Status != status || requests != 1 {
					t.Errorf("%d to %s: answer %+v after %d requests", status, to, a, requests)
				}
				if v := Judge(a, config.Policy{}).Verdict; v != Hold {
					t.Errorf("%d is %v, want hold", status, v)
				}
			}
		}
	}
	if n := leaked.Load(); n > 0 {
		t.Errorf("%d requests leaked", n)
	}
}

// A redirect whose Location cannot be read holds the target like another redirect.
func TestRedirectToNothing(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"http://[::1:%zz/", "http://a b/", ":", "%"} {
			requests := 0
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				requests++
				w.Header().Set("Location", to)
				w.WriteHeader(status)
			})
			a := newClient(t, "url: "+s.URL, "", Options{}).Send(t.Context(), Request{Body: []byte("samples")})
			if v := Judge(a, config.Policy{}).Verdict; a.Failure.Kind != Redirect || v != Hold || requests != 1 {
				t.Errorf("%d to %q: %v of %+v after %d requests, want hold", status, to, v, a, requests)
			}
		}
	}
}

// Errors and texts are for people, and hold no secret: canaries in every place that
// takes one, through every failure there is.
func TestSendRedacts(t *testing.T) {
	echo := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, r.Header, r.URL.Query())
	})
	loop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "CANARY-not-http\r\n\r\n")
			_ = conn.Close()
		}
	})
	plainPort := strings.TrimPrefix(echo.URL, "http://")
	dir := testnet.WriteFiles(t, map[string]string{"token": "CANARY-token", "lines": "CANARY-1\nCANARY-2", "key": "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----", "cert": "CANARY"})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name, entry string
		ctx         context.Context
	}{
		{"echoed bearer", "{url: '%s/p?token=CANARY-query', bearer_token: CANARY-bearer}", nil},
		{"echoed file", "{url: '%s/p?token=CANARY-query', bearer_token_file: token}", nil},
		{"echoed headers", "{url: '%s/p', headers: {X-Key: CANARY-header}, http_headers: {X-A: {secrets: [CANARY-a], files: [token]}}}", nil},
		{"cancelled", "{url: '%s/p?token=CANARY-query', bearer_token: CANARY-bearer}", cancelled},
		{"refused", "{url: 'http://u:CANARY-p@127.0.0.1:1/p?token=CANARY-query'}", nil},
		{"no such host", "{url: 'http://u:CANARY-p@no-such-host.invalid/p?token=CANARY-query'}", nil},
		{"tls to plain", "{url: 'https://u:CANARY-p@" + plainPort + "/p?token=CANARY-query'}", nil},
		{"token of two lines", "{url: '%s/p', bearer_token_file: lines}", nil},
		{"faulty key", "{url: '%s/p', tls_config: {cert_file: cert, key_file: key}}", nil},
		{"missing file", "{url: '%s/p?token=CANARY-query', bearer_token_file: missing}", nil},
		{"bad proxy", "{url: '%s/p?token=CANARY-query', proxy_url: 'http://u:CANARY-proxy@127.0.0.1:1/', proxy_connect_header: {X: [CANARY-c]}}", nil},
		{"proxy for https", "{url: 'https://h.example/p?token=CANARY-query', proxy_url: 'http://u:CANARY-proxy@" + plainPort + "/', proxy_connect_header: {X: [CANARY-c]}}", nil},
	} {
		entry := tc.entry
		if strings.Contains(entry, "%s") {
			entry = fmt.Sprintf(entry, echo.URL)
		}
		ctx := tc.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		c := newClient(t, entry, dir, Options{})
		a := c.Send(ctx, Request{Body: []byte("x")})
		if a.Err == nil && a.Status != http.StatusBadRequest {
			t.Errorf("%s: no failure: %+v", tc.name, a)
		}
		text := fmt.Sprintf("%v %+v %v", a, a, c.CredentialError())
		if strings.Contains(text, "CANARY") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("u:CANARY-p"))) {
			t.Errorf("%s: a secret shows: %s", tc.name, text)
		}
		if a.Err != nil && !strings.Contains(a.Err.Error(), "/p") {
			t.Errorf("%s: error does not say where: %v", tc.name, a.Err)
		}
	}
	if a := newClient(t, "url: "+loop.URL, "", Options{}).Send(t.Context(), Request{Body: []byte("x")}); a.Err == nil {
		t.Errorf("what is not HTTP is an answer: %+v", a)
	}
}
