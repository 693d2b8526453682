package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/web"
)

// autoReloadEvery is how often config.auto_reload looks for changed files.
const autoReloadEvery = 5 * time.Second

// watchConfig reloads the configuration when its files have changed, until ctx ends. It does nothing while
// config.auto_reload is off.
func (a *Agent) watchConfig(ctx context.Context) {
	ticks, stop := a.beat.Every(cmp.Or(a.o.autoReloadEvery, autoReloadEvery))
	defer stop()
	var last, tried config.Fingerprint
	var failed []string // the files that the attempt before has named, if it failed
	problem := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		a.mu.Lock()
		cfg := a.cfg
		a.mu.Unlock()
		if !cfg.Config.AutoReload {
			last, tried, failed, problem = config.Fingerprint{}, config.Fingerprint{}, nil, ""
			continue
		}
		now, err := cfg.Fingerprint(failed)
		if err != nil {
			if err.Error() != problem {
				a.logger.Warn("Cannot look for changes of the configuration; the one in force stays", "err", err)
			}
			last, problem = config.Fingerprint{}, err.Error()
			continue
		}
		problem = ""
		settled := now == last // else somebody may still be writing
		last = now
		if !settled || now == tried {
			continue
		}
		err = a.reloadChanged()
		var named []string
		if mistakes, ok := errors.AsType[*config.Errors](err); ok {
			named = mistakes.Files()
		}
		// Files that a failed attempt names for the first time may have changed meanwhile: one further attempt, and then, as
		// after any other, the next change is the next attempt.
		if !errors.Is(err, web.ErrNotBegun) && slices.Equal(named, failed) {
			tried = now
		}
		failed = named
	}
}

// reloadChanged is Reload, but does nothing if the files say what is in force: after the start, after a reload by hand, or if
// only a comment has changed.
func (a *Agent) reloadChanged() error {
	err := a.changes.do("the automatic reload", func() error {
		a.changes.at("reading the configuration")
		r, _, err := a.compared()
		a.mu.Lock()
		failed := a.status.ReloadError != ""
		a.mu.Unlock()
		if err == nil && len(r.Changes) == 0 && !failed {
			return nil
		}
		_, err = a.tryReload()
		return err
	})
	if errors.Is(err, web.ErrNotBegun) || errors.Is(err, web.ErrGoesOn) {
		a.logger.Error("The automatic reload has not ended", "file", a.o.ConfigFile, "err", err)
	}
	return err
}
