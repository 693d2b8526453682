package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/config"
)

// issuer is a token endpoint. Its tokens are token-1, token-2 and so on.
type issuer struct {
	mu     sync.Mutex
	asked  int
	forms  []url.Values
	basics []string // Authorization headers
	life   int      // expires_in; 0: left out
	fail   http.HandlerFunc
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	i.mu.Lock()
	i.asked++
	i.forms, i.basics = append(i.forms, r.PostForm), append(i.basics, r.Header.Get("Authorization"))
	n, life, fail := i.asked, i.life, i.fail
	i.mu.Unlock()
	if fail != nil {
		fail(w, r)
		return
	}
	answer := map[string]any{"access_token": fmt.Sprint("token-", n), "token_type": "bearer"}
	if life != 0 {
		answer["expires_in"] = life
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

func (i *issuer) set(life int, fail http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.life, i.fail = life, fail
}

// dialEach gives each host a network of its own.
func dialEach(nets map[string]*testnet.Net) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if n := nets[host]; n != nil {
			return n.Dial(ctx, network, address)
		}
		return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("no route to %s", host)}
	}
}

// oauthRig is a client, its receiver h.example and its token endpoint idp.example, in memory.
type oauthRig struct {
	*Client
	issuer *issuer
	guard  *testnet.Guard
}

func newOAuthRig(t *testing.T, dir, keys string, serverTLS *tls.Config) (_ *oauthRig, stop func()) {
	t.Helper()
	r := &oauthRig{issuer: &issuer{life: 3600}, guard: &testnet.Guard{}}
	receiver, stopReceiver := testnet.Serve(t, nil, r.guard.Handler(testnet.Bearer))
	endpoint, stopEndpoint := testnet.Serve(t, serverTLS, r.issuer.ServeHTTP)
	scheme := "http"
	if serverTLS != nil {
		scheme = "https"
	}
	r.Client = newClient(t, "{url: http://h.example/, oauth2: {client_id: agent, token_url: '"+scheme+"://idp.example/token', "+keys+"}}", dir,
		Options{Dial: dialEach(map[string]*testnet.Net{"h.example": receiver, "idp.example": endpoint})})
	return r, func() {
		synctest.Wait() // connections for which no request waited
		r.Close()
		stopReceiver()
		stopEndpoint()
	}
}

// The request of RFC 6749, 4.4.2, with scope and further parameters, and the client's
// credentials as 2.3.1 has them; the token is used for several requests, and its end shows.
func TestOAuth2Grant(t *testing.T) {
	m := &shown{}
	idp, g := &issuer{life: 3600}, &testnet.Guard{}
	endpoint, receiver := serve(t, idp.ServeHTTP), serve(t, g.Handler(testnet.Bearer))
	dir := testnet.WriteFiles(t, map[string]string{"secret": "s+ cret\n"})
	c := newClient(t, fmt.Sprintf("{url: %q, oauth2: {client_id: 'a b', client_secret_file: secret, token_url: %q, scopes: [one, two], endpoint_params: {audience: x}}}",
		receiver.URL, endpoint.URL+"/token"), dir, Options{Metrics: m})
	for range 3 {
		if a := c.EmptyWrite(t.Context()); a.Status != 200 {
			t.Fatalf("%+v", a)
		}
	}
	if n := idp.count(); n != 1 || g.Count("token-1") != 3 {
		t.Errorf("%d tokens, seen %v", n, g.Seen)
	}
	if got := idp.forms[0].Encode(); got != "audience=x&grant_type=client_credentials&scope=one+two" || idp.basics[0] != "Basic YStiOnMlMkIrY3JldA==" { // a+b:s%2B+cret
		t.Errorf("asked for a token by %s with %s", got, idp.basics[0])
	}
	if end := m.end(""); time.Until(end).Round(time.Minute) != time.Hour {
		t.Errorf("the token ends at %v", end)
	}
	if e := c.Expiries(); len(e) != 1 || e[0].What != "OAuth2 token" || !e[0].Renewed {
		t.Errorf("expiries: %+v", e)
	}
}

// An endpoint that wants the secret in the body gets it there, and is asked that way from
// then on.
func TestOAuth2SecretInBody(t *testing.T) {
	idp, g := &issuer{life: 1}, &testnet.Guard{}
	idp.fail = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token": "`+r.PostForm.Get("client_id")+r.PostForm.Get("client_secret")+`", "expires_in": 1}`)
	}
	endpoint, receiver := serve(t, idp.ServeHTTP), serve(t, g.Handler(testnet.Bearer))
	c := newClient(t, fmt.Sprintf("{url: %q, oauth2: {client_id: id, client_secret: cret, token_url: %q}}", receiver.URL, endpoint.URL), "", Options{})
	for i := range 2 {
		if a := c.EmptyWrite(t.Context()); a.Status != 200 || g.Count("idcret") != i+1 {
			t.Fatalf("%+v, seen %v", a, g.Seen)
		}
		c.source().token = nil
	}
	if n := idp.count(); n != 3 {
		t.Errorf("%d requests for two tokens, want 3", n)
	}
}

