//go:build !minimal

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/inputs"
	"hwsagent/inputs/panics"
	"hwsagent/meter"
	"hwsagent/receivers/scrape"
	"hwsagent/redact"
	"hwsagent/web"
)

// canScrape says that this build has a scraper.
const canScrape = true

// scrapeTypes returns the types of a scrape configuration, for hints.
func scrapeTypes() []reflect.Type { return []reflect.Type{scrape.Schema()} }

// parseScrape makes jobs from all scrape configurations, or reports their mistakes.
func parseScrape(d *document, src scrapeSource) scrapeJobs {
	jobs, mistakes := scrape.Parse(src.theirs())
	if len(mistakes) > 0 && mistakes[0].Entry < 0 {
		for _, m := range mistakes {
			d.scrapeMistake(src, scrapeMistake(m))
		}
		src.Global = anyGlobal
		_, mistakes = scrape.Parse(src.theirs())
	}
	byEntry := make([][]scrapeMistake, len(src.Entries))
	for _, m := range mistakes {
		if m.Entry >= 0 {
			byEntry[m.Entry] = append(byEntry[m.Entry], scrapeMistake(m))
		}
	}
	for i, found := range byEntry {
		if len(found) > 0 {
			d.furtherMistakes(src, i, found, checkScrape)
		}
	}
	if jobs == nil {
		return nil
	}
	parsed := parsedJobs{Jobs: jobs, hidden: src.Hidden, limits: map[string]int{}}
	for i, name := range jobs.Names() {
		parsed.limits[name] = src.Entries[i].MaxSeries
	}
	return parsed
}

// theirs returns the source in the scraper's own type.
func (s scrapeSource) theirs() scrape.Source {
	source := scrape.Source{Global: s.Global}
	for _, e := range s.Entries {
		source.Entries = append(source.Entries, scrape.Entry{Text: e.Text, Dir: e.Dir})
	}
	return source
}

// checkScrape returns the mistakes of one entry.
func checkScrape(e scrapeText, global string) []scrapeMistake {
	_, mistakes := scrape.Parse(scrapeSource{Global: global, Entries: []scrapeText{e}}.theirs())
	var found []scrapeMistake
	for _, m := range mistakes {
		found = append(found, scrapeMistake(m))
	}
	return found
}

type parsedJobs struct {
	*scrape.Jobs
	hidden *redact.Secrets
	limits map[string]int // series limits by job name
}

func (j parsedJobs) MaxSeries(job string) int { return j.limits[job] }

func (j parsedJobs) Same(other scrapeJobs, job string) bool {
	o, ok := other.(parsedJobs)
	return !ok || j.Jobs.Same(o.Jobs, job)
}

func (j parsedJobs) Look(ctx context.Context, job string) looked {
	found := looked(j.Jobs.Look(ctx, job))
	found.Problem = j.hidden.Cut(redact.Text(found.Problem))
	return found
}

func (j parsedJobs) Files() []namedFile {
	var all []namedFile
	for _, f := range j.Jobs.Files() {
		all = append(all, namedFile{f.Path, "scrape job " + f.Job, f.Secret})
	}
	return all
}

// inputScrape is the kind of the inputs that are scrape jobs.
const inputScrape = "scrape"

// runningScraper adapts the build's scraper to the agent's interface.
type runningScraper struct {
	s    *scrape.Scraper
	path *inputs.Path
	jobs *atomic.Pointer[parsedJobs] // in force
	cut  func(string) string         // removes texts from variables in the jobs' paths
}

// scrapeMetrics returns the metrics of scraping.
func scrapeMetrics() []meter.Metric { return scrape.Metrics() }

func newScraper(cfg *Config, path *inputs.Path, reg prometheus.Registerer, logger *slog.Logger) scraper {
	jobs := new(atomic.Pointer[parsedJobs])
	out := func(job string, interval time.Duration) storage.AppendableV2 {
		limit, configured := jobs.Load().limits[job]
		if !configured { // the last scrape of a job removed by a reload
			return path.Ended(inputScrape, job)
		}
		return path.Input(inputScrape, job, inputs.Settings{Interval: interval, MaxSeries: limit})
	}
	cut := func(text string) string {
		if j := jobs.Load(); j != nil {
			return j.hidden.Cut(text)
		}
		return text
	}
	logger = slog.New(redact.Handler(logger.Handler(), func(text string) string { return cut(redact.Text(text)) }))
	return runningScraper{path: path, jobs: jobs, cut: cut, s: scrape.New(scrape.Options{
		Out: out, Registerer: reg, Logger: logger, StartTimestamps: cfg.Global.ScrapeStartTimestamps,
		Guard: func(job string) *panics.Guard { return path.Guard(inputScrape, job) },
	})}
}

func (r runningScraper) Run(ctx context.Context) error { return r.s.Run(ctx) }

// ServeHTTP answers like the scraper, with hidden texts cut out. A cut never removes a quote of the JSON.
func (r runningScraper) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if j := r.jobs.Load(); j == nil || j.hidden == nil {
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

func (r runningScraper) Apply(jobs scrapeJobs) error {
	theirs, ok := jobs.(parsedJobs)
	if !ok {
		return fmt.Errorf("scrape: jobs of another kind: %T", jobs)
	}
	r.jobs.Store(&theirs) // before the first of them is scraped
	if err := r.s.Apply(theirs.Jobs); err != nil {
		return err
	}
	r.path.Keep(inputScrape, theirs.Names())
	return nil
}

func (r runningScraper) Status(now time.Time) []web.ScrapeStatus {
	var all []web.ScrapeStatus
	for _, j := range r.s.Status() {
		s := web.ScrapeStatus{Job: j.Name, Error: r.cut(redact.Text(j.Error)), Dropped: j.Dropped}
		for _, t := range j.Targets {
			s.Targets = append(s.Targets, web.ScrapeTargetStatus{
				URL: r.cut(redact.Text(t.URL)), Health: t.Health, LastScrape: byClock(now, t.Last), Took: t.Took,
				LastError: r.cut(redact.Text(t.LastError)), Interval: t.Interval, Labels: t.Labels.Map(),
			})
		}
		all = append(all, s)
	}
	return all
}
