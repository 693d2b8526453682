package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/agent/demo/receiver"
)

// tenantGate stands before the receivers of several tenants, as a gateway does: the header
// says to which a request goes, and the token must be that tenant's.
type tenantGate struct {
	mu      sync.Mutex
	tokens  map[string]string
	routes  map[string]http.Handler
	refuse  map[string]int
	refused map[string]int
	wrong   []string // requests with a token that is not the tenant's, old or new
	known   map[string]bool
}

func (g *tenantGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, token := strings.Join(r.Header.Values("X-Scope-OrgID"), ","), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	g.mu.Lock()
	route, code := g.routes[id], g.refuse[id]
	switch {
	case route == nil || !strings.HasPrefix(token, "token-"+id+"-"):
		g.wrong = append(g.wrong, id+" with "+token)
		code = http.StatusForbidden
	case g.tokens[id] != token:
		code = http.StatusUnauthorized
	}
	if code != 0 {
		g.refused[id]++
	} else {
		g.known[id+" "+token] = true
	}
	g.mu.Unlock()
	if code != 0 {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "no", code)
		return
	}
	route.ServeHTTP(w, r)
}

func (g *tenantGate) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// TestTenants runs the program with three tenants. One gets 429 all the time, while another's
// token is replaced and the agent is killed: the others lose nothing and are not late, and the held one
// has everything in the end.
func TestTenants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := &tenantGate{tokens: map[string]string{}, routes: map[string]http.Handler{}, refuse: map[string]int{}, refused: map[string]int{}, known: map[string]bool{}}
	oracles, journals := map[string]*receiver.Oracle{}, map[string]string{}
	token := func(id, token string) {
		g.change(func() { g.tokens[id] = token })
		writeFile(t, filepath.Join(dir, id), token+"\n")
	}
	probes := ""
	for _, id := range []string{"a", "b", "infra"} {
		recv, oracle := startReceiver(t, receiver.Options{})
		to, err := url.Parse(recv.URL())
		if err != nil {
			t.Fatal(err)
		}
		g.routes[id] = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL = to }}
		oracles[id], journals[id] = oracle, filepath.Join(t.TempDir(), "journal")
		token(id, "token-"+id+"-1")
		probes += fmt.Sprintf("  - {name: %s, type: canary, series: 20, interval: 100ms, timeout: 100ms, journal_file: %s}\n", id, journals[id])
	}
	gate := httptest.NewServer(g)
	t.Cleanup(gate.Close)
	a := newAgent(t, fmt.Sprintf(`web: {listen: "127.0.0.1:0"}
probes:
  - {name: self, type: self, enabled: false}
%sremote_write:
  - name: mimir
    url: %s/api/v1/push
    queue_config: {batch_send_deadline: 100ms}
    hwsagent: {tenant: {label: job, default: infra, credentials_dir: %s}}
`, probes, gate.URL, dir))
	g.change(func() { g.refuse["b"] = http.StatusTooManyRequests })
	a.run()
	t.Cleanup(a.kill)
	grown := func(id string, n uint64) {
		t.Helper()
		before := oracles[id].Received()
		eventually(t, 30*time.Second, func() string {
			if got := oracles[id].Received(); got < before+n {
				return fmt.Sprintf("%s has %d samples, want %d", id, got, before+n)
			}
			return ""
		})
	}
	grown("a", 100)
	grown("infra", 100)
	token("a", "token-a-2")
	grown("a", 200)
	a.kill()
	a.run()
	grown("a", 200)
	grown("infra", 100)
	g.change(func() {
		if g.refused["b"] == 0 || !g.known["a token-a-2"] {
			t.Errorf("the faults have not come: b was refused %d times, %v", g.refused["b"], g.known)
		}
		delete(g.refuse, "b")
	})
	if n := oracles["b"].Received(); n != 0 {
		t.Errorf("b has %d samples although it was refused", n)
	}
	grown("b", 200)
	if _, code := a.terminate(10 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	a.run()
	grown("a", 20)
	a.terminate(10 * time.Second)
	collected := map[string]receiver.Journal{} // a running agent always has a round that waits for the next one
	for id := range oracles {
		j, err := receiver.ReadJournal(journals[id])
		if err != nil {
			t.Fatal(err)
		}
		collected[id] = j
	}
	a.run()
	for id, oracle := range oracles {
		eventually(t, 30*time.Second, func() string {
			if r := oracle.Verify(collected[id], 20); r.Missing != 0 || r.OutOfOrder != 0 {
				return fmt.Sprintf("%s: %+v", id, r)
			}
			return ""
		})
	}
	g.change(func() {
		if len(g.wrong) > 0 {
			t.Errorf("requests with another's token, or of no tenant: %v", g.wrong)
		}
	})
}
