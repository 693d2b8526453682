package web

import "time"

// ScrapeStatus describes one scrape job.
type ScrapeStatus struct {
	Job     string               `json:"job"`
	Error   string               `json:"job_error,omitempty"` // why it cannot be started; it is tried again
	Targets []ScrapeTargetStatus `json:"scrape_targets"`
	Dropped int                  `json:"dropped_targets"` // that relabelling removed
}

// ScrapeTargetStatus describes one address that is scraped.
type ScrapeTargetStatus struct {
	URL        string            `json:"url"`    // without user, password and query
	Health     string            `json:"health"` // up, down, unknown
	LastScrape time.Time         `json:"last_scrape,omitzero"`
	Took       time.Duration     `json:"took_ns"`
	LastError  string            `json:"last_error,omitempty"`
	Interval   string            `json:"interval"`
	Labels     map[string]string `json:"labels"`
}
