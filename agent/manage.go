package agent

import (
	"context"
	"encoding/json"
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
	"hwsagent/agent/web"
	remoteconfig "hwsagent/remotewrite/config"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// ErrUsage means that a request cannot be understood.
var ErrUsage = errors.New("wrong usage")

// ErrNotListening means that an agent holds the storage directory but has no control socket.
var ErrNotListening = errors.New("the agent has no control socket: it is starting or stopping, or its socket was removed")

// The actions on a target.
const (
	ActionPause  = "pause"
	ActionResume = "resume"
	ActionSkip   = "skip"
	ActionAdopt  = "adopt"
	ActionDrop   = "drop"
	ActionClear  = "clear" // removes its dead letters
)

// TargetChange is the outcome of an action on a target's queue.
type TargetChange struct {
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

	PausedSince time.Time        `json:"paused_since,omitzero"`
	Letters     int              `json:"dead_letters"` // removed
	Ledger      web.LedgerStatus `json:"ledger"`       // afterwards; for a dropped queue, its last state

	// UnreadLetters is why removed dead letters could not be read; Letters does not count them.
	UnreadLetters string `json:"unread_dead_letters,omitempty"`
}

// request is one action that a person requests.
type request struct {
	action, target string
	before         time.Time // skip
	dryRun         bool      // skip
	to             string    // adopt: the new name
}

// TargetManager acts on the target queues of the agent that runs on a storage directory. Without an agent it works in
// the directory itself, which it locks meanwhile.
type TargetManager struct {
	Storage string
	Config  string // configuration file; adopt and drop read it if no agent runs

	// Progress, if not nil, is called at least once a second during a skip, with the bytes of the log read so far and
	// in all.
	Progress func(read, of int64)
}

// Pause stops sending to the target, also after a restart, until Resume.
func (m TargetManager) Pause(ctx context.Context, target string) (TargetChange, error) {
	return m.do(ctx, request{action: ActionPause, target: target})
}

// Resume undoes Pause.
func (m TargetManager) Resume(ctx context.Context, target string) (TargetChange, error) {
	return m.do(ctx, request{action: ActionResume, target: target})
}

// Adopt gives the queue of one target to another. The configuration file of a running agent must contain the new name
// and not the old one; the agent reloads the file in the same step.
func (m TargetManager) Adopt(ctx context.Context, from, to string) (TargetChange, error) {
	return m.do(ctx, request{action: ActionAdopt, target: from, to: to})
}

// Drop removes the queue and the dead letters of a target that is not configured.
func (m TargetManager) Drop(ctx context.Context, target string) (TargetChange, error) {
	return m.do(ctx, request{action: ActionDrop, target: target})
}

// Clear removes the dead letters of a target.
func (m TargetManager) Clear(ctx context.Context, target string) (TargetChange, error) {
	return m.do(ctx, request{action: ActionClear, target: target})
}

func (m TargetManager) do(ctx context.Context, r request) (TargetChange, error) {
	var c TargetChange
	err := askAgent(ctx, m.Storage, r.path(), &c)
	if errors.Is(err, ErrNotRunning) {
		return m.doOffline(ctx, r)
	}
	return c, err
}

// refused is the agent's answer to a request that it does not carry out.
type refused struct {
	Error        string `json:"error"`
	NoSuchTarget bool   `json:"no_such_target"`
}

// err is the refusal as an error; nil if there is none.
func (r refused) err() error {
	switch {
	case r.Error == "":
		return nil
	case r.NoSuchTarget:
		return &plainError{r.Error, config.ErrNoSuchTarget}
	}
	return errors.New(r.Error)
}

// refusal returns the answer to a failed request.
func refusal(err error) refused {
	return refused{Error: err.Error(), NoSuchTarget: errors.Is(err, config.ErrNoSuchTarget)}
}

// askAgent posts to the agent and decodes its answer.
func askAgent(ctx context.Context, storage, path string, answer any) error {
	code, body, err := control.Ask(ctx, storage, http.MethodPost, path)
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		var no refused
		if json.Unmarshal(body, &no) != nil || no.Error == "" {
			return fmt.Errorf("ask the agent: %d %s", code, firstLine(body))
		}
		return no.err()
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("read the agent's answer: %w", err)
	}
	return nil
}

// plainError is an error with a text of its own.
type plainError struct {
	text string
	is   error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.is }

