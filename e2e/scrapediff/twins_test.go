package scrapediff

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	yaml4 "go.yaml.in/yaml/v4"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	_ "github.com/prometheus/prometheus/discovery/dns"
	_ "github.com/prometheus/prometheus/discovery/file"
	_ "github.com/prometheus/prometheus/discovery/http"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"

	ours "hwsagent/receivers/scrape"
)

// answer is one answer of a target.
type answer struct {
	kind   string // Content-Type
	body   string
	status int               // 0 is 200
	header map[string]string // further ones
	length int               // Content-Length, if it is to be a lie
}

// target shows answer after answer to each scraper: the nth scrape of a path gets the nth, and later ones the last.
// It lives outside of the bubbles, and closes each connection, so that a bubble's time goes on.
type target struct {
	*httptest.Server
	mu      sync.Mutex
	answers []answer
	asked   map[string]int
}

func newTarget() *target {
	t := &target{asked: map[string]int{}}
	t.Server = httptest.NewUnstartedServer(t)
	t.Config.SetKeepAlivesEnabled(false)
	t.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Start()
	return t
}

func (t *target) show(answers []answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers, t.asked = answers, map[string]int{}
}

func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	n := t.asked[r.URL.Path]
	t.asked[r.URL.Path]++
	a := t.answers[min(n, len(t.answers)-1)]
	t.mu.Unlock()
	for name, v := range a.header {
		w.Header().Set(name, v)
	}
	w.Header()["Content-Type"] = []string{a.kind}
	if a.length > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(a.length))
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	_, _ = io.WriteString(w, a.body)
}

// interval is that of the twins, in the time of a bubble.
const interval = 10 * time.Second

// entry returns a scrape configuration as JSON, which is YAML.
func entry(t testing.TB, path, addr string, more map[string]any) string {
	t.Helper()
	e := map[string]any{"job_name": "j", "metrics_path": path, "static_configs": []any{map[string]any{"targets": []string{addr}, "labels": map[string]string{"instance": "i", "rack": "b4"}}}}
	for key, v := range more {
		e[key] = v
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const common = `{"scrape_interval": "10s", "scrape_timeout": "10s"}`

// byTheirs scrapes for so many intervals with Prometheus' scraper.
func byTheirs(t testing.TB, entry string, scrapes int, st bool) *recorder {
	quiet := slog.New(slog.DiscardHandler)
	cfg, err := config.Load(`{"global":{"scrape_interval":"10s","scrape_timeout":"10s"},"scrape_configs":[`+entry+`]}`, quiet)
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	m, err := scrape.NewManager(&scrape.Options{DiscoveryReloadOnStartup: true, AppendMetadata: true, ParseST: st}, quiet, nil, nil, r, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.ApplyConfig(cfg); err != nil {
		t.Fatal(err)
	}
	found := make(chan map[string][]*targetgroup.Group, 1)
	done := make(chan error, 1)
	go func() { done <- m.Run(found) }()
	groups := map[string][]*targetgroup.Group{}
	for _, c := range cfg.ScrapeConfigs[0].ServiceDiscoveryConfigs {
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var static []*targetgroup.Group
		if err := json.Unmarshal(raw, &static); err != nil {
			t.Fatal(err)
		}
		for i, g := range static {
			g.Source = fmt.Sprint(i)
		}
		groups["j"] = append(groups["j"], static...)
	}
	found <- groups
	time.Sleep(time.Duration(scrapes)*interval + interval + interval/2) // of the bubble
	m.Stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return r
}

// addJob adds a job in YAML.
func addJob(t testing.TB, jobs *ours.Jobs, entry string) {
	t.Helper()
	var n yaml4.Node
	if err := yaml4.Load([]byte(entry), &n); err != nil {
		t.Fatal(err)
	}
	if mistakes, err := jobs.Add(&n, "/"); err != nil || len(mistakes) > 0 {
		t.Fatal(mistakes, err)
	}
}

// byOurs does so with the agent's.
func byOurs(t testing.TB, entry string, scrapes int, st bool) *recorder {
	jobs, err := ours.NewJobs(model.Duration(10*time.Second), model.Duration(10*time.Second), ours.Global{})
	if err != nil {
		t.Fatal(err)
	}
	addJob(t, jobs, entry)
	r := newRecorder()
	s := ours.New(ours.Options{
		Out:        func(string, time.Duration) storage.AppendableV2 { return r },
		Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), StartTimestamps: st,
	})
	if err := s.Apply(jobs); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	time.Sleep(time.Duration(scrapes)*interval + interval + interval/2) // of the bubble
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return r
}

// differ scrapes answers by both, with the same settings, and returns what they store differently. extra is how many
// scrapes more than answers there are, which see the last one.
func differ(t *testing.T, at *target, answers []answer, settings map[string]any, st bool) (diff string, stored map[string][]string) {
	t.Helper()
	at.show(answers)
	addr := strings.TrimPrefix(at.URL, "http://")
	var theirs, mine *recorder
	synctest.Test(t, func(t *testing.T) { theirs = byTheirs(t, entry(t, "/theirs", addr, settings), len(answers), st) })
	synctest.Test(t, func(t *testing.T) { mine = byOurs(t, entry(t, "/ours", addr, settings), len(answers), st) })
	want, got := theirs.byScrape(len(answers)), mine.byScrape(len(answers))
	return cmp.Diff(want, got), want
}

func aboutText(m metadata.Metadata) string {
	return fmt.Sprintf("%s in %q: %q", m.Type, m.Unit, m.Help)
}
