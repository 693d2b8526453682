package scrape

import (
	"log/slog"

	"github.com/prometheus/prometheus/util/logging"
)

// failureLog is a scrape_failure_log_file. A nil one writes nothing.
type failureLog struct{ file *logging.JSONFileLogger }

// write writes a line about a scrape that failed.
func (f *failureLog) write(job, target string, err error) {
	if f != nil {
		slog.New(f.file).Error(err.Error(), "job_name", job, "target", target)
	}
}

func (f *failureLog) close() {
	if f != nil {
		_ = f.file.Close() // there is nothing to be done about it
	}
}

// openFailureLogs opens the files that jobs name anew, so that they may be moved away.
func (s *Scraper) openFailureLogs(jobs *Jobs, pools map[string]*pool) {
	before := s.failures
	s.failures = map[string]*failureLog{}
	for _, cfg := range jobs.scrapeConfigs() {
		path := cfg.ScrapeFailureLogFile
		if _, open := s.failures[path]; path == "" || open {
			continue
		}
		file, err := logging.NewJSONFileLogger(path)
		if err != nil {
			s.o.Logger.Error("A scrape_failure_log_file cannot be opened", "job", cfg.JobName, "path", path, "err", err)
			continue
		}
		s.failures[path] = &failureLog{file: file}
	}
	for _, cfg := range jobs.scrapeConfigs() {
		if p := pools[cfg.JobName]; p != nil {
			p.failures.Store(s.failures[cfg.ScrapeFailureLogFile])
		}
	}
	for _, f := range before {
		f.close()
	}
}
