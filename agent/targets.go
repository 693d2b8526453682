package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/config"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/remotewrite"
	"hwsagent/remotewrite/client"
	remoteconfig "hwsagent/remotewrite/config"
	"hwsagent/remotewrite/deadletter"
	rwmetrics "hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/tenant"
	"hwsagent/wal"
)

// targets owns and runs the queues.
type targets struct {
	log      *wal.Log
	dir      string // --storage.path
	version  string
	registry prometheus.Registerer
	logger   *slog.Logger
	encoders *remotewrite.EncoderPool
	observer remotewrite.Observer
	every    func(d time.Duration) (ticks <-chan time.Time, stop func()) // of the agent's beat
	dial     client.DialFunc                                             // as Options.dial
	ledgers  ledgers                                                     // since the start

	// shown is the state for methods that only read: they must not wait for a change, which may wait for a target or a
	// file that hangs. See publish.
	shown atomic.Pointer[shownTargets]

	mu       turn            // held during a change, however long it takes; guards the fields below
	ctx      context.Context // of the queues, while they run
	running  map[string]*target
	families map[string]*family           // of the entries with tenants
	plain    []planned                    // the entries of the configuration, in order
	entries  []planned                    // with the known tenants, each after its entry
	kept     map[string]*rwmetrics.Target // by name and URL, so that counters continue when a target is reopened
	failed   map[string]error             // why a target could not be opened: a disk error
	found    chan struct{}                // of length 1: signals new tenants
}

// shownTargets is an immutable copy of the state of targets.
type shownTargets struct {
	running  map[string]*target
	families map[string]*family
	entries  []planned
	failed   map[string]error
}

// publish stores a copy of the current state for readers. Each change calls it at its end. ts.mu must be held.
func (ts *targets) publish() {
	ts.shown.Store(&shownTargets{maps.Clone(ts.running), maps.Clone(ts.families), ts.entries, maps.Clone(ts.failed)})
}

// look returns the copy published last.
func (ts *targets) look() *shownTargets {
	if s := ts.shown.Load(); s != nil {
		return s
	}
	return &shownTargets{}
}

// retryOpen is how often opening a failed target is retried.
const retryOpen = 5 * time.Second

// plan is a set of targets that can be applied; after this only the disk can fail.
type plan struct {
	entries []planned
}

// planned is one target of a plan.
type planned struct {
	name, identity string
	config         *remoteconfig.Config
	external       labels.Labels
	changed        bool                 // false: the running target stays
	family         *remoteconfig.Config // the entry with tenants, as written; else nil
}

