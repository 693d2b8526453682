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
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"hwsagent/internal/testnet"
	"hwsagent/remotewrite/config"
)

// serve runs a real server until the test ends.
func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// newClient makes a client from configuration text, with file names relative to dir.
func newClient(t testing.TB, text, dir string, o Options) *Client {
	t.Helper()
	var c config.Config
	if err := yaml.Load([]byte(text), &c, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	if p := c.Validate(); len(p) > 0 {
		t.Fatal(p)
	}
	c.SetDirectory(dir)
	if o.Version == "" {
		o.Version = "1.2.3"
	}
	client, err := New(&c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestSendRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	c := newClient(t, fmt.Sprintf("{url: %q, headers: {X-Scope-OrgID: t1, X-Key: k}, http_headers: {X-Many: {values: [a, b]}}}", s.URL+"/api/v1/push?x=y"), "", Options{})
	a := c.Send(t.Context(), Request{Body: []byte("payload"), Attempt: 3})
	if a.Status != http.StatusNoContent || a.Err != nil || a.Date.IsZero() || a.Took <= 0 || a.Text != "" {
		t.Fatalf("answer %+v", a)
	}
	want := http.Header{
		"Content-Encoding":                  {"snappy"},
		"Content-Type":                      {"application/x-protobuf"},
		"X-Prometheus-Remote-Write-Version": {"0.1.0"},
		"User-Agent":                        {"hwsagent/1.2.3"},
		"X-Scope-Orgid":                     {"t1"},
		"X-Key":                             {"k"},
		"X-Many":                            {"a", "b"},
		"Retry-Attempt":                     {"3"},
		"Content-Length":                    {"7"},
	}
	if d := cmp.Diff(want, got.Header); d != "" {
		t.Errorf("headers (-want +got):\n%s", d)
	}
	if got.Method != http.MethodPost || got.RequestURI != "/api/v1/push?x=y" || string(body) != "payload" || got.ProtoMajor != 1 {
		t.Errorf("%s %s HTTP/%d.%d %q", got.Method, got.RequestURI, got.ProtoMajor, got.ProtoMinor, body)
	}
	c.Send(t.Context(), Request{Body: []byte("x")})
	if _, there := got.Header["Retry-Attempt"]; there {
		t.Error("a first attempt has a Retry-Attempt header")
	}
}

func TestSendAuthentication(t *testing.T) {
	dir := testnet.WriteFiles(t, map[string]string{"token": "from-file\n", "user": "u2\n", "password": "p2\r\n", "header": "h\n"})
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, tc := range []struct{ entry, user, header, want string }{
		{entry: "bearer_token: abc", want: "Bearer abc"},
		{entry: "bearer_token_file: token", want: "Bearer from-file"},
		{entry: "authorization: {type: Token, credentials: abc}", want: "Token abc"},
		{entry: "authorization: {credentials_file: token}", want: "Bearer from-file"},
		{entry: "basic_auth: {username: u, password: p}", want: basic("u:p")},
		{entry: "basic_auth: {username_file: user, password_file: password}", want: basic("u2:p2")},
		{entry: "name: x", user: "u3:p3@", want: basic("u3:p3")},
		{entry: "http_headers: {X-Token: {files: [header]}}", header: "X-Token", want: "h"},
	} {
		header := "Authorization"
		if tc.header != "" {
			header = tc.header
		}
		var got string
		s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get(header) })
		c := newClient(t, "url: "+strings.Replace(s.URL, "http://", "http://"+tc.user, 1)+"\n"+tc.entry, dir, Options{})
		if a := c.EmptyWrite(t.Context()); a.Status != 200 || got != tc.want {
			t.Errorf("%s: %s is %q, want %q (%+v)", tc.entry, header, got, tc.want, a)
		}
	}
}

// A connection that the server closes while it idles costs no failed request, and the
// request arrives once.
func TestSendRetriesBrokenConnection(t *testing.T) {
	for _, proto := range []string{"close", "reset"} {
		t.Run(proto, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var taken, broken atomic.Int64
			var server sync.WaitGroup
			server.Go(func() {
				for {
					conn, err := ln.Accept()
					if err != nil {
						return
					}
					// Each connection answers one request and is closed when the next one
					// has been read in part: the fault that a client cannot foresee.
					r := &oneRequest{conn: conn}
					if r.answer() {
						taken.Add(1)
					}
					server.Go(func() {
						if r.breakNext(proto == "reset") {
							broken.Add(1)
						}
					})
				}
			})
			c := newClient(t, "url: http://"+ln.Addr().String(), "", Options{})
			for i := range 4 {
				if a := c.Send(t.Context(), Request{Body: []byte(fmt.Sprint("request ", i))}); a.Status != 200 {
					t.Fatalf("request %d: %+v", i, a)
				}
			}
			c.Close()
			_ = ln.Close()
			server.Wait()
			if taken.Load() != 4 || broken.Load() != 3 {
				t.Errorf("%d requests taken, %d broken; want 4 and 3", taken.Load(), broken.Load())
			}
		})
	}
}

