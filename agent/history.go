package agent

import (
	"context"
	"path/filepath"
	"time"

	"hwsagent/agent/history"
	"hwsagent/agent/status"
	"hwsagent/agent/web"
)

// openHistory reads the stored figures. The agent also runs without them.
func (a *Agent) openHistory() {
	var err error
	if a.history, err = history.Open(filepath.Join(a.o.StoragePath, history.Folder)); err != nil {
		a.logger.Warn("Cannot read all figures of the last 24 hours; the page's plots have gaps", "err", err)
	}
}

// watchHistory adds a point a minute until ctx ends.
func (a *Agent) watchHistory(ctx context.Context) {
	failing := false
	a.history.Run(ctx, a.points, func(err error) {
		if err != nil && !failing {
			a.logger.Warn("Cannot save the figures for the page's plots; retrying each minute, and a stop of the process loses them", "err", err)
		}
		failing = err != nil
	})
}

// points returns the present point of each target.
func (a *Agent) points() map[string]history.Point {
	a.watchHardware()
	s := a.Status()
	points := make(map[string]history.Point)
	for _, t := range s.Targets {
		if t.State != status.StateOrphan {
			points[t.Name] = history.Point{Time: s.Now, In: s.WAL.SamplesPerSec, Out: t.SentPerSec, Lag: t.LagSeconds, Backlog: float64(t.PendingBytes)}
		}
	}
	return points
}

// saveHistory writes the last points, after the log is closed, which matters more.
func (a *Agent) saveHistory() {
	if err := a.history.Write(); err != nil {
		a.logger.Error("Cannot save the last figures for the page's plots", "err", err)
	}
}

// figures returns a target's figures for the page.
func (a *Agent) figures(target string) []web.Figures {
	var all []web.Figures
	for _, p := range a.history.Points(target, time.Now()) {
		all = append(all, web.Figures(p))
	}
	return all
}