// Run renews a token before its end. While the endpoint is down, the old token is used
// as long as it is valid. Then no request is sent, and the reason is reported.
func TestOAuth2Renewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stop := newOAuthRig(t, "", "client_secret: x", nil)
		defer stop()
		defer run(t, r.Client)()
		sendUntil := func(end time.Time) {
			for ; time.Now().Before(end); time.Sleep(20 * time.Second) {
				if a := r.EmptyWrite(t.Context()); a.Status != 200 {
					t.Fatalf("%+v", a)
				}
			}
		}
		sendUntil(time.Now().Add(10 * time.Hour))
		if n := r.issuer.count(); n < 10 || n > 12 {
			t.Errorf("%d tokens in ten hours", n)
		}
		r.issuer.set(3600, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		last := r.Expiries()[0].Until
		sendUntil(last.Add(-31 * time.Second))
		time.Sleep(time.Until(last.Add(-9 * time.Second)))
		a := r.EmptyWrite(t.Context())
		if want := "post to http://h.example/: get OAuth2 token from http://idp.example/token: 503 Service Unavailable"; a.Err == nil || a.Err.Error() != want || a.Blocked || Judge(a, config.Policy{}).Verdict != Retry {
			t.Errorf("%+v", a)
		}
		if n := r.issuer.count(); n > 12+2*31 { // every ten seconds for five minutes, each time in both ways of authentication
			t.Errorf("asked %d times", n)
		}
		r.issuer.set(3600, nil)
		if a := r.EmptyWrite(t.Context()); a.Status != 200 {
			t.Errorf("%+v", a)
		}
		if r.guard.Refusals() > 0 {
			t.Error("requests were refused")
		}
	})
}

// A token that was accepted before and is refused now is replaced once, and the request succeeds. One
// that was never accepted is replaced at most every half minute.
func TestOAuth2Unauthorized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stop := newOAuthRig(t, "", "client_secret: x", nil)
		defer stop()
		if a := r.EmptyWrite(t.Context()); a.Status != 200 {
			t.Fatalf("%+v", a)
		}
		r.guard.Allow("token-2") // the first was revoked
		if a := r.EmptyWrite(t.Context()); a.Status != 200 || r.issuer.count() != 2 || r.guard.Refusals() != 1 {
			t.Fatalf("%+v after %d tokens, %d refusals", a, r.issuer.count(), r.guard.Refusals())
		}
		r.guard.Allow() // whatever the token
		if a := r.EmptyWrite(t.Context()); a.Status != 401 || r.issuer.count() != 3 || r.guard.Refusals() != 3 {
			t.Fatalf("%+v after %d tokens, %d refusals", a, r.issuer.count(), r.guard.Refusals())
		}
		for range 600 {
			if a := r.EmptyWrite(t.Context()); a.Status != 401 || Judge(a, config.Policy{}).Verdict != Hold {
				t.Fatalf("%+v", a)
			}
			time.Sleep(time.Second)
		}
		if n := r.issuer.count(); n < 20 || n > 24 || r.guard.Refusals() != 603 {
			t.Errorf("%d tokens in ten minutes of refusals, %d refusals", n, r.guard.Refusals())
		}
	})
}

