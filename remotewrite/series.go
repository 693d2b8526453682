package remotewrite

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/internal/refs"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/tenant"
	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

// seriesCache turns the log's series into the form that one target gets: external labels merged, write_relabel_configs
// applied, names made legal for remote write 1.0. It does so once per series, so that a sample costs one lookup. A
// cache lives as long as its rules do; a reload with other rules creates a new one.
//
// Not safe for concurrent use: it belongs to the goroutine that reads the log.
type seriesCache struct {
	labels *config.Relabeler
	forms  *wire.Forms

	// tenant leaves out series that belong to another target of the entry; nil: none.
	tenant *tenant.Filter

	late bool // the series that come now were first logged after the queue began

	// By wal.Series.Slot: the forms of the series that the target may send, the series that it does not send, and those
	// that no target sends. A slot is in one of the lists, so most targets take one pointer for a series.
	forSlot  refs.Slots[series]
	removals refs.Slots[wal.Series]
	orphans  refs.Slots[wal.Series]

	// owners, also by slot, has entries at the default target of an entry with tenants: the tenant that the series
	// belongs to once that tenant has a target; see [seriesCache.at].
	owners refs.Slots[tenant.Tenant]

	held heldSamples // the samples in the window

	common  *wire.Form     // the form of the first series; see derive
	own     []labels.Label // scratch of derive
	added   int            // number of series added since the last sweep
	removed *series        // stands for every series that is not sent
	unowned *series        // stands for every series without a tenant if there is no default tenant
}

// newSeriesCache creates a cache of series for remote write 1.0. The rules must be valid (see
// [config.Config.Validate]).
func newSeriesCache(external labels.Labels, rules []*relabel.Config) *seriesCache {
	return &seriesCache{
		labels:  config.NewRelabeler(external, rules),
		removed: &series{},
		unowned: &series{},
		forms:   wire.NewForms(wire.V1),
	}
}

// get returns the target's form of s. The result is immutable, except for taken, and stays valid after s
// is evicted.
func (c *seriesCache) get(s *wal.Series) *series {
	switch to := c.forSlot.Get(s.Slot()); {
	case to != nil && to.from == s:
		return to
	case c.removals.Get(s.Slot()) == s:
		return c.removed
	case c.orphans.Get(s.Slot()) == s:
		return c.unowned
	}
	return c.add(s, false)
}

// add derives the series and caches the result. whole says that the default target must send it, although its tenant
// may get a target later.
func (c *seriesCache) add(s *wal.Series, whole bool) *series {
	to, owner := c.derive(s, whole)
	// This way a sweep looks at no more than two slots of each list for each added series.
	if c.added++; c.added > max(c.forSlot.Len(), c.removals.Len(), c.orphans.Len())/2 {
		c.sweep()
	}
	var sent *series
	var removal, orphan *wal.Series
	switch to {
	case c.removed:
		removal = s
	case c.unowned:
		orphan = s
	default:
		sent = to
		if was := c.forSlot.Get(s.Slot()); was != nil && (was.from == s || was.hash == to.hash) {
			to.entry = was.entry // the same labels with another owner or other metadata
		}
	}
	c.forSlot.Put(s.Slot(), sent)
	c.removals.Put(s.Slot(), removal)
	c.orphans.Put(s.Slot(), orphan)
	c.owners.Put(s.Slot(), owner)
	return to
}

// end forgets a series that the log does not use any more, and reports whether the window holds a sample of it. If it comes back, it is
// derived again.
func (c *seriesCache) end(s *wal.Series) (held bool) {
	if to := c.forSlot.Get(s.Slot()); to != nil && to.from == s {
		held = c.held.holds(to.entry)
		c.forSlot.Put(s.Slot(), nil)
		c.owners.Put(s.Slot(), nil)
	}
	for _, list := range []*refs.Slots[wal.Series]{&c.removals, &c.orphans} {
		if list.Get(s.Slot()) == s {
			list.Put(s.Slot(), nil)
		}
	}
	return held
}

// sweep removes the series that the log's cursors have evicted.
func (c *seriesCache) sweep() {
	c.added = 0
	for slot, to := range c.forSlot.All() {
		if to.from.Gone() {
			c.forSlot.Put(slot, nil)
			c.owners.Put(slot, nil)
		}
	}
	for _, list := range []*refs.Slots[wal.Series]{&c.removals, &c.orphans} {
		for slot, s := range list.All() {
			if s.Gone() {
				list.Put(slot, nil)
			}
		}
	}
}

// at returns the target's form of s in a commit, or nil if no target sends it.
func (c *seriesCache) at(s *wal.Series, commit uint64) *series {
	to := c.get(s)
	owner := c.owners.Get(s.Slot())
	if owner != nil && owner.IsGone() {
		to = c.add(s, false)
		owner = c.owners.Get(s.Slot())
	}
	switch {
	case to == c.unowned:
		return nil
	case owner == nil:
		return to
	case owner.Has(commit):
		return c.removed
	case c.tenant.Tenant() == "":
		return nil
	case to.dropped():
		return c.add(s, true)
	}
	return to
}

// derive creates the series, and returns its owner, nil if it has none; whole is as in add.
func (c *seriesCache) derive(s *wal.Series, whole bool) (to *series, owner *tenant.Tenant) {
	final := c.labels.Apply(s.Labels())
	if final == nil {
		return c.removed, nil
	}
	if c.tenant != nil {
		var mine bool
		owner, mine = c.tenant.Sort(final)
		if !mine {
			return c.removed, nil
		}
		switch {
		case owner != nil && !whole:
			return &series{from: s}, owner
		case c.tenant.Tenant() == "":
			return c.unowned, nil
		}
	}
	c.own = s.AppendLabels(c.own[:0])
	form, ls := c.forms.Of(c.own, final.Labels())
	if form == nil {
		return c.removed, nil
	}
	if c.common == nil {
		c.common = form
	}
	if c.held.byHash == nil && !form.AddsAs(c.common) { // two series may have the same final labels
		c.held.compareLabels(c.forSlot.All())
	}
	return &series{from: s, hash: ls.Hash(), form: form, late: c.late}, owner
}

// families returns the metadata of all families that have a series which is sent.
func (c *seriesCache) families() []prompb.MetricMetadata {
	return familiesOf(func(yield func(*wal.Series) bool) {
		for _, s := range c.forSlot.All() {
			if !s.dropped() && !yield(s.from) {
				return
			}
		}
	})
}
