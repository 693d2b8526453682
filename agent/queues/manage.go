// Package queues changes the queues of targets (pause, skip, rename, drop, replay) and reads their state, ledgers and
// dead letters. If an agent runs on the storage directory, the package asks that agent; otherwise it opens the directory.
package queues

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/events"
	"hwsagent/agent/inspect"
	"hwsagent/agent/status"
	remoteconfig "hwsagent/remotewrite/config"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// ErrNotListening means that an agent holds the storage directory but has no control socket.
var ErrNotListening = errors.New("the agent has no control socket: it is starting or stopping, or its socket was removed")

// ErrInUse means that an agent runs on the storage directory.
var ErrInUse = wal.ErrLocked

// The actions on a target.
const (
	ActionPause  = "pause"
	ActionResume = "resume"
	ActionSkip   = "skip"
	ActionAdopt  = "adopt"
	ActionDrop   = "drop"
	ActionClear  = "clear" // removes its dead letters
)

// Change is the outcome of an action on a target's queue.
type Change struct {
	Schema  int    `json:"schema"` // 1
	Action  string `json:"action"` // one of the Action constants
	Target  string `json:"target"`
	From    string `json:"from,omitempty"` // adopt: the former name of the queue
	Running bool   `json:"running"`        // false: done in the storage directory of a stopped agent
	DryRun  bool   `json:"dry_run"`        // nothing was changed

	// Samples counts the samples that were skipped, or waited in the queue that was dropped or adopted.
	Samples uint64    `json:"samples"`
	Bytes   int64     `json:"bytes"`            // their size in the log, skip only
	Oldest  time.Time `json:"oldest,omitzero"`  // timestamps of the oldest and newest of these samples, skip only
	Newest  time.Time `json:"newest,omitzero"`  //
	GoesOn  time.Time `json:"goes_on,omitzero"` // timestamp of the oldest sample that remains, skip only

	PausedSince time.Time           `json:"paused_since,omitzero"`
	Letters     int                 `json:"dead_letters"` // removed
	Ledger      status.LedgerStatus `json:"ledger"`       // afterwards; for a dropped queue, its last state

	// UnreadLetters is why removed dead letters could not be read; Letters does not count them.
	UnreadLetters string `json:"unread_dead_letters,omitempty"`
}

// Request is one action that a person requests.
type Request struct {
	Action, Target string
	Before         time.Time // skip
	DryRun         bool      // skip
	To             string    // adopt: the new name
}

// Manager acts on the target queues of the agent that runs on a storage directory. Without an agent it works in
// the directory itself, which it locks meanwhile.
type Manager struct {
	Storage string
	Config  string // configuration file; adopt and drop read it if no agent runs

	// Progress, if not nil, is called at least once a second during a skip, with the bytes of the log read so far and
	// in all.
	Progress func(read, of int64)
}

// Pause stops sending to the target, also after a restart, until Resume.
func (m Manager) Pause(ctx context.Context, target string) (Change, error) {
	return m.do(ctx, Request{Action: ActionPause, Target: target})
}

// Resume undoes Pause.
func (m Manager) Resume(ctx context.Context, target string) (Change, error) {
	return m.do(ctx, Request{Action: ActionResume, Target: target})
}

// Adopt gives the queue of one target to another. The configuration file of a running agent must contain the new name
// and not the old one; the agent reloads the file in the same step.
func (m Manager) Adopt(ctx context.Context, from, to string) (Change, error) {
	return m.do(ctx, Request{Action: ActionAdopt, Target: from, To: to})
}

// Drop removes the queue and the dead letters of a target that is not configured.
func (m Manager) Drop(ctx context.Context, target string) (Change, error) {
	return m.do(ctx, Request{Action: ActionDrop, Target: target})
}

// Clear removes the dead letters of a target.
func (m Manager) Clear(ctx context.Context, target string) (Change, error) {
	return m.do(ctx, Request{Action: ActionClear, Target: target})
}

func (m Manager) do(ctx context.Context, r Request) (Change, error) {
	var c Change
	err := control.Call(ctx, m.Storage, r.Path(), &c)
	if errors.Is(err, control.ErrNotRunning) {
		return m.doOffline(ctx, r)
	}
	return c, err
}

// Path encodes the request for the agent's control socket.
func (r Request) Path() string {
	q := url.Values{"target": {r.Target}}
	if !r.Before.IsZero() {
		q.Set("before", strconv.FormatInt(r.Before.UnixMilli(), 10))
	}
	if r.DryRun {
		q.Set("dry_run", "true")
	}
	if r.To != "" {
		q.Set("to", r.To)
	}
	return "/control/" + r.Action + "?" + q.Encode()
}

