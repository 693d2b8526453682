package e2e

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
)

// echo is the other side of each target of the canary configuration: receiver, token
// endpoint and proxy. It refuses everything, and says again all that it was sent.
type echo struct {
	mu    sync.Mutex
	hits  map[string]int  // by path, "proxy" for the proxy
	shown map[string]bool // what it was shown to be let in: none of it may appear anywhere
}

func (e *echo) note(path string, secrets ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hits[path]++
	for _, s := range secrets {
		if _, bare, ok := strings.Cut(s, " "); ok { // the scheme of Authorization
			s = bare
		}
		if s != "" {
			e.shown[s] = true
		}
	}
}

func (e *echo) seen() (hits map[string]int, secrets []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	hits = map[string]int{}
	for path, n := range e.hits {
		hits[path] = n
	}
	for s := range e.shown {
		secrets = append(secrets, s)
	}
	return hits, secrets
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.Contains(r.URL.Path, "token")
	if token {
		_ = r.ParseForm()
	}
	body, _ := io.ReadAll(r.Body)
	e.note(r.URL.Path, r.Header.Get("Authorization"), r.PostForm.Get("assertion"), r.PostForm.Get("client_secret"))
	// Just where an answer is cut off, half a secret would stand.
	said := fmt.Sprint(r.URL.String(), " ", r.Header, " ", r.PostForm, " ", strings.Repeat(".", 700), r.Header, strings.Repeat("CANARY-query CANARY-header ", 100))
	status := 0
	switch path := r.URL.Path; path {
	case "/token":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token": "CANARY-issued", "expires_in": 3600}`)
		return
	case "/notoken":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_client", "error_description": said})
		return
	case "/hang":
		<-r.Context().Done()
		return
	case "/raw":
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = fmt.Fprintf(conn, "%s\r\n\r\n", r.Header)
			_ = conn.Close()
		}
		return
	case "/302":
		w.Header().Set("Location", "http://127.0.0.1:1/?"+r.Header.Get("Authorization"))
		status = http.StatusFound
	default:
		_, _ = fmt.Sscanf(path, "/%d", &status)
	}
	if len(body) < 4 && (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) {
		return // an empty write: it is the samples that are refused
	}
	if status == 0 {
		status = http.StatusNotFound
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, said)
}

