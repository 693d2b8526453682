package agent

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/agent/clock"
	"hwsagent/agent/config"
	"hwsagent/agent/inputs"
	"hwsagent/agent/status"
	"hwsagent/internal/meter"
	"hwsagent/internal/panics"
	"hwsagent/internal/redact"
	"hwsagent/receivers/scrape"
)

// inputScrape is the kind of the inputs that are scrape jobs.
const inputScrape = "scrape"

// scraper scrapes the jobs of the configuration in force.
type scraper struct {
	s    *scrape.Scraper
	path *inputs.Path
	jobs *atomic.Pointer[config.Jobs] // in force
	cut  func(string) string          // removes texts from variables in the jobs' paths
}

// scrapeMetrics returns the metrics of scraping.
func scrapeMetrics() []meter.Metric { return scrape.Metrics() }

func newScraper(cfg *config.Config, path *inputs.Path, reg prometheus.Registerer, logger *slog.Logger) *scraper {
	jobs := new(atomic.Pointer[config.Jobs])
	out := func(job string, interval time.Duration) storage.AppendableV2 {
		limit, configured := jobs.Load().MaxSeries(job)
		if !configured { // the last scrape of a job removed by a reload
			return path.Ended(inputScrape, job)
		}
		return path.Input(inputScrape, job, inputs.Settings{Interval: interval, MaxSeries: limit})
	}
	cut := func(text string) string {
		if j := jobs.Load(); j != nil {
			return j.Hidden.Cut(text)
		}
		return text
	}
	logger = slog.New(redact.Handler(logger.Handler(), func(text string) string { return cut(redact.Text(text)) }))
	return &scraper{path: path, jobs: jobs, cut: cut, s: scrape.New(scrape.Options{
		Out: out, Registerer: reg, Logger: logger, StartTimestamps: cfg.Global.ScrapeStartTimestamps,
		Guard: func(job string) *panics.Guard { return path.Guard(inputScrape, job) },
	})}
}

func (r *scraper) Run(ctx context.Context) error { return r.s.Run(ctx) }

// ServeHTTP answers like the scraper, with hidden texts cut out. A cut never removes a quote of the JSON.
func (r *scraper) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if j := r.jobs.Load(); j == nil || j.Hidden == nil {
		r.s.ServeHTTP(w, req)
		return
	}
	r.s.ServeHTTP(&cutWriter{w, r.cut}, req)
}

// cutWriter is a ResponseWriter that collects the body and writes it at once.
type cutWriter struct {
	http.ResponseWriter
	cut func(string) string
}

func (w *cutWriter) Write(p []byte) (int, error) {
	_, err := w.ResponseWriter.Write([]byte(w.cut(string(p))))
	return len(p), err
}

func (r *scraper) Apply(jobs *config.Jobs) error {
	r.jobs.Store(jobs) // before the first of them is scraped
	if err := r.s.Apply(jobs.Jobs); err != nil {
		return err
	}
	r.path.Keep(inputScrape, jobs.Names())
	return nil
}

func (r *scraper) Status(now time.Time) []status.ScrapeStatus {
	var all []status.ScrapeStatus
	for _, j := range r.s.Status() {
		s := status.ScrapeStatus{Job: j.Name, Error: r.cut(redact.Text(j.Error)), Dropped: j.Dropped}
		for _, t := range j.Targets {
			s.Targets = append(s.Targets, status.ScrapeTargetStatus{
				URL: r.cut(redact.Text(t.URL)), Health: t.Health, LastScrape: clock.OnWall(now, t.Last), DownSince: clock.OnWall(now, t.DownSince), Took: t.Took,
				LastError: r.cut(redact.Text(t.LastError)), Interval: t.Interval, Labels: t.Labels.Map(),
			})
		}
		all = append(all, s)
	}
	return all
}