// ParseRequest is the inverse of [Request.Path].
func ParseRequest(h *http.Request) (Request, error) {
	q := h.URL.Query()
	r := Request{Action: h.PathValue("action"), Target: q.Get("target"), DryRun: q.Get("dry_run") == "true", To: q.Get("to")}
	if text := q.Get("before"); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return r, fmt.Errorf("parse before: %w", err)
		}
		r.Before = time.UnixMilli(ms)
	}
	return r, nil
}

// Change returns the record of the action, to be completed.
func (r Request) Change(running bool) Change {
	return Change{Schema: 1, Action: r.Action, Target: r.Target, Running: running, DryRun: r.DryRun}
}

// OpenOffline opens the log of a stopped agent such that no part of it is removed.
func OpenOffline(storage string) (*wal.Log, error) {
	if _, err := inspect.Glance(storage); err != nil {
		return nil, err
	}
	log, err := wal.Open(wal.Options{Dir: storage, Beside: BesideLog(), Settings: wal.Settings{Retain: math.MaxInt64, OnFull: wal.Reject}})
	if errors.Is(err, wal.ErrLocked) {
		return nil, fmt.Errorf("%w: %w", ErrNotListening, err)
	}
	return log, err
}

// doOffline carries out the request in the storage directory.
func (m Manager) doOffline(ctx context.Context, r Request) (c Change, err error) {
	log, err := OpenOffline(m.Storage)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	q := Store{log, m.Storage}
	c = r.Change(false)
	switch r.Action {
	case ActionPause, ActionResume:
		err = q.Pause(&c)
	case ActionSkip:
		var end wal.Mark
		if end, err = q.LookBefore(ctx, &c, r.Before, m.progress); err == nil && !r.DryRun {
			err = q.Skip(&c, end)
		}
	case ActionAdopt:
		err = m.adoptOffline(q, &c, r)
	case ActionDrop:
		if err = m.unwanted(q, r.Target); err == nil {
			err = m.record(func(j *events.Journal) error { return q.Drop(&c, j) })
		}
	case ActionClear:
		err = q.Clear(&c, nil)
	}
	return c, err
}

// adoptOffline gives the queue of a target to another, and those of its tenants.
func (m Manager) adoptOffline(q Store, c *Change, r Request) error {
	tenants, err := m.tenantsOf(q.Log, r.Target, r.To)
	if err != nil {
		return err
	}
	if err := q.Adopt(c, r.Target, r.To); err != nil {
		return err
	}
	left := q.AdoptTenants(tenants, r.Target, r.To)
	return m.record(func(j *events.Journal) error {
		q.MoveLosses(j, tenants, r.Target, r.To)
		return NotAll(r.Target, left)
	})
}

// record saves what a change does to the journal of the stopped agent. A journal that cannot be read has nothing to
// change; the agent reports it when it starts.
func (m Manager) record(change func(j *events.Journal) error) error {
	j, unreadable := events.Open(m.Storage)
	err := change(j)
	if unreadable == nil {
		err = errors.Join(err, j.Save(time.Now()))
	}
	return err
}

// tenantsOf returns the tenants of an entry that is renamed; its configuration file may have either name. The log does
// not distinguish a tenant from a target with a slash in its name.
func (m Manager) tenantsOf(log *wal.Log, from, to string) ([]string, error) {
	ids := slices.Sorted(maps.Keys(log.Members(from)))
	if len(ids) == 0 {
		return nil, nil
	}
	cfg, _, err := config.Load(m.Config, os.LookupEnv)
	if err != nil {
		return nil, fmt.Errorf("queues beside %q may belong to its tenants (%s), and only the configuration tells; give it with --config.file: %w",
			from, strings.Join(ids, ", "), err)
	}
	family := false
	for _, t := range cfg.RemoteWrite {
		name := t.TargetName()
		family = family || t.Target.Tenant != nil && (name == from || name == to)
		ids = slices.DeleteFunc(ids, func(id string) bool { return name == queue.Member(from, id) || remoteconfig.CheckTenant(id) != nil })
	}
	if !family {
		return nil, nil
	}
	return ids, nil
}

// unwanted returns nil unless the configuration file, if there is one, has the target whose queue is to be dropped.
func (m Manager) unwanted(q Store, name string) error {
	cfg, _, err := config.Load(m.Config, os.LookupEnv)
	if err != nil || !slices.Contains(q.Names(), name) {
		return nil // an unreadable file must not block the requested drop
	}
	if _, err := cfg.Target(name); err != nil {
		return nil
	}
	return fmt.Errorf("%q is in %s: remove its entry first, or discard its waiting samples with `hwsagent targets skip %s --before now`", name, cfg.File, name)
}

// NotAll returns the error for an entry that was renamed, but not with all of its tenants.
func NotAll(from string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q is renamed, but not all of its tenants: %w", from, err)
}
