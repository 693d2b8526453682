package check

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/config"
	"hwsagent/probes"
	"hwsagent/probes/devices"
)

// receiver answers writes as told, and counts the samples that it was sent.
func receiver(t *testing.T, secure bool, answer func(w http.ResponseWriter, r *http.Request)) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body, err = snappy.Decode(nil, body)
		}
		var req prompb.WriteRequest
		if err == nil {
			err = req.Unmarshal(body)
		}
		if err != nil || len(req.Timeseries) > 0 || len(req.Metadata) > 0 {
			t.Errorf("a check sent %d series and %d metadata (%v), want an empty write", len(req.Timeseries), len(req.Metadata), err)
		}
		answer(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		srv.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return srv
}

// noEnv is an environment without variables.
func noEnv(string) (string, bool) { return "", false }

// write puts a file into the test's directory.
func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // umask
		t.Fatal(err)
	}
	return path
}

// check checks a configuration with the given list entries and no probes but its own.
func check(t *testing.T, level Level, config string) Report {
	t.Helper()
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.yaml"), config, 0o600)
	return checked(t, Options{ConfigFile: file, StoragePath: filepath.Join(dir, "data"), Level: level, Env: noEnv})
}

// runProbe plays a round: that of a remote device fails.
func runProbe(_ context.Context, p *config.Probe, _ *slog.Logger) (Round, error) {
	if p.Target != "" {
		return Round{Status: probes.Status{State: "failing", LastError: "no answer"}, Why: devices.NoAnswer}, nil
	}
	return Round{Status: probes.Status{State: "ok", Samples: 3}}, nil
}

