package scrape

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/discovery/targetgroup"

	"hwsagent/internal/pages"
	"hwsagent/receivers/scrape/kubernetes"
)

// gather is how long a change waits for related changes, as at a start.
const gather = 50 * time.Millisecond

// discovery finds the targets of all jobs. Each source of targets is queried once, even if several
// jobs name it alike. It is safe for concurrent use.
type discovery struct {
	settle  time.Duration // minimum time between two reports while changes keep coming
	guards  *guards
	metrics *sdMetrics
	logger  *slog.Logger
	changed chan struct{} // holds a value if something has changed
	due     chan struct{} // holds a value if the new groups should be applied
	pages   pages.Buffers // of lists over HTTP

	mu      sync.Mutex
	jobs    []string // names
	lists   []*list
	former  map[kindOf]former
	running context.Context // until end
	end     context.CancelFunc
	all     *sync.WaitGroup // everything that runs for jobs
}

// list is one source of targets.
type list struct {
	settings any // of the source: *httpSettings, *fileSettings, *dnsSettings, *kubernetes.Config, or static lists
	jobs     []string
	problem  string // why it cannot be queried; "" if it can
	end      context.CancelFunc
	ended    bool
	answered bool                          // at least once
	groups   map[string]*targetgroup.Group // groups with targets, by source
}

func newDiscovery(settle time.Duration, g *guards, m *sdMetrics, all *sync.WaitGroup, logger *slog.Logger) *discovery {
	d := &discovery{
		settle: settle, guards: g, metrics: m, logger: logger, all: all,
		changed: make(chan struct{}, 1), due: make(chan struct{}, 1),
	}
	d.running, d.end = context.WithCancel(context.Background())
	return d
}

// run signals changes on due: soon after a single change, less often while changes keep coming, down
// to once per settle. It ends with the discovery.
func (d *discovery) run() {
	shortest := min(gather, d.settle)
	gap, signaled := shortest, time.Time{}
	for {
		select {
		case <-d.changed:
		case <-d.running.Done():
			return
		}
		gap = min(2*gap, d.settle)
		if time.Since(signaled) > d.settle {
			gap = shortest
		}
		if !wait(d.running, gap) {
			return
		}
		select {
		case <-d.changed: // covered by the signal that follows
		default:
		}
		signaled = time.Now()
		signal(d.due)
	}
}

// signal puts a value into a channel of capacity one, unless it is full.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// apply sets the sources to query to those of jobs. Sources queried before continue, and the targets of those that new
// ones replace stay until these have answered.
func (d *discovery) apply(jobs *Jobs) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, had := d.lists, map[*list][]string{}
	for _, l := range before {
		had[l], l.jobs = l.jobs, nil
	}
	gone := d.jobs
	d.lists, d.jobs = nil, jobs.Names()
	for _, s := range jobs.settings() {
		for _, place := range s.places() {
			d.ask(s.JobName, place, before)
		}
	}
	d.former = d.formers(had)
	for _, l := range before {
		if len(l.jobs) == 0 {
			l.ended = true
			l.end()
		}
	}
	for _, name := range gone {
		if !slices.Contains(d.jobs, name) {
			d.metrics.forget(name)
		}
	}
	signal(d.changed)
}

// places returns the sources of the job's targets.
func (s *settings) places() (all []any) {
	for _, c := range s.DNS {
		all = append(all, c)
	}
	for _, c := range s.Files {
		all = append(all, c)
	}
	for _, c := range s.HTTP {
		all = append(all, c)
	}
	for _, c := range s.Kubernetes {
		all = append(all, c)
	}
	if len(s.Static) > 0 {
		all = append(all, s.Static)
	}
	return all
}

// ask adds a job to those that use a source. The caller holds mu.
func (d *discovery) ask(job string, place any, before []*list) {
	same := func(l *list) bool { return reflect.DeepEqual(l.settings, place) }
	if i := slices.IndexFunc(d.lists, same); i >= 0 {
		d.lists[i].jobs = append(d.lists[i].jobs, job)
		return
	}
	l := &list{settings: place, groups: map[string]*targetgroup.Group{}}
	if i := slices.IndexFunc(before, same); i >= 0 {
		l = before[i]
	} else {
		d.start(l, job)
	}
	l.jobs = []string{job}
	d.lists = append(d.lists, l)
}

