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

// Registry is what the targets of an entry with tenants know of one another: which tenants
// have a target, from which commit on, and how far the [Scout] has read. It is safe for
// concurrent use.
type Registry struct {
	config config.TenantConfig
	named  func(id string) error // why no target can have that name

	mu      sync.Mutex
	owners  map[string]*Tenant
	targets int // of owners, how many have one
	odd     map[string]string
	passed  uint64        // the last commit that the scout is done with
	moved   chan struct{} // closed when that grows
}

// maxTold bounds how many values that get no target are told to people.
const maxTold = 10

// find is a value of the label that may be a tenant.
type Tenant struct {
	id string

	// from is the first commit whose samples go to the tenant's own target; 0: it has none.
	from atomic.Uint64

	// gone says that it was forgotten: what holds on to it must ask again.
	gone atomic.Bool
}

// Has reports whether the samples of that commit are for the tenant's own target.
func (o *Tenant) Has(commit uint64) bool {
	from := o.from.Load()
	return from != 0 && commit >= from
}

// IsGone reports whether the tenant was forgotten.
func (o *Tenant) IsGone() bool { return o.gone.Load() }

// NewTenants begins with the tenants that have a target, each with the number of the commit
// before its first. named tells why the target of a tenant cannot be named after it; nil if
// it can.
func NewRegistry(c *config.Config, known map[string]uint64, named func(id string) error) *Registry {
	t := &Registry{config: *c.Target.Tenant, named: named, owners: map[string]*Tenant{}, odd: map[string]string{}, moved: make(chan struct{})}
	for id, before := range known {
		t.give(t.add(id), before)
	}
	return t
}

// add adds an owner without a target. t.mu is held, or nobody else knows t.
func (t *Registry) add(id string) *Tenant {
	o := &Tenant{id: id}
	t.owners[id] = o
	return o
}

// give gives an owner a target that begins after that commit. As add.
func (t *Registry) give(o *Tenant, before uint64) {
	o.from.Store(before + 1)
	t.targets++
}

// Tenant is whose a sample with that value is; nil: nobody's, or the default's. A tenant that
// has a target keeps it when it becomes the default.
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
	if len(t.odd) < maxTold && (value != "" || t.config.Default == "") {
		t.odd[value] = err.Error()
	}
	return nil
}

// full says why no further tenant gets a target; "" if one does.
func (t *Registry) full() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.targets < t.config.MaxTenants {
		return ""
	}
	return fmt.Sprintf("there are %d tenants, max_tenants", t.targets)
}

// registered notes that a tenant has got a target.
func (t *Registry) registered(o *Tenant, before uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.give(o, before)
}

// Forget forgets a tenant: it has no target any more. When it comes again it is a new one.
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

// Pass notes that the scout is done with a commit.
func (t *Registry) Pass(commit uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passed = commit
	close(t.moved)
	t.moved = make(chan struct{})
}

// wait waits until the scout is done with a commit. The error is ctx's.
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

// Known are the tenants that have a target, in order.
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

// Unrouted is a value of the label that has no target, and why.
type Unrouted struct{ Value, Why string }

// Unrouted are values that came and have no target of their own, at most twenty. Their
// samples are the default's, or dropped where there is none.
func (t *Registry) Unrouted() []Unrouted {
	full := t.full()
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Unrouted
	for value, why := range t.odd {
		all = append(all, Unrouted{value, why})
	}
	others := len(all) + maxTold
	for id, o := range t.owners {
		if o.from.Load() == 0 && full != "" && len(all) < others {
			all = append(all, Unrouted{id, full})
		}
	}
	slices.SortFunc(all, func(a, b Unrouted) int { return strings.Compare(a.Value, b.Value) })
	return all
}

// tenantFilter leaves to one target of an entry with tenants what is its own.
type Filter struct {
	config  config.TenantConfig
	role    config.TenantRole
	Id      string    // "": the target of the rest, and there is no default
	tenants *Registry // nil for a member, and where nobody knows who had a target when
}

// NewFilter makes the filter of a target in a family. Without tenants, the rest is what
// can be no tenant's but the default's.
func NewFilter(c *config.Config, tenants *Registry) *Filter {
	return &Filter{config: *c.Target.Tenant, role: c.Role(), Id: c.Tenant(), tenants: tenants}
}

// sort looks at final labels: owner is whose they are as far as that changes, and mine is
// false where they are never the target's. It removes the label where the header says the same.
func (f *Filter) Sort(b *labels.Builder) (o *Tenant, mine bool) {
	value := b.Get(f.config.Label)
	switch {
	case f.role == config.RoleTenant:
		mine = value == f.Id
	case f.tenants == nil:
		mine = value == f.Id || config.CheckTenant(value) != nil
	default:
		o, mine = f.tenants.find(value), true
	}
	if mine && value == f.Id && f.config.DropLabel {
		b.Del(f.config.Label)
	}
	return o, mine
}
