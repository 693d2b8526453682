package client

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/config"
)

// httpProxy is an HTTP proxy that leads every name to one address. It keeps all that it
// sees, byte for byte.
type httpProxy struct {
	listener net.Listener
	to       string
	auth     string              // Proxy-Authorization that it demands; "": none
	answer   func(net.Conn) bool // answers instead, if it returns true

	mu      sync.Mutex
	seen    strings.Builder // by the proxy, tunnels included
	tunnels []string
}

func startProxy(t testing.TB, p *httpProxy) *httpProxy {
	t.Helper()
	var err error
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := p.listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_ = p.serve(conn) // the client's error tells
			})
		}
	})
	t.Cleanup(func() {
		_ = p.listener.Close()
		wg.Wait()
	})
	return p
}

// url is the proxy's address with a user.
func (p *httpProxy) url() string { return "http://puser:CANARY-proxy@" + p.listener.Addr().String() }

func (p *httpProxy) saw() (text string, tunnels []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String(), p.tunnels
}

func (p *httpProxy) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.Write(b)
}

func (p *httpProxy) serve(conn net.Conn) error {
	r := bufio.NewReader(io.TeeReader(conn, p))
	req, err := http.ReadRequest(r)
	if err != nil {
		return err
	}
	if p.answer != nil && p.answer(conn) {
		return nil
	}
	if p.auth != "" && req.Header.Get("Proxy-Authorization") != p.auth {
		_, err := io.WriteString(conn, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n")
		return err
	}
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		return err
	}
	if req.Method == http.MethodConnect {
		p.mu.Lock()
		p.tunnels = append(p.tunnels, req.Host)
		p.mu.Unlock()
		if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return err
		}
		return splice(conn, r, out)
	}
	defer out.Close()
	req.Header.Del("Proxy-Authorization")
	req.Close = true
	if err := req.Write(out); err != nil {
		return err
	}
	_, err = io.Copy(conn, out)
	return err
}

func secureTarget(t testing.TB) (*httptest.Server, *testnet.Guard) {
	t.Helper()
	g := &testnet.Guard{}
	s := httptest.NewUnstartedServer(g.Handler(func(r *http.Request) string {
		if r.Header.Get("X-Proxy") != "" || r.Header.Get("Proxy-Authorization") != "" {
			return fmt.Sprint("with the proxy's: ", r.Header)
		}
		return r.Header.Get("Authorization") + "|" + r.Header.Get("X-Key")
	}))
	s.Config.ErrorLog = testnet.Discard()
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, g
}

const proxyBasic = "Basic cHVzZXI6Q0FOQVJZLXByb3h5" // puser:CANARY-proxy

