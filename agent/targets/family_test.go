package targets

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"go.uber.org/goleak"

	"hwsagent/agent/config"
	"hwsagent/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// While an entry has lost its old name and not yet got the new one, a retry starts no discovery for the old one: it would
// enroll tenants whose samples no target sends.
func TestNoDiscoveryForARemovedEntry(t *testing.T) {
	log, err := wal.Open(wal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.LoadBytes(filepath.Join(t.TempDir(), "agent.yaml"), []byte(`remote_write:
- {name: mimir, url: "http://127.0.0.1:1/", hwsagent: {tenant: {label: tenant, header: X-Scope-OrgID, default: rest}}}
`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Log: log, Dir: t.TempDir(), Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		Every: func(d time.Duration) (<-chan time.Time, func()) {
			ticks := time.NewTicker(d)
			return ticks.C, ticks.Stop
		}})
	plan, err := s.Plan(cfg, func(name string, _ any) string { return name })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Enroll(plan); err != nil {
		t.Fatal(err)
	}
	s.Apply(plan, noReport)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	defer func() {
		stop()
		<-done
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	arrive := func(id string) {
		app := log.AppenderV2(t.Context())
		if _, err := app.Append(0, labels.FromStrings("__name__", "m", "tenant", id), 0, time.Now().UnixMilli(), 1, nil, nil, storage.AppendV2Options{}); err != nil {
			t.Fatal(err)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	arrive("a")
	until(t, "the tenant is there", func() bool { return s.Get("mimir/a") != nil })
	var restore func()
	err = s.AroundFamily(noReport, func(tenants []string) error {
		if !slices.Contains(tenants, "a") {
			t.Errorf("tenants %v", tenants)
		}
		restore = s.Remove("mimir")
		return nil
	}, "mimir", "cortex")
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.startDiscoveries() // as the retry does
	for name, f := range s.families {
		if f.cancel != nil {
			t.Errorf("a discovery runs for %q", name)
		}
	}
	s.mu.Unlock()
	if err := s.Around(noReport, func() error { restore(); s.startDiscoveries(); return nil }); err != nil { // as a reload does
		t.Fatal(err)
	}
	arrive("b")
	until(t, "a further tenant is found", func() bool { return s.Get("mimir/b") != nil })
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waiting in vain: %s", what)
		}
	}
}