func checked(t *testing.T, o Options) Report {
	t.Helper()
	o.RunProbe = runProbe
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func group(t *testing.T, r Report, kind string) Group {
	t.Helper()
	for _, g := range r.Groups {
		if g.Kind == kind {
			return g
		}
	}
	t.Fatalf("no group %s in %+v", kind, r.Groups)
	return Group{}
}

// worst returns the first step with the group's result.
func worst(g Group) Step {
	for _, s := range g.Steps {
		if s.Result == g.Result {
			return s
		}
	}
	return Step{}
}

func TestCheckTarget(t *testing.T) {
	status := func(code int, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, text)
		}
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	token := write(t, filepath.Join(t.TempDir(), "token"), "abc", 0o600)

	cert, key := certificate(t, time.Hour)
	certFile := write(t, filepath.Join(t.TempDir(), "client.pem"), cert, 0o600)
	keyFile := write(t, filepath.Join(t.TempDir(), "client.key"), key, 0o600)

	for name, c := range map[string]struct {
		url    string
		more   string
		result Result
		step   string
		text   string // part of the worst step's text
		try    string
	}{
		"accepted": {receiver(t, false, status(204, "")).URL, "", OK, "", "", ""},
		"2.0 too": {receiver(t, false, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "0")
			w.WriteHeader(204)
		}).URL, ", protobuf_message: io.prometheus.write.v2.Request", OK, "", "", ""},
		"1.0 only":              {receiver(t, false, status(204, "")).URL, ", protobuf_message: auto", OK, "", "", ""},
		"1.0 only, 2.0 written": {receiver(t, false, status(204, "")).URL, ", protobuf_message: io.prometheus.write.v2.Request", Warn, "write", "as remote write 1.0", "auto"},
		"bad token":             {receiver(t, false, status(401, "invalid token")).URL, ", bearer_token_file: " + token, Fail, "auth", "401 Unauthorized: invalid token", token},
		"no token":              {receiver(t, false, status(401, "")).URL, "", Fail, "auth", "401", "bearer_token_file"},
		"wrong path":            {receiver(t, false, status(404, "")).URL + "/here", "", Fail, "write", "404", "/api/v1/write"},
		"no receiver":           {receiver(t, false, status(405, "")).URL, "", Fail, "write", "405", "--web.enable-remote-write-receiver"},
		"moved":                 {receiver(t, false, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) }).URL, "", Fail, "write", "302", "final URL"},
		"busy":                  {receiver(t, false, status(503, "later")).URL, "", Fail, "write", "503", "delivery resumes"},
		"picky":                 {receiver(t, false, status(400, "no samples")).URL, "", Warn, "write", "no samples", "/api/v1/write"},
		"portal":                {receiver(t, false, status(200, "<html><title>Please log in</title></html>")).URL, "", Fail, "write", "Please log in", "portal"},
		"nginx wants a certificate": {receiver(t, true, status(400, "<html>400 No required SSL certificate was sent</html>")).URL,
			", tls_config: {insecure_skip_verify: true}", Fail, "auth", "No required SSL", "cert_file"},
		"it refuses the certificate": {receiver(t, true, status(400, "<html><head><title>400 The SSL certificate error</title></head></html>")).URL,
			fmt.Sprintf(", tls_config: {insecure_skip_verify: true, cert_file: %s, key_file: %s}", certFile, keyFile), Fail, "auth", "The SSL certificate error", certFile},
		"no token file":  {receiver(t, false, status(204, "")).URL, ", bearer_token_file: /nonexistent/token", Fail, "write", "no such file", "create the file"},
		"TLS port":       {strings.Replace(receiver(t, true, status(204, "")).URL, "https:", "http:", 1), "", Fail, "write", "speaks TLS", "https://"},
		"unknown CA":     {receiver(t, true, status(204, "")).URL, "", Fail, "tls", "is not trusted: certificate of \"O=Acme Co\"", "ca_file"},
		"nobody there":   {closed.URL, "", Fail, "tcp", "connection refused by", "start the receiver"},
		"no such name":   {"http://no-such-host.invalid/", "", Fail, "dns", "no-such-host.invalid", "url:"},
		"not TLS":        {strings.Replace(receiver(t, false, status(204, "")).URL, "http:", "https:", 1), "", Fail, "tls", "", "http://"},
		"clock is ahead": {receiver(t, false, date(-time.Hour)).URL, "", Warn, "clock", "60 min ahead", "set the clock"},
		"clock is late":  {receiver(t, false, date(time.Hour)).URL, "", Warn, "clock", "behind", "set the clock"},
		"clock is right": {receiver(t, false, date(0)).URL, "", OK, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := check(t, Live, fmt.Sprintf("remote_write: [{name: x, url: %q%s}]\n", c.url, c.more))
			g := group(t, r, GroupTarget)
			if g.Result != c.result {
				t.Fatalf("result %s, want %s: %+v", g.Result, c.result, g.Steps)
			}
			s := worst(g)
			if c.result != OK && (s.Name != c.step || !strings.Contains(s.Text, c.text) || !strings.Contains(s.Try, c.try)) {
				t.Errorf("step %+v\nwant %s, text with %q, try with %q", s, c.step, c.text, c.try)
			}
			if (c.result == Fail) != r.Failed(GroupTarget) {
				t.Errorf("Failed(target) = %v", r.Failed(GroupTarget))
			}
			var b bytes.Buffer
			if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "target x") {
				t.Errorf("text %q, %v", b.String(), err)
			}
		})
	}
}

func date(ahead time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusNoContent)
	}
}

// certificate returns a certificate for 127.0.0.1 that ends after life.
func certificate(t *testing.T, life time.Duration) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-365 * 24 * time.Hour), NotAfter: time.Now().Add(life)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
}

