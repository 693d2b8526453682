//go:build !minimal

package config

import (
	"context"
	"reflect"

	"hwsagent/internal/redact"
	"hwsagent/receivers/scrape"
)

// The kinds of input that this build has.
const (
	canScrape      = true
	canReceiveOTLP = true
)

// scrapeTypes returns the types of a scrape configuration, for hints.
func scrapeTypes() []reflect.Type { return []reflect.Type{scrape.Schema()} }

// parseScrape makes jobs from all scrape configurations, or reports their mistakes.
func parseScrape(d *document, src scrapeSource) ScrapeJobs {
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
	parsed := Jobs{Jobs: jobs, Hidden: src.Hidden, limits: map[string]int{}}
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

// Jobs are the [ScrapeJobs] of a build that can scrape.
type Jobs struct {
	*scrape.Jobs
	Hidden *redact.Secrets // texts from variables and files in the jobs' URL paths; nil if there are none
	limits map[string]int  // series limits by job name
}

// MaxSeries implements [ScrapeJobs].
func (j Jobs) MaxSeries(job string) (limit int, known bool) {
	limit, known = j.limits[job]
	return limit, known
}

// Same implements [ScrapeJobs].
func (j Jobs) Same(other ScrapeJobs, job string) bool {
	o, ok := other.(Jobs)
	return !ok || j.Jobs.Same(o.Jobs, job)
}

// Try implements [ScrapeJobs]. It cuts hidden texts out of the result.
func (j Jobs) Try(ctx context.Context, job string) Tried {
	cut := func(text string) string { return j.Hidden.Cut(redact.Text(text)) }
	found := j.Jobs.Try(ctx, job)
	tried := Tried{Looked: found.Looked, Found: found.Found, Kept: found.Kept, Problem: cut(found.Problem)}
	for _, t := range found.Targets {
		t.URL, t.Error, t.Try = cut(t.URL), cut(t.Error), cut(t.Try)
		tried.Targets = append(tried.Targets, TriedTarget(t))
	}
	return tried
}

// Files implements [ScrapeJobs].
func (j Jobs) Files() []NamedFile {
	var all []NamedFile
	for _, f := range j.Jobs.Files() {
		all = append(all, NamedFile{f.Path, "scrape job " + f.Job, f.Secret})
	}
	return all
}
