package redfish

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"hwsagent/probes"
)

const (
	user     = "monitor"
	password = "correct horse"
)

// mock is a Redfish service over TLS with sessions and basic authentication.
type mock struct {
	*httptest.Server
	mu        sync.Mutex
	resources map[string]any
	// before may answer a request in the service's place.
	before   func(w http.ResponseWriter, r *http.Request) bool
	sessions map[string]string // tokens by paths
	// places bounds the sessions; 0: there are none.
	places   int
	made     int // sessions, ever
	refused  int // logins and requests with wrong names or passwords
	basic    int // requests with basic authentication
	gets     map[string]int
	notAgain int // answers 304
	etags    bool
	expands  bool // what ProtocolFeaturesSupported offers works
}

// newMock returns a service with the resources of a file of testdata.
func newMock(t testing.TB, file string, configure ...func(*httptest.Server)) *mock {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	m := &mock{sessions: map[string]string{}, places: 4, gets: map[string]int{}, etags: true}
	if err := json.Unmarshal(text, &m.resources); err != nil {
		t.Fatal(err)
	}
	if configure == nil {
		configure = []func(*httptest.Server){func(*httptest.Server) {}}
	} else if configure[0] == nil { // no server: see inProcess
		return m
	}
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(m.serve))
	m.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, c := range configure {
		c(m.Server)
	}
	m.StartTLS()
	t.Cleanup(m.Close)
	return m
}

// set changes a resource; nil takes it away.
func (m *mock) set(path string, v any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v == nil {
		delete(m.resources, path)
		return
	}
	m.resources[path] = v
}

// edit changes properties of a resource.
func (m *mock) edit(path string, properties map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, _ := m.resources[path].(map[string]any)
	for k, v := range properties {
		o[k] = v
	}
}

func (m *mock) serve(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	before := m.before
	m.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	path := strings.TrimRight(r.URL.Path, "/")
	switch {
	case r.Method == http.MethodPost && path == sessionsPath:
		m.login(w, r)
	case r.Method == http.MethodDelete && m.sessions[path] == r.Header.Get("X-Auth-Token") && m.sessions[path] != "":
		delete(m.sessions, path)
		w.WriteHeader(http.StatusNoContent)
	case path != rootPath && !m.allowed(r):
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method != http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		m.resource(w, r, path)
	}
}

func (m *mock) login(w http.ResponseWriter, r *http.Request) {
	var in struct{ UserName, Password string }
	switch err := json.NewDecoder(r.Body).Decode(&in); {
	case err != nil || in.UserName != user || in.Password != password:
		m.refused++
		w.WriteHeader(http.StatusUnauthorized)
	case m.places == 0:
		w.WriteHeader(http.StatusNotFound)
	case len(m.sessions) >= m.places:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.0.SessionLimitExceeded","Message":"Too many sessions."}]}}`)
	default:
		m.made++
		path, token := fmt.Sprintf("%s/%d", sessionsPath, m.made), fmt.Sprintf("token-%d", m.made)
		m.sessions[path] = token
		w.Header().Set("X-Auth-Token", token)
		if w.Header().Set("Location", path); m.Server != nil {
			w.Header().Set("Location", m.URL+path)
		}
		w.WriteHeader(http.StatusCreated)
	}
}

func (m *mock) allowed(r *http.Request) bool {
	if name, word, ok := r.BasicAuth(); ok {
		m.basic++
		if name != user || word != password {
			m.refused++
		}
		return name == user && word == password
	}
	for _, token := range m.sessions {
		if token == r.Header.Get("X-Auth-Token") {
			return true
		}
	}
	return false
}

func (m *mock) resource(w http.ResponseWriter, r *http.Request, path string) {
	m.gets[path]++
	v := m.resources[path]
	if v == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if text, ok := v.(string); ok { // as it is
		fmt.Fprint(w, text)
		return
	}
	if strings.Contains(r.URL.RawQuery, "expand") {
		if !m.expands {
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		v = m.expanded(v)
	}
	body, _ := json.Marshal(v)
	if m.etags {
		tag := fmt.Sprintf(`"%x"`, sha256.Sum256(body))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			m.notAgain++
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	_, _ = w.Write(body)
}

// expanded returns a collection with its members in the place of links.
func (m *mock) expanded(v any) any {
	o, _ := v.(map[string]any)
	members, _ := o["Members"].([]any)
	all := make([]any, len(members))
	for i, one := range members {
		link, _ := one.(map[string]any)
		path, _ := link["@odata.id"].(string)
		if all[i] = one; m.resources[path] != nil {
			all[i] = m.resources[path]
		}
	}
	return map[string]any{"Members": all, "@odata.id": o["@odata.id"]}
}

// config returns a configuration that reads the service.
func (m *mock) config() Config {
	return Config{Target: m.URL, Username: user, Password: password, Fingerprint: fmt.Sprintf("%x", sha256.Sum256(m.Certificate().Raw)), RequestTimeout: secondsLong}
}

// secondsLong is a time that no answer of a mock takes unless it hangs.
const secondsLong = 30e9

// newProbe returns a probe for the service.
func newProbe(t testing.TB, c Config) *Probe {
	t.Helper()
	p, err := New(c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// inProcess carries requests to a mock that has no server, so that a test may have a time of its own (package synctest).
type inProcess struct{ m *mock }

func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	t.m.serve(w, r)
	if err := r.Context().Err(); err != nil { // the mock has waited for it
		return nil, err
	}
	return w.Result(), nil
}

// inProcessProbe returns a probe for a mock without a server.
func inProcessProbe(t testing.TB, m *mock, c Config) *Probe {
	t.Helper()
	c.Target, c.Username, c.Password = "bmc.example.org", user, password
	p, err := New(c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.service, err = newService(&p.config, nil, time.Now); err != nil {
		t.Fatal(err)
	}
	p.service.client.http.Transport = inProcess{m}
	return p
}

// collect runs a round; lines are its samples as text.
func collect(t testing.TB, p *Probe) (lines []string, err error) {
	t.Helper()
	r := probes.NewRound(0)
	err = p.Collect(t.Context(), r)
	return linesOf(r), err
}

func linesOf(r *probes.Round) (lines []string) {
	for _, s := range r.Samples() {
		var b strings.Builder
		b.WriteString(s.Family.Name)
		for i := 0; i+1 < len(s.Labels); i += 2 {
			if s.Labels[i+1] != "" {
				fmt.Fprintf(&b, " %s=%q", s.Labels[i], s.Labels[i+1])
			}
		}
		fmt.Fprintf(&b, " %v", s.Value)
		lines = append(lines, b.String())
	}
	return lines
}

// with returns the lines that have all the words.
func with(lines []string, words ...string) (n int) {
	for _, l := range lines {
		all := true
		for _, w := range words {
			all = all && strings.Contains(l, w)
		}
		if all {
			n++
		}
	}
	return n
}

// caFile returns a file with the mock's certificate.
func (m *mock) caFile(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func caOf(file string) config.TLSConfig { return config.TLSConfig{CAFile: file} }

func oldServer(s *httptest.Server) {
	s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
