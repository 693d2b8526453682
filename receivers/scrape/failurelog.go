package scrape

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/common/promslog"
)

// failureLog is a scrape_failure_log_file. A nil one writes nothing.
type failureLog struct {
	file  *os.File
	lines *slog.Logger
}

// openFailureLog opens the file at path for appending, and creates it if needed. Each line is a JSON
// object, as in Prometheus.
func openFailureLog(path string) (*failureLog, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	format := promslog.NewFormat()
	if err := format.Set("json"); err != nil {
		file.Close()
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return &failureLog{file: file, lines: promslog.New(&promslog.Config{Format: format, Writer: file})}, nil
}

// write writes a line about a failed scrape.
func (f *failureLog) write(job, target string, err error) {
	if f != nil {
		f.lines.Error(err.Error(), "job_name", job, "target", target)
	}
}

func (f *failureLog) close() {
	if f != nil {
		_ = f.file.Close() // there is no remedy
	}
}

// openFailureLogs reopens the files that jobs name, so that they can be rotated.
func (s *Scraper) openFailureLogs(jobs *Jobs, pools map[string]*pool) {
	before := s.failures
	s.failures = map[string]*failureLog{}
	for _, cfg := range jobs.settings() {
		path := cfg.ScrapeFailureLogFile
		if _, open := s.failures[path]; path == "" || open {
			continue
		}
		file, err := openFailureLog(path)
		if err != nil {
			s.o.Logger.Error("A scrape_failure_log_file cannot be opened", "job", cfg.JobName, "path", path, "err", err)
			continue
		}
		s.failures[path] = file
	}
	for _, cfg := range jobs.settings() {
		if p := pools[cfg.JobName]; p != nil {
			p.failures.Store(s.failures[cfg.ScrapeFailureLogFile])
		}
	}
	for _, f := range before {
		f.close()
	}
}
