package scrape

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"
)

// shown is a target whose page may be changed.
type shown struct {
	*httptest.Server
	mu   sync.Mutex
	page string
	hold chan struct{} // answers wait for it to be closed, if not nil
	got  int
}

func show(t *testing.T, page string) *shown {
	s := &shown{page: page}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		page, hold := s.page, s.hold
		s.got++
		s.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, page)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *shown) set(page string, hold chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page, s.hold = page, hold
}

func (s *shown) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

func (s *shown) addr() string { return strings.TrimPrefix(s.URL, "http://") }

func jobs(t testing.TB, entries ...string) *Jobs {
	t.Helper()
	j, err := NewJobs(model.Duration(300*time.Millisecond), model.Duration(300*time.Millisecond), Global{}) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		add(t, j, e, t.TempDir())
	}
	return j
}

// add adds a job in YAML.
func add(t testing.TB, j *Jobs, entry, dir string) {
	t.Helper()
	var n yaml.Node
	if err := yaml.Load([]byte(entry), &n); err != nil {
		t.Fatal(err)
	}
	if mistakes, err := j.Add(&n, dir); err != nil || len(mistakes) > 0 {
		t.Fatal(mistakes, err)
	}
}

func job(name string, s *shown) string {
	return fmt.Sprintf("{job_name: %s, static_configs: [{targets: [%q], labels: {instance: i}}]}", name, s.addr())
}

// run starts a scraper that stops with the test, or earlier by stop.
func run(t *testing.T, m *memory, j *Jobs) (s *Scraper, reg *prometheus.Registry, stop func()) {
	t.Helper()
	reg = prometheus.NewRegistry()
	s = New(Options{Out: m.out, Registerer: reg, Logger: slog.New(slog.DiscardHandler), Settle: 50 * time.Millisecond})
	if err := s.Apply(j); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return s, reg, stop
}

const aOf, upOf = `{__name__="a", instance="i", job="j"}`, `{__name__="up", instance="i", job="j"}`

