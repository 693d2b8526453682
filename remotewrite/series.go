package remotewrite

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/families"
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

	recall func(*series) // restores the facts about a new series; nil: there are none

	slots   []cached // by wal.Series.Slot
	added   int      // number of series added since the last sweep
	removed *series  // stands for every series that is not sent
	unowned *series  // stands for every series without a tenant if there is no default tenant
}

// cached is a series of the log and its form at the target.
type cached struct {
	from *wal.Series
	to   *series
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

// get returns the target's form of s. The result is immutable, except for newest and newestIn, and stays valid after s
// is evicted.
func (c *seriesCache) get(s *wal.Series) *series {
	if s.Slot < len(c.slots) {
		if e := &c.slots[s.Slot]; e.from == s {
			return e.to
		}
	}
	return c.add(s, false)
}

// add derives the series and caches the result. whole says that the default target must send it, although its tenant
// may get a target later.
func (c *seriesCache) add(s *wal.Series, whole bool) *series {
	to := c.derive(s, whole)
	for s.Slot >= len(c.slots) {
		c.slots = append(c.slots, cached{})
	}
	// This way a sweep looks at no more than two series for each added one.
	if c.added++; c.added > len(c.slots)/2 {
		c.sweep()
	}
	c.slots[s.Slot] = cached{s, to}
	return to
}

// sweep removes the series that the log's cursors have evicted.
func (c *seriesCache) sweep() {
	c.added = 0
	for i := range c.slots {
		if e := &c.slots[i]; e.from != nil && e.from.Gone() {
			*e = cached{}
		}
	}
}

// at returns the target's form of s in a commit, or nil if no target sends it.
func (c *seriesCache) at(s *wal.Series, commit uint64) *series {
	to := c.get(s)
	if to.owner != nil && to.owner.IsGone() {
		to = c.add(s, false)
	}
	switch {
	case to == c.unowned:
		return nil
	case to.owner == nil:
		return to
	case to.owner.Has(commit):
		return c.removed
	case c.tenant.Tenant() == "":
		return nil
	case to.dropped():
		return c.add(s, true)
	}
	return to
}

// derive creates the series; whole is as in add.
func (c *seriesCache) derive(s *wal.Series, whole bool) *series {
	final := c.labels.Apply(s.Labels)
	if final == nil {
		return c.removed
	}
	var o *tenant.Tenant
	if c.tenant != nil {
		var mine bool
		o, mine = c.tenant.Sort(final)
		if !mine {
			return c.removed
		}
		switch {
		case o != nil && !whole:
			return &series{from: s, owner: o}
		case c.tenant.Tenant() == "":
			return c.unowned
		}
	}
	form, ls := c.forms.Of(s.Labels, final.Labels())
	if form == nil {
		return c.removed
	}
	to := &series{from: s, hash: ls.Hash(), form: form, newest: noneTaken, owner: o}
	if c.recall != nil {
		c.recall(to)
	}
	return to
}

// families returns the metadata of all families that have a series which is sent.
func (c *seriesCache) families() []prompb.MetricMetadata {
	return families.Of(func(yield func(*wal.Series) bool) {
		for i := range c.slots {
			if s := c.slots[i].to; s != nil && !s.dropped() && !yield(s.from) {
				return
			}
		}
	})
}