// Requests for the target's name reach it through the proxy only, each kind of proxy, with
// its user; what is excepted goes directly.
func TestProxyKinds(t *testing.T) {
	var plainAuth string
	plain := serve(t, func(_ http.ResponseWriter, r *http.Request) { plainAuth = r.Header.Get("Authorization") + r.Host })
	secure, _ := secureTarget(t)
	for name, tc := range map[string]struct{ scheme, keys, proxy string }{
		"http to http":   {"http", "proxy_url: '%s'", "http"},
		"http to https":  {"https", "proxy_url: '%s'", "http"},
		"socks to http":  {"http", "proxy_url: '%s'", "socks5"},
		"socks to https": {"https", "proxy_url: '%s'", "socks5"},
		"socks5h":        {"https", "proxy_url: '%s'", "socks5h"},
		"environment":    {"https", "proxy_from_environment: true", "http"},
		"no_proxy":       {"https", "proxy_url: '%s', no_proxy: '10.0.0.0/8,target.example'", ""},
		"not proxied":    {"https", "proxy_url: '%s', no_proxy: '.example'", ""},
		"environment no": {"http", "proxy_from_environment: true", ""},
	} {
		t.Run(name, func(t *testing.T) {
			to := strings.TrimPrefix(plain.URL, "http://")
			if tc.scheme == "https" {
				to = secure.Listener.Addr().String()
			}
			h := startProxy(t, &httpProxy{to: to, auth: proxyBasic})
			s := startSocks(t, &socksProxy{to: to, user: "puser", password: "CANARY-proxy"})
			address := h.url()
			if strings.HasPrefix(tc.proxy, "socks") {
				address = tc.proxy + "://puser:CANARY-proxy@" + s.listener.Addr().String()
			}
			if strings.Contains(tc.keys, "%s") {
				tc.keys = fmt.Sprintf(tc.keys, address)
			} else {
				t.Setenv("HTTPS_PROXY", address)
				t.Setenv("HTTP_PROXY", "")
			}
			o := Options{}
			if tc.proxy == "" {
				o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("dialled directly") }
			}
			c := newClient(t, "{url: '"+tc.scheme+"://target.example/push', bearer_token: abc, tls_config: {insecure_skip_verify: true}, "+tc.keys+"}", "", o)
			a := c.Send(t.Context(), Request{Body: []byte("x")})
			if tc.proxy == "" {
				if a.Err == nil || !strings.Contains(a.Err.Error(), "dialled directly") {
					t.Errorf("%+v", a)
				}
				return
			}
			_, tunnels := h.saw()
			if tc.proxy == "http" && (tc.scheme == "https") != (len(tunnels) == 1) || tc.proxy != "http" && len(s.requests()) != 1 {
				t.Errorf("the proxy saw %v, %v", tunnels, s.requests())
			}
			if a.Status != 200 || tc.scheme == "http" && plainAuth != "Bearer abctarget.example" {
				t.Errorf("%+v, %q", a, plainAuth)
			}
			c.Close()
		})
	}
}

// For an https target the proxy sees host and port, and its own user and headers, but
// no data of the target; the target sees no data of the proxy.
func TestProxySeesNoCredentials(t *testing.T) {
	secure, g := secureTarget(t)
	p := startProxy(t, &httpProxy{to: secure.Listener.Addr().String(), auth: proxyBasic})
	c := newClient(t, "{url: 'https://target.example/push?q=CANARY-query', bearer_token: CANARY-bearer, http_headers: {X-Key: {secrets: [CANARY-header]}}, "+
		"tls_config: {insecure_skip_verify: true}, proxy_connect_header: {X-Proxy: [mine]}, proxy_url: '"+p.url()+"'}", "", Options{})
	if a := c.Send(t.Context(), Request{Body: []byte("CANARY-body")}); a.Status != 200 {
		t.Fatalf("%+v", a)
	}
	c.Close()
	seen, tunnels := p.saw()
	if len(tunnels) != 1 || tunnels[0] != "target.example:443" || !strings.Contains(seen, "X-Proxy: mine") || !strings.Contains(seen, proxyBasic) {
		t.Errorf("the proxy saw %v\n%q", tunnels, seen)
	}
	if strings.Contains(seen, "CANARY") || strings.Contains(seen, base64.StdEncoding.EncodeToString([]byte("CANARY-bearer"))) {
		t.Errorf("the proxy saw a secret of the target:\n%q", seen)
	}
	if g.Count("Bearer CANARY-bearer|CANARY-header") != 1 {
		t.Errorf("the target saw %v", g.Seen)
	}
}