// path encodes the request for the agent's control socket.
func (r request) path() string {
	q := url.Values{"target": {r.target}}
	if !r.before.IsZero() {
		q.Set("before", strconv.FormatInt(r.before.UnixMilli(), 10))
	}
	if r.dryRun {
		q.Set("dry_run", "true")
	}
	if r.to != "" {
		q.Set("to", r.to)
	}
	return "/control/" + r.action + "?" + q.Encode()
}

// parseRequest is the inverse of path.
func parseRequest(h *http.Request) (request, error) {
	q := h.URL.Query()
	r := request{action: h.PathValue("action"), target: q.Get("target"), dryRun: q.Get("dry_run") == "true", to: q.Get("to")}
	if text := q.Get("before"); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return r, fmt.Errorf("parse before: %w", err)
		}
		r.before = time.UnixMilli(ms)
	}
	return r, nil
}

// changed returns the record of the action, to be completed.
func (r request) changed(running bool) TargetChange {
	return TargetChange{Schema: 1, Action: r.action, Target: r.target, Running: running, DryRun: r.dryRun}
}

// openOffline opens the log of a stopped agent such that no part of it is removed.
func openOffline(storage string) (*wal.Log, error) {
	if _, err := inspect.Glance(storage); err != nil {
		return nil, err
	}
	log, err := wal.Open(wal.Options{Dir: storage, Beside: besideLog(), Settings: wal.Settings{Retain: math.MaxInt64, OnFull: wal.Reject}})
	if errors.Is(err, ErrInUse) {
		return nil, fmt.Errorf("%w: %w", ErrNotListening, err)
	}
	return log, err
}

// doOffline carries out the request in the storage directory.
func (m TargetManager) doOffline(ctx context.Context, r request) (c TargetChange, err error) {
	log, err := openOffline(m.Storage)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	queue := queues{log, m.Storage}
	c = r.changed(false)
	switch r.action {
	case ActionPause, ActionResume:
		err = queue.pause(&c)
	case ActionSkip:
		var end wal.Mark
		if end, err = queue.lookBefore(ctx, &c, r.before, m.progress); err == nil && !r.dryRun {
			err = queue.skip(&c, end)
		}
	case ActionAdopt:
		err = m.adoptOffline(queue, &c, r)
	case ActionDrop:
		if err = m.unwanted(queue, r.target); err == nil {
			err = m.record(func(j *events.Journal) error { return queue.drop(&c, j) })
		}
	case ActionClear:
		err = queue.clear(&c, nil)
	}
	return c, err
}

// adoptOffline gives the queue of a target to another, and those of its tenants.
func (m TargetManager) adoptOffline(q queues, c *TargetChange, r request) error {
	tenants, err := m.tenantsOf(q.log, r.target, r.to)
	if err != nil {
		return err
	}
	if err := q.adopt(c, r.target, r.to); err != nil {
		return err
	}
	left := q.adoptTenants(tenants, r.target, r.to)
	return m.record(func(j *events.Journal) error {
		q.moveLosses(j, tenants, r.target, r.to)
		return notAll(r.target, left)
	})
}

// record saves what a change does to the journal of the stopped agent. A journal that cannot be read has nothing to
// change; the agent reports it when it starts.
func (m TargetManager) record(change func(j *events.Journal) error) error {
	j, unreadable := events.Open(m.Storage)
	err := change(j)
	if unreadable == nil {
		err = errors.Join(err, j.Save(time.Now()))
	}
	return err
}

// tenantsOf returns the tenants of an entry that is renamed; its configuration file may have either name. The log does
// not distinguish a tenant from a target with a slash in its name.
func (m TargetManager) tenantsOf(log *wal.Log, from, to string) ([]string, error) {
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
func (m TargetManager) unwanted(q queues, name string) error {
	cfg, _, err := config.Load(m.Config, os.LookupEnv)
	if err != nil || !slices.Contains(q.names(), name) {
		return nil // an unreadable file must not block the requested drop
	}
	if _, err := cfg.Target(name); err != nil {
		return nil
	}
	return fmt.Errorf("%q is in %s: remove its entry first, or discard its waiting samples with `hwsagent targets skip %s --before now`", name, cfg.File, name)
}

// notAll returns the error for an entry that was renamed, but not with all of its tenants.
func notAll(from string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q is renamed, but not all of its tenants: %w", from, err)
}
