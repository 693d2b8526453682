package agent

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hwsagent/agent/check"
	"hwsagent/agent/config"
	"hwsagent/agent/queues"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
)

// tenantSink is a receiver with tenants that keeps the values of each tenant's canary.
type tenantSink struct {
	*httptest.Server
	mu     sync.Mutex
	values map[string][]float64 // by X-Scope-OrgID
	strays []string             // samples that came for another tenant than their label says
	auth   map[string]string    // the last Authorization
	answer map[string]int       // what a tenant gets instead of 204
	asked  map[string]int
}

func newTenantSink(t *testing.T) *tenantSink {
	s := &tenantSink{values: map[string][]float64{}, auth: map[string]string{}, answer: map[string]int{}, asked: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// requests returns how many requests came for a tenant, whether or not they were taken.
func (s *tenantSink) requests(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[id]
}

func (s *tenantSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = snappy.Decode(nil, body)
	}
	var req prompb.WriteRequest
	if err == nil {
		err = req.Unmarshal(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id := strings.Join(r.Header.Values("X-Scope-OrgID"), ",")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth[id] = r.Header.Get("Authorization")
	s.asked[id]++
	if code := s.answer[id]; code != 0 {
		http.Error(w, "tenant "+id, code)
		return
	}
	for _, ts := range req.Timeseries {
		of := map[string]string{}
		for _, l := range ts.Labels {
			of[l.Name] = l.Value
		}
		if of["__name__"] != "hwsagent_canary" {
			continue
		}
		if of["job"] != id {
			s.strays = append(s.strays, of["job"]+" at "+id)
		}
		for _, smp := range ts.Samples {
			if value.IsStaleNaN(smp.Value) {
				continue // the canary's round took longer than its timeout
			}
			s.values[id+"/"+of["job"]] = append(s.values[id+"/"+of["job"]], smp.Value)
		}
	}
}

func (s *tenantSink) set(id string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer[id] = code
}

// got returns how many values of a job a tenant has.
func (s *tenantSink) got(id, job string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.values[id+"/"+job])
}

// complete fails the test unless each tenant has each value of its job once, in order, from
// 1 on, and nothing of another.
func (s *tenantSink) complete(t *testing.T, ids ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.strays) > 0 {
		t.Errorf("came for the wrong tenant: %v", s.strays)
	}
	for _, id := range ids {
		values := slices.Clone(s.values[id+"/"+id])
		// A backlog begins by asking the receiver, once, whether it takes an older sample: the first one is sent again.
		if i := slices.Index(values[min(1, len(values)):], values[0]); i >= 0 {
			values = slices.Delete(values, i+1, i+2)
		}
		for i, v := range values {
			if v != values[0]+float64(i) || values[0] > 1 {
				t.Errorf("%s: value %d is %v: %v", id, i, v, values)
				break
			}
		}
	}
}

// tenantEntry returns an entry whose tenant is the probe's name.
func tenantEntry(url, more string) string {
	return entry("mimir", url, ", hwsagent: {tenant: {label: job"+more+"}}")
}

// probe adds a canary that is called that.
func (r *running) probes(names ...string) *running {
	for _, name := range names { // each goes on with its numbers after a restart
		r.extra += fmt.Sprintf("  - {name: %s, type: canary, interval: 20ms, timeout: 20ms, journal_file: %s}\n", name,
			filepath.Join(filepath.Dir(r.file), url.PathEscape(name)))
	}
	return r
}

func startTenants(t *testing.T, storage string, entry string, names ...string) *running {
	t.Helper()
	r := (&running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}).probes(names...)
	r.configure(entry)
	return startAgentWith(t, r, storage, "")
}