func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	jwt := func(exp time.Time) string {
		part := base64.RawURLEncoding.EncodeToString
		return part([]byte(`{"alg":"none"}`)) + "." + part(fmt.Appendf(nil, `{"exp":%d}`, exp.Unix())) + ".x"
	}
	long, longKey := certificate(t, 365*24*time.Hour)
	soon, soonKey := certificate(t, 3*24*time.Hour)
	gone, goneKey := certificate(t, -time.Hour)
	put := func(name, text string, mode os.FileMode) string {
		return write(t, filepath.Join(dir, name), text, mode)
	}
	pair := func(name, cert, key string) string {
		return fmt.Sprintf(", tls_config: {cert_file: %s, key_file: %s}", put(name+".pem", cert, 0o644), put(name+".key", key, 0o600))
	}
	for name, c := range map[string]struct {
		entry  string
		result Result
		text   string
	}{
		"none":              {"", OK, "no files"},
		"good token":        {", bearer_token_file: " + put("good", "abc\n", 0o600), OK, "readable"},
		"missing":           {", bearer_token_file: " + filepath.Join(dir, "missing"), Fail, "does not exist"},
		"empty":             {", bearer_token_file: " + put("empty", "\n", 0o600), Fail, "is empty"},
		"for all to read":   {", bearer_token_file: " + put("open", "abc", 0o644), Warn, "every user"},
		"a directory":       {", bearer_token_file: " + dir, Fail, "directory"},
		"token for long":    {", bearer_token_file: " + put("jwt1", jwt(time.Now().Add(41*24*time.Hour+time.Hour)), 0o600), OK, "token valid for 41 days"},
		"token has expired": {", bearer_token_file: " + put("jwt2", jwt(time.Now().Add(-time.Hour)), 0o600), Fail, "token expired"},
		"good certificate":  {pair("long", long, longKey), OK, "certificate valid for 36"},
		"ends soon":         {pair("soon", soon, soonKey), Warn, "expires in 2 days"},
		"has ended":         {pair("gone", gone, goneKey), Fail, "certificate expired"},
		"key of another":    {pair("mixed", long, soonKey), Fail, "private key"},
	} {
		t.Run(name, func(t *testing.T) {
			r := check(t, NoNetwork, "remote_write: [{name: x, url: \"https://127.0.0.1:1/\""+c.entry+"}]\n")
			g := group(t, r, GroupFiles)
			if s := worst(g); g.Result != c.result || !strings.Contains(s.Text, c.text) {
				t.Errorf("result %s: %+v\nwant %s with %q", g.Result, g.Steps, c.result, c.text)
			}
			if syntax := check(t, SyntaxOnly, "remote_write: [{name: x, url: \"https://127.0.0.1:1/\""+c.entry+"}]\n"); syntax.Failed(GroupConfig) {
				t.Errorf("the syntax alone fails: %+v", syntax.Groups)
			}
		})
	}
}

// TestCheckOpenPage warns of a page that other hosts can read without saying who they are.
func TestCheckOpenPage(t *testing.T) {
	for _, c := range []struct {
		listen, file string
		want         Result
	}{
		{"0.0.0.0:9464", "", Warn},
		{"127.0.0.1:9464", "", OK},
		{"0.0.0.0:9464", "basic_auth_users: {me: $2y$10$aaaaaaaaaaaaaaaaaaaaaeCXgj9mHD4RrV8pGnbMUL8uS7hNWGSNa}\n", OK},
	} {
		file := write(t, filepath.Join(t.TempDir(), "web.yaml"), c.file, 0o600)
		r := check(t, NoNetwork, fmt.Sprintf("web: {listen: %q, config_file: %q}\n", c.listen, file))
		if got := group(t, r, GroupFiles); got.Result != c.want {
			t.Errorf("%s with %q: %s, want %s: %+v", c.listen, c.file, got.Result, c.want, got.Steps)
		}
	}
}

func TestCheckLevels(t *testing.T) {
	dir := t.TempDir()
	with := "remote_write: [{url: \"http://127.0.0.1:1/\", bearer_token: \"${file:/nonexistent/token}\"}]\n"
	if r := check(t, SyntaxOnly, with); r.Failed(GroupConfig) || len(r.Groups) != 1 {
		t.Errorf("syntax only, with a secret that is not here: %+v", r.Groups)
	}
	if r := check(t, NoNetwork, with); !r.Failed(GroupConfig) || len(r.Errors) != 1 {
		t.Errorf("with files: %+v", r)
	}
	r := check(t, NoNetwork, "prober: []\n")
	if !r.Failed(GroupConfig) || len(r.Errors) != 1 || r.Errors[0].Hint != `did you mean "probes"?` {
		t.Errorf("mistake: %+v", r)
	}
	if r := checked(t, Options{ConfigFile: filepath.Join(dir, "none.yaml")}); !r.Failed(GroupConfig) {
		t.Errorf("no file: %+v", r.Groups)
	}
}

