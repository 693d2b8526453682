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

	"hwsagent/remotewrite/config"
	"hwsagent/wal"
	"hwsagent/web"
)

// ErrNoSuchTarget means that neither the log nor the configuration has a target of that
// name.
var ErrNoSuchTarget = errors.New("no such target")

// ErrUsage means that what was asked for cannot be understood.
var ErrUsage = errors.New("wrong usage")

// ErrNotListening means that an agent has the storage directory and cannot be asked.
var ErrNotListening = errors.New("the agent has no control socket: it starts, or ends, or its socket was removed")

// What can be done with a target.
const (
	ActionPause  = "pause"
	ActionResume = "resume"
	ActionSkip   = "skip"
	ActionAdopt  = "adopt"
	ActionDrop   = "drop"
	ActionClear  = "clear" // its dead letters
)

// TargetChange is what came of something that was done with a target's queue.
type TargetChange struct {
	Schema  int    `json:"schema"` // 1
	Action  string `json:"action"` // one of the Action constants
	Target  string `json:"target"`
	From    string `json:"from,omitempty"` // adopt: the name that the queue had
	Running bool   `json:"running"`        // false: done in the data directory of an agent that is down
	DryRun  bool   `json:"dry_run"`        // nothing was changed

	// Samples is how many were skipped, or waited in the queue that was dropped or adopted.
	Samples uint64    `json:"samples"`
	Bytes   int64     `json:"bytes"`            // of the log that these take, skip only
	Oldest  time.Time `json:"oldest,omitzero"`  // timestamps of the oldest and the newest of these, skip only
	Newest  time.Time `json:"newest,omitzero"`  //
	GoesOn  time.Time `json:"goes_on,omitzero"` // timestamp of the oldest sample that comes next, skip only

	PausedSince time.Time        `json:"paused_since,omitzero"`
	Letters     int              `json:"dead_letters"` // that were removed
	Ledger      web.LedgerStatus `json:"ledger"`       // afterwards; of a queue that was dropped, its last
}

// request is what a person wants to be done.
type request struct {
	action, target string
	before         time.Time // skip
	dryRun         bool      // skip
	to             string    // adopt: the new name
}

// TargetManager does things with the queues of the targets of the agent that runs on a
// storage directory; without one, in the directory itself, as its only user meanwhile.
type TargetManager struct {
	Storage string
	Config  string // its configuration file: adopt and drop read it in the absence of the agent

	// Progress, if not nil, is called at least once a second during a skip: it has read so many bytes of the log, of so many.
	Progress func(read, of int64)
}

// Pause makes the agent send nothing to the target, also after a restart, until Resume.
func (m TargetManager) Pause(ctx context.Context, target string) (TargetChange, error) {
	return m.do(ctx, request{action: ActionPause, target: target})
}

// Resume undoes Pause.
func (m TargetManager) Resume(ctx context.Context, target string) (TargetChange, error) {
	return m.do(ctx, request{action: ActionResume, target: target})
}

// Adopt gives the queue of one target to another. A running agent must find the new name
// in its configuration file and the old one not; it reloads the file in the same step.
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

// refused is what the agent answers where it does not do what it is asked for.
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
		return &plainError{r.Error, ErrNoSuchTarget}
	}
	return errors.New(r.Error)
}

// refusal is what the agent answers to a request that failed.
func refusal(err error) refused {
	return refused{Error: err.Error(), NoSuchTarget: errors.Is(err, ErrNoSuchTarget)}
}

// askAgent posts to the agent and decodes its answer.
func askAgent(ctx context.Context, storage, path string, answer any) error {
	code, body, err := ask(ctx, storage, http.MethodPost, path)
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

// path is the request as the agent takes it.
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

// changed begins the account of what was done.
func (r request) changed(running bool) TargetChange {
	return TargetChange{Schema: 1, Action: r.action, Target: r.target, Running: running, DryRun: r.dryRun}
}

// openOffline opens the log of an agent that is down so that nothing of it goes.
func openOffline(storage string) (*wal.Log, error) {
	if _, err := found(wal.Glance(storage)); err != nil {
		return nil, err
	}
	log, err := wal.Open(wal.Options{Dir: storage, Beside: besideLog(), Settings: wal.Settings{Retain: math.MaxInt64, OnFull: wal.Reject}})
	if errors.Is(err, ErrInUse) {
		return nil, fmt.Errorf("%w: %w", ErrNotListening, err)
	}
	return log, err
}

// doOffline does it in the storage directory.
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
			err = queue.drop(&c)
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
	return notAll(r.target, q.adoptTenants(tenants, r.target, r.to))
}

// tenantsOf are those of an entry that is renamed, whose file may have either name by now.
// The log does not tell a tenant from a target with a slash in its name.
func (m TargetManager) tenantsOf(log *wal.Log, from, to string) ([]string, error) {
	ids := slices.Sorted(maps.Keys(log.Members(from)))
	if len(ids) == 0 {
		return nil, nil
	}
	cfg, _, err := Load(m.Config, os.LookupEnv)
	if err != nil {
		return nil, fmt.Errorf("%q has queues beside it that may be of its tenants (%s); only the configuration tells, give its file with --config.file: %w",
			from, strings.Join(ids, ", "), err)
	}
	family := false
	for _, t := range cfg.RemoteWrite {
		name := t.TargetName()
		family = family || t.Target.Tenant != nil && (name == from || name == to)
		ids = slices.DeleteFunc(ids, func(id string) bool { return name == wal.Member(from, id) || config.CheckTenant(id) != nil })
	}
	if !family {
		return nil, nil
	}
	return ids, nil
}

// unwanted is nil unless the configuration file, if there is one, has the target whose queue is
// to be dropped.
func (m TargetManager) unwanted(q queues, name string) error {
	cfg, _, err := Load(m.Config, os.LookupEnv)
	if err != nil || !slices.Contains(q.names(), name) {
		return nil // what is not found out does not keep a person from what was asked for
	}
	if _, err := cfg.target(name); err != nil {
		return nil
	}
	return fmt.Errorf("%q is in %s: remove its entry first, or let go what waits with `hwsagent targets skip %s --before now`", name, cfg.File, name)
}

// notAll says that an entry was renamed, but something was in the way of its tenants.
func notAll(from string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q is renamed, but not all of its tenants: %w", from, err)
}
