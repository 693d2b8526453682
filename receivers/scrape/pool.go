package scrape

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/internal/panics"
)

// maxTargets bounds the targets of a job. Each costs two goroutines, a connection and the cache of
// its series.
const maxTargets = 20_000

// pool is a running job: a loop for each of its targets. It is safe for concurrent use.
type pool struct {
	*shared
	all     *sync.WaitGroup // of the loops of all pools
	running context.Context // until the job is removed or the agent stops
	end     context.CancelFunc
	guard   *panics.Guard
	refusal atomic.Pointer[error] // set if target_limit is exceeded

	failures atomic.Pointer[failureLog] // nil without scrape_failure_log_file

	mu      sync.Mutex
	cfg     *settings
	clients map[string]*client // by the path of the Unix domain socket, "" without one
	loops   map[uint64]*member // by the hash of the target
	dropped []found            // by relabelling; at most keep_dropped_targets
	drops   int                // number of targets that relabelling dropped
	problem string             // why targets are left out; "" if none are
}

// found is a target before relabelling.
type found struct{ own, group model.LabelSet }

// member is a scraped target.
type member struct {
	*loop
	found found
}

// newPool starts a job, without targets yet. It fails if the files that the job names cannot be
// used.
func newPool(s *shared, all *sync.WaitGroup, agent context.Context, cfg *settings) (*pool, error) {
	p := &pool{shared: s, all: all, cfg: cfg, clients: map[string]*client{}, loops: map[uint64]*member{}, guard: s.guards.of(cfg.JobName)}
	s.metrics.jobs.Inc()
	if _, err := p.client(""); err != nil {
		s.metrics.jobsFailed.Inc()
		return nil, err
	}
	p.running, p.end = context.WithCancel(agent)
	s.metrics.targetLimit.WithLabelValues(cfg.JobName).Set(float64(cfg.TargetLimit))
	return p, nil
}

// client returns the client for a socket. The caller holds mu or has the only reference.
func (p *pool) client(socket string) (*client, error) {
	if c := p.clients[socket]; c != nil {
		return c, nil
	}
	c, err := newClient(p.cfg.HTTPClientConfig, p.cfg.Params, socket)
	if err != nil {
		return nil, err
	}
	p.clients[socket] = c
	return c, nil
}

// stop ends the job without waiting for scrapes in progress. Its series get no stale markers.
func (p *pool) stop() {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.metrics.forget(p.cfg.JobName)
	var ended []*loop
	for _, m := range p.loops {
		ended = append(ended, m.loop)
	}
	p.release(p.clients, ended)
}

// closeClients closes the job's idle connections.
func (p *pool) closeClients() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clients {
		c.close()
	}
}

// release closes clients after the last requests of loops. The caller holds mu.
func (p *pool) release(clients map[string]*client, after []*loop) {
	p.all.Go(func() {
		for _, l := range after {
			<-l.ended
		}
		for _, c := range clients {
			c.close()
		}
	})
}

// reload changes the configuration of the job; groups are the latest result of discovery. An unchanged
// target continues without a gap and keeps its state. A scrape in progress ends under its old
// configuration.
func (p *pool) reload(cfg *settings, groups []*targetgroup.Group) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if reflect.DeepEqual(p.cfg, cfg) {
		return nil
	}
	p.metrics.reloads.Inc()
	before := *p.cfg
	clients := p.clients
	p.cfg, p.clients = cfg, map[string]*client{}
	if _, err := p.client(""); err != nil {
		p.metrics.reloadFailed.Inc()
		p.cfg, p.clients = &before, clients
		return err
	}
	p.metrics.targetLimit.WithLabelValues(cfg.JobName).Set(float64(cfg.TargetLimit))
	old := p.loops
	p.loops = map[uint64]*member{}
	p.take(groups, old, sameSeries(&before, cfg))
	var ended []*loop
	for _, m := range old {
		m.end()
		ended = append(ended, m.loop)
	}
	p.release(clients, ended)
	return nil
}

// sameSeries reports whether the series of a target stay the same under another configuration, so
// that its cache stays valid.
func sameSeries(a, b *settings) bool {
	decisive := func(c settings) settings {
		c.ScrapeInterval, c.ScrapeTimeout, c.SampleLimit = 0, 0, 0
		c.HTTPClientConfig = commonconfig.HTTPClientConfig{}
		return c
	}
	return reflect.DeepEqual(decisive(*a), decisive(*b))
}

// sync sets the targets of the job to those that discovery found.
func (p *pool) sync(groups []*targetgroup.Group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.loops
	p.loops = map[uint64]*member{}
	for hash, m := range old {
		p.loops[hash] = m
	}
	p.take(groups, nil, false)
}

