package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the expected texts anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// load reads one of the statuses in testdata.
func load(t *testing.T, name string) Status {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var s Status
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return Judged(s)
}

var statuses = []string{"ok", "held", "full", "down", "new", "notargets", "clock", "missed", "scrape", "inputs"}

func TestWriteText(t *testing.T) {
	for _, name := range statuses {
		var b bytes.Buffer
		if err := WriteText(&b, load(t, name)); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestVerdict(t *testing.T) {
	for name, want := range map[string]Verdict{
		"missed":    {SeverityWarning, "Fresh data arrives; 4\u202f300\u202f000 samples of a backlog follow", ExitTarget},
		"ok":        {LevelOK, "All data arrives, 1.2 s behind", ExitAllWell},
		"held":      {SeverityError, "Data arrives at 2 of 3 targets; not at vm", ExitTarget},
		"full":      {SeverityError, "The log cannot be written: new samples are refused", ExitTarget},
		"down":      {SeverityError, "The agent is not running; 412 samples wait on disk", ExitNotRunning},
		"new":       {SeverityWarning, "Ready; nothing collected yet", ExitAttention},
		"notargets": {SeverityWarning, "Samples are kept in the log; there is no target to send them to", ExitAttention},
	} {
		if diff := cmp.Diff(want, VerdictOf(load(t, name))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A loss in the past is shown, but does not alarm for ever.
func TestOldLossIsANote(t *testing.T) {
	s := load(t, "ok")
	s.Targets[0].Ledger.Lost, s.Targets[0].Ledger.Dropped = 3, map[string]uint64{"too_old": 3}
	s.Problems = Problems(s)
	if v := VerdictOf(s); v.Level != LevelOK {
		t.Errorf("verdict %+v, want ok", v)
	}
	if len(s.Problems) != 1 || s.Problems[0].Severity != SeverityNote || !strings.Contains(s.Problems[0].Text, "3 too old") {
		t.Errorf("problems %+v, want one note with the reason", s.Problems)
	}
}

func TestUnits(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ got, want string }{
		{span(0), "0 s"}, {span(4 * time.Millisecond), "4 ms"}, {span(1234 * time.Millisecond), "1.2 s"}, {span(59 * time.Second), "59 s"},
		{span(5 * time.Minute), "5 min"}, {span(300 * time.Microsecond), "0.3 ms"}, {span(26 * time.Hour), "26 h"}, {span(100 * time.Hour), "4.2 days"}, {span(-3 * time.Second), "3 s"},
		{count(0), "0"}, {count(999), "999"}, {count(1000), "1\u202f000"}, {count(1284020), "1\u202f284\u202f020"},
		{size(0), "0 B"}, {size(1023), "1023 B"}, {size(1024), "1.0 KiB"}, {size(2 << 30), "2.0 GiB"}, {size(1<<63 - 1), "8.0 EiB"},
		{rate(0), "0/s"}, {rate(0.5), "0.5/s"}, {rate(412.4), "412/s"},
		{ago(now, time.Time{}), "never"}, {ago(now, now), "now"}, {ago(now, now.Add(-90*time.Second)), "90 s ago"},
		{clock(now, now.Add(-time.Hour)), "11:00:00"}, {clock(now, now.Add(-50*time.Hour)), "Mar 2 10:00"}, {clock(now, now.AddDate(-1, 0, 0)), "Mar 4 2025 12:00"}, {clock(now, time.Time{}), "–"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestNamesAreWhole: a row that cuts a long name has the whole name as its title, and the page begins with the time and its
// zone, by which all other times are to be read.
func TestNamesAreWhole(t *testing.T) {
	s := fleet(2)
	s.Targets[0].Name = "an-entry-with-a-long-name/tenant-1"
	body := render(t, Judged(s), nil)
	for _, want := range []string{`<b title="an-entry-with-a-long-name/tenant-1">`, "hwsagent</b> on plant-7, 2026-11-20 12:00:00 UTC</p>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

// TestPlain: no text of a device controls the terminal or turns the words behind it around.
func TestPlain(t *testing.T) {
	if got, want := plain("a\x1b[31m\u202eb\u2066c\td\n\u00e9"), "a?[31m?b?c d\n\u00e9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNoProblemsAreAList: a program may go through the problems of an agent that has none.
func TestNoProblemsAreAList(t *testing.T) {
	s := Judged(fleet(1))
	text, err := json.Marshal(s)
	if err != nil || !strings.Contains(string(text), `"problems":[]`) {
		t.Errorf("%v, problems %#v", err, s.Problems)
	}
}

// TestWebConfigFileIsAFile: reading a pipe as the file with TLS settings and users would block the start forever.
func TestWebConfigFileIsAFile(t *testing.T) {
	if _, err := New(Options{Listen: "127.0.0.1:0", WebConfigFile: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

// server runs a server until the test ends.
func server(t *testing.T, o Options) *Server {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	if o.Status == nil {
		s := load(t, "ok")
		o.Status = func() Status { return s }
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
		(&handlers{o: Options{Status: func() Status { return s }}}).page(rec, nil)
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

// A paused target is shown as a problem while it is paused, with the remedy.
func TestPaused(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := Status{Running: true, Now: now, Targets: []TargetStatus{
		{Name: "a", State: StateOK, Ledger: LedgerStatus{Appended: 9, Delivered: 9, Balanced: true}},
		{Name: "b", State: StatePaused, PausedSince: now.Add(-time.Hour), PendingSamples: 9, PendingBytes: 100, LagSeconds: 3600, Ledger: LedgerStatus{Appended: 9, Pending: 9, Balanced: true}},
	}, WAL: WALStatus{MaxBytes: 1000, SamplesPerSec: 1, BytesPerSec: 1, Appended: 9}}
	s.Problems = Problems(s)
	if len(s.Problems) != 1 || s.Problems[0].Severity != SeverityWarning || s.Problems[0].Try != "hwsagent targets resume b" {
		t.Errorf("problems %+v", s.Problems)
	}
	if v := VerdictOf(s); v.Level != SeverityWarning || v.Text != "Data arrives at 1 of 2 targets; not at b" {
		t.Errorf("verdict %+v", v)
	}
	if _, ok := FullIn(s, s.Targets[1]); !ok {
		t.Error("it is not told when the log is full")
	}
	// Of an agent that is down.
	s.Running, s.Targets[1].State = false, StateStopped
	if all := Problems(s); len(all) != 1 || all[0].Severity != SeverityNote || !strings.Contains(all[0].Text, "stays so") {
		t.Errorf("problems %+v", all)
	}
}
