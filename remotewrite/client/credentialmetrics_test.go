package client

import (
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hwsagent/internal/testnet"
)

// shown is ClientMetrics for tests.
type shown struct {
	mu      sync.Mutex
	reloads map[bool]int // by success
	ends    map[string]time.Time
	token   time.Time
}

func (s *shown) Reloaded(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reloads == nil {
		s.reloads = map[bool]int{}
	}
	s.reloads[err == nil]++
}

func (s *shown) SetExpiry(role string, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends == nil {
		s.ends = map[string]time.Time{}
	}
	s.ends[role] = t
}

func (s *shown) SetExpiries(ends map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	server, seen := s.ends["server"]
	if s.ends = maps.Clone(ends); seen {
		s.ends["server"] = server
	}
	s.token = ends["bearer"]
	delete(s.ends, "bearer")
}

func (s *shown) SetTokenEnd(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = t
}

// end is the end of a role, or of the token for "".
func (s *shown) end(role string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if role == "" {
		return s.token
	}
	return s.ends[role]
}

// The ends of certificates and the reloads of files are reported.
func TestClientReportsCredentials(t *testing.T) {
	ca := testnet.NewAuthority(t)
	cert, key := ca.Issue("client")
	dir := testnet.WriteFiles(t, map[string]string{"ca.pem": ca.Pem, "cert.pem": cert, "key.pem": key})
	m := &shown{}
	c := newClient(t, "{url: https://h.example/, tls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem}}", dir, Options{Metrics: m})
	if got := m.end("client"); !got.Equal(time.Date(2098, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("client certificate ends at %v", got)
	}
	if got := m.end("ca"); !got.Equal(ca.Cert.NotAfter) {
		t.Errorf("authority ends at %v", got)
	}
	testnet.WriteFile(t, filepath.Join(dir, "key.pem"), "x")
	for range 3 { // one failure, seen three times
		if c.reload(true) == nil {
			t.Error("no error")
		}
	}
	testnet.WriteFile(t, filepath.Join(dir, "key.pem"), key)
	if err := c.reload(true); err != nil {
		t.Error(err)
	}
	cert, key = ca.Issue("client")
	testnet.WriteFile(t, filepath.Join(dir, "cert.pem"), cert)
	testnet.WriteFile(t, filepath.Join(dir, "key.pem"), key)
	if err := c.reload(true); err != nil {
		t.Error(err)
	}
	if m.reloads[false] != 1 || m.reloads[true] != 1 {
		t.Errorf("%v reloads, want one that failed and one that did not", m.reloads)
	}
}