// A new connection that breaks is not retried: the server may have read the request,
// and the queue decides.
func TestSendRetriesOnlyKeptConnections(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan struct{}, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			first := make([]byte, 10)
			_, _ = conn.Read(first)
			if first[0] == 'P' { // POST; the client also asks once whether the port speaks TLS
				conns <- struct{}{}
			}
			_ = conn.Close()
		}
	}()
	c := newClient(t, "url: http://"+ln.Addr().String(), "", Options{})
	a := c.Send(t.Context(), Request{Body: []byte("x")})
	if a.Err == nil || a.Status != 0 {
		t.Errorf("answer %+v", a)
	}
	_ = ln.Close()
	<-done
	if n := len(conns); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestSendErrors(t *testing.T) {
	c := newClient(t, "url: http://127.0.0.1:1/p", "", Options{})
	a := c.Send(t.Context(), Request{Body: []byte("x")})
	if _, is := errors.AsType[*net.OpError](a.Err); !is {
		t.Errorf("a refused connection is %T: %v", a.Err, a.Err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := c.Send(ctx, Request{Body: []byte("x")}); !errors.Is(a.Err, context.Canceled) {
		t.Errorf("a cancelled request is %v", a.Err)
	}
	if _, is := errors.AsType[*url.Error](a.Err); is {
		t.Errorf("the error holds net/http's, which has the whole URL: %v", a.Err)
	}
}

// The text is the body's beginning, one line, printable; of a web page its title.
func TestSendText(t *testing.T) {
	for _, tc := range []struct{ body, want string }{
		{"out of order sample\n", "out of order sample"},
		{"<html>\r\n <h1>400</h1>\x00\x1b[31m\xff\n", "<html> <h1>400</h1>[31m"},
		{"<!DOCTYPE html>\n<HTML><head><TITLE>502 a &lt; b\n</TITLE></head><body>much more</body>", "502 a < b"},
		{"<html><head><title>400 No certificate</title></head>", "No certificate"},
		{"<html><head><title>400 Bad Request</title></head>", ""},
		{"Bad request\n", ""},
		{"<html><title></title></html>", "<html><title></title></html>"},
		{strings.Repeat("a", 3000), strings.Repeat("a", 1024)},
		{strings.Repeat("a", 100_000), strings.Repeat("a", 1024)},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, tc.body)
		})
		a := newClient(t, "url: "+s.URL, "", Options{}).Send(t.Context(), Request{Body: []byte("x")})
		if a.Status != 400 || a.Text != tc.want {
			t.Errorf("body of %d bytes: %d %q", len(tc.body), a.Status, a.Text)
		}
	}
}

// A head without end is not read to its end.
func TestSendMeetsHeadWithoutEnd(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var server sync.WaitGroup
	server.Go(func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		// After the request: what comes on a connection before one is sent is another error.
		q, err := http.ReadRequest(bufio.NewReader(conn))
		if err == nil { // whole, or the client might fail in writing the rest
			_, err = io.Copy(io.Discard, q.Body)
		}
		if err != nil {
			t.Error(err)
		}
		for _, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Much: "); err == nil; {
			_, err = io.WriteString(conn, strings.Repeat("m", 1<<16))
		}
		_ = conn.Close()
	})
	a := newClient(t, "url: http://"+ln.Addr().String(), "", Options{}).Send(t.Context(), Request{Body: []byte("x")})
	if a.Err == nil || !strings.Contains(a.Err.Error(), "headers exceeded 262144 bytes") {
		t.Errorf("answer %+v", a)
	}
	_ = ln.Close()
	server.Wait()
}

