package remotewrite

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// proxies: requests for the target's name reach it through the proxy only.
func TestSendThroughProxy(t *testing.T) {
	var proxied, auth string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		proxied, auth = r.RequestURI, r.Header.Get("Proxy-Authorization")
		w.WriteHeader(http.StatusNoContent)
	})
	c := newClient(t, "{url: http://target.example/push, proxy_url: "+strings.Replace(proxy.URL, "//", "//u:p@", 1)+"}", "", ClientOptions{})
	if a := c.Send(t.Context(), Request{Body: []byte("x")}); a.Status != 204 || proxied != "http://target.example/push" || auth == "" {
		t.Errorf("answer %+v, proxy saw %q, %q", a, proxied, auth)
	}
	c = newClient(t, "{url: http://target.example/push, proxy_url: "+proxy.URL+", no_proxy: target.example}", "", ClientOptions{
		Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("dialled directly") },
	})
	if a := c.Send(t.Context(), Request{Body: []byte("x")}); a.Err == nil || !strings.Contains(a.Err.Error(), "dialled directly") {
		t.Errorf("no_proxy: answer %+v", a)
	}
}

// A TLS target is reached through a tunnel: the proxy sees the name, its own
// credentials and headers, and nothing of the target's.
func TestSendThroughTunnel(t *testing.T) {
	target := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer abc" || r.Header.Get("X-Proxy") != "" || r.Header.Get("Proxy-Authorization") != "" {
			t.Errorf("target sees %v", r.Header)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer target.Close()
	ended := make(chan struct{}, 2) // by each direction of the tunnel
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "target.example:443" || r.Header.Get("X-Proxy") != "secret" || r.Header.Get("Authorization") != "" ||
			!strings.HasPrefix(r.Header.Get("Proxy-Authorization"), "Basic ") {
			t.Errorf("proxy sees %s %s %v", r.Method, r.Host, r.Header)
		}
		out, err := net.Dial("tcp", target.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		in, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(out, in); _ = out.Close(); ended <- struct{}{} }()
		go func() { _, _ = io.Copy(in, out); _ = in.Close(); ended <- struct{}{} }()
	})
	c := newClient(t, "{url: https://target.example/push, bearer_token: abc, tls_config: {insecure_skip_verify: true}, proxy_connect_header: {X-Proxy: [secret]}, proxy_url: "+
		strings.Replace(proxy.URL, "//", "//u:p@", 1)+"}", "", ClientOptions{})
	if a := c.Send(t.Context(), Request{Body: []byte("x")}); a.Status != 204 {
		t.Fatalf("answer %+v", a)
	}
	c.Close()
	<-ended
	<-ended
}