// start begins to query a source on behalf of a job. The caller holds mu.
func (d *discovery) start(l *list, job string) {
	var ctx context.Context
	ctx, l.end = context.WithCancel(d.running)
	found := func(groups []*targetgroup.Group) { d.take(l, groups) }
	failed := func(problem string) { d.fails(l, problem) }
	answered := func() { d.answers(l) }
	logger := d.logger.With("job", job)
	guard := d.guards.of(job)
	switch c := l.settings.(type) {
	case []*listed:
		l.answered = true
		d.put(l, staticGroups(c))
	case *fileSettings:
		r := &reader{
			patterns: c.Files, interval: time.Duration(c.RefreshInterval), failed: d.metrics.fileFailed, logger: logger,
			guard: guard, files: map[string]*listFile{}, answered: answered,
		}
		d.all.Go(func() { _ = guard.Run(func() { r.run(ctx, found) }) }) // which counts and logs a panic
	case *httpSettings:
		f := &finder{config: c, failed: d.metrics.httpFailed, guard: guard, pages: &d.pages}
		r := &refresher{kind: "http", job: job, interval: time.Duration(c.RefreshInterval), refresh: f.refresh, metrics: d.metrics, logger: logger, problem: failed, answered: answered}
		d.all.Go(func() { _ = guard.Run(func() { r.run(ctx, found) }) }) // which counts and logs a panic
	case *dnsSettings:
		n := &lookups{config: c, metrics: d.metrics, guard: guard}
		r := &refresher{kind: "dns", job: job, interval: time.Duration(c.RefreshInterval), refresh: n.refresh, metrics: d.metrics, logger: logger, problem: failed, answered: answered}
		d.all.Go(func() { _ = guard.Run(func() { r.run(ctx, found) }) }) // which counts and logs a panic
	case *kubernetes.Config:
		k := newCluster(c, d.metrics, guard, logger, found, failed, answered)
		d.all.Go(func() { _ = guard.Run(func() { k.Run(ctx) }) }) // which counts and logs a panic
	}
}

// fails records why a source cannot be queried, "" if it can.
func (d *discovery) fails(l *list, problem string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.problem = problem
}

// problem returns why sources of a job cannot be queried, "" if all can.
func (d *discovery) problem(job string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, l := range d.lists {
		if l.problem != "" && slices.Contains(l.jobs, job) {
			all = append(all, l.problem)
		}
	}
	return strings.Join(all, "; ")
}

// take applies an answer of a source.
func (d *discovery) take(l *list, groups []*targetgroup.Group) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l.ended {
		return
	}
	d.metrics.received.Inc()
	d.put(l, groups)
	signal(d.changed)
}

// put stores groups by their sources; an empty group removes that of its source. The caller holds mu.
func (d *discovery) put(l *list, groups []*targetgroup.Group) {
	for _, g := range groups {
		if len(g.Targets) == 0 {
			delete(l.groups, g.Source)
			continue
		}
		l.groups[g.Source] = g
	}
}

// found returns the groups of each job; a job without groups has an empty list.
func (d *discovery) found() map[string][]*targetgroup.Group {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string][]*targetgroup.Group{}
	for _, name := range d.jobs {
		all[name] = nil
	}
	for _, l := range d.lists {
		for _, job := range l.jobs {
			all[job] = append(all[job], l.sorted()...)
		}
	}
	for _, name := range d.jobs {
		all[name] = append(all[name], d.kept(name)...)
	}
	for name, groups := range all {
		n := 0
		for _, g := range groups {
			n += len(g.Targets)
		}
		d.metrics.discovered.WithLabelValues(name).Set(float64(n))
		d.metrics.last.WithLabelValues(name).SetToCurrentTime()
	}
	d.metrics.applied.Inc()
	return all
}