// plan determines which targets are new or changed, and checks that they can be constructed. It changes nothing.
func (ts *targets) plan(cfg *config.Config, ids *identities) (*plan, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	p := &plan{}
	var errs []error
	for _, c := range cfg.RemoteWrite {
		name := c.TargetName()
		e := planned{name: name, config: c, external: cfg.Global.Labels()}
		e.identity = ids.of("target "+name, struct {
			*remoteconfig.Config
			external string
		}{c, e.external.String()})
		if old := ts.running[name]; old == nil || old.identity != e.identity {
			// Only checks that construction succeeds. open constructs the client that is used, because its metrics can
			// be registered only after the old target has unregistered its own.
			test, err := client.New(c, client.Options{Version: ts.version})
			if err != nil {
				errs = append(errs, fmt.Errorf("target %q: %w", name, err))
				continue
			}
			test.Close()
			e.changed = true
		}
		if c.Target.Tenant != nil {
			e.family, e.config = c, c.ForRest()
		}
		p.entries = append(p.entries, e)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// enroll is the last step of planning: it makes every target of the plan known to the log, durably, before anything is
// collected for it. After an error nothing has changed.
func (ts *targets) enroll(p *plan) error {
	var list []wal.Enrolment
	for _, e := range p.entries {
		n := wal.Enrolment{Name: e.name, Family: e.family != nil}
		if e.config.Target.StartAt == remoteconfig.StartOldest {
			n.StartAt = wal.StartOldest
		}
		list = append(list, n)
	}
	if err := ts.log.Enroll(list); err != nil {
		return fmt.Errorf("a target must have its place in the log before anything is collected for it: %w: make the disk writable, with some space, and try again", err)
	}
	return nil
}

// apply puts a plan into effect: unchanged targets are left alone, changed ones continue from their savepoint with the
// new settings, removed ones keep their queue in the log. A target that cannot be opened (because of its dead letters)
// is retried until it can, while the others run; it is enrolled, so the log keeps its samples. apply calls at with the
// name of each step that may take long.
func (ts *targets) apply(p *plan, at func(step string)) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	defer ts.publish()
	at("ending the search for tenants")
	ts.dissolve(p.entries)
	ts.plain = p.entries
	ts.establish()
	ts.entries = ts.withTenants()
	next := make(map[string]*target, len(ts.entries))
	for _, e := range ts.entries {
		if !e.changed {
			next[e.name] = ts.running[e.name]
		}
	}
	for name, t := range ts.running {
		if next[name] == nil {
			at(fmt.Sprintf("stopping target %q", name))
			t.stop(ts.logger)
		}
	}
	ts.running, ts.failed = next, map[string]error{}
	ts.sendScouts()
	ts.openMissing(at)
}

// openMissing opens the targets that do not run. ts.mu is held.
func (ts *targets) openMissing(at func(step string)) {
	for _, e := range ts.entries {
		if ts.running[e.name] != nil {
			continue
		}
		at(fmt.Sprintf("opening target %q", e.name))
		t, err := ts.open(e)
		if err != nil {
			if ts.failed[e.name] == nil {
				ts.logger.Error("Cannot start a target; retrying", "target", e.name, "err", err)
			}
			ts.failed[e.name] = err
			continue
		}
		delete(ts.failed, e.name)
		ts.running[e.name] = t
		if ts.ctx != nil {
			t.start(ts.ctx)
		}
	}
}

// open returns a target that is ready to start.
func (ts *targets) open(e planned) (_ *target, err error) {
	logger := ts.logger.With("target", e.name)
	t := &target{planned: e, url: e.config.URL.String(), done: make(chan struct{}), paused: ts.log.PausedSince(e.name)}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.metrics, err = ts.metricsOf(t); err != nil {
		return nil, err
	}
	t.client, err = client.New(e.config, client.Options{Version: ts.version, Logger: logger, Metrics: t.metrics, Dial: ts.dial})
	if err != nil {
		return nil, err
	}
	t.letters, err = deadletter.Open(deadletter.Dir(ts.dir, e.name), deadletter.Options{})
	if err != nil {
		return nil, err
	}
	t.reader, err = ts.log.Reader(e.name, wal.ReaderOptions{MaxBacklog: int64(e.config.Target.MaxBacklog)})
	if err != nil {
		return nil, err
	}
	ts.ledgers.begin(e.name, t.reader.Ledger())
	var tenants *tenant.Registry
	if f := ts.families[e.name]; f != nil {
		tenants = f.tenants
	}
	t.queue, err = remotewrite.New(remotewrite.Options{
		Name:           e.name,
		Config:         *e.config,
		ExternalLabels: e.external,
		Source:         t.reader,
		Backlog:        t.reader.Backlog(),
		Split:          t.reader.Split,
		Sender:         t.client,
		DeadLetters:    t.letters,
		Memory:         t.letters,
		Metrics:        t.metrics,
		Tenants:        tenants,
		Encoders:       ts.encoders,
		ClockSynced:    clockSynced,
		Splay:          min(time.Duration(e.config.Queue.BatchSendDeadline), maxSplay),
		Observer:       ts.observer,
		Every:          ts.every,
		Logger:         ts.logger,
	})
	return t, err
}

// metricsOf registers the metrics of a target: the previous ones, if the target was open with the same URL. ts.mu must
// be held.
func (ts *targets) metricsOf(t *target) (*rwmetrics.Target, error) {
	key := t.name + "\n" + t.url
	if m := ts.kept[key]; m != nil {
		if err := m.Register(); err != nil {
			return nil, fmt.Errorf("register metrics of target %q: %w", t.name, err)
		}
		return m, nil
	}
	m, err := rwmetrics.New(ts.registry, t.name, t.url)
	if err != nil {
		return nil, err
	}
	if ts.kept == nil {
		ts.kept = map[string]*rwmetrics.Target{}
	}
	ts.kept[key] = m
	return m, nil
}

// around stops these targets, changes their queues on disk, and restarts those that are configured. It calls at with
// the name of each step that may take long.
func (ts *targets) around(at func(step string), change func() error, names ...string) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.aroundLocked(at, change, names...)
}