// Requests that come at once share one token, or one failure.
func TestOAuth2AskedOnce(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, stop := newOAuthRig(t, "", "client_secret: x", nil)
			defer stop()
			r.issuer.set(3600, func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(3 * time.Second)
				if fails {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"access_token": "t"}`)
			})
			var wg sync.WaitGroup
			begin := time.Now()
			for range 16 {
				wg.Go(func() {
					if a := r.EmptyWrite(t.Context()); (a.Status == 200) == fails {
						t.Errorf("%+v", a)
					}
				})
			}
			wg.Wait()
			want := 1
			if fails {
				want = 2 // ways of authentication
			}
			if n, took := r.issuer.count(), time.Since(begin); n != want || took != time.Duration(want)*3*time.Second {
				t.Errorf("fails %t: asked %d times in %s", fails, n, took)
			}
		})
	}
}

// The faults of a token endpoint: each is reported with its address and reason, holds the
// target or causes a retry, and shows no secret.
func TestOAuth2Failures(t *testing.T) {
	text := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		says   string
		want   Verdict
		within time.Duration
	}{
		"wrong secret": {text(401, "application/json", `{"error": "invalid_client", "error_description": "no CANARY-secret"}`), "401 Unauthorized: invalid_client: no <secret>", Hold, 0},
		"bad request":  {text(400, "application/json", `{"error": "invalid_scope"}`), "400 Bad Request: invalid_scope", Hold, 0},
		"web page":     {text(403, "text/html", "<html><title>Go away</title></html>"), "403 Forbidden: Go away", Hold, 0},
		"a page as ok": {text(200, "text/html", "<html>sign in</html>"), "cannot parse json", Hold, 0},
		"error as ok":  {text(200, "application/json", `{"error": "unauthorized_client"}`), "unauthorized_client", Hold, 0},
		"no token":     {text(200, "application/json", `{"token_type": "bearer"}`), "missing access_token", Hold, 0},
		"two lines":    {text(200, "application/json", `{"access_token": "a\nb"}`), "cannot be sent", Hold, 0},
		"endless":      {func(w http.ResponseWriter, r *http.Request) { drip(w, r, strings.Repeat("a", 1<<16)) }, "more than 262144 bytes", Retry, time.Second},
		"drips":        {func(w http.ResponseWriter, r *http.Request) { drip(w, r, "{") }, "no answer within 10s", Retry, 10 * time.Second},
		"hangs":        {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within 10s", Retry, 10 * time.Second},
		"down":         {text(500, "text/plain", "CANARY-secret Q0FOQVJZ"), "500 Internal Server Error: <secret> <secret>", Retry, 0},
		"busy":         {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "7"); w.WriteHeader(429) }, "429 Too Many Requests", Retry, 0},
		"redirect":     {http.RedirectHandler("http://other.example/", http.StatusTemporaryRedirect).ServeHTTP, "307 Temporary Redirect", Hold, 0},
		"resets":       {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, "EOF", Retry, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, stop := newOAuthRig(t, "", "client_secret: CANARY-secret", nil)
				defer stop()
				r.issuer.set(0, tc.answer)
				begin := time.Now()
				a := r.EmptyWrite(t.Context())
				if took := time.Since(begin); took > tc.within {
					t.Errorf("took %s", took)
				}
				if a.Err == nil || !strings.HasPrefix(a.Err.Error(), "post to http://h.example/: get OAuth2 token from http://idp.example/token: ") || !strings.Contains(a.Err.Error(), tc.says) || strings.Contains(a.Err.Error(), "CANARY") {
					t.Errorf("%v, want %q", a.Err, tc.says)
				}
				for _, p := range []config.Policy{{DropRateLimited: true}, {OnRefusal: config.RefusalDrop, DropRateLimited: true}} {
					if v := Judge(a, p).Verdict; v != tc.want {
						t.Errorf("%s: %v, want %s", v, a.Err, tc.want)
					}
				}
				if name == "busy" && a.RetryAfter != 7*time.Second {
					t.Errorf("retried after %s", a.RetryAfter)
				}
				if r.issuer.count() == 0 || len(r.guard.Seen) > 0 {
					t.Errorf("endpoint asked %d times, receiver saw %v", r.issuer.count(), r.guard.Seen)
				}
			})
		})
	}
}

// drip writes pieces, ten a second, until the client has gone.
func drip(w http.ResponseWriter, r *http.Request, piece string) {
	w.Header().Set("Content-Type", "application/json")
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, piece); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		time.Sleep(time.Second / 10)
	}
}

// The endpoint's own tls_config: its authority, and a client certificate instead of a secret
// (RFC 8705, 2).
func TestOAuth2MutualTLS(t *testing.T) {
	ca := testnet.NewAuthority(t)
	cert, key := ca.Issue("client")
	server := ca.ServerWith(ca.Issue("idp.example"))
	synctest.Test(t, func(t *testing.T) {
		dir := testnet.WriteFiles(t, map[string]string{"ca.pem": ca.Pem, "cert.pem": cert, "key.pem": key})
		r, stop := newOAuthRig(t, dir, "tls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem}", server)
		defer stop()
		if a := r.EmptyWrite(t.Context()); a.Status != 200 {
			t.Errorf("%+v", a)
		}
		what := ""
		for _, e := range r.Expiries() {
			what += e.What + ", "
		}
		if want := "certificate of the authority for the token endpoint, client certificate for the token endpoint, OAuth2 token, "; what != want {
			t.Errorf("expiries of %s", what)
		}
		r, stop = newOAuthRig(t, dir, "tls_config: {cert_file: cert.pem, key_file: key.pem}", server)
		defer stop()
		if a := r.EmptyWrite(t.Context()); a.Err == nil || !strings.Contains(a.Err.Error(), "get OAuth2 token from https://idp.example/token: tls: ") || Judge(a, config.Policy{}).Verdict != Retry {
			t.Errorf("%+v", a)
		}
	})
}

// The client's secret is replaced in its file after the endpoint has begun to refuse it: the
// refusal causes a reread of the file, and the held target is notified.
func TestOAuth2SecretRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := testnet.WriteFiles(t, map[string]string{"secret": "old"})
		r, stop := newOAuthRig(t, dir, "client_secret_file: secret", nil)
		defer stop()
		r.issuer.set(0, func(w http.ResponseWriter, req *http.Request) {
			if _, secret, _ := req.BasicAuth(); secret != "new" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token": "t"}`)
		})
		if a := r.EmptyWrite(t.Context()); !a.Blocked || notified(r.Client) {
			t.Fatalf("%+v", a)
		}
		testnet.WriteFile(t, filepath.Join(dir, "secret"), "new")
		if a := r.EmptyWrite(t.Context()); !a.Blocked || !notified(r.Client) {
			t.Fatalf("%+v", a)
		}
		if a := r.EmptyWrite(t.Context()); a.Status != 200 {
			t.Errorf("%+v", a)
		}
	})
}
