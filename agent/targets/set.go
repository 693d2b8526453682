// Package targets runs the remote_write entries of the configuration: for each a client, a reader of the log and the
// queue between them, and for an entry with tenants a target for each of them.
package targets

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
	"hwsagent/internal/version"
	"hwsagent/remotewrite"
	"hwsagent/remotewrite/client"
	remoteconfig "hwsagent/remotewrite/config"
	"hwsagent/remotewrite/deadletter"
	rwmetrics "hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/tenant"
	"hwsagent/wal"
)

// Options are the parts and settings of the agent that all targets share.
type Options struct {
	Log      *wal.Log
	Dir      string // --storage.path
	Registry prometheus.Registerer
	Logger   *slog.Logger
	Observer remotewrite.Observer
	Every    func(d time.Duration) (ticks <-chan time.Time, stop func()) // of the agent's beat
	Dial     client.DialFunc                                             // replaces the network; nil: TCP
}

// Set owns and runs the targets. Its methods that only read never wait for a change.
type Set struct {
	o        Options
	encoders *remotewrite.EncoderPool
	ledgers  ledgers // since the start

	// published is the state for methods that only read: they must not wait for a change, which may wait for a target or
	// a file that hangs. See publish.
	published atomic.Pointer[snapshot]

	mu       turn            // held during a change, however long it takes; guards the fields below
	ctx      context.Context // of the queues, while they run
	running  map[string]*Target
	families map[string]*family           // of the entries with tenants
	plain    []entry                      // the entries of the configuration, in order
	entries  []entry                      // with the known tenants, each after its entry
	kept     map[string]*rwmetrics.Target // by name and URL, so that counters continue when a target is reopened
	failed   map[string]error             // why a target could not be opened: a disk error
	found    chan struct{}                // of length 1: signals new tenants
}

// snapshot is an immutable copy of the state of a [Set].
type snapshot struct {
	running  map[string]*Target
	families map[string]*family
	entries  []entry
	failed   map[string]error
}

// publish stores a copy of the current state for readers. Each change calls it at its end. s.mu must be held.
func (s *Set) publish() {
	s.published.Store(&snapshot{maps.Clone(s.running), maps.Clone(s.families), s.entries, maps.Clone(s.failed)})
}

// load returns the copy published last.
func (s *Set) load() *snapshot {
	if p := s.published.Load(); p != nil {
		return p
	}
	return &snapshot{}
}

// New returns a set without targets. Run runs it.
func New(o Options) *Set {
	return &Set{
		o: o, encoders: remotewrite.NewEncoderPool(), mu: newTurn(),
		running: map[string]*Target{}, families: map[string]*family{}, found: make(chan struct{}, 1),
	}
}

// retryOpen is how often opening a failed target is retried.
const retryOpen = 5 * time.Second

// Plan is a set of targets that can be applied; after this only the disk can fail.
type Plan struct {
	entries []entry
}

// entry is one target of a plan.
type entry struct {
	name, identity string
	config         *remoteconfig.Config
	external       labels.Labels
	changed        bool                 // false: the running target stays
	family         *remoteconfig.Config // the entry with tenants, as written; else nil
}

