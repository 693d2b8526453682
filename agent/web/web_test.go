package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"hwsagent/agent/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNamesAreWhole: a row that cuts a long name has the whole name as its title, and the page begins with the time and its
// zone, by which all other times are to be read.
func TestNamesAreWhole(t *testing.T) {
	s := fleet(2)
	s.Targets[0].Name = "an-entry-with-a-long-name/tenant-1"
	body := render(t, status.Judge(s), nil)
	for _, want := range []string{`<b title="an-entry-with-a-long-name/tenant-1">`, "hwsagent</b> on plant-7, <time datetime=\"2026-11-20T12:00:00Z\">2026-11-20 12:00:00 UTC</time></p>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

// TestWebConfigFileIsAFile: reading a pipe as the file with TLS settings and users would block the start forever.
func TestWebConfigFileIsAFile(t *testing.T) {
	if _, err := New(Options{Listen: "127.0.0.1:0", WebConfigFile: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

// statuses are those of the package status that its tests render as text, too.
var statuses = []string{"ok", "held", "full", "down", "new", "notargets", "clock", "missed", "scrape", "inputs"}

// load reads one of the statuses of the package status.
func load(t *testing.T, name string) status.Status {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "status", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var s status.Status
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return status.Judge(s)
}

// server runs a server until the test ends.
func server(t *testing.T, o Options) *Server {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	if o.Status == nil {
		s := load(t, "ok")
		o.Status = func() status.Status { return s }
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s
}

func ask(t *testing.T, s *Server, method, path string, header http.Header) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	if h := header.Get("Host"); h != "" {
		req.Host = h
	}
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func TestAddresses(t *testing.T) {
	var notReady, badReload error
	s := server(t, Options{
		Ready:   func() error { return notReady },
		Reload:  func() error { return badReload },
		Config:  func() ([]byte, error) { return []byte("global: {}\n"), nil },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "up 1\n") }),
	})
	check := func(method, path string, status int, contains string) {
		t.Helper()
		got, body, _ := ask(t, s, method, path, nil)
		if got != status || !strings.Contains(body, contains) {
			t.Errorf("%s %s: %d %.200q, want %d with %q", method, path, got, body, status, contains)
		}
	}
	check("GET", "/", 200, "All data arrives, 1.2 s behind")
	check("GET", "/assets/page.css", 200, "--bg")
	check("GET", "/assets/page.js", 200, "refresh")
	check("GET", "/assets/page.html", 404, "")
	check("GET", "/assets/..%2fpage.go", 404, "")
	check("GET", "/api/v1/status", 200, `"schema": 1`)
	check("GET", "/api/v1/config", 200, "global")
	check("GET", "/metrics", 200, "up 1")
	check("GET", "/-/healthy", 200, "healthy")
	check("GET", "/-/ready", 200, "ready")
	check("POST", "/-/reload", 200, "reloaded")
	check("GET", "/-/reload", 405, "")
	check("GET", "/debug/pprof/", 404, "")
	check("GET", "/nothing", 404, "")

	notReady = errors.New("the log is being opened")
	badReload = errors.New("agent.yaml:3:1: unknown key\n  3 | x")
	check("GET", "/-/ready", 503, "the log is being opened")
	check("POST", "/-/reload", 400, "agent.yaml:3:1: unknown key\n  3 | x")

	other := server(t, Options{Pprof: true})
	if status, _, _ := ask(t, other, "GET", "/debug/pprof/", nil); status != 200 {
		t.Errorf("pprof when asked for: %d", status)
	}
	if status, _, _ := ask(t, other, "POST", "/-/reload", nil); status == 200 {
		t.Error("reload without a function answered 200")
	}
}

func TestForeignPages(t *testing.T) {
	reloads := 0
	s := server(t, Options{Reload: func() error { reloads++; return nil }})
	for host, want := range map[string]int{
		s.Addr().String(): 200, "localhost:9464": 200, "[::1]:9464": 200, "127.0.0.2": 200, "LOCALHOST": 200,
		"evil.example": 421, "evil.example:9464": 421, "10.0.0.1": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
	} {
		if got, body, _ := ask(t, s, "GET", "/api/v1/status", http.Header{"Host": {host}}); got != want {
			t.Errorf("Host %q: %d %q, want %d", host, got, body, want)
		}
	}
	for _, h := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.example"}}, {"Origin": {"null"}},
	} {
		if got, _, _ := ask(t, s, "POST", "/-/reload", h); got != http.StatusForbidden {
			t.Errorf("POST with %v: %d, want 403", h, got)
		}
	}
	if reloads != 0 {
		t.Errorf("a foreign page reloaded %d times", reloads)
	}
	if got, _, _ := ask(t, s, "POST", "/-/reload", http.Header{"Origin": {"http://" + s.Addr().String()}}); got != 200 || reloads != 1 {
		t.Errorf("POST from the page itself: %d", got)
	}
}

func TestHeaders(t *testing.T) {
	s := server(t, Options{})
	_, _, h := ask(t, s, "GET", "/", nil)
	csp := h.Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", h)
	}
}

// The page uses nothing from elsewhere and nothing that the content policy forbids, and
// shows what others said as text.
func TestPage(t *testing.T) {
	for _, name := range statuses {
		s := load(t, name)
		if len(s.Targets) > 0 {
			s.Targets[0].LastError = `<script>alert("x")</script>`
		}
		rec := httptest.NewRecorder()
		(&handlers{o: Options{Status: func() status.Status { return s }}}).page(rec, httptest.NewRequest(http.MethodGet, "/", nil))
		body := rec.Body.String()
		if rec.Code != 200 || !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
			t.Fatalf("%s: %d\n%s", name, rec.Code, body)
		}
		for _, bad := range []string{`src="http`, `href="http`, "style=", "onclick", "<script>alert", "ZgotmplZ", "NaN", "%!"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s: the page has %q", name, bad)
			}
		}
		if len(body) > 60<<10 {
			t.Errorf("%s: %d bytes", name, len(body))
		}
	}
}

func TestListen(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	users := filepath.Join(t.TempDir(), "web.yml")
	// The password is "secret", by bcrypt at its least cost.
	if err := os.WriteFile(users, []byte("basic_auth_users: {joe: $2a$04$Zr3.m6UrPxXgSvnHBqlJheCZ8s4lgC3yDYmVaKsvBnVRZ8WkZCYE2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		want string // part of the error; "" for none
	}{
		{Options{Listen: ""}, ""},
		{Options{Listen: "localhost:0"}, ""},
		{Options{Listen: "0.0.0.0:0"}, "insecure_listen"},
		{Options{Listen: ":0"}, "insecure_listen"},
		{Options{Listen: "0.0.0.0:0", InsecureListen: true}, ""},
		{Options{Listen: "0.0.0.0:0", WebConfigFile: users}, ""},
		{Options{Listen: "127.0.0.1:0", WebConfigFile: users + "x"}, "web.yml"},
		{Options{Listen: "nowhere"}, "not host:port"},
	} {
		c.o.Logger = log
		s, err := New(c.o)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	s := server(t, Options{WebConfigFile: users})
	if got, _, _ := ask(t, s, "GET", "/api/v1/status", nil); got != http.StatusUnauthorized {
		t.Errorf("without a password: %d, want 401", got)
	}
}

// pageOf serves the page and its API without a server.
func pageOf(o Options) http.Handler { return newHandlers(o).routes() }
