package scrape

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// refresher queries a source of targets at an interval.
type refresher struct {
	kind, job string
	interval  time.Duration
	// refresh queries once. Its result is used even if it returns an error.
	refresh func(ctx context.Context) ([]*targetgroup.Group, error)
	metrics *sdMetrics
	logger  *slog.Logger
	problem func(string) // receives why the source cannot be queried, or "" when it can again
	// answered is called after each query without an error.
	answered func()
	failed   string // the last error, "" if none
}

// run queries until ctx ends, the first time at once.
func (r *refresher) run(ctx context.Context, found func([]*targetgroup.Group)) {
	tick := time.NewTicker(r.interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		r.once(ctx, found)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (r *refresher) once(ctx context.Context, found func([]*targetgroup.Group)) {
	groups, err := r.refresh(ctx)
	if ctx.Err() != nil {
		return
	}
	if len(groups) > 0 {
		found(groups)
	}
	now := ""
	if err == nil {
		r.answered()
	} else {
		r.metrics.refreshFailed.WithLabelValues(r.kind, r.job).Inc()
		now = err.Error()
	}
	switch {
	case now == r.failed:
	case now != "":
		r.logger.Error("Targets could not be looked up; those that were found last stay", "discovery", r.kind, "err", err)
	default:
		r.logger.Info("Targets can be looked up again", "discovery", r.kind)
	}
	if r.failed != now && now != "" {
		r.problem("discovery by " + r.kind + ": " + now)
	} else if r.failed != now {
		r.problem("")
	}
	r.failed = now
}