// TestTenants holds one of three tenants, over a restart and a reload: the others get what
// is theirs, each value once, and so does the held one afterwards.
func TestTenants(t *testing.T) {
	s, storage := newTenantSink(t), t.TempDir()
	for id, code := range map[string]int{"b": http.StatusTooManyRequests, "c": http.StatusForbidden} {
		s.set(id, code)
	}
	r := startTenants(t, storage, tenantEntry(s.URL, ", default: count"), "a", "b", "c")
	until(t, "a and the default have data", func() bool { return s.got("a", "a") > 10 && s.got("count", "count") > 10 })
	until(t, "b and c are refused", func() bool {
		b, _ := r.target("mimir/b")
		c, _ := r.target("mimir/c")
		return b.State == "retrying" && c.State == "held" && b.Tenant == "b" && c.Tenant == "c"
	})
	if rest, ok := r.target("mimir"); !ok || rest.Tenant != "count" || rest.Tenants == nil || rest.Tenants.Known != 3 || rest.State != "ok" {
		t.Errorf("the target of the rest: %+v", rest)
	}
	r.end()
	r.done, r.Agent = make(chan error, 1), nil
	r = startAgentWith(t, r, storage, "")
	before := s.got("a", "a")
	until(t, "a goes on after the restart", func() bool { return s.got("a", "a") > before+10 })

	// A reload that changes nothing of theirs leaves their targets alone; a new tenant comes.
	r.probes("d").configure(tenantEntry(s.URL, ", default: count, max_tenants: 9"))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	until(t, "the new one has data", func() bool { return s.got("d", "d") > 10 })
	if s.got("b", "b") != 0 || s.got("c", "c") != 0 {
		t.Error("refused, and yet they have data")
	}
	s.set("b", 0)
	s.set("c", 0)
	r.targets.Get("mimir/c").Poke()
	r.targets.Get("mimir/b").Poke()
	for _, id := range []string{"b", "c"} {
		until(t, id+" has caught up", func() bool {
			tg, _ := r.target("mimir/" + id)
			return s.got(id, id) > 50 && tg.State == "ok"
		})
	}
	r.end()
	s.complete(t, "a", "b", "c", "d")
	for _, tg := range r.Status().Targets {
		if !tg.Ledger.Balanced || tg.Ledger.Lost > 0 {
			t.Errorf("%s: %+v", tg.Name, tg.Ledger)
		}
	}
}

// TestTenantTokens has a token for each tenant, which goes to the requests of that tenant
// only, and is replaced.
func TestTenantTokens(t *testing.T) {
	s, dir := newTenantSink(t), t.TempDir()
	put := func(id, token string) {
		if err := os.WriteFile(filepath.Join(dir, id), []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "token-a1")
	put("count", "token-count")
	r := startTenants(t, t.TempDir(), tenantEntry(s.URL, ", default: count, credentials_dir: "+dir), "a", "b")
	until(t, "a has data", func() bool { return s.got("a", "a") > 3 && s.got("count", "count") > 3 })
	until(t, "b waits for its token", func() bool {
		b, _ := r.target("mimir/b")
		return strings.Contains(b.Credentials, filepath.Join(dir, "b"))
	})
	s.mu.Lock()
	if s.asked["b"] != 0 {
		t.Error("a request without a token")
	}
	s.mu.Unlock()
	put("b", "token-b")
	put("a", "token-a2")
	until(t, "b has data, and a its new token", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.auth["a"] == "Bearer token-a2" && s.auth["b"] == "Bearer token-b" && s.auth["count"] == "Bearer token-count" && len(s.values["b/b"]) > 3
	})
	r.end()
	s.complete(t, "a", "b")
}

// TestTenantsTurnedAway has more tenants than allowed, and no default: samples without a tenant are dropped, counted
// and reported. Once more tenants are allowed, they are delivered.
func TestTenantsTurnedAway(t *testing.T) {
	s, storage := newTenantSink(t), t.TempDir()
	r := startTenants(t, storage, tenantEntry(s.URL, ", max_tenants: 3"), "a", "b", "c/c", "d")
	// job "count" is one as well; "c/c" can be none.
	until(t, "three have data", func() bool {
		n := 0
		for _, id := range []string{"a", "b", "d", "count"} {
			if s.got(id, id) > 5 {
				n++
			}
		}
		return n == 3
	})
	var away string
	until(t, "the status names the fourth", func() bool {
		rest, _ := r.target("mimir")
		for _, v := range rest.Tenants.Strangers {
			if strings.Contains(v.Why, "max_tenants") {
				away = v.Value
			}
		}
		text := fmt.Sprint(r.Status().Problems)
		return away != "" && rest.Ledger.Dropped["no_tenant"] > 10 && strings.Contains(text, away) && strings.Contains(text, "c/c") && strings.Contains(text, "dropped")
	})
	if s.requests("") != 0 {
		t.Error("a request without a tenant")
	}
	r.configure(tenantEntry(s.URL, ", max_tenants: 4"))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	until(t, "the fourth has data", func() bool { return s.got(away, away) > 5 })
	r.end()
	if len(s.strays) > 0 {
		t.Error(s.strays)
	}
}