func TestCheckStorage(t *testing.T) {
	dir := t.TempDir()
	cfg, _, err := config.LoadBytes("agent.yaml", nil, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	cfg.WAL.MinFreeBytes, cfg.WAL.MaxBytes = 1, 1<<20
	file := write(t, filepath.Join(dir, "file"), "x", 0o600)
	if err := os.Mkdir(filepath.Join(dir, "open"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "open"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Result{
		filepath.Join(dir, "new", "deeper"): OK, filepath.Join(dir, "open"): Warn, file: Fail, filepath.Join(file, "below"): Fail,
	} {
		g := checkStorage(t.Context(), cfg, path, nil)
		if g.judge(); g.Result != want {
			t.Errorf("%s: %s, want %s: %+v", path, g.Result, want, g.Steps)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("the check made the directory")
	}
	cfg.WAL.MinFreeBytes = 1 << 60
	if g := checkStorage(t.Context(), cfg, dir, nil); !strings.Contains(fmt.Sprint(g.Steps), "min_free_bytes") {
		t.Errorf("a full disk: %+v", g.Steps)
	}
}

// TestCheckOnly: with names, nothing else is tried, nor are the files of others looked at.
func TestCheckOnly(t *testing.T) {
	asked := map[string]int{}
	var mu sync.Mutex
	srv := receiver(t, false, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path]++
		w.WriteHeader(http.StatusNoContent)
	})
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.yaml"), "probes:\n  - {name: c, type: canary}\n  - {name: off, type: canary, enabled: false}\n"+
		"  - {name: list, type: snmp, static_configs: [{targets: ['127.0.0.1:1']}], modules: [system], interval: 2s, timeout: 200ms, retries: 0, packet_timeout: 100ms}\n"+
		"remote_write:\n  - {name: a, url: '"+srv.URL+"/a'}\n  - {name: b, url: '"+srv.URL+"/b', bearer_token_file: gone}\n", 0o600)
	for name, c := range map[string]struct {
		targets, probes []string
		want            []string
		asked           string
	}{
		"a target":            {targets: []string{"a"}, want: []string{"target a ok"}, asked: "/a"},
		"a broken target":     {targets: []string{"b"}, want: []string{"target b fail"}},
		"a probe":             {probes: []string{"c"}, want: []string{"probe c ok"}},
		"a probe that is off": {probes: []string{"off"}, want: []string{"probe off ok"}},
		"devices of a list":   {probes: []string{"list"}, want: []string{"probe list/127.0.0.1:1 fail"}},
		"one device":          {probes: []string{"list/127.0.0.1:1"}, want: []string{"probe list/127.0.0.1:1 fail"}},
		"both":                {targets: []string{"a"}, probes: []string{"c"}, want: []string{"target a ok", "probe c ok"}, asked: "/a"},
	} {
		t.Run(name, func(t *testing.T) {
			clear(asked)
			r := checked(t, Options{ConfigFile: file, StoragePath: filepath.Join(dir, "data"), Level: Live, Env: noEnv, Targets: c.targets, Probes: c.probes})
			var got []string
			for _, g := range r.Groups {
				if g.Kind == GroupTarget || g.Kind == GroupProbe {
					got = append(got, fmt.Sprintf("%s %s %s", g.Kind, g.Name, g.Result))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("tried %q, want %q", got, c.want)
			}
			if r.Failed(GroupFiles) != slices.Contains(c.targets, "b") {
				t.Errorf("files: %+v", r.Groups)
			}
			if spoken := len(r.Groups); spoken != len(c.want) && !r.Failed(GroupFiles) {
				t.Errorf("it speaks of other things: %+v", r.Groups)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(asked) > 1 || c.asked != "" && asked[c.asked] == 0 {
				t.Errorf("asked %v, want only %q", asked, c.asked)
			}
		})
	}
	for want, o := range map[error]Options{config.ErrNoSuchTarget: {Targets: []string{"x"}}, config.ErrNoSuchProbe: {Probes: []string{"hwsagent"}}} {
		o.ConfigFile, o.Level, o.Env = file, Live, noEnv
		if _, err := Run(t.Context(), o); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", o, err, want)
		}
	}
}

// TestTargetNamesFiles: the test of a target names each file that it read.
func TestTargetNamesFiles(t *testing.T) {
	token := write(t, filepath.Join(t.TempDir(), "token"), "abc\n", 0o600)
	cfg, _, err := config.LoadBytes("agent.yaml", []byte("remote_write: [{name: x, url: \"http://127.0.0.1:1/\", bearer_token_file: "+token+"}]\n"), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Target(t.Context(), cfg.RemoteWrite[0], true).WriteText(&out); err != nil || !strings.Contains(out.String(), "✓ "+token+": readable\n") {
		t.Errorf("%v, %s", err, out.String())
	}
}
