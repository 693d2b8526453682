package agent

import (
	"context"
	"net/http"
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/status"
)

// scraper runs ScrapeJobs; the build decides which one the agent has.
type scraper interface {
	// Apply makes jobs the running ones. Unchanged jobs continue undisturbed.
	Apply(jobs config.ScrapeJobs) error
	// Run scrapes until ctx ends; it appends nothing after it has returned.
	Run(ctx context.Context) error
	// Status describes each job, in the order of the configuration. It never waits.
	Status(now time.Time) []status.ScrapeStatus
	// ServeHTTP answers GET /api/v1/targets as Prometheus does.
	http.Handler
}