// Commands address a tenant's target by its name.
func TestManageTenant(t *testing.T) {
	s, storage := newTenantSink(t), t.TempDir()
	r := startTenants(t, storage, tenantEntry(s.URL, ", default: count"), "a")
	until(t, "a has data", func() bool { return s.got("a", "a") > 3 })
	m := queues.Manager{Storage: storage}
	if _, err := m.Pause(t.Context(), "mimir/a"); err != nil {
		t.Fatal(err)
	}
	if a, _ := r.target("mimir/a"); a.State != "paused" {
		t.Errorf("paused, and it is %s", a.State)
	}
	n := s.got("count", "count")
	until(t, "the others go on", func() bool { return s.got("count", "count") > n+5 })
	if _, err := m.Resume(t.Context(), "mimir/a"); err != nil {
		t.Fatal(err)
	}
	n = s.got("a", "a")
	until(t, "it goes on", func() bool { return s.got("a", "a") > n+5 })
	if _, err := m.Drop(t.Context(), "mimir/a"); err == nil {
		t.Error("a tenant that is served was dropped")
	}
	for name, want := range map[string]error{"mimir/a": nil, "mimir": nil, "mimir/nobody/x": config.ErrNoSuchTarget} {
		if test, err := TestTarget(t.Context(), storage, r.file, name); !errors.Is(err, want) || err == nil && test.Result != check.OK {
			t.Errorf("test of %s: %+v, %v", name, test, err)
		}
	}
	r.end()
	s.complete(t, "a")
}

// An entry that gets another name keeps its queue and those of its tenants, whether the agent
// runs or not.
func TestAdoptTenants(t *testing.T) {
	for _, running := range []bool{true, false} {
		s, storage := newTenantSink(t), t.TempDir()
		s.set("b", http.StatusForbidden)
		r := startTenants(t, storage, tenantEntry(s.URL, ", default: count"), "a", "b")
		until(t, "a has data, and b is held", func() bool {
			b, _ := r.target("mimir/b")
			return s.got("a", "a") > 3 && b.State == "held"
		})
		m := queues.Manager{Storage: storage, Config: r.file}
		if !running {
			r.end()
			if _, err := (queues.Manager{Storage: storage, Config: r.file + ".not"}).Adopt(t.Context(), "mimir", "cortex"); err == nil || !strings.Contains(err.Error(), "a, b") {
				t.Errorf("adopted without knowing of tenants: %v", err)
			}
		}
		r.configure(strings.Replace(tenantEntry(s.URL, ", default: count"), "mimir", "cortex", 1))
		if c, err := m.Adopt(t.Context(), "mimir", "cortex"); err != nil || c.Running != running {
			t.Fatalf("%+v, %v", c, err)
		}
		if !running {
			r.done, r.Agent = make(chan error, 1), nil
			r = startAgentWith(t, r, storage, "")
		}
		s.set("b", 0)
		until(t, "b is there", func() bool { _, ok := r.target("cortex/b"); return ok })
		r.targets.Get("cortex/b").Poke()
		n := s.got("a", "a")
		until(t, "all go on", func() bool { return s.got("a", "a") > n+5 && s.got("b", "b") > 10 })
		if o := r.log.Orphans(); len(o) > 0 {
			t.Errorf("left behind: %+v", o)
		}
		r.end()
		s.complete(t, "a", "b")
	}
}

// With the agent down, the configuration tells what is a tenant and what a target of its own.
func TestAdoptOfflineTellsTenants(t *testing.T) {
	s, storage := newTenantSink(t), t.TempDir()
	m := queues.Manager{Storage: storage}
	old := entry("mimir", s.URL, "")
	r := startTenants(t, storage, old, "a")
	r.configure(old, entry("mimir/x", s.URL, ""))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	m.Config = r.file
	r.end()
	if _, err := m.Adopt(t.Context(), "mimir", "cortex"); err != nil {
		t.Fatal(err)
	}
	st, err := queues.OfflineStatus(storage, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tg := range st.Targets {
		names = append(names, tg.Name)
	}
	if strings.Join(names, " ") != "cortex mimir/x" {
		t.Errorf("the log has the queues of %v", names)
	}
}