// take starts loops for new targets and ends those of targets that are gone. A target in old
// continues with its state, and with its cache if reuse is set. The caller holds
// mu.
func (p *pool) take(groups []*targetgroup.Group, old map[uint64]*member, reuse bool) {
	start := time.Now()
	p.dropped, p.drops = nil, 0
	have := map[uint64]bool{}
	var failures []error
	b := labels.NewBuilder(labels.EmptyLabels())
	beyond := 0
	for _, g := range groups {
		for i, own := range g.Targets {
			var t *target // nil if relabelling drops it
			err := p.guard.Do(func() (err error) {
				t, err = newTarget(b, p.cfg, own, g.Labels)
				return err
			})
			switch {
			case err != nil:
				failures = append(failures, fmt.Errorf("target %d of %s: %w", i+1, place(g), err))
			case t == nil:
				p.drop(found{own, g.Labels})
			case len(have) >= maxTargets:
				beyond++
			default:
				have[t.hash] = true
				if err := p.member(t, found{own, g.Labels}, old[t.hash], reuse); err != nil {
					failures = append(failures, fmt.Errorf("target %d of %s: %w", i+1, place(g), err))
				}
			}
		}
	}
	if beyond > 0 {
		failures = append(failures, fmt.Errorf("%d targets are more than the %d that a job may have", beyond, maxTargets))
	}
	sockets := map[string]bool{"": true}
	for hash, m := range p.loops {
		if !have[hash] {
			m.end()
			delete(p.loops, hash)
			continue
		}
		sockets[m.target.labels.Get(socketLabel)] = true
	}
	for socket, c := range p.clients {
		if !sockets[socket] {
			c.close() // a scrape in progress continues
			delete(p.clients, socket)
		}
	}
	p.limitTargets()
	p.tell(failures)
	p.metrics.syncs.WithLabelValues(p.cfg.JobName).Inc()
	p.metrics.targets.WithLabelValues(p.cfg.JobName).Set(float64(len(p.loops)))
	p.metrics.syncTook.WithLabelValues(p.cfg.JobName).Observe(time.Since(start).Seconds())
}

// drop records a target dropped by relabelling. The caller holds mu.
func (p *pool) drop(f found) {
	p.drops++
	if keep := p.cfg.KeepDroppedTargets; keep == 0 && len(p.dropped) < maxTargets || uint(len(p.dropped)) < keep {
		p.dropped = append(p.dropped, f)
	}
}

// limitTargets refuses all targets of a job that has more than target_limit. The caller holds mu.
func (p *pool) limitTargets() {
	p.refusal.Store(nil)
	if limit := p.cfg.TargetLimit; limit > 0 && uint(len(p.loops)) > limit {
		p.metrics.overTargets.Inc()
		err := fmt.Errorf("target_limit exceeded (number of targets: %d, limit: %d)", len(p.loops), limit)
		p.refusal.Store(&err)
	}
}

// tell logs targets that could not be made, when that begins or changes. The caller holds mu.
func (p *pool) tell(failures []error) {
	p.metrics.syncFailed.WithLabelValues(p.cfg.JobName).Add(float64(len(failures)))
	before := p.problem
	p.problem = ""
	if len(failures) > 0 {
		p.problem = fmt.Sprintf("targets are left out (%d mistakes): %s", len(failures), p.clients[""].hidden(failures[0], ""))
	}
	switch {
	case p.problem == before:
	case p.problem != "":
		p.logger.Error("Targets of a job are left out", "job", p.cfg.JobName, "err", p.problem)
	default:
		p.logger.Info("The job leaves out no target now", "job", p.cfg.JobName)
	}
}

// place names the source of a group of targets, for people.
func place(g *targetgroup.Group) string {
	if g.Source == "" {
		return "a group"
	}
	return g.Source
}

// member ensures that a target is scraped. The caller holds mu.
func (p *pool) member(t *target, f found, old *member, reuse bool) error {
	if m := p.loops[t.hash]; m != nil {
		m.found = f
		return nil
	}
	c, err := p.client(t.labels.Get(socketLabel))
	if err != nil {
		return err
	}
	l := &loop{
		shared: p.shared, target: t, job: p.cfg.JobName, reading: newReading(p.cfg, t, p.startTimes),
		request: newRequester(c, t, p.cfg), report: newReport(t, p.cfg.extra()),
		cache: newCache(), guard: p.guard, refusal: &p.refusal, failures: &p.failures, ended: make(chan struct{}),
	}
	l.scraping, l.end = context.WithCancel(p.running)
	var before chan struct{}
	if old != nil {
		t.state, before = old.target.state, old.ended
		if reuse {
			old.handed.Store(true)
			l.cache = old.cache
		}
		old.end()
	}
	p.loops[t.hash] = &member{l, f}
	p.all.Go(func() {
		_ = p.guard.Run(func() { // the guard counts and logs a panic
			defer l.end()
			l.run(p.running, before)
		})
	})
	return nil
}