// A 2xx with a web page is not a receiver's.
func TestSendMeetsWebPage(t *testing.T) {
	for body, page := range map[string]bool{
		"": false, "ok": false, "<x>": false, "\n <!DOCTYPE HTML><title>Log in</title>": true, "<html lang=en>": true, "<HTML>\n": true,
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		a := newClient(t, "url: "+s.URL, "", Options{}).Send(t.Context(), Request{Body: []byte("x")})
		if a.Status != 200 || a.Page != page || a.Accepted() == page || (Judge(a, config.Policy{}).Verdict == Delivered) == page {
			t.Errorf("body %q: %+v", body, a)
		}
	}
}

// A kept connection is used again, whatever the status; one whose body is too long to
// read is given up.
func TestSendKeepsConnections(t *testing.T) {
	for _, tc := range []struct {
		size int
		want int64 // connections for three requests
	}{{0, 1}, {100, 1}, {4000, 1}, {1 << 20, 3}} {
		var conns atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write(make([]byte, tc.size))
		}))
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		}
		s.Start()
		c := newClient(t, "url: "+s.URL, "", Options{})
		for range 3 {
			if a := c.Send(t.Context(), Request{Body: []byte("x")}); a.Status != 500 {
				t.Errorf("answer %+v", a)
			}
		}
		s.Close()
		if got := conns.Load(); got != tc.want {
			t.Errorf("body of %d bytes: %d connections for three requests, want %d", tc.size, got, tc.want)
		}
	}
}

// The body may be changed as soon as Send returns, even where the server answered
// without having read it.
func TestSendGivesBodyBack(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	c := newClient(t, "url: "+s.URL, "", Options{})
	body := make([]byte, 8<<20)
	for i := range 20 {
		c.Send(t.Context(), Request{Body: body})
		for j := range body { // the race detector sees a reader that is left
			body[j] = byte(i)
		}
	}
}

func TestSendConcurrently(t *testing.T) {
	var sum atomic.Int64
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sum.Add(int64(len(b)))
	})
	c := newClient(t, "url: "+s.URL, "", Options{})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 20 {
				if a := c.Send(t.Context(), Request{Body: make([]byte, i+1)}); a.Status != 200 {
					t.Errorf("answer %+v", a)
				}
			}
		})
	}
	wg.Wait()
	if sum.Load() != 20*16*17/2 {
		t.Errorf("%d bytes arrived", sum.Load())
	}
}

func TestNewClientFaults(t *testing.T) {
	for _, tc := range []struct{ entry, says string }{
		{"tls_config: {ca: nonsense}", "ca"},
		{"tls_config: {cert: a, key: b}", "client certificate"},
	} {
		var c config.Config
		if err := yaml.Unmarshal([]byte("url: https://h.example/\n"+tc.entry), &c); err != nil {
			t.Fatal(err)
		}
		if _, err := New(&c, Options{}); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.entry, err)
		}
	}
	if _, err := New(&config.Config{}, Options{}); err == nil {
		t.Error("no url is no error")
	}
}

func TestSpreadDial(t *testing.T) {
	addrs := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}
	seen := map[string]int{}
	fail := "192.0.2.2:80"
	dial := spreadDial(
		func(context.Context, string) ([]string, error) { return append([]string(nil), addrs...), nil },
		func(_ context.Context, _, addr string) (net.Conn, error) {
			seen[addr]++
			if addr == fail {
				return nil, os.ErrDeadlineExceeded
			}
			c, s := net.Pipe()
			_ = s.Close()
			return c, nil
		})
	for range 60 {
		if c, err := dial(t.Context(), "tcp", "h.example:80"); err != nil {
			t.Fatal(err)
		} else {
			_ = c.Close()
		}
	}
	if len(seen) != 3 {
		t.Errorf("dialled %v, want each of %v", seen, addrs)
	}
	addrs = nil
	if _, err := dial(t.Context(), "tcp", "h.example:80"); err == nil {
		t.Error("a name without addresses is no error")
	}
	addrs = []string{"192.0.2.2"}
	if _, err := dial(t.Context(), "tcp", "h.example:80"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
}

// oneRequest is the server's end of a connection that answers one request.
type oneRequest struct{ conn net.Conn }

func (r *oneRequest) answer() bool {
	req := make([]byte, 4096)
	for n := 0; !strings.Contains(string(req[:n]), "request "); {
		m, err := r.conn.Read(req[n:])
		if err != nil {
			return false
		}
		n += m
	}
	_, err := io.WriteString(r.conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	return err == nil
}

// breakNext closes the connection when something of another request has come.
func (r *oneRequest) breakNext(reset bool) bool {
	_, err := r.conn.Read(make([]byte, 10))
	if tcp, ok := r.conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = r.conn.Close()
	return err == nil
}