// What a proxy answers is never the receiver's verdict: it holds the target or is retried,
// whatever the policy, and the proxy is named without its user.
func TestProxyRefuses(t *testing.T) {
	raw := func(text string) func(net.Conn) bool {
		return func(c net.Conn) bool {
			_, _ = io.WriteString(c, strings.ReplaceAll(text, "\n", "\r\n"))
			return true
		}
	}
	for _, tc := range []struct {
		name   string
		scheme string
		answer func(net.Conn) bool
		says   string
		want   Verdict
	}{
		{"407", "https", raw("HTTP/1.1 407 Proxy Authentication Required\nContent-Length: 0\n\n"), "the proxy {P} answers 407 Proxy Authentication Required", Hold},
		{"407 plain", "http", raw("HTTP/1.1 407 Proxy Authentication Required\nContent-Length: 3\n\nwho"), "the proxy {P} answers 407 Proxy Authentication Required: who", Hold},
		{"407 without end", "http", func(c net.Conn) bool {
			_, _ = io.WriteString(c, "HTTP/1.1 407 No\r\nContent-Length: 9999\r\n\r\nwait")
			_, _ = c.Read(make([]byte, 1))
			return true
		}, "the proxy {P} answers 407 Proxy Authentication Required: wait", Hold},
		{"403", "https", raw("HTTP/1.1 403 Port not allowed\n\n"), "the proxy {P} answers 403 Forbidden: Port not allowed", Hold},
		{"400", "https", raw("HTTP/1.1 400 Bad Request\n\n"), "the proxy {P} answers 400 Bad Request", Hold},
		{"409", "https", raw("HTTP/1.1 409 Conflict\n\n"), "the proxy {P} answers 409 Conflict", Hold},
		{"302", "https", raw("HTTP/1.1 302 Found\nLocation: http://login/\n\n"), "the proxy {P} answers 302 Found", Hold},
		{"204", "https", raw("HTTP/1.1 204 No Content\n\n"), "the proxy {P} answers 204 No Content", Hold},
		{"429", "https", raw("HTTP/1.1 429 Too Many Requests\n\n"), "the proxy {P} answers 429 Too Many Requests", Retry},
		{"502", "https", raw("HTTP/1.1 502 Bad Gateway\n\n"), "the proxy {P} answers 502 Bad Gateway", Retry},
		{"503", "https", raw("HTTP/1.1 503 CANARY-proxy\n\n"), "the proxy {P} answers 503 Service Unavailable: <secret>", Retry},
		{"hangs up", "https", raw(""), "through the proxy {P}: unexpected EOF", Retry},
		{"hangs up plain", "http", raw(""), "through the proxy {P}: ", Retry},
		{"no HTTP", "https", raw("SSH-2.0-OpenSSH\n\n"), "through the proxy {P}: malformed HTTP response", Retry},
		{"hangs", "https", func(c net.Conn) bool { _, _ = c.Read(make([]byte, 1)); return true }, "through the proxy {P}: no answer within remote_timeout (200ms)", Retry},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := startProxy(t, &httpProxy{answer: tc.answer})
			timeout := "20s"
			if tc.name == "hangs" {
				timeout = "200ms"
			}
			c := newClient(t, "{url: '"+tc.scheme+"://target.example/push', bearer_token: CANARY-bearer, remote_timeout: "+timeout+", proxy_url: '"+p.url()+"'}", "", Options{})
			a := c.Send(t.Context(), Request{Body: []byte("x")})
			if a.Status != 0 || a.Err == nil {
				t.Fatalf("taken for an answer: %+v", a)
			}
			want := "post to " + tc.scheme + "://target.example/push: " + strings.ReplaceAll(tc.says, "{P}", "http://"+p.listener.Addr().String())
			if !strings.HasPrefix(a.Err.Error(), want) || strings.Contains(a.Err.Error(), "CANARY") || strings.Contains(a.Err.Error(), "puser") {
				t.Errorf("%v\nwant %s", a.Err, want)
			}
			for _, policy := range []config.Policy{{}, {OnRefusal: config.RefusalDrop}} {
				if v := Judge(a, policy).Verdict; v != tc.want {
					t.Errorf("%s, want %s", v, tc.want)
				}
			}
		})
	}
}

// The verdict of the receiver behind a proxy is the receiver's.
func TestProxyPassesVerdicts(t *testing.T) {
	for _, status := range []int{200, 400, 409, 429, 500, 503} {
		target := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		p := startProxy(t, &httpProxy{to: target.Listener.Addr().String()})
		c := newClient(t, "{url: 'http://target.example/push', proxy_url: '"+p.url()+"'}", "", Options{})
		if a := c.Send(t.Context(), Request{Body: []byte("x")}); a.Status != status {
			t.Errorf("%d: %+v", status, a)
		}
	}
}

