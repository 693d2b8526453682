package config

import (
	"context"

	"hwsagent/internal/redact"
	"hwsagent/receivers/scrape"
)

// Jobs are checked scrape configurations. They do not change; their methods may be called from several goroutines.
type Jobs struct {
	*scrape.Jobs
	Hidden *redact.Secrets // texts from variables and files in the jobs' URL paths; nil if there are none
	limits map[string]int  // series limits by job name
}

// Names returns the names of the jobs, in the order of the configuration; none for nil Jobs.
func (j *Jobs) Names() []string {
	if j == nil {
		return nil
	}
	return j.Jobs.Names()
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