// TestScrapeIsOneCommit: samples, report and stale markers of a scrape are one batch, and the
// report's series have their own names.
func TestScrapeIsOneCommit(t *testing.T) {
	target, m := show(t, "a 1\nb 2\n"), newMemory()
	run(t, m, jobs(t, job("j", target)))
	until(t, "a is scraped", func() bool { return len(m.all(aOf)) > 2 })
	target.set("a 1\n", nil)
	until(t, "b ends", func() bool {
		all := m.all(`{__name__="b", instance="i", job="j"}`)
		return len(all) > 0 && all[len(all)-1].stale
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.commits {
		reports := 0
		for _, s := range c {
			if strings.HasSuffix(s.family, "\xff") {
				t.Errorf("%s is of a family %q", s.series, s.family)
			}
			if s.t != c[0].t {
				t.Errorf("%s at %d in a commit of %d", s.series, s.t, c[0].t)
			}
			if s.series == upOf {
				reports++
			}
		}
		if reports != 1 {
			t.Errorf("%d reports in one commit: %v", reports, c)
		}
	}
}

// TestRefusedScrapes: while the log takes nothing, that is counted and the target stays up;
// afterwards nothing says that it was down, and a series that ended meanwhile is stale.
func TestRefusedScrapes(t *testing.T) {
	target, m := show(t, "a 1\nb 2\n"), newMemory()
	s, _, _ := run(t, m, jobs(t, job("j", target)))
	bOf := `{__name__="b", instance="i", job="j"}`
	until(t, "b is scraped", func() bool { return len(m.all(bOf)) > 2 })
	m.fill(true)
	target.set("a 1\n", nil)
	m.mu.Lock()
	before := m.refused
	m.mu.Unlock()
	until(t, "scrapes are refused", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.refused > before+4
	})
	if n := testutil.ToFloat64(s.sink.refused.WithLabelValues("j")); n < 4*6 { // a, and five of the report
		t.Errorf("%v samples count as refused", n)
	}
	if st := s.Status(); len(st) != 1 || len(st[0].Targets) != 1 || st[0].Targets[0].Health != "up" || st[0].Targets[0].LastError != "" {
		t.Errorf("the target is %+v", st)
	}
	if all := m.all(bOf); all[len(all)-1].stale {
		t.Error("b ended although the log took nothing")
	}
	m.fill(false)
	until(t, "b ends", func() bool { all := m.all(bOf); return all[len(all)-1].stale })
	ups := len(m.all(upOf))
	until(t, "more scrapes", func() bool { return len(m.all(upOf)) > ups+3 })
	zeros := 0
	for _, u := range m.all(upOf) {
		if u.v != 1 {
			zeros++
		}
	}
	if zeros > 2 { // a busy machine may take longer than the timeout now and then
		t.Errorf("up is 0 in %d scrapes of %d", zeros, len(m.all(upOf)))
	}
	ended := 0
	for _, b := range m.all(bOf) {
		if b.stale {
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("b ended %d times", ended)
	}
}

// TestReloadLeavesNoGap: jobs come, change and go, and the one that is unchanged misses no
// scrape and no series of it ends.
func TestReloadLeavesNoGap(t *testing.T) {
	target, other, m := show(t, "a 1\n"), show(t, "o 1\n"), newMemory()
	s, _, _ := run(t, m, jobs(t, job("j", target)))
	still := newMemory() // of a scraper without reloads: the machine's own noise
	run(t, still, jobs(t, job("j", target)))
	until(t, "a is scraped", func() bool { return len(m.all(aOf)) > 3 })
	oOf := `{__name__="o", instance="i", job="k"}`
	for _, j := range []*Jobs{
		jobs(t, job("j", target), job("k", other)),
		jobs(t, job("j", target), strings.Replace(job("k", other), "{job_name", "{sample_limit: 9, job_name", 1)),
		jobs(t, job("j", target)),
		jobs(t, job("k", other), job("j", target)),
	} {
		n, o := len(m.all(aOf)), len(m.all(oOf))
		if err := s.Apply(j); err != nil {
			t.Fatal(err)
		}
		until(t, "the change is in force", func() bool {
			if len(j.Names()) == 1 {
				return len(s.Status()) == 1 && len(m.all(aOf)) > n+5
			}
			return len(m.all(oOf)) > o+2 && len(m.all(aOf)) > n+3
		})
		if len(j.Names()) == 1 {
			asked := other.asked()
			n = len(m.all(aOf))
			until(t, "time passes", func() bool { return len(m.all(aOf)) > n+3 })
			if got := other.asked(); got > asked+1 {
				t.Errorf("a job that was removed is scraped: %d times, then %d", asked, got)
			}
		}
	}
	began := m.all(upOf)[0].t
	got, noise := missed(m, upOf, began), missed(still, upOf, began)
	if got > 2*noise+2 {
		t.Errorf("%d scrapes were missed or failed, %d of a job that was not reloaded", got, noise)
	}
	down := map[int64]bool{}
	for _, u := range m.all(upOf) {
		down[u.t] = u.v == 0
	}
	for _, a := range m.all(aOf) {
		if a.stale && !down[a.t] {
			t.Errorf("a ended although the target was up: %+v", a)
		}
	}
}

// missed is how many scrapes since then did not take place in time, or failed.
func missed(m *memory, up string, since int64) (n int) {
	before := since
	for _, u := range m.all(up) {
		if u.t < since {
			continue
		}
		if u.t-before > 450 || u.v != 1 {
			n++
		}
		before = u.t
	}
	return n
}

// TestStopDoesNotWait: a target that hangs holds nothing up, and the scrape that the stop
// interrupts says nothing about it.
func TestStopDoesNotWait(t *testing.T) {
	target, m := show(t, "a 1\n"), newMemory()
	entry := fmt.Sprintf("{job_name: j, scrape_interval: 30s, scrape_timeout: 30s, static_configs: [{targets: [%q], labels: {instance: i, __scrape_interval__: 9s, __scrape_timeout__: 9s}}]}", target.addr())
	hold := make(chan struct{})
	target.set("a 1\n", hold)
	_, _, stop := run(t, m, jobs(t, entry))
	until(t, "it is asked", func() bool { return target.asked() > 0 })
	began := time.Now()
	stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping took %v", took)
	}
	m.mu.Lock()
	n := len(m.commits)
	m.mu.Unlock()
	close(hold)
	target.Close() // waits until it has answered
	if len(m.all(upOf)) > 0 || n > 0 {
		t.Errorf("a scrape that the stop interrupted was appended: %v", m.commits)
	}
}

// TestClientThatCannotBeMade: a job whose certificate is missing is reported, and runs when the file is
// there.
func TestClientThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	target, m := show(t, "a 1\n"), newMemory()
	entry := strings.Replace(job("j", target), "{job_name", "{tls_config: {ca_file: ca.pem}, job_name", 1)
	j, err := NewJobs(model.Duration(50*time.Millisecond), model.Duration(50*time.Millisecond), Global{})
	if err != nil {
		t.Fatal(err)
	}
	add(t, j, entry, dir)
	if err := j.Check(); err == nil || !strings.Contains(err.Error(), `scrape job "j"`) || !strings.Contains(err.Error(), filepath.Join(dir, "ca.pem")) {
		t.Errorf("the check says %v", err)
	}
	s, _, _ := run(t, m, j)
	until(t, "the status names the file", func() bool { st := s.Status(); return len(st) == 1 && strings.Contains(st[0].Error, "ca.pem") })
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), []byte(certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := j.Check(); err != nil {
		t.Error(err)
	}
	until(t, "it is scraped", func() bool { return len(m.all(aOf)) > 0 })
	if st := s.Status(); st[0].Error != "" || len(st[0].Targets) != 1 {
		t.Errorf("%+v", st)
	}
}