// A proxy that is down, and SOCKS proxies that refuse: retried, and the proxy is named.
func TestProxyUnreachable(t *testing.T) {
	const down = "127.0.0.1:1" // no program is given this port by the system, as one that was closed may be
	wrong := startSocks(t, &socksProxy{user: "puser", password: "other"}).listener.Addr().String()
	refusing := startSocks(t, &socksProxy{refuse: 2}).listener.Addr().String()
	for _, tc := range []struct{ proxy, at, says string }{
		{"http", down, "connection refused"},
		{"socks5", down, "connection refused"},
		{"http", "no-such-host.invalid:3128", "no-such-host.invalid"},
		{"socks5", wrong, "username/password authentication failed"},
		{"socks5", refusing, "connection not allowed by ruleset"},
	} {
		for _, scheme := range []string{"http", "https"} {
			c := newClient(t, "{url: '"+scheme+"://target.example/push', proxy_url: '"+tc.proxy+"://puser:CANARY-proxy@"+tc.at+"'}", "", Options{})
			a := c.Send(t.Context(), Request{Body: []byte("x")})
			want := "post to " + scheme + "://target.example/push: through the proxy " + tc.proxy + "://" + tc.at + ": "
			if a.Err == nil || !strings.HasPrefix(a.Err.Error(), want) || !strings.Contains(a.Err.Error(), tc.says) || strings.Contains(a.Err.Error(), "CANARY") {
				t.Errorf("%v\nwant %s … %s", a.Err, want, tc.says)
			}
			if v := Judge(a, config.Policy{OnRefusal: config.RefusalDrop}).Verdict; v != Retry {
				t.Errorf("%s: %v", v, a.Err)
			}
			again := c.Send(t.Context(), Request{Body: []byte("x")})
			if again.Err == nil || again.Err.Error() != a.Err.Error() {
				t.Errorf("the same failure reads\n%v\n%v", a.Err, again.Err)
			}
		}
	}
}

// The token endpoint has a proxy of its own, and the target none; a cloud's endpoint has the target's.
func TestProxyForTokens(t *testing.T) {
	idp, g := &issuer{life: 3600}, &testnet.Guard{}
	endpoint, receiver := serve(t, idp.ServeHTTP), serve(t, g.Handler(testnet.Bearer))
	p := startProxy(t, &httpProxy{to: endpoint.Listener.Addr().String(), auth: proxyBasic})
	entry := "{url: '" + receiver.URL + "', oauth2: {client_id: a, client_secret: CANARY-secret, token_url: 'http://idp.example/token', proxy_url: '%s'}}"
	if a := newClient(t, fmt.Sprintf(entry, p.url()), "", Options{}).EmptyWrite(t.Context()); a.Status != 200 || idp.count() != 1 {
		t.Errorf("%+v", a)
	}
	p = startProxy(t, &httpProxy{answer: func(c net.Conn) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
		return true
	}})
	azure := "{url: 'https://h.example/', azuread: {oauth: {client_id: " + azureTestID + ", tenant_id: t, client_secret: x}}, proxy_url: '" + p.url() + "'}"
	for text, from := range map[string]string{
		strings.Replace(fmt.Sprintf(entry, p.url()), "http://idp", "https://idp", 1): "OAuth2 token from https://idp.example/token",
		azure: "Azure token from https://login.microsoftonline.com/t/v2.0/.well-known/openid-configuration",
	} {
		a := newClient(t, text, "", Options{}).EmptyWrite(t.Context())
		want := "get " + from + ": the proxy http://" + p.listener.Addr().String() + " answers 407 Proxy Authentication Required"
		if !a.Blocked || !strings.HasSuffix(a.Err.Error(), want) {
			t.Errorf("%+v\nwant %s", a, want)
		}
		if a.Took > time.Minute {
			t.Error(a.Took)
		}
	}
}
