package agent

import (
	"context"
	"slices"
	"time"

	"hwsagent/probes/devices"
)

// listsEvery is how often files of targets are looked at.
const listsEvery = 5 * time.Second

// lists is what the agent keeps of files of targets while it runs.
type lists struct {
	files  devices.Files
	paces  devices.Paces
	shown  []devices.Problem // that were told last
	change uint64            // of files, that is in force
}

// follow makes the probes of cfg with the last good content of its files of targets. It tells what
// is wrong with them where that is new. It is called by a change, or before anything runs.
func (a *Agent) follow(cfg *Config) {
	a.lists.change = a.lists.files.Changes(cfg.listFiles())
	problems := cfg.expandTargets(&a.lists.files)
	for _, p := range problems {
		if !slices.Contains(a.lists.shown, p) {
			a.logger.Warn("A list of targets is not as it should be", "file", p.File, "reason", p.Text)
		}
	}
	if len(problems) == 0 && len(a.lists.shown) > 0 {
		a.logger.Info("The lists of targets are as they should be again")
	}
	a.lists.shown = problems
	a.metrics.listProblems.Set(float64(len(problems)))
}

// watchLists puts the lists of targets in place that have changed, until ctx ends.
func (a *Agent) watchLists(ctx context.Context) {
	tick := time.NewTicker(listsEvery)
	defer tick.Stop()
	seen, failed := uint64(0), ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a.mu.Lock()
		cfg := a.cfg
		a.mu.Unlock()
		now := a.lists.files.Changes(cfg.listFiles())
		if now == seen {
			continue
		}
		if err := a.changes.do("the change of a list of targets", a.putLists); err != nil {
			if err.Error() != failed {
				a.logger.Warn("Cannot put a changed list of targets in place; trying again", "err", err)
			}
			failed = err.Error()
			continue
		}
		seen, failed = now, ""
	}
}

// putLists puts the lists of targets in place as they are now, in its turn.
func (a *Agent) putLists() error {
	a.mu.Lock()
	next := *a.cfg
	a.mu.Unlock()
	if a.lists.files.Changes(next.listFiles()) == a.lists.change {
		return nil // a reload has done it
	}
	before := len(next.Probes)
	a.follow(&next)
	if err := a.swap(&next); err != nil {
		a.lists.change = 0 // again
		return err
	}
	a.mu.Lock()
	a.cfg = &next
	a.mu.Unlock()
	a.logger.Info("The lists of targets have changed", "probes", len(next.Probes), "before", before)
	return nil
}
