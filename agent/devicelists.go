package agent

import (
	"context"
	"slices"
	"time"

	"hwsagent/agent/config"
	"hwsagent/probes/devices"
)

// listsEvery is how often the agent checks device lists for changes.
const listsEvery = 5 * time.Second

// lists is the agent's state of device lists while it runs.
type lists struct {
	files  devices.Files
	paces  devices.Paces
	shown  []devices.Problem // the problems reported last
	change uint64            // version of the files in force
}

// expandLists expands cfg into probes with the last good content of its device lists, and logs new problems with them. Only
// a change calls it, or New, before anything runs.
func (a *Agent) expandLists(cfg *config.Config) {
	a.lists.change = a.lists.files.Changes(cfg.ListFiles())
	problems := cfg.ExpandDevices(&a.lists.files)
	for _, p := range problems {
		if !slices.Contains(a.lists.shown, p) {
			a.logger.Warn("A list of devices has a problem", "file", p.File, "reason", p.Text)
		}
	}
	if len(problems) == 0 && len(a.lists.shown) > 0 {
		a.logger.Info("The lists of devices have no problems now")
	}
	a.lists.shown = problems
	a.metrics.listProblems.Set(float64(len(problems)))
}

// forgetLists undoes expandLists for a configuration that is not put in force: shown are the problems of the one that is. Its lists
// are to be applied at their next change, also if expandLists has read it.
func (a *Agent) forgetLists(shown []devices.Problem) {
	a.lists.change, a.lists.shown = 0, shown
	a.metrics.listProblems.Set(float64(len(shown)))
}

// watchLists applies changed device lists until ctx ends.
func (a *Agent) watchLists(ctx context.Context) {
	ticks, stop := a.beat.Every(listsEvery)
	defer stop()
	applied, failed := uint64(0), ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		a.mu.Lock()
		cfg := a.cfg
		a.mu.Unlock()
		now := a.lists.files.Changes(cfg.ListFiles())
		if now == applied {
			continue
		}
		if err := a.changes.do("the change of a list of devices", a.putLists); err != nil {
			if err.Error() != failed {
				a.logger.Warn("Cannot apply a changed list of devices; retrying", "err", err)
			}
			failed = err.Error()
			continue
		}
		applied, failed = now, ""
	}
}

// putLists applies the current device lists. It must run as a change.
func (a *Agent) putLists() error {
	a.mu.Lock()
	next := *a.cfg
	a.mu.Unlock()
	if a.lists.files.Changes(next.ListFiles()) == a.lists.change {
		return nil // a reload has applied it
	}
	before := len(next.Probes)
	a.expandLists(&next)
	if err := a.swap(&next); err != nil {
		a.lists.change = 0 // again
		return err
	}
	a.mu.Lock()
	a.cfg = &next
	a.mu.Unlock()
	a.logger.Info("The lists of devices have changed", "probes", len(next.Probes), "before", before)
	return nil
}
