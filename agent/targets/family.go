package targets

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/status"
	"hwsagent/internal/watchdog"
	"hwsagent/remotewrite/deadletter"
	"hwsagent/remotewrite/tenant"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// family is a running entry with tenants: each tenant has a target of its own, named after entry and tenant, and the
// target with the entry's own name has all other samples. A discovery finds the tenants.
type family struct {
	entry   entry
	tenants *tenant.Registry

	// Set while the discovery runs.
	cancel context.CancelFunc
	done   chan struct{} // closed when the discovery has ended
}

// removeFamilies stops the discoveries of entries that were removed or changed. s.mu must be held, as in all methods below.
func (s *Set) removeFamilies(entries []entry) {
	for name, f := range s.families {
		if !slices.ContainsFunc(entries, func(e entry) bool { return e.name == name && !e.changed }) {
			f.stop()
			delete(s.families, name)
		}
	}
}

// addFamilies creates the missing families. Their discoveries start when the queues run.
func (s *Set) addFamilies() {
	for _, e := range s.plain {
		if e.family != nil && s.families[e.name] == nil {
			named := func(id string) error { return queue.CheckName(queue.Member(e.name, id)) }
			s.families[e.name] = &family{entry: e, tenants: tenant.NewRegistry(e.family, s.o.Log.Members(e.name), named)}
		}
	}
}

// startDiscoveries starts the discoveries that do not run, if the queues run. The order is free: the target of unrouted
// samples waits for its discovery.
func (s *Set) startDiscoveries() {
	for name, f := range s.families {
		if s.ctx == nil || f.cancel != nil {
			continue
		}
		source, err := s.o.Log.Scout(name)
		if err != nil {
			s.o.Logger.Error("Cannot look for tenants; retrying", "target", name, "err", err)
			continue
		}
		var ctx context.Context
		ctx, f.cancel = context.WithCancel(s.ctx)
		f.done = make(chan struct{})
		discovery := tenant.NewDiscovery(tenant.Options{
			Config: *f.entry.family, ExternalLabels: f.entry.external, Source: source, Registry: f.tenants,
			Enroll: func(id string, after wal.Mark) (uint64, error) {
				defer s.requestOpen()
				return s.o.Log.EnrollMember(name, id, after)
			},
			Release: func(id string, last uint64) { s.release(f, id, last) },
			Logger:  s.o.Logger,
		})
		go func() {
			defer close(f.done)
			watchdog.Do(ctx, fmt.Sprintf("the search for tenants of %q", name), discovery.Run)
			_ = source.Close() // it has nothing to save
		}()
	}
}

// requestOpen requests that targets of new tenants be opened. It never blocks, because discoveries call it.
func (s *Set) requestOpen() {
	select {
	case s.found <- struct{}{}:
	default: // already requested
	}
}

// stop ends the discovery.
func (f *family) stop() {
	if f.cancel != nil {
		f.cancel()
		<-f.done
		f.cancel = nil
	}
}

// withTenants returns the configured entries and the targets of their known tenants.
func (s *Set) withTenants() []entry {
	var all []entry
	for _, e := range s.plain {
		all = append(all, e)
		f := s.families[e.name]
		if f == nil {
			continue
		}
		for _, id := range f.tenants.Known() {
			m := entry{name: queue.Member(e.name, id), config: f.entry.family.ForTenant(id), external: e.external}
			old := s.running[m.name]
			m.changed = old == nil || !reflect.DeepEqual(old.config, m.config) || !labels.Equal(old.external, m.external)
			all = append(all, m)
		}
	}
	return all
}

// AroundFamily is [Set.Around] for an entry that gets another name, and for its tenants. Their discovery stops before they are
// listed, in the same hold of s.mu: otherwise the next retry could start it again, and it would enroll tenants that
// change does not know. Unless change removes the entry, it starts again with a reload or the next retry.
func (s *Set) AroundFamily(report func(step string), change func(tenants []string) error, from, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var tenants []string
	if f := s.families[from]; f != nil {
		report(fmt.Sprintf("ending the search for tenants of %q", from))
		f.stop()
		tenants = f.tenants.Known()
		s.entries = s.withTenants() // with those that it found last
	}
	stopped := []string{from, to}
	for _, id := range tenants {
		stopped = append(stopped, queue.Member(from, id))
	}
	return s.aroundLocked(report, func() error { return change(tenants) }, stopped...)
}

// release closes the target of a tenant that has nothing left to do: all samples up to its last one have their outcome.
// The target of unrouted samples must have passed them as well, or it would take those of the tenant for its own. The
// discovery calls release and must not wait for anything that waits for the discovery; in that case it tries again later.
func (s *Set) release(f *family, id string, last uint64) {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	defer s.publish()
	name := queue.Member(f.entry.name, id)
	t, rest := s.running[name], s.running[f.entry.name]
	if t == nil || rest == nil || !t.paused.IsZero() || t.letters.Count() > 0 {
		return // a person still needs its state
	}
	for _, r := range []*wal.Reader{t.reader, rest.reader} {
		if sp := r.Savepoint(); sp.Acked().Commit < last {
			return
		}
	}
	t.stop(s.o.Logger)
	delete(s.running, name)
	if err := s.o.Log.Release(f.entry.name, id); err != nil {
		s.o.Logger.Warn("Cannot remove an idle tenant; keeping it", "target", name, "err", err)
		s.openMissing(noReport)
		return
	}
	f.tenants.Forget(id)
	if err := deadletter.Remove(deadletter.Dir(s.o.Dir, name)); err != nil {
		s.o.Logger.Warn("Cannot remove the empty dead-letter directory", "target", name, "err", err)
	}
	s.entries = s.withTenants()
}

// tenantsOf describes the tenants of an entry whose unrouted samples go to the named target.
func (s *Set) tenantsOf(name string) *status.TenantsStatus {
	f := s.load().families[name]
	if f == nil {
		return nil
	}
	c := f.entry.family.Target.Tenant
	ts := &status.TenantsStatus{Label: c.Label, Header: c.Header, Default: c.Default, Max: c.MaxTenants, Known: len(f.tenants.Known())}
	for _, v := range f.tenants.Unrouted() {
		ts.Strangers = append(ts.Strangers, status.StrangerStatus{Value: v.Value, Why: v.Why})
	}
	return ts
}
