package e2e

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
)

// fault is a way in which a target fails, and what page, status and JSON must say of it. kind is the failure in the JSON, ""
// for a state that is none; others are kinds that it may have as well.
type fault struct {
	state
	url, more string
	kind      string
	others    []string
	permanent bool
}

// listening accepts connections until the test ends, and gives each to serve, which returns when it is to be closed.
func listening(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// hangsUp returns a receiver that closes each connection after the first bytes of a request.
func hangsUp(t *testing.T) string {
	return listening(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 100)) })
}

// silentTLS returns a port that speaks TLS, and closes any other connection without a word.
func silentTLS(t *testing.T) string {
	s := httptest.NewUnstartedServer(nil) // for its certificate
	s.StartTLS()
	t.Cleanup(s.Close)
	return listening(t, func(c net.Conn) {
		first := make([]byte, 1)
		if _, err := io.ReadFull(c, first); err != nil || first[0] != 22 { // a record with a handshake; RFC 8446, section 5.1
			return
		}
		_ = tls.Server(&peeked{Conn: c, head: first}, s.TLS).Handshake() // a failure shows in the test
	})
}

// peeked is a connection whose first bytes were read before.
type peeked struct {
	net.Conn
	head []byte
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.head) > 0 {
		n := copy(b, p.head)
		p.head = p.head[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// thenGone returns a receiver that answers 401, and is gone once gone is set.
func thenGone(t *testing.T, gone *atomic.Bool) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			panic(http.ErrAbortHandler) // closes the connection
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// faultsOf returns the faults of one agent. dir holds their files; set gone after the first answers.
func faultsOf(t *testing.T, dir string, gone *atomic.Bool) []fault {
	t.Helper()
	expired, authority := certified(t, time.Now().Add(-24*time.Hour))
	other, own := certified(t, time.Now().Add(300*24*time.Hour))
	_, third := certified(t, time.Now().Add(300*24*time.Hour))
	file := func(name string, certificate []byte) string {
		return writeFile(t, dir+"/"+name, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	}
	ca := file("ca.pem", third)
	token := "    bearer_token_file: " + writeFile(t, dir+"/token", "x") + "\n"
	leaving := "    bearer_token_file: " + writeFile(t, dir+"/leaving", "x") + "\n"
	bad, _ := startReceiver(t, receiver.Options{})
	bad.Behave((&tenant{limit: 10, has: map[string]bool{}}).behave)
	slow := answers(t, 400, "Date", time.Now().Add(-2*time.Hour).UTC().Format(http.TimeFormat), "out of bounds: timestamp is too far in the future")
	plain := answers(t, 204, "", "", "")
	mute := listening(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	down := func(name, cause, try string) state { return state{name, cause, whileDown, waitsOnly, try} }
	const permanent = true
	return []fault{
		{down("nothing-there", "connection refused by 127.0.0.1:1", "start the receiver, or correct the host and port in its url"), "http://127.0.0.1:1/", "", "connection_refused", nil, false},
		{down("unauthorized", "the receiver refuses access: 401 Unauthorized: who are you", "put a valid token into "+dir+"/token"), answers(t, 401, "", "", "who are you"), token, "credentials", nil, permanent},
		{down("left", "closed the connection without an answer", "look at the receiver's log, and at the proxies and firewalls"), thenGone(t, gone), leaving, "connection_cut", []string{"connection_refused"}, false},
		{down("forbidden", "the receiver refuses access: 403 Forbidden: not you", "the receiver requires credentials"), answers(t, 403, "", "", "not you"), "", "forbidden", nil, permanent},
		{down("wrong-path", "404 Not Found", "/api/v1/write"), answers(t, 404, "", "", "404 page not found"), "", "path", nil, permanent},
		{down("receiver-off", "remote write receiver needs to be enabled", "start that Prometheus with --web.enable-remote-write-receiver"), answers(t, 404, "", "", "remote write receiver needs to be enabled with --web.enable-remote-write-receiver"), "", "receiver_off", nil, permanent},
		{down("no-writes", "405 Method Not Allowed", "/api/v1/write"), answers(t, 405, "", "", ""), "", "method", nil, permanent},
		{down("too-large", "413 Request Entity Too Large", "client_max_body_size"), answers(t, 413, "", "", ""), "", "too_large", nil, permanent},
		{down("too-many", "429 Too Many Requests: slow down", "raise the limit of this tenant at the receiver"), answers(t, 429, "Retry-After", "20", "slow down"), "", "rate_limit", nil, false},
		{down("broken", "500 Internal Server Error: oops", "look at the receiver's log, disk and memory"), answers(t, 500, "", "", "oops"), "", "server_error", nil, false},
		{down("overloaded", "503 Service Unavailable: later", "look whether the receiver is starting, overloaded"), answers(t, 503, "", "", "later"), "", "unavailable", nil, false},
		{down("behind-a-proxy", "502 Bad Gateway", "start the receiver behind that proxy"), answers(t, 502, "", "", ""), "", "gateway", nil, false},
		{down("login", "200 OK: a web page", "a login or a portal answers here"), answers(t, 200, "Content-Type", "text/html", "<html><title>Sign in</title></html>"), "", "page", nil, permanent},
		{down("redirect", "http://elsewhere.example/login", "write the final URL"), answers(t, 302, "Location", "http://elsewhere.example/login", ""), "", "redirect", nil, permanent},
		{down("expired", "has expired: it ended on 2", "renew the receiver's certificate, or set this host's clock"), expired, "    tls_config: {ca_file: " + file("expired.pem", authority) + "}\n", "certificate_expired", nil, permanent},
		{down("wrong-ca", "receiver.plant", "put its certificate into "+ca), other, "    tls_config: {ca_file: " + ca + "}\n", "unknown_authority", nil, permanent},
		{down("wrong-name", "is for other names: 127.0.0.1", "write a name of the certificate into url:"), other, "    tls_config: {ca_file: " + file("own.pem", own) + ", server_name: elsewhere.example}\n", "certificate_name", nil, permanent},
		{down("no-name", "no-such-host.invalid", "/etc/resolv.conf"), "http://no-such-host.invalid/", "", "unknown_host", []string{"name_server"}, false},
		{down("tls-port", "speaks TLS, but url: says http://", "use https:// in url:"), "http://" + silentTLS(t), "", "scheme_tls", nil, permanent},
		{down("plain-port", "does not speak TLS, but url: says https://", "use http:// in url:"), strings.Replace(plain, "http:", "https:", 1), "", "scheme_plain", nil, permanent},
		{down("hangs-up", "closed the connection without an answer", "look at the receiver's log"), "http://" + hangsUp(t), "", "connection_cut", nil, false},
		{down("mute", "no answer within remote_timeout (1s)", "look at the receiver's load and log"), "http://" + mute, "    remote_timeout: 1s\n", "timeout", nil, false},
		{down("signed", "clock is ", "set this host's clock"), answers(t, 403, "Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), "Signature expired"), "    sigv4: {region: x, access_key: a, secret_key: secret}\n", "clock_skew", nil, permanent},
		{down("slow-clock", "clock", "set whichever clock is wrong"), slow, "", "clock", nil, permanent},
		{state{"halted", "is paused: nothing is sent", `Paused since \d\d:\d\d`, waitsOnly, "hwsagent targets resume halted"}, plain, "", "", nil, false},
		{state{"bad-series", "per-user series limit of 100 exceeded", `\d+ series are not sent since \d\d:\d\d`, `samples were dropped meanwhile, as rejected`, "raise the receiver's limit"}, bad.URL(), "", "", nil, false},
	}
}

// judged is what the test reads of the status JSON.
type judged struct {
	Targets  []judgedTarget `json:"targets"`
	Findings []struct {
		Severity string   `json:"severity"`
		Kind     string   `json:"kind"`
		Names    []string `json:"names"`
		Text     string   `json:"text"`
	} `json:"findings"`
}

type judgedTarget struct {
	Name      string    `json:"name"`
	Why       string    `json:"why"`
	Failure   string    `json:"failure"`
	Permanent bool      `json:"permanent"`
	DownSince time.Time `json:"down_since"`
}

// wrong says what of the fault is not as it should be in the JSON; "" if all is.
func (j judged) wrong(f fault, began time.Time) string {
	i := slices.IndexFunc(j.Targets, func(t judgedTarget) bool { return t.Name == f.whose })
	if i < 0 {
		return "it has no target " + f.whose
	}
	t := j.Targets[i]
	var said []string
	for _, one := range j.Findings {
		if slices.Contains(one.Names, f.whose) && one.Severity != "note" {
			said = append(said, one.Severity+" "+one.Text)
		}
	}
	switch {
	case f.kind == "":
		return ""
	case len(said) != 1:
		return fmt.Sprintf("%d findings: %q", len(said), said)
	case t.Failure != f.kind && !slices.Contains(f.others, t.Failure):
		return fmt.Sprintf("the failure is %q, want %s: %s", t.Failure, f.kind, t.Why)
	case len(f.others) == 0 && t.Permanent != f.permanent:
		return fmt.Sprintf("permanent is %v", t.Permanent)
	case t.DownSince.Before(began.Add(-2*time.Second)) || t.DownSince.After(time.Now()):
		return fmt.Sprintf("it is down since %s, the test began at %s", t.DownSince, began)
	case t.Permanent && !strings.HasPrefix(said[0], "error "):
		return fmt.Sprintf("the finding is no error: %q", said)
	}
	if access := strings.Contains(said[0], "refuses access"); access != (t.Failure == "credentials" || t.Failure == "forbidden") {
		return "refused access: " + said[0]
	}
	return ""
}

// TestFaultsAreExplained: each way in which a target can fail is made by a real part that fails, and the page alone, and
// `hwsagent status` alone, say the cause, since when, what it costs, and what to do; `status --json` has the kind, and one
// finding for each cause.
func TestFaultsAreExplained(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var gone atomic.Bool
	faults := faultsOf(t, dir, &gone)
	small := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || len(body) > 2048 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(small.Close)
	config := "global: {scrape_interval: 1s}\nprobes: [{type: canary, series: 300, interval: 1s, timeout: 1s, noise: true}]\nremote_write:\n"
	var states []state
	for _, f := range faults {
		config += entry(f.whose, f.url, f.more)
		states = append(states, f.state)
	}
	config += entry("small-requests", small.URL)
	began := time.Now()
	a := startAgent(t, config)
	if _, stderr, code := hwsagent(t, "targets", "pause", "halted", "--storage.path", a.storage); code != exitOK {
		t.Fatalf("pause: exit code %d, %s", code, stderr)
	}
	a.configure("nonsense: 1\nmore_nonsense: 2\n")
	if _, _, code := hwsagent(t, "reload", "--storage.path", a.storage); code == exitOK {
		t.Fatal("the fault did not take: the reload succeeded")
	}
	states = append(states, state{"(?:config|Configuration)", "(and 1 more mistake)", `the reload at \d\d:\d\d`, `changed nothing; the configuration loaded at \d\d:\d\d:\d\d stays in force`, "correct " + a.config})
	read := func() (j judged, err error) {
		stdout, stderr, code := hwsagent(t, "status", "--json", "--storage.path", a.storage)
		if code != exitTarget {
			return j, fmt.Errorf("status --json: exit code %d, %s", code, stderr)
		}
		return j, json.Unmarshal([]byte(stdout), &j)
	}
	eventually(t, 30*time.Second, func() string { // the receiver that leaves has answered
		j, err := read()
		if err != nil {
			return err.Error()
		}
		for _, target := range j.Targets {
			if target.Name == "left" && target.Failure == "credentials" {
				return ""
			}
		}
		return "the target left has not been refused yet"
	})
	gone.Store(true)
	writeFile(t, dir+"/leaving", "y") // a changed token is tried at once
	eventually(t, 60*time.Second, func() string {
		j, err := read()
		if err != nil {
			return err.Error()
		}
		for _, f := range faults {
			if wrong := j.wrong(f, began); wrong != "" {
				return f.whose + ": " + wrong
			}
		}
		for _, target := range j.Targets {
			if target.Name == "small-requests" && (target.Failure != "" || !strings.Contains(target.Why, "sends at most ")) {
				return fmt.Sprintf("small-requests: %+v", target)
			}
		}
		return ""
	})
	for _, f := range faults { // the command that tests a target step by step has the same words
		if !slices.Contains([]string{"nothing-there", "unauthorized", "too-large", "broken", "expired", "no-name", "tls-port"}, f.whose) {
			continue
		}
		stdout, stderr, code := hwsagent(t, "targets", "test", f.whose, "--storage.path", a.storage)
		if code != exitTarget || !strings.Contains(stdout, f.cause) || !strings.Contains(stdout, f.try) {
			t.Errorf("targets test %s: exit code %d, without %q or %q\n%s%s", f.whose, code, f.cause, f.try, stdout, stderr)
		}
	}
	understood(t, states, a.page, func() (string, int) {
		stdout, _, code := hwsagent(t, "status", "--storage.path", a.storage)
		return stdout, code
	}, exitTarget)
}