// aroundLocked is around for a caller that holds ts.mu.
func (ts *targets) aroundLocked(at func(step string), change func() error, names ...string) error {
	defer ts.publish()
	for _, name := range names {
		if t := ts.running[name]; t != nil {
			at(fmt.Sprintf("stopping target %q", name))
			t.stop(ts.logger)
			delete(ts.running, name)
		}
	}
	at("changing the target's state in the log")
	err := change()
	ts.openMissing(at)
	return err
}

// strike removes an entry, and the search for its tenants, from the configured ones until restore is called. ts.mu must
// be held for both, and the entry's scout must not run.
func (ts *targets) strike(name string) (restore func()) {
	before, f := ts.plain, ts.families[name]
	ts.plain = slices.DeleteFunc(slices.Clone(before), func(e planned) bool { return e.name == name })
	delete(ts.families, name)
	ts.entries = ts.withTenants()
	return func() {
		ts.plain = before
		if f != nil {
			ts.families[name] = f
		}
		ts.entries = ts.withTenants()
	}
}

// get returns a running target; nil if none has that name.
func (ts *targets) get(name string) *target { return ts.look().running[name] }

// entry returns the entry with that name in the configuration in force.
func (ts *targets) entry(name string) (planned, bool) {
	for _, e := range ts.look().entries {
		if e.name == name {
			return e, true
		}
	}
	return planned{}, false
}

// unseen ignores the names of steps outside of a change.
func unseen(string) {}

// run runs the queues until ctx ends and stops them.
func (ts *targets) run(ctx context.Context) {
	ts.mu.Lock()
	ts.ctx = ctx
	for _, t := range ts.running {
		t.start(ctx)
	}
	ts.sendScouts()
	ts.mu.Unlock()

	retry, stop := ts.every(retryOpen)
	defer stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ts.found:
			ts.mu.Lock()
			ts.entries = ts.withTenants()
			ts.openMissing(unseen)
			ts.publish()
			ts.mu.Unlock()
		case <-retry:
			ts.mu.Lock()
			ts.entries = ts.withTenants()
			ts.sendScouts()
			ts.openMissing(unseen)
			ts.publish()
			ts.mu.Unlock()
		}
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.ctx = nil
	var wg sync.WaitGroup
	for _, t := range ts.running {
		wg.Go(func() { t.stop(ts.logger) })
	}
	wg.Wait()
	for _, f := range ts.families {
		f.stop()
	}
}

// all returns every running target in the order of the configuration.
func (ts *targets) all() []*target {
	s := ts.look()
	out := make([]*target, 0, len(s.entries))
	for _, e := range s.entries {
		if t := s.running[e.name]; t != nil {
			out = append(out, t)
		}
	}
	return slices.Clip(out)
}

// missing describes the targets that could not be opened. The log keeps their accounts.
func (ts *targets) missing() []status.TargetStatus {
	var out []status.TargetStatus
	s := ts.look()
	for _, e := range s.entries {
		if err := s.failed[e.name]; err != nil {
			l, bytes := ts.log.Account(e.name)
			out = append(out, status.TargetStatus{
				Name: e.name, URL: e.config.URL.String(), State: status.StateStopped, Why: err.Error(),
				PendingSamples: l.Pending, PendingBytes: bytes, Ledger: queues.Ledger(l),
			})
		}
	}
	return out
}
