package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/queues"
	"hwsagent/internal/watchdog"
	"hwsagent/wal"
)

// control serves the commands of the control socket.
func (a *Agent) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /control/test", func(w http.ResponseWriter, h *http.Request) {
		t, err := a.testTarget(h.Context(), h.URL.Query().Get("target"))
		control.Reply(w, t, err)
	})
	mux.HandleFunc("POST /control/reload", a.answerReload)
	mux.HandleFunc("GET /control/log", func(w http.ResponseWriter, _ *http.Request) {
		if a.o.Logged != nil {
			_, _ = w.Write(a.o.Logged()) // an error means that the client has gone
		}
	})
	mux.HandleFunc("GET /control/goroutines", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, watchdog.Stacks())
	})
	mux.HandleFunc("POST /control/tap", a.answerFollow)
	mux.HandleFunc("POST /control/"+queues.ActionSkip, func(w http.ResponseWriter, h *http.Request) { queues.ServeSkip(w, h, a.changes.quit, a.skip) })
	mux.HandleFunc("POST /control/events/ack", func(w http.ResponseWriter, _ *http.Request) {
		ack, err := a.acknowledge()
		control.Reply(w, ack, err)
	})
	mux.HandleFunc("POST /control/events/list", func(w http.ResponseWriter, _ *http.Request) {
		control.Reply(w, EventList{Schema: 1, Running: true, Events: a.events.Events(time.Now())}, nil)
	})
	mux.HandleFunc("POST /control/{action}", func(w http.ResponseWriter, h *http.Request) {
		r, err := queues.ParseRequest(h)
		var c queues.Change
		if err == nil {
			watchdog.Do(h.Context(), "the command "+r.Action, func(context.Context) { c, err = a.manage(r) })
		}
		control.Reply(w, c, err)
	})
	return mux
}

// manage carries out an action on a target's queue. It stops the running target meanwhile.
func (a *Agent) manage(r queues.Request) (queues.Change, error) {
	return a.manageUpTo(a.queues(), r.Change(true), r, wal.Mark{})
}

// manageUpTo changes a target's queue. end is the mark at which a skip ends; c is the record of the change so far.
func (a *Agent) manageUpTo(q queues.Store, c queues.Change, r queues.Request, end wal.Mark) (queues.Change, error) {
	made := make(chan queues.Change, 1)
	err := a.changes.do("the command "+r.Action, func() error {
		c, err := a.change(q, c, r, end)
		made <- c
		return err
	})
	select {
	case c = <-made:
	default: // it continues, or did not begin
	}
	return c, err
}

// change is the part of manage that runs as a change. end is the mark at which a skip ends.
func (a *Agent) change(q queues.Store, c queues.Change, r queues.Request, end wal.Mark) (queues.Change, error) {
	var err error
	configured := a.targets.Configured(r.Target)
	switch r.Action {
	case queues.ActionPause, queues.ActionResume:
		err = a.targets.Around(a.changes.at, func() error { return q.Pause(&c) }, r.Target)
	case queues.ActionSkip:
		err = a.targets.Around(a.changes.at, func() error { return q.Skip(&c, end) }, r.Target)
	case queues.ActionAdopt:
		err = a.adopt(q, &c, r.Target, r.To)
	case queues.ActionDrop:
		if configured {
			return c, fmt.Errorf("%q is in the configuration: remove its entry and reload first, or discard its waiting samples with `hwsagent targets skip %s --before now`", r.Target, r.Target)
		}
		err = q.Drop(&c, a.events)
	case queues.ActionClear:
		if t := a.targets.Get(r.Target); t != nil {
			err = q.Clear(&c, t.Letters())
		} else {
			err = q.Clear(&c, nil)
		}
	default:
		return c, fmt.Errorf("unknown action %q", r.Action)
	}
	if err == nil {
		a.logger.Info("Target command finished", "action", r.Action, "target", c.Target, "samples", c.Samples)
	}
	return c, err
}

// adopt gives the queue of a target to the one that replaces it in the configuration file, and reloads the file. It
// must run as a change.
func (a *Agent) adopt(q queues.Store, c *queues.Change, from, to string) error {
	cfg, warns, err := config.Load(a.o.ConfigFile, a.o.Env)
	if err != nil {
		return fmt.Errorf("read the configuration that has the new name: %w", err)
	}
	logWarnings(a.logger, warns)
	var names []string
	for _, t := range cfg.RemoteWrite {
		names = append(names, t.TargetName())
	}
	switch {
	case slices.Contains(names, from):
		return fmt.Errorf("%q is still in %s: give its entry the new name there, and do not reload: adopt reloads the file", from, cfg.File)
	case !slices.Contains(names, to):
		return fmt.Errorf("%q is not in %s: first give the entry that name there, and do not reload: adopt reloads the file", to, cfg.File)
	}
	var restore func()
	var tenants []string
	var left error // of tenants
	err = a.targets.AroundFamily(a.changes.at, func(known []string) error {
		tenants = known
		restore = a.targets.Remove(from)
		err := q.Adopt(c, from, to)
		if err != nil {
			restore()
			return err
		}
		left = q.AdoptTenants(tenants, from, to)
		q.MoveLosses(a.events, tenants, from, to)
		return nil
	}, from, to)
	if err != nil {
		return err
	}
	if err := a.put(cfg); err != nil {
		back := a.targets.Around(a.changes.at, func() error {
			restore()
			err := errors.Join(q.Adopt(&queues.Change{}, to, from), q.AdoptTenants(tenants, to, from))
			if err == nil {
				q.MoveLosses(a.events, tenants, to, from)
			}
			return err
		}, to)
		if back != nil {
			return fmt.Errorf("the configuration could not be applied: %w; and the queue still has the name %q, with everything that waits in it: "+
				"adopt it as %q when savepoints can be written again: %w", err, to, from, back)
		}
		return fmt.Errorf("the configuration could not be applied, and the queue has its former name again: %w", err)
	}
	a.logger.Info("A target was renamed; the configuration was reloaded", "from", from, "to", to)
	return queues.NotAll(from, left)
}

// queues returns the state of the targets on disk.
func (a *Agent) queues() queues.Store { return queues.Store{Log: a.log, Storage: a.o.StoragePath} }

// skip searches the log while the agent continues to collect and send. A change of the agent then gives up the samples
// found.
func (a *Agent) skip(ctx context.Context, r queues.Request, progress func(read, of int64)) (c queues.Change, err error) {
	watchdog.Do(ctx, "the command "+r.Action, func(ctx context.Context) {
		q := a.queues()
		c = r.Change(true)
		var end wal.Mark
		end, err = q.LookBefore(ctx, &c, r.Before, progress)
		switch {
		case ctx.Err() != nil:
			err = fmt.Errorf("nothing is skipped: %w", context.Cause(ctx))
		case err == nil && !r.DryRun:
			c, err = a.manageUpTo(q, c, r, end)
		}
	})
	return c, err
}
