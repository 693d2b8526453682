// Package tenant finds the tenants in an entry that has hwsagent.tenant, and decides which
// target a series belongs to.
//
// Each tenant gets a target of its own. The default target, which has the entry's name, gets
// the samples of all other label values: those of the default tenant, and those that cannot
// have a target. [Discovery] reads the log ahead of the default target and registers new tenants
// in a [Registry]; [Filter] uses the registry to sort series.
package tenant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/config"
)

// Registry is shared by the targets of an entry with tenants: it records which tenants have a
// target, from which commit on, and how far [Discovery] has read. Safe for concurrent use.
type Registry struct {
	config config.TenantConfig
	named  func(id string) error // returns why a target cannot have that name

	mu      sync.Mutex
	owners  map[string]*Tenant
	targets int               // how many of the owners have a target
	odd     map[string]string // label values that cannot be tenants, and why
	passed  uint64            // the last commit that discovery has finished
	moved   chan struct{}     // closed and replaced when passed grows
}

// maxListed bounds how many label values without a target are listed for people.
const maxListed = 10

// Tenant is a label value that may have a target of its own.
type Tenant struct {
	id string

	// from is the first commit whose samples go to the tenant's own target; 0: it has no target.
	from atomic.Uint64

	// gone is set when the tenant was forgotten: holders of this pointer must look it up again.
	gone atomic.Bool
}

// Has reports whether samples of the commit go to the tenant's own target.
func (o *Tenant) Has(commit uint64) bool {
	from := o.from.Load()
	return from != 0 && commit >= from
}

// IsGone reports whether the tenant was forgotten.
func (o *Tenant) IsGone() bool { return o.gone.Load() }

// NewRegistry makes a registry for an entry. known are the tenants that have a target already,
// each with the number of the commit before its first. named returns why a target cannot be
// named after a tenant, nil if it can.
func NewRegistry(c *config.Config, known map[string]uint64, named func(id string) error) *Registry {
	t := &Registry{config: *c.Target.Tenant, named: named, owners: map[string]*Tenant{}, odd: map[string]string{}, moved: make(chan struct{})}
	for id, before := range known {
		t.give(t.add(id), before)
	}
	return t
}

// add adds a tenant without a target. t.mu is held, or t is not shared yet.
func (t *Registry) add(id string) *Tenant {
	o := &Tenant{id: id}
	t.owners[id] = o
	return o
}

// give records that a tenant has a target that begins after the commit before. Locking as for add.
func (t *Registry) give(o *Tenant, before uint64) {
	o.from.Store(before + 1)
	t.targets++
}

// find returns the tenant for a label value; nil if its samples belong to the default target.
// A tenant that has a target keeps it when it becomes the default tenant.
func (t *Registry) find(value string) *Tenant {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.owners[value]; o != nil {
		return o
	}
	if value != "" && value == t.config.Default {
		return nil
	}
	err := config.CheckTenant(value)
	if err == nil {
		err = t.named(value)
	}
	if err == nil {
		return t.add(value)
	}
	if value == "" {
		err = fmt.Errorf("no label %s", t.config.Label)
	}
	if len(t.odd) < maxListed && (value != "" || t.config.Default == "") {
		t.odd[value] = err.Error()
	}
	return nil
}

// full returns why further tenants get no target; "" if one can.
func (t *Registry) full() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.targets < t.config.MaxTenants {
		return ""
	}
	return fmt.Sprintf("there are %d tenants, max_tenants", t.targets)
}

// registered records that a tenant now has a target.
func (t *Registry) registered(o *Tenant, before uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.give(o, before)
}

// Forget removes a tenant whose target is gone. If its label value returns, it is a new
// tenant.
func (t *Registry) Forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owners[id]
	if o == nil {
		return
	}
	if o.from.Load() != 0 {
		t.targets--
	}
	delete(t.owners, o.id)
	o.gone.Store(true)
}

// Pass records that discovery has finished a commit.
func (t *Registry) Pass(commit uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passed = commit
	close(t.moved)
	t.moved = make(chan struct{})
}

// Wait waits until discovery has finished a commit. The error is ctx's.
func (t *Registry) Wait(ctx context.Context, commit uint64) error {
	for {
		t.mu.Lock()
		passed, moved := t.passed, t.moved
		t.mu.Unlock()
		if passed >= commit {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
	}
}

// Known returns the tenants that have a target, in order.
func (t *Registry) Known() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ids []string
	for id, o := range t.owners {
		if o.from.Load() != 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// strangers returns the tenants that have no target.
func (t *Registry) strangers() (all []*Tenant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.owners {
		if o.from.Load() == 0 {
			all = append(all, o)
		}
	}
	return all
}

// Unrouted is a label value that has no target of its own, and the reason.
type Unrouted struct{ Value, Why string }

// Unrouted returns label values seen in the log that have no target of their own, at most twenty.
// Their samples go to the default tenant, or are dropped if there is none.
func (t *Registry) Unrouted() []Unrouted {
	full := t.full()
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Unrouted
	for value, why := range t.odd {
		all = append(all, Unrouted{value, why})
	}
	others := len(all) + maxListed
	for id, o := range t.owners {
		if o.from.Load() == 0 && full != "" && len(all) < others {
			all = append(all, Unrouted{id, full})
		}
	}
	slices.SortFunc(all, func(a, b Unrouted) int { return strings.Compare(a.Value, b.Value) })
	return all
}

// Filter selects the series of one target of an entry with tenants.
type Filter struct {
	config  config.TenantConfig
	role    config.TenantRole
	id      string    // the tenant; "" for the default target of an entry without a default tenant
	tenants *Registry // nil for a tenant's own target, and if the history of the tenants' targets is unknown
}

// NewFilter makes the filter for the target of configuration c (see [config.Config.Role]). Without a
// registry, the default target gets only series that cannot belong to another tenant.
func NewFilter(c *config.Config, tenants *Registry) *Filter {
	return &Filter{config: *c.Target.Tenant, role: c.Role(), id: c.Tenant(), tenants: tenants}
}

// Tenant returns the tenant that the target is for; "" if it has none.
func (f *Filter) Tenant() string { return f.id }

// Sort evaluates the final labels of a series. mine is false if the series never belongs to this
// target. If that depends on whether a tenant has a target, o is that tenant. Sort removes the
// tenant's label if drop_label asks for that.
func (f *Filter) Sort(b *labels.Builder) (o *Tenant, mine bool) {
	value := b.Get(f.config.Label)
	switch {
	case f.role == config.RoleTenant:
		mine = value == f.id
	case f.tenants == nil:
		mine = value == f.id || config.CheckTenant(value) != nil
	default:
		o, mine = f.tenants.find(value), true
	}
	if mine && value == f.id && f.config.DropLabel {
		b.Del(f.config.Label)
	}
	return o, mine
}
