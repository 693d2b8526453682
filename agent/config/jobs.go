package config

import (
	"context"

	"hwsagent/internal/redact"
	"hwsagent/receivers/scrape"
)

// parseScrape makes jobs from all scrape configurations, or reports their mistakes and returns nil.
func parseScrape(d *document, src scrapeSource) *Jobs {
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
	parsed := &Jobs{Jobs: jobs, Hidden: src.Hidden, limits: map[string]int{}}
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

// Jobs are checked scrape configurations. They do not change; their methods may be called from several goroutines.
type Jobs struct {
	*scrape.Jobs
	Hidden *redact.Secrets // texts from variables and files in the jobs' URL paths; nil if there are none
	limits map[string]int  // series limits by job name
}

// MaxSeries returns how many series the named job may have at a time; 0: no limit. known says whether the job exists.
func (j *Jobs) MaxSeries(job string) (limit int, known bool) {
	limit, known = j.limits[job]
	return limit, known
}

// Same reports whether the named job is the same in other, or missing in one of the two.
func (j *Jobs) Same(other *Jobs, job string) bool { return j.Jobs.Same(other.Jobs, job) }

// Try looks for the targets of the named job and scrapes each once; see [scrape.Jobs.Try]. It cuts hidden texts out of the
// result.
func (j *Jobs) Try(ctx context.Context, job string) scrape.Tried {
	cut := func(text string) string { return j.Hidden.Cut(redact.Text(text)) }
	tried := j.Jobs.Try(ctx, job)
	tried.Problem = cut(tried.Problem)
	for i := range tried.Targets {
		t := &tried.Targets[i]
		t.URL, t.Error, t.Try = cut(t.URL), cut(t.Error), cut(t.Try)
	}
	return tried
}

// Files returns the files from which jobs read credentials and certificates.
func (j *Jobs) Files() []NamedFile {
	var all []NamedFile
	for _, f := range j.Jobs.Files() {
		all = append(all, NamedFile{f.Path, "scrape job " + f.Job, f.Secret})
	}
	return all
}
