package agent

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
// target with the entry's own name has all other samples. A scout discovers the tenants.
type family struct {
	entry   planned
	tenants *tenant.Registry

	// Set while the scout runs.
	cancel context.CancelFunc
	done   chan struct{} // closed when the scout has ended
}

// dissolve stops the scouts of entries that were removed or changed. ts.mu must be held, as in all methods below.
func (ts *targets) dissolve(entries []planned) {
	for name, f := range ts.families {
		if !slices.ContainsFunc(entries, func(e planned) bool { return e.name == name && !e.changed }) {
			f.stop()
			delete(ts.families, name)
		}
	}
}

// establish creates the missing families. Their scouts start when the queues run.
func (ts *targets) establish() {
	for _, e := range ts.plain {
		if e.family != nil && ts.families[e.name] == nil {
			named := func(id string) error { return queue.CheckName(queue.Member(e.name, id)) }
			ts.families[e.name] = &family{entry: e, tenants: tenant.NewRegistry(e.family, ts.log.Members(e.name), named)}
		}
	}
}

// sendScouts starts the scouts that do not run, if the queues run. The order is free: the target of unrouted samples
// waits for its scout.
func (ts *targets) sendScouts() {
	for name, f := range ts.families {
		if ts.ctx == nil || f.cancel != nil {
			continue
		}
		source, err := ts.log.Scout(name)
		if err != nil {
			ts.logger.Error("Cannot look for tenants; retrying", "target", name, "err", err)
			continue
		}
		var ctx context.Context
		ctx, f.cancel = context.WithCancel(ts.ctx)
		f.done = make(chan struct{})
		scout := tenant.NewDiscovery(tenant.Options{
			Config: *f.entry.family, ExternalLabels: f.entry.external, Source: source, Registry: f.tenants,
			Enroll: func(id string, after wal.Mark) (uint64, error) {
				defer ts.tellFound()
				return ts.log.EnrollMember(name, id, after)
			},
			Release: func(id string, last uint64) { ts.release(f, id, last) },
			Logger:  ts.logger,
		})
		go func() {
			defer close(f.done)
			watchdog.Do(ctx, fmt.Sprintf("the search for tenants of %q", name), scout.Run)
			_ = source.Close() // the scout has nothing to save
		}()
	}
}

// tellFound requests that targets of new tenants be opened. It never blocks, because scouts call it.
func (ts *targets) tellFound() {
	select {
	case ts.found <- struct{}{}:
	default: // already requested
	}
}

// stop ends the scout.
func (f *family) stop() {
	if f.cancel != nil {
		f.cancel()
		<-f.done
		f.cancel = nil
	}
}

// withTenants returns the configured entries and the targets of their known tenants.
func (ts *targets) withTenants() []planned {
	var all []planned
	for _, e := range ts.plain {
		all = append(all, e)
		f := ts.families[e.name]
		if f == nil {
			continue
		}
		for _, id := range f.tenants.Known() {
			m := planned{name: queue.Member(e.name, id), config: f.entry.family.ForTenant(id), external: e.external}
			old := ts.running[m.name]
			m.changed = old == nil || !reflect.DeepEqual(old.config, m.config) || !labels.Equal(old.external, m.external)
			all = append(all, m)
		}
	}
	return all
}

// aroundFamily is around for an entry that gets another name, and for its tenants. Their scout stops before they are
// listed, in the same hold of ts.mu: otherwise the next retry could send it again, and it would enroll tenants that
// change does not know. Unless change strikes the entry, it starts again with a reload or the next retry.
func (ts *targets) aroundFamily(at func(step string), change func(tenants []string) error, from, to string) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var tenants []string
	if f := ts.families[from]; f != nil {
		at(fmt.Sprintf("ending the search for tenants of %q", from))
		f.stop()
		tenants = f.tenants.Known()
		ts.entries = ts.withTenants() // with those that it found last
	}
	stopped := []string{from, to}
	for _, id := range tenants {
		stopped = append(stopped, queue.Member(from, id))
	}
	return ts.aroundLocked(at, func() error { return change(tenants) }, stopped...)
}

// release closes the target of a tenant that has nothing left to do: all samples up to its last one have their outcome.
// The target of unrouted samples must have passed them as well, or it would take those of the tenant for its own. The
// scout calls release and must not wait for anything that waits for the scout; in that case it tries again later.
func (ts *targets) release(f *family, id string, last uint64) {
	if !ts.mu.TryLock() {
		return
	}
	defer ts.mu.Unlock()
	defer ts.publish()
	name := queue.Member(f.entry.name, id)
	t, rest := ts.running[name], ts.running[f.entry.name]
	if t == nil || rest == nil || !t.paused.IsZero() || t.letters.Count() > 0 {
		return // a person still needs its state
	}
	for _, r := range []*wal.Reader{t.reader, rest.reader} {
		if sp := r.Savepoint(); sp.Acked().Commit < last {
			return
		}
	}
	t.stop(ts.logger)
	delete(ts.running, name)
	if err := ts.log.Release(f.entry.name, id); err != nil {
		ts.logger.Warn("Cannot remove an idle tenant; keeping it", "target", name, "err", err)
		ts.openMissing(unseen)
		return
	}
	f.tenants.Forget(id)
	if err := deadletter.Remove(deadletter.Dir(ts.dir, name)); err != nil {
		ts.logger.Warn("Cannot remove the empty dead-letter directory", "target", name, "err", err)
	}
	ts.entries = ts.withTenants()
}

// tenants describes the tenants of an entry whose unrouted samples go to the named target.
func (ts *targets) tenants(name string) *status.TenantsStatus {
	f := ts.look().families[name]
	if f == nil {
		return nil
	}
	c := f.entry.family.Target.Tenant
	s := &status.TenantsStatus{Label: c.Label, Header: c.Header, Default: c.Default, Max: c.MaxTenants, Known: len(f.tenants.Known())}
	for _, v := range f.tenants.Unrouted() {
		s.Strangers = append(s.Strangers, status.StrangerStatus{Value: v.Value, Why: v.Why})
	}
	return s
}