// proxy refuses each request and says it again.
func (e *echo) proxy(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				e.note("proxy", req.Header.Get("Proxy-Authorization"), req.Header.Get("X-Proxy"))
				said := strings.NewReplacer("\r", "", "\n", "").Replace(fmt.Sprint(req.Header))
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 407 No %s\r\nContent-Length: %d\r\n\r\n%s", said, len(said), said)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// canaryAgent is the agent with the configuration in which each key that can hold a secret
// holds one, and what must not show of its files.
func canaryAgent(t *testing.T, e *echo) (a *agent, secrets []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "agent", "testdata", "canary.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(e)
	t.Cleanup(plain.Close)
	dir := t.TempDir()
	pki, err := receiver.NewPKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewUnstartedServer(e)
	secure.TLS = pki.ServerTLS()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signing := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, name := range []string{"community", "auth", "priv", "header", "bearer", "credentials", "user", "password", "client-secret"} {
		writeFile(t, filepath.Join(dir, name), "CANARY-file-"+name+"\n")
	}
	writeFile(t, filepath.Join(dir, "two-lines"), "CANARY-first\nCANARY-second\n")
	writeFile(t, filepath.Join(dir, "not-a-key"), "-----BEGIN PRIVATE KEY-----\nCANARYCANARY\n-----END PRIVATE KEY-----\n")
	writeFile(t, filepath.Join(dir, "rsa.key"), "CANARY-key\n"+signing)
	for _, text := range []string{read(pki.KeyFile), signing} {
		for _, line := range strings.Split(text, "\n") {
			if len(line) > 40 && !strings.HasPrefix(line, "-") {
				secrets = append(secrets, line)
			}
		}
	}
	quote := func(s string) string { return strings.ReplaceAll(s, "\n", `\n`) }
	config := strings.NewReplacer(
		"ECHO", plain.Listener.Addr().String(), "SECURE", secure.Listener.Addr().String(), "PROXY", e.proxy(t), "DIR", dir,
		"PEMCERT", `"`+quote(read(pki.CertFile))+`"`, "PEMKEY", quote(read(pki.KeyFile)), "PEMRSA", quote(signing),
	).Replace(string(text))
	a = newAgent(t, config)
	a.args = append(a.args, "--log.level", "debug")
	return a, secrets
}

// TestNoSecretShows runs the agent with a canary in every key that can hold a secret, has
// each kind of failure happen at a side that repeats what it was sent, and looks for the
// canaries in all that comes out of the agent, a crash's dump included.
func TestNoSecretShows(t *testing.T) {
	t.Parallel()
	e := &echo{hits: map[string]int{}, shown: map[string]bool{}}
	a, secrets := canaryAgent(t, e)
	a.run()
	t.Cleanup(a.kill)

	// Every way to fail has been gone.
	want := map[string]string{ // of each target, what is told
		"url": "400 Bad Request", "headers": "400 Bad Request", "bearer": "401 Unauthorized", "bearer-file": "403 Forbidden", "authorization": "500 Internal",
		"authorization-file": "302 Found", "basic": "422 Unprocessable", "basic-file": "malformed HTTP", "hangs": "no answer within", "no-host": "no-such-host",
		"refused": "connection refused", "not-tls": "HTTP response to HTTPS client", "unknown": "x509", "tls": "401 Unauthorized", "bad-key": "not-a-key", "two-lines": "two-lines",
		"proxy": "407", "tunnel": "407", "proxy-down": "refused", "socks-down": "refused", "token": "401 Unauthorized", "token-refused": "invalid_client",
		"token-proxy": "407", "token-tls": "500 Internal", "signed": "invalid_client", "signed-file": "401 Unauthorized",
		"tenants": "401 Unauthorized",
	}
	eventually(t, 60*time.Second, func() string {
		s := a.status()
		if len(s.Targets) != len(want) {
			t.Fatalf("%d targets, the test knows of %d", len(s.Targets), len(want))
		}
		for _, tg := range s.Targets {
			if told := tg.Why + " " + tg.LastError; !strings.Contains(told, want[tg.Name]) {
				return fmt.Sprintf("target %s says %q, not %q", tg.Name, told, want[tg.Name])
			}
			if dead := tg.Name == "url" || tg.Name == "headers" || tg.Name == "basic"; dead && tg.DeadLetters == 0 {
				return fmt.Sprintf("target %s has no dead letters", tg.Name)
			}
		}
		for _, p := range s.Probes {
			if strings.HasPrefix(p.Name, "v") && p.LastError == "" {
				return fmt.Sprintf("probe %s has not failed", p.Name)
			}
		}
		return ""
	})
	hits, shown := e.seen()
	for _, path := range []string{"/400", "/401", "/403", "/422", "/500", "/302", "/raw", "/hang", "/token", "/notoken", "proxy"} {
		if hits[path] == 0 {
			t.Errorf("nothing came to %s: %v", path, hits)
		}
	}
	if len(shown) < 15 {
		t.Errorf("the other side was shown only %d secrets", len(shown))
	}
	secrets = append(secrets, shown...)
	for _, user := range []string{"CANARY-user:CANARY-pass", "CANARY-puser:CANARY-proxy", "u:CANARY-basic", "id:CANARY-client"} {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(user)))
	}

	out := map[string]string{} // all that comes out, by where
	for _, path := range []string{"/", "/metrics", "/api/v1/status", "/api/v1/config", "/debug/pprof/goroutine?debug=2", "/debug/pprof/cmdline", "/-/ready"} {
		code, body, err := a.ask(http.MethodGet, path)
		if err != nil || code != http.StatusOK {
			t.Errorf("%s: %d %v", path, code, err)
		}
		out["GET "+path] = body
	}
	command := func(args ...string) {
		stdout, stderr, _ := runToEnd(t, time.Minute, a.name, append(args, "--config.file", a.config, "--storage.path", a.storage, "--log.level", "debug")...)
		out["hwsagent "+strings.Join(args, " ")] = stdout + stderr
		if stdout+stderr == "" {
			t.Errorf("%v prints nothing", args)
		}
	}
	for _, more := range [][]string{nil, {"--json"}} {
		for _, args := range [][]string{{"status"}, {"check"}, {"targets"}, {"targets", "rejected", "url"}, {"targets", "rejected", "headers"}, {"targets", "test", "token-refused"}, {"targets", "test", "proxy"}, {"wal", "inspect"}, {"probe", "v3-file"}} {
			command(append(args, more...)...)
		}
	}
	if !strings.Contains(out["hwsagent targets rejected url"], "400") {
		t.Errorf("dead letters show nothing:\n%s", out["hwsagent targets rejected url"])
	}
	// A reload that fails at each key.
	whole, err := os.ReadFile(a.config)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.NewReplacer("url: ", "ulr: ", "token: ", "tokn: ", "password: ", "pasword: ", "{name: ", "{bogus: 1, name: ").Replace(string(whole))
	writeFile(t, a.config, broken)
	for _, more := range [][]string{nil, {"--json"}} {
		command(append([]string{"reload"}, more...)...)
		command(append([]string{"check", "--no-network"}, more...)...)
	}
	writeFile(t, a.config, strings.Replace(string(whole), "remote_write:", "remote_write: [", 1)) // what cannot be parsed
	command("reload")
	if _, body, err := a.ask(http.MethodGet, "/"); err == nil {
		out["GET / after the reload"] = body
	}

	// A crash: all goroutines with what they do.
	if err := a.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-a.done
	dump := a.logText()
	if !strings.Contains(dump, "SIGQUIT: quit") || !strings.Contains(dump, "goroutine ") || !strings.Contains(dump, "level=DEBUG") && !strings.Contains(dump, "level=debug") {
		t.Errorf("the log has no dump, or nothing at debug:\n%s", a.tail(30))
	}
	out["log and crash"] = dump
	err = filepath.WalkDir(a.storage, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		out["file "+path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range out {
		for _, s := range append(secrets, "CANARY") {
			if i := strings.Index(text, s); i >= 0 {
				t.Errorf("%s shows a secret: …%s…", where, text[max(0, i-200):min(len(text), i+80)])
				break
			}
		}
	}
	t.Logf("%d outputs, %d secrets, %d requests", len(out), len(secrets), len(hits))
}
