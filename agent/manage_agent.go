package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"hwsagent/agent/config"
	"hwsagent/internal/watchdog"
	"hwsagent/wal"
)

// control serves the commands of the control socket.
func (a *Agent) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /control/test", func(w http.ResponseWriter, h *http.Request) {
		t, err := a.testTarget(h.Context(), h.URL.Query().Get("target"))
		answer(w, t, err)
	})
	mux.HandleFunc("POST /control/reload", a.answerReload)
	mux.HandleFunc("POST /control/tap", a.answerTap)
	mux.HandleFunc("POST /control/"+ActionSkip, a.answerSkip)
	mux.HandleFunc("POST /control/events/ack", func(w http.ResponseWriter, _ *http.Request) {
		n, err := a.acknowledge()
		answer(w, EventsAck{Schema: 1, Samples: n, Running: true}, err)
	})
	mux.HandleFunc("POST /control/events/list", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, EventList{Schema: 1, Running: true, Events: a.events.Events(time.Now())}, nil)
	})
	mux.HandleFunc("POST /control/{action}", func(w http.ResponseWriter, h *http.Request) {
		r, err := parseRequest(h)
		var c TargetChange
		if err == nil {
			watchdog.Do(h.Context(), "the command "+r.action, func(context.Context) { c, err = a.manage(r) })
		}
		answer(w, c, err)
	})
	return mux
}

// answer sends a value, or the error that replaces it.
func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		v = refusal(err)
		w.WriteHeader(http.StatusConflict)
	}
	_ = json.NewEncoder(w).Encode(v) // an error means that the client has gone
}

// manage carries out an action on a target's queue. It stops the running target meanwhile.
func (a *Agent) manage(r request) (TargetChange, error) {
	return a.manageUpTo(queues{a.log, a.o.StoragePath}, r.changed(true), r, wal.Mark{})
}

// manageUpTo changes a target's queue. end is the mark at which a skip ends; c is the record of the change so far.
func (a *Agent) manageUpTo(q queues, c TargetChange, r request, end wal.Mark) (TargetChange, error) {
	made := make(chan TargetChange, 1)
	err := a.changes.do("the command "+r.action, func() error {
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
func (a *Agent) change(q queues, c TargetChange, r request, end wal.Mark) (TargetChange, error) {
	var err error
	_, configured := a.targets.entry(r.target)
	switch r.action {
	case ActionPause, ActionResume:
		err = a.targets.around(a.changes.at, func() error { return q.pause(&c) }, r.target)
	case ActionSkip:
		err = a.targets.around(a.changes.at, func() error { return q.skip(&c, end) }, r.target)
	case ActionAdopt:
		err = a.adopt(q, &c, r.target, r.to)
	case ActionDrop:
		if configured {
			return c, fmt.Errorf("%q is in the configuration: remove its entry and reload first, or discard its waiting samples with `hwsagent targets skip %s --before now`", r.target, r.target)
		}
		err = q.drop(&c, a.events)
	case ActionClear:
		if t := a.targets.get(r.target); t != nil {
			err = q.clear(&c, t.letters)
		} else {
			err = q.clear(&c, nil)
		}
	default:
		return c, fmt.Errorf("unknown action %q", r.action)
	}
	if err == nil {
		a.logger.Info("Target command finished", "action", r.action, "target", c.Target, "samples", c.Samples)
	}
	return c, err
}

// adopt gives the queue of a target to the one that replaces it in the configuration file, and reloads the file. It
// must run as a change.
func (a *Agent) adopt(q queues, c *TargetChange, from, to string) error {
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
	err = a.targets.aroundFamily(a.changes.at, func(known []string) error {
		tenants = known
		restore = a.targets.strike(from)
		err := q.adopt(c, from, to)
		if err != nil {
			restore()
			return err
		}
		left = q.adoptTenants(tenants, from, to)
		q.moveLosses(a.events, tenants, from, to)
		return nil
	}, from, to)
	if err != nil {
		return err
	}
	if err := a.put(cfg); err != nil {
		back := a.targets.around(a.changes.at, func() error {
			restore()
			err := errors.Join(q.adopt(&TargetChange{}, to, from), q.adoptTenants(tenants, to, from))
			if err == nil {
				q.moveLosses(a.events, tenants, to, from)
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
	return notAll(from, left)
}
