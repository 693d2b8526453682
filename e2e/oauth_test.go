package e2e

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
)

// issuer is a token endpoint whose tokens live for two seconds; the receiver takes the last
// two.
type issuer struct {
	recv *receiver.Receiver

	mu     sync.Mutex
	refuse int // the status to answer with; 0: a token
	asked  int
	last   string
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	if id, secret, _ := r.BasicAuth(); i.refuse == 0 && (id != "agent" || secret != "right" || r.FormValue("grant_type") != "client_credentials") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if i.refuse != 0 {
		w.WriteHeader(i.refuse)
		return
	}
	next := fmt.Sprint("token-", i.asked)
	i.recv.AllowTokens(next, i.last)
	i.last = next
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"access_token": %q, "token_type": "Bearer", "expires_in": 2}`, next)
}

func (i *issuer) set(refuse int) (asked int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refuse = refuse
	if refuse != 0 {
		i.recv.AllowTokens("none") // issued tokens are no longer valid
	}
	return i.asked
}

// connectProxy is an HTTP proxy for tunnels that asks for a user.
type connectProxy struct {
	listener net.Listener
	done     sync.WaitGroup

	mu      sync.Mutex
	refuse  string // the status line to answer with; "": tunnels
	tunnels int
	open    map[net.Conn]bool
}

func newConnectProxy(t *testing.T) *connectProxy {
	t.Helper()
	p := &connectProxy{open: map[net.Conn]bool{}}
	var err error
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	p.done.Go(func() {
		for {
			conn, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.done.Go(func() {
				defer conn.Close()
				_ = p.serve(conn) // the agent tells
			})
		}
	})
	t.Cleanup(func() {
		p.listener.Close()
		p.set("503 over")
		p.done.Wait()
	})
	return p
}

// set changes what is answered, and cuts what is open.
func (p *connectProxy) set(refuse string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
	for conn := range p.open {
		conn.Close()
	}
}

func (p *connectProxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tunnels
}

func (p *connectProxy) serve(conn net.Conn) error {
	r := bufio.NewReader(conn)
	req, err := http.ReadRequest(r)
	if err != nil {
		return err
	}
	p.mu.Lock()
	refuse := p.refuse
	if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("puser:ppass")); refuse == "" && (req.Method != http.MethodConnect || req.Header.Get("Proxy-Authorization") != want) {
		refuse = "407 who are you"
	}
	if refuse == "" {
		p.tunnels++
		p.open[conn] = true
	}
	p.mu.Unlock()
	if refuse != "" {
		_, err := fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", refuse)
		return err
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, conn)
	}()
	out, err := net.Dial("tcp", req.Host)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return err
	}
	p.done.Go(func() {
		_, _ = io.Copy(out, r)
		_ = out.(*net.TCPConn).CloseWrite()
	})
	_, err = io.Copy(conn, out)
	return err
}

// TestTokensThroughAProxy delivers with tokens that live for two seconds, through a proxy, under load; then endpoint
// and proxy fail and refuse in turn, and the agent is killed. Each failure is reported by name, and nothing is lost.
func TestTokensThroughAProxy(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	pki, err := receiver.NewPKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	recv, oracle := startReceiver(t, receiver.Options{TLS: pki.ServerTLS(), Tokens: []string{"none"}})
	idp := &issuer{recv: recv}
	endpoint := httptest.NewServer(idp)
	t.Cleanup(endpoint.Close)
	proxy := newConnectProxy(t)
	secret := writeFile(t, pki.CAFile+".secret", "wrong\n")
	l := newLoad(t, 200, 100*time.Millisecond, entry("receiver", recv.URL(),
		"    proxy_url: http://puser:ppass@"+proxy.listener.Addr().String()+"\n",
		fmt.Sprintf("    tls_config: {ca_file: %s, cert_file: %s, key_file: %s}\n", pki.CAFile, pki.CertFile, pki.KeyFile),
		fmt.Sprintf("    oauth2: {client_id: agent, client_secret_file: %s, token_url: %s/token}\n", secret, endpoint.URL)), oracle).begin()
	says := func(state, what string) {
		t.Helper()
		eventually(t, 30*time.Second, func() string {
			if tg := l.target("receiver"); tg.State != state || !strings.Contains(tg.Why+tg.LastError, what) {
				return fmt.Sprintf("the target is %s (%s; %s), want %s because of %q", tg.State, tg.Why, tg.LastError, state, what)
			}
			return ""
		})
	}
	says("held", "get OAuth2 token from "+endpoint.URL+"/token: 401 Unauthorized")
	writeFile(t, secret, "right\n")
	l.arrived(20 * time.Second)
	before := idp.set(0)
	l.acked(50) // five seconds
	l.arrived(20 * time.Second)
	if n := idp.set(0) - before; n < 2 || proxy.count() == 0 {
		t.Errorf("%d tokens in five seconds, %d tunnels", n, proxy.count())
	}
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusForbidden} {
		idp.set(status)
		says(map[int]string{503: "retrying", 403: "held"}[status], fmt.Sprintf("get OAuth2 token from %s/token: %d", endpoint.URL, status))
		l.acked(10)
		idp.set(0)
		l.arrived(30 * time.Second)
	}
	for _, refuse := range []string{"502 Bad Gateway", "407 Proxy Authentication Required"} {
		proxy.set(refuse)
		says(map[string]string{"502": "retrying", "407": "held"}[refuse[:3]], "the proxy http://"+proxy.listener.Addr().String()+" answers "+refuse)
		l.acked(10)
		proxy.set("")
		l.arrived(30 * time.Second)
	}
	l.kill()
	l.run()
	l.arrived(30 * time.Second)
	if r := l.settle(30*time.Second, "receiver"); r.Missing != 0 || r.OutOfOrder != 0 {
		t.Errorf("lost %d, out of order %d; want none of each", r.Missing, r.OutOfOrder)
	}
	if tg := l.target("receiver"); tg.Ledger.Lost != 0 || tg.DeadLetters != 0 {
		t.Errorf("the ledger has losses: %+v", tg)
	}
}
