package testnet

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Guard is a receiver that accepts or refuses requests by their credentials and counts them.
type Guard struct {
	mu      sync.Mutex
	allowed map[string]bool // nil: all
	Seen    map[string]int
	refused int
}

// Handler serves requests; who returns the name under which a request is counted.
func (g *Guard) Handler(who func(*http.Request) string) http.HandlerFunc {
	g.Seen = map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		name := who(r)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.Seen[name]++
		if g.allowed != nil && !g.allowed[name] {
			g.refused++
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
}

// Allow accepts only requests that are counted under these names; before its first call all are accepted.
func (g *Guard) Allow(names ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allowed = map[string]bool{}
	for _, n := range names {
		g.allowed[n] = true
	}
}

// Count returns how many requests came under a name, refused ones included.
func (g *Guard) Count(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Seen[name]
}

// Refusals returns how many requests were answered with 401.
func (g *Guard) Refusals() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

// Bearer returns the bearer token of a request, for [Guard.Handler].
func Bearer(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// CommonName returns the common name of a request's client certificate, for [Guard.Handler]. The request must have one.
func CommonName(r *http.Request) string { return r.TLS.PeerCertificates[0].Subject.CommonName }

// Within waits in virtual time until the condition holds and returns how long that took.
func Within(t *testing.T, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
	return time.Since(start)
}