// Plan determines which targets are new or changed, and checks that they can be constructed. It changes nothing.
// identity returns the same string for equal configurations of a name.
func (s *Set) Plan(cfg *config.Config, identity func(name string, config any) string) (*Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Plan{}
	var errs []error
	for _, c := range cfg.RemoteWrite {
		name := c.TargetName()
		e := entry{name: name, config: c, external: cfg.Global.Labels()}
		e.identity = identity("target "+name, struct {
			*remoteconfig.Config
			external string
		}{c, e.external.String()})
		if old := s.running[name]; old == nil || old.identity != e.identity {
			// Only checks that construction succeeds. open constructs the client that is used, because its metrics can
			// be registered only after the old target has unregistered its own.
			test, err := client.New(c, client.Options{Version: version.Version})
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

// Enroll is the last step of planning: it makes every target of the plan known to the log, durably, before anything is
// collected for it. After an error nothing has changed.
func (s *Set) Enroll(p *Plan) error {
	var list []wal.Enrolment
	for _, e := range p.entries {
		n := wal.Enrolment{Name: e.name, Family: e.family != nil}
		if e.config.Target.StartAt == remoteconfig.StartOldest {
			n.StartAt = wal.StartOldest
		}
		list = append(list, n)
	}
	if err := s.o.Log.Enroll(list); err != nil {
		return fmt.Errorf("a target must have its place in the log before anything is collected for it: %w: make the disk writable, with some space, and try again", err)
	}
	return nil
}

// Apply puts a plan into effect: unchanged targets are left alone, changed ones continue from their savepoint with the
// new settings, removed ones keep their queue in the log. A target that cannot be opened (because of its dead letters)
// is retried until it can, while the others run; it is enrolled, so the log keeps its samples. apply calls report with the
// name of each step that may take long.
func (s *Set) Apply(p *Plan, report func(step string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.publish()
	report("ending the search for tenants")
	s.removeFamilies(p.entries)
	s.plain = p.entries
	s.addFamilies()
	s.entries = s.withTenants()
	next := make(map[string]*Target, len(s.entries))
	for _, e := range s.entries {
		if !e.changed {
			next[e.name] = s.running[e.name]
		}
	}
	for name, t := range s.running {
		if next[name] == nil {
			report(fmt.Sprintf("stopping target %q", name))
			t.stop(s.o.Logger)
		}
	}
	s.running, s.failed = next, map[string]error{}
	s.startDiscoveries()
	s.openMissing(report)
}

// openMissing opens the targets that do not run. s.mu is held.
func (s *Set) openMissing(report func(step string)) {
	for _, e := range s.entries {
		if s.running[e.name] != nil {
			continue
		}
		report(fmt.Sprintf("opening target %q", e.name))
		t, err := s.open(e)
		if err != nil {
			if s.failed[e.name] == nil {
				s.o.Logger.Error("Cannot start a target; retrying", "target", e.name, "err", err)
			}
			s.failed[e.name] = err
			continue
		}
		delete(s.failed, e.name)
		s.running[e.name] = t
		if s.ctx != nil {
			t.start(s.ctx)
		}
	}
}

// open returns a target that is ready to start.
func (s *Set) open(e entry) (_ *Target, err error) {
	logger := s.o.Logger.With("target", e.name)
	t := &Target{entry: e, url: e.config.URL.String(), ledgers: &s.ledgers, tenants: func() *status.TenantsStatus { return s.tenantsOf(e.name) }, done: make(chan struct{}), paused: s.o.Log.PausedSince(e.name)}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.metrics, err = s.metricsOf(t); err != nil {
		return nil, err
	}
	t.client, err = client.New(e.config, client.Options{Version: version.Version, Logger: logger, Metrics: t.metrics, Dial: s.o.Dial})
	if err != nil {
		return nil, err
	}
	t.letters, err = deadletter.Open(deadletter.Dir(s.o.Dir, e.name), deadletter.Options{})
	if err != nil {
		return nil, err
	}
	t.reader, err = s.o.Log.Reader(e.name, wal.ReaderOptions{MaxBacklog: int64(e.config.Target.MaxBacklog)})
	if err != nil {
		return nil, err
	}
	s.ledgers.begin(e.name, t.reader.Ledger())
	var tenants *tenant.Registry
	if f := s.families[e.name]; f != nil {
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
		Metrics:        t.metrics,
		Tenants:        tenants,
		Encoders:       s.encoders,
		Splay:          min(time.Duration(e.config.Queue.BatchSendDeadline), maxSplay),
		Observer:       s.o.Observer,
		Every:          s.o.Every,
		Logger:         s.o.Logger,
	})
	return t, err
}

// metricsOf registers the metrics of a target: the previous ones, if the target was open with the same URL. s.mu must
// be held.
func (s *Set) metricsOf(t *Target) (*rwmetrics.Target, error) {
	key := t.name + "\n" + t.url
	if m := s.kept[key]; m != nil {
		if err := m.Register(); err != nil {
			return nil, fmt.Errorf("register metrics of target %q: %w", t.name, err)
		}
		return m, nil
	}
	m, err := rwmetrics.New(s.o.Registry, t.name, t.url)
	if err != nil {
		return nil, err
	}
	if s.kept == nil {
		s.kept = map[string]*rwmetrics.Target{}
	}
	s.kept[key] = m
	return m, nil
}

// Around stops these targets, changes their queues on disk, and restarts those that are configured. It calls report with
// the name of each step that may take long.
func (s *Set) Around(report func(step string), change func() error, names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aroundLocked(report, change, names...)
}

// aroundLocked is around for a caller that holds s.mu.
func (s *Set) aroundLocked(report func(step string), change func() error, names ...string) error {
	defer s.publish()
	for _, name := range names {
		if t := s.running[name]; t != nil {
			report(fmt.Sprintf("stopping target %q", name))
			t.stop(s.o.Logger)
			delete(s.running, name)
		}
	}
	report("changing the target's state in the log")
	err := change()
	s.openMissing(report)
	return err
}

// Remove takes an entry, and the search for its tenants, out of the configuration in force until restore is called. Both
// must be called within [Set.AroundFamily], or restore within [Set.Around].
func (s *Set) Remove(name string) (restore func()) {
	before, f := s.plain, s.families[name]
	s.plain = slices.DeleteFunc(slices.Clone(before), func(e entry) bool { return e.name == name })
	delete(s.families, name)
	s.entries = s.withTenants()
	return func() {
		s.plain = before
		if f != nil {
			s.families[name] = f
		}
		s.entries = s.withTenants()
	}
}

// Get returns a running target; nil if none has that name.
func (s *Set) Get(name string) *Target { return s.load().running[name] }

// Configured reports whether the configuration in force has an entry with that name, or that of a known tenant.
func (s *Set) Configured(name string) bool {
	return slices.ContainsFunc(s.load().entries, func(e entry) bool { return e.name == name })
}

// noReport ignores the names of steps outside of a change.
func noReport(string) {}

// Run runs the queues until ctx ends and stops them.
func (s *Set) Run(ctx context.Context) {
	s.mu.Lock()
	s.ctx = ctx
	for _, t := range s.running {
		t.start(ctx)
	}
	s.startDiscoveries()
	s.mu.Unlock()

	retry, stop := s.o.Every(retryOpen)
	defer stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.found:
			s.mu.Lock()
			s.entries = s.withTenants()
			s.openMissing(noReport)
			s.publish()
			s.mu.Unlock()
		case <-retry:
			s.mu.Lock()
			s.entries = s.withTenants()
			s.startDiscoveries()
			s.openMissing(noReport)
			s.publish()
			s.mu.Unlock()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = nil
	var wg sync.WaitGroup
	for _, t := range s.running {
		wg.Go(func() { t.stop(s.o.Logger) })
	}
	wg.Wait()
	for _, f := range s.families {
		f.stop()
	}
}

// All returns every running target in the order of the configuration.
func (s *Set) All() []*Target {
	now := s.load()
	out := make([]*Target, 0, len(now.entries))
	for _, e := range now.entries {
		if t := now.running[e.name]; t != nil {
			out = append(out, t)
		}
	}
	return slices.Clip(out)
}

// Missing describes the targets that could not be opened. The log keeps their accounts.
func (s *Set) Missing() []status.TargetStatus {
	var out []status.TargetStatus
	now := s.load()
	for _, e := range now.entries {
		if err := now.failed[e.name]; err != nil {
			l, bytes := s.o.Log.Account(e.name)
			out = append(out, status.TargetStatus{
				Name: e.name, URL: e.config.URL.String(), State: status.StateStopped, Why: err.Error(),
				PendingSamples: l.Pending, PendingBytes: bytes, Ledger: queues.Ledger(l),
			})
		}
	}
	return out
}