// TestTargetsAnswer: GET /api/v1/targets answers as Prometheus does, with its parameters.
func TestTargetsAnswer(t *testing.T) {
	target, m := show(t, "a 1\n"), newMemory()
	s, _, _ := run(t, m, jobs(t, job("j", target), strings.Replace(job("gone", target), "{job_name", "{relabel_configs: [{action: drop, source_labels: [job]}], job_name", 1)))
	until(t, "it is up", func() bool { st := s.Status(); return len(st[0].Targets) == 1 && st[0].Targets[0].Health == "up" })
	until(t, "the other is dropped", func() bool { return s.Status()[1].Dropped == 1 })
	ask := func(query string) (answer targetsAnswer) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/targets"+query, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Status != "success" {
			t.Fatalf("%v: %s", err, w.Body)
		}
		return answer
	}
	all := ask("").Data
	if len(all.Active) != 1 || len(all.Dropped) != 1 || all.DroppedCounts["gone"] != 1 || all.DroppedCounts["j"] != 0 {
		t.Fatalf("%+v", all)
	}
	a := all.Active[0]
	if a.ScrapePool != "j" || a.ScrapeURL != target.URL+"/metrics" || a.Labels.Get("instance") != "i" || a.DiscoveredLabels.Get("__address__") != target.addr() || a.ScrapeInterval != "300ms" || a.LastScrape.IsZero() {
		t.Errorf("%+v", a)
	}
	if only := ask("?state=active&scrapePool=j").Data; len(only.Active) != 1 || len(only.Dropped) != 0 {
		t.Errorf("%+v", only)
	}
	if only := ask("?state=dropped").Data; len(only.Active) != 0 || len(only.Dropped) != 1 {
		t.Errorf("%+v", only)
	}
	if none := ask("?scrapePool=nobody").Data; len(none.Active)+len(none.Dropped) != 0 {
		t.Errorf("%+v", none)
	}
}

// TestNothingUntilThereIsAJob: an agent without jobs has no metrics of scraping and stops.
func TestNothingUntilThereIsAJob(t *testing.T) {
	m := newMemory()
	s, reg, stop := run(t, m, jobs(t))
	if families, err := reg.Gather(); err != nil || len(families) > 0 {
		t.Errorf("%d metrics, %v", len(families), err)
	}
	if st := s.Status(); len(st) > 0 {
		t.Errorf("%+v", st)
	}
	stop()
}
