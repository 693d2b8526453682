package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// errPanic is the reported problem after a panic in the work of a resource; the log has the panic.
var errPanic = errors.New("discovery panicked and is starting again: the agent's log has the place")

// maxProblems bounds how many different problems are reported at a time.
const maxProblems = 4

// Options configure a Discovery.
type Options struct {
	Config *Config
	// Client returns a new client. It fails while files named by the configuration cannot be used.
	Client func(commonconfig.HTTPClientConfig) (Client, error)
	Around Surroundings
	Logger *slog.Logger
	// Run calls a function and contains its panics.
	Run func(func())
	// Found receives groups of targets by their sources; an empty group removes the targets of its source.
	Found func([]*targetgroup.Group)
	// Problem receives the reason why targets cannot be found, or not all of them; "" when they can. Without secrets.
	Problem func(string)
	// Listed is called once, when all resources have been listed. It may be nil.
	Listed func()
	// Event counts the changes of objects of a role: add, update, delete.
	Event func(role, what string)
	// Failed counts failed requests.
	Failed func()
	// Pause is the shortest pause between failing requests. 0: a second.
	Pause time.Duration
}

// Discovery finds the targets of one entry of kubernetes_sd_configs.
type Discovery struct {
	o     Options
	store *store
	// These fields belong to the goroutine of Run.
	sources []*source
	problem string // the last one reported
	whole   bool   // whether Listed was called
}

// source is the state of a reflector in its Discovery.
type source struct {
	*reflector
	listed  bool
	problem string
}

// New returns a Discovery; Run starts it.
func New(o Options) *Discovery {
	if o.Pause == 0 {
		o.Pause = shortestPause
	}
	primary, _ := o.Config.kinds()
	return &Discovery{o: o, store: newStore(primary)}
}

// kinds returns the resource that targets are made from, and those that are read in addition.
func (c *Config) kinds() (primary kind, others []kind) {
	withPods := false
	switch c.Role {
	case RoleNode:
		return nodes, nil
	case RolePod:
		primary, withPods = pods, true
	case RoleService:
		primary = services
	case RoleEndpoints:
		primary, others, withPods = endpointses, []kind{services, pods}, true
	case RoleEndpointSlice:
		primary, others, withPods = endpointSlices, []kind{services, pods}, true
	case RoleIngress:
		primary = ingresses
	}
	attach := c.AttachMetadata
	if attach.Namespace {
		others = append(others, namespaces)
	}
	if withPods && attach.Node {
		others = append(others, nodes)
	}
	if withPods && attach.Deployment {
		others = append(others, replicaSets)
	}
	if withPods && (attach.Job || attach.CronJob) {
		others = append(others, jobs)
	}
	return primary, others
}

// namespaces returns the namespaces to search; "" means all.
func (d *Discovery) namespaces() ([]string, error) {
	n := d.o.Config.Namespaces
	all := slices.Clone(n.Names)
	if n.Own {
		own, err := d.o.Around.namespace()
		if err != nil {
			return nil, err
		}
		all = append(all, own)
	}
	if len(all) == 0 || slices.Contains(all, "") {
		return []string{""}, nil
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Run finds targets until ctx ends. It returns after its goroutines have ended, and must be called once.
func (d *Discovery) Run(ctx context.Context) {
	names, err := d.namespaces()
	for err != nil {
		d.tell(err.Error())
		timer := time.NewTimer(longestPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		names, err = d.namespaces()
	}
	conn := &connection{config: d.o.Config, around: d.o.Around, make: d.o.Client}
	defer conn.close()
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	in := make(chan update)
	d.sources = d.reflectors(names, conn, in)
	for _, s := range d.sources {
		all.Go(func() {
			for ctx.Err() == nil { // a panic costs one attempt
				d.o.Run(func() { s.run(ctx) })
				d.o.Run(func() { s.tell(ctx, "read", errPanic) })
				s.rest(ctx, errPanic)
			}
		})
	}
	for {
		select {
		case n := <-in:
			d.take(n)
		case <-ctx.Done():
			return
		}
	}
}

// reflectors returns the reflectors for all resources that the configuration needs.
func (d *Discovery) reflectors(names []string, conn *connection, out chan<- update) (all []*source) {
	add := func(k kind, namespace string) {
		all = append(all, &source{reflector: &reflector{
			api: api{conn: conn, kind: k, namespace: namespace, selector: d.o.Config.selector(k)},
			out: out, failed: d.o.Failed, least: d.o.Pause,
			event: func(k kind, what string) {
				if role := k.role(); role != "" {
					d.o.Event(role, what)
				}
			},
		}})
	}
	primary, others := d.o.Config.kinds()
	for _, k := range append([]kind{primary}, others...) {
		if !k.resource().namespaced {
			add(k, "")
			continue
		}
		for _, n := range names {
			add(k, n)
		}
	}
	return all
}

// take stores an update, and rebuilds the groups that it affects.
func (d *Discovery) take(n update) {
	s := d.sources[slices.IndexFunc(d.sources, func(s *source) bool { return s.reflector == n.from })]
	k := n.from.api.kind
	if n.failed {
		s.problem = n.problem
		d.tell(d.problems())
		return
	}
	if n.whole {
		s.listed = true
		d.store.replace(k, n.from.api.namespace, n.objects)
	} else {
		for _, o := range n.objects {
			d.store.put(k, o)
		}
	}
	for _, o := range n.gone {
		d.store.remove(refOf(k, o))
	}
	if groups := d.groups(); len(groups) > 0 {
		d.o.Found(groups)
	}
	if !d.whole && !slices.ContainsFunc(d.sources, func(s *source) bool { return !s.listed }) {
		d.whole = true
		if d.o.Listed != nil {
			d.o.Listed()
		}
	}
}

// groups returns the changed groups whose inputs have all been listed.
func (d *Discovery) groups() (all []*targetgroup.Group) {
	ready := map[string]bool{}
	b := builder{attach: d.o.Config.AttachMetadata, role: d.o.Config.Role}
	for r := range d.store.stale {
		is, known := ready[r.namespace]
		if !known {
			is = d.ready(r.namespace)
			ready[r.namespace] = is
		}
		if !is {
			continue
		}
		delete(d.store.stale, r)
		b.view = newView(d.store)
		all = append(all, b.group(r))
		d.store.made(r, b.view.seen)
	}
	return all
}

// ready reports whether all lists have arrived that the groups of a namespace depend on.
func (d *Discovery) ready(namespace string) bool {
	return !slices.ContainsFunc(d.sources, func(s *source) bool {
		of := s.api.namespace
		return !s.listed && (of == "" || of == namespace)
	})
}

// problems returns the problems of all resources as one text.
func (d *Discovery) problems() string {
	texts := map[string]bool{}
	for _, s := range d.sources {
		if s.problem != "" {
			texts[s.problem] = true
		}
	}
	all := slices.Sorted(maps.Keys(texts))
	if len(all) > maxProblems {
		all = append(all[:maxProblems], fmt.Sprintf("%d more like these", len(all)-maxProblems))
	}
	return strings.Join(all, "; ")
}

// tell reports a problem when it begins, changes or ends.
func (d *Discovery) tell(problem string) {
	if problem == d.problem {
		return
	}
	d.problem = problem
	if problem != "" {
		problem = "discovery by kubernetes, role " + string(d.o.Config.Role) + ": " + problem
		d.o.Logger.Error("Cannot look up targets; keeping those found last", "discovery", "kubernetes", "err", problem)
	} else {
		d.o.Logger.Info("Targets can be looked up again", "discovery", "kubernetes")
	}
	d.o.Problem(problem)
}
