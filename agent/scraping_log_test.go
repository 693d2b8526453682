package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/agent/config"
	"hwsagent/agent/inputs"
	"hwsagent/wal"
)

// stored is what the log has of each series: the start timestamps of its samples.
type stored map[string][]int64

// scrapeByUs returns what the log has of the jobs.
func scrapeByUs(t *testing.T, target *scripted, text string) stored {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Error(err)
		return nil
	}
	cfg, _, err := config.LoadBytes(filepath.Join(dir, "agent.yaml"), []byte(text), noEnv)
	if err != nil {
		t.Error(err)
		return nil
	}
	log, err := wal.Open(wal.Options{Dir: dir})
	if err != nil {
		t.Error(err)
		return nil
	}
	defer log.Close()
	reader, err := log.Reader("test", wal.ReaderOptions{})
	if err != nil {
		t.Error(err)
		return nil
	}
	defer reader.Close()
	s := newScraper(cfg, inputs.NewPath(log, slog.New(slog.DiscardHandler)), prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err := s.Apply(cfg.ScrapeJobs()); err != nil {
		t.Error(err)
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	until(t, "all pages were scraped by us", func() bool { return target.done("ours") })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	all := stored{}
	for head := log.Status().Head; ; {
		e, err := reader.Next(context.Background())
		if err != nil {
			t.Error(err)
			return nil
		}
		for _, x := range e.Samples {
			series := x.Series.Labels().String()
			all[series] = append(all[series], x.ST)
		}
		if e.End.Commit >= head.Commit {
			return all
		}
	}
}

// TestScrapeStartTimestamps: they come with the samples if that is asked for, and the series
// that brought them are none then.
func TestScrapeStartTimestamps(t *testing.T) {
	for _, keep := range []bool{false, true} {
		target := &scripted{asked: map[string]int{}, pages: map[string][]page{"om": {{kind: openMetrics, body: "# TYPE c counter\nc_total 1\nc_created 1700000000.123\n# EOF\n"}}}}
		server := httptest.NewServer(target)
		defer server.Close()
		all := scrapeByUs(t, target, fmt.Sprintf("global: {scrape_interval: 100ms, scrape_timeout: 100ms, scrape_start_timestamps: %t}\nscrape_configs:\n"+
			"  - {job_name: om, metrics_path: /ours/om, static_configs: [{targets: [%q], labels: {instance: i}}]}\n", keep, strings.TrimPrefix(server.URL, "http://")))
		starts := all[`{__name__="c_total", instance="i", job="om"}`]
		_, created := all[`{__name__="c_created", instance="i", job="om"}`]
		if want := map[bool]int64{false: 0, true: 1_700_000_000_123}[keep]; len(starts) == 0 || starts[0] != want || created == keep {
			t.Errorf("with %t the start is %v, want %d; c_created is a series: %t", keep, starts, want, created)
		}
	}
}

// TestScrapeMaxSeries: series beyond a job's limit are refused, those that it has go on.
func TestScrapeMaxSeries(t *testing.T) {
	target := &scripted{asked: map[string]int{}, pages: map[string][]page{"wild": {
		{kind: plainText, body: "a 1\n"}, {kind: plainText, body: "a 2\nb 1\nc 1\nd 1\n"}, {kind: plainText, body: "a 3\nb 2\ne 1\n"},
	}}}
	server := httptest.NewServer(target)
	defer server.Close()
	all := scrapeByUs(t, target, fmt.Sprintf("global: {scrape_interval: 100ms, scrape_timeout: 100ms}\nscrape_configs:\n"+
		"  - {job_name: wild, metrics_path: /ours/wild, hwsagent: {max_series: 7}, static_configs: [{targets: [%q], labels: {instance: i}}]}\n", strings.TrimPrefix(server.URL, "http://")))
	var got []string
	for series := range all { // five of them are the report
		if !strings.Contains(series, "scrape_") && !strings.Contains(series, `"up"`) {
			got = append(got, series)
		}
	}
	slices.Sort(got)
	if want := []string{`{__name__="a", instance="i", job="wild"}`, `{__name__="b", instance="i", job="wild"}`}; !slices.Equal(got, want) {
		t.Errorf("series %q, want %q", got, want)
	}
}

// scripted is a target that shows page after page: the nth scrape of a job by a scraper
// gets the nth page, whenever it comes, so that two scrapers see the same.
type scripted struct {
	pages map[string][]page // by job

	mu    sync.Mutex
	asked map[string]int // by path, which is /scraper/job
}

// page is one answer.
type page struct {
	kind   string // Content-Type
	body   string
	status int // 0 is 200
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	job := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	s.mu.Lock()
	n := s.asked[r.URL.Path]
	s.asked[r.URL.Path]++
	s.mu.Unlock()
	p := s.pages[job][min(n, len(s.pages[job])-1)]
	w.Header().Set("Content-Type", p.kind)
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	fmt.Fprint(w, p.body)
}

// done reports whether a scraper has had all pages of every job, and the answer to the last.
func (s *scripted) done(scraper string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for job, pages := range s.pages {
		if s.asked["/"+scraper+"/"+job] <= len(pages)+1 {
			return false
		}
	}
	return true
}

const (
	plainText   = "text/plain; version=0.0.4; charset=utf-8"
	openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)
