package agent

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/deadletter"
	"hwsagent/remotewrite/tenant"
	"hwsagent/wal"
	"hwsagent/watchdog"
	"hwsagent/web"
)

// family is an entry with tenants at work: each tenant has a target of its own, named after
// entry and tenant, and the target of the entry's own name has the rest. A scout finds the
// tenants.
type family struct {
	entry   planned
	tenants *tenant.Registry

	// Set while the scout runs.
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
}

// dissolve ends the scouts of entries that are gone or changed. ts.mu is held, as for all
// that follows.
func (ts *targets) dissolve(entries []planned) {
	for name, f := range ts.families {
		if !slices.ContainsFunc(entries, func(e planned) bool { return e.name == name && !e.changed }) {
			f.stop()
			delete(ts.families, name)
		}
	}
}

// establish makes the families that are not there. Their scouts are sent when the queues run.
func (ts *targets) establish() {
	for _, e := range ts.plain {
		if e.family != nil && ts.families[e.name] == nil {
			named := func(id string) error { return wal.CheckName(wal.Member(e.name, id)) }
			ts.families[e.name] = &family{entry: e, tenants: tenant.NewRegistry(e.family, ts.log.Members(e.name), named)}
		}
	}
}

// sendScouts starts the scouts that do not run, if the queues do. The target of the rest
// waits for its scout, so it does not matter which is first.
func (ts *targets) sendScouts() {
	for name, f := range ts.families {
		if ts.ctx == nil || f.cancel != nil {
			continue
		}
		source, err := ts.log.Scout(name)
		if err != nil {
			ts.logger.Error("Cannot look for tenants; trying again until that works", "target", name, "err", err)
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
			_ = source.Close() // it has nothing to save
		}()
	}
}

// tellFound has the targets of new tenants opened. It never blocks: a scout calls it.
func (ts *targets) tellFound() {
	select {
	case ts.found <- struct{}{}:
	default: // that is to be done already
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

// withTenants is the plain entries with the tenants that are known.
func (ts *targets) withTenants() []planned {
	var all []planned
	for _, e := range ts.plain {
		all = append(all, e)
		f := ts.families[e.name]
		if f == nil {
			continue
		}
		for _, id := range f.tenants.Known() {
			m := planned{name: wal.Member(e.name, id), config: f.entry.family.ForTenant(id), external: e.external}
			old := ts.running[m.name]
			m.changed = old == nil || !reflect.DeepEqual(old.config, m.config) || !labels.Equal(old.external, m.external)
			all = append(all, m)
		}
	}
	return all
}

// tenantsOf are the tenants of an entry that have a target. Its scout ends, until a reload
// or the next attempt to send it. ts.mu is not held.
func (ts *targets) tenantsOf(name string) []string {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	f := ts.families[name]
	if f == nil {
		return nil
	}
	f.stop()
	return f.tenants.Known()
}

// release lets the target of a tenant go that has nothing to do any more: everything up to
// its last sample has its outcome, at the target of the rest too, which would else take what
// it reads of that tenant for its own. The scout calls it, and must not wait for who waits for
// the scout: then it asks again.
func (ts *targets) release(f *family, id string, last uint64) {
	if !ts.mu.TryLock() {
		return
	}
	defer ts.mu.Unlock()
	defer ts.publish()
	name := wal.Member(f.entry.name, id)
	t, rest := ts.running[name], ts.running[f.entry.name]
	if t == nil || rest == nil || !t.paused.IsZero() || t.letters.Count() > 0 {
		return // it has something that a person wants
	}
	for _, r := range []*wal.Reader{t.reader, rest.reader} {
		if sp := r.Savepoint(); sp.Acked().Commit < last {
			return
		}
	}
	t.stop(ts.logger)
	delete(ts.running, name)
	if err := ts.log.Release(f.entry.name, id); err != nil {
		ts.logger.Warn("Cannot let go of a tenant; it stays", "target", name, "err", err)
		ts.openMissing(unseen)
		return
	}
	f.tenants.Forget(id)
	if err := deadletter.Remove(letterDir(ts.dir, name)); err != nil {
		ts.logger.Warn("Cannot remove the empty store of dead letters", "target", name, "err", err)
	}
	ts.entries = ts.withTenants()
}

// tenants describes the tenants of a target that has the rest of an entry.
func (ts *targets) tenants(name string) *web.TenantsStatus {
	f := ts.look().families[name]
	if f == nil {
		return nil
	}
	c := f.entry.family.Target.Tenant
	s := &web.TenantsStatus{Label: c.Label, Header: c.Header, Default: c.Default, Max: c.MaxTenants, Known: len(f.tenants.Known())}
	for _, v := range f.tenants.Unrouted() {
		s.Strangers = append(s.Strangers, web.StrangerStatus{Value: v.Value, Why: v.Why})
	}
	return s
}

// inFamily is the configuration of a target of that name in an entry with tenants; nil if it
// has none.
func inFamily(c *config.Config, name string) *config.Config {
	if c.Target.Tenant == nil {
		return nil
	}
	if name == c.TargetName() {
		return c.ForRest()
	}
	if id, ok := wal.MemberOf(c.TargetName(), name); ok && config.CheckTenant(id) == nil {
		return c.ForTenant(id)
	}
	return nil
}

// sharedName says with which tenant's target an entry would share its name.
func sharedName(family *config.Config, name string) error {
	if family.Target.Tenant != nil && inFamily(family, name) != nil && name != family.TargetName() {
		return fmt.Errorf("%q is how a tenant of %q is called", name, family.TargetName())
	}
	return nil
}
