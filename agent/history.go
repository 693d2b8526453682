package agent

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"hwsagent/agent/history"
	"hwsagent/web"
)

// historyDir is where the figures of targets are kept for plots, below the storage path.
const historyDir = "history"

// openHistory reads what is remembered. Without it the agent runs as well.
func (a *Agent) openHistory() {
	var err error
	if a.history, err = history.Open(filepath.Join(a.o.StoragePath, historyDir)); err != nil {
		a.logger.Warn("Not all figures of the last 24 hours can be read; the page's plots lack them", "err", err)
	}
}

// watchHistory adds a point a minute until ctx ends.
func (a *Agent) watchHistory(ctx context.Context) {
	tick := time.NewTicker(history.Every)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := a.notePoints()
		if err != nil && !failing {
			a.logger.Warn("The figures for the page's plots cannot be saved; trying again each minute, and they are lost with the process", "err", err)
		}
		failing = err != nil
	}
}

// notePoints adds a point for each target.
func (a *Agent) notePoints() error {
	s := a.Status()
	var errs []error
	for _, t := range s.Targets {
		if t.State == web.StateOrphan {
			continue
		}
		errs = append(errs, a.history.Add(t.Name, history.Point{Time: s.Now, In: s.WAL.SamplesPerSec, Out: t.SentPerSec, Lag: t.LagSeconds, Backlog: float64(t.PendingBytes)}))
	}
	return errors.Join(append(errs, a.history.Prune(s.Now))...)
}

// figures are those of a target for the page.
func (a *Agent) figures(target string) []web.Figures {
	var all []web.Figures
	for _, p := range a.history.Points(target, time.Now()) {
		all = append(all, web.Figures(p))
	}
	return all
}
