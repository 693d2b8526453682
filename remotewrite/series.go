package remotewrite

import (
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/relabel"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"hwsagent/wal"
)

// nameValidation is for the names in relabelling rules. Names may be any UTF-8 there, as
// in Prometheus 3; see [seriesCache.legal] for what is sent.
const nameValidation = model.UTF8Validation

// seriesCache turns the log's series into what one target is sent: external labels
// merged, write_relabel_configs applied, names made legal for remote write 1.0, the
// labels' bytes encoded. It does so once per series, so a sample costs one lookup.
// A cache lives as long as its rules do; a reload with other rules makes a new one.
//
// Not safe for concurrent use: it belongs to the goroutine that reads the log.
type seriesCache struct {
	external labels.Labels
	rules    []*relabel.Config
	// moderns are those without labels of their own, by metadata; nil where the target gets
	// remote write 1.0 only.
	moderns map[metadata.Metadata]*modern

	// tenant leaves out what belongs to another target of the entry; nil: nothing.
	tenant *tenantFilter

	recall func(*series) // nil: nothing is known of a series that is new

	slots   []cached // by wal.Series.Slot
	removed *series  // what all that is not sent becomes
	nobodys *series  // what belongs to no tenant becomes, where there is no default
	builder *labels.Builder
	scratch labels.ScratchBuilder
	encoded []byte // scratch
}

// cached is what a series became.
type cached struct {
	from *wal.Series
	to   *series
}

// newSeriesCache makes a cache. The rules must be valid (see [Config.Validate]).
func newSeriesCache(external labels.Labels, rules []*relabel.Config) *seriesCache {
	return &seriesCache{
		external: external,
		rules:    rules,
		removed:  &series{},
		nobodys:  &series{},
		builder:  labels.NewBuilder(labels.EmptyLabels()),
		scratch:  labels.NewScratchBuilder(16),
	}
}

// get returns the target's form of s. The result is immutable, but for series.newest,
// and stays valid after s is evicted.
func (c *seriesCache) get(s *wal.Series) *series {
	if s.Slot < len(c.slots) {
		if e := &c.slots[s.Slot]; e.from == s {
			return e.to
		}
	}
	return c.add(s, false)
}

// add derives the series and keeps the result. whole says that the target of the rest has
// to send it, although it may belong to a tenant.
func (c *seriesCache) add(s *wal.Series, whole bool) *series {
	to := c.derive(s, whole)
	for s.Slot >= len(c.slots) {
		c.slots = append(c.slots, cached{})
	}
	c.slots[s.Slot] = cached{s, to}
	return to
}

// at returns the target's form of s as it is in that commit; nil if it is nobody's.
func (c *seriesCache) at(s *wal.Series, commit uint64) *series {
	to := c.get(s)
	if to.owner != nil && to.owner.gone.Load() {
		to = c.add(s, false)
	}
	switch {
	case to == c.nobodys:
		return nil
	case to.owner == nil:
		return to
	case to.owner.has(commit):
		return c.removed
	case c.tenant.id == "":
		return nil
	case to.dropped():
		return c.add(s, true)
	}
	return to
}

// relabel leaves the series' final labels in the builder; false if the rules remove it.
// External labels do not override labels that the series has, and they are there for the
// rules to see, as in Prometheus.
func (c *seriesCache) relabel(s *wal.Series) bool {
	c.builder.Reset(s.Labels)
	c.external.Range(func(l labels.Label) {
		if !s.Labels.Has(l.Name) {
			c.builder.Set(l.Name, l.Value)
		}
	})
	return relabel.ProcessBuilder(c.builder, c.rules...)
}

// derive makes the series; whole is as in add.
func (c *seriesCache) derive(s *wal.Series, whole bool) *series {
	if !c.relabel(s) {
		return c.removed
	}
	var o *owner
	if c.tenant != nil {
		var mine bool
		o, mine = c.tenant.sort(c.builder)
		if !mine {
			return c.removed
		}
		switch {
		case o != nil && !whole:
			return &series{from: s, owner: o}
		case c.tenant.id == "":
			return c.nobodys
		}
	}
	utf8Names := c.builder.Labels()
	ls := c.legal(utf8Names)
	if ls.IsEmpty() {
		return c.removed
	}
	c.encoded = appendLabels(c.encoded[:0], keySeriesLabel, ls)
	to := &series{from: s, hash: ls.Hash(), encoded: string(c.encoded), newest: noneTaken, owner: o}
	if c.moderns != nil {
		to.modern = c.modern(s.Meta(), utf8Names, to.encoded)
	}
	if c.recall != nil {
		c.recall(to)
	}
	return to
}

// modern makes what remote write 2.0 adds to a series with these labels.
func (c *seriesCache) modern(meta metadata.Metadata, ls labels.Labels, legal string) *modern {
	c.encoded = appendLabels(c.encoded[:0], keySeriesLabel, c.valid(ls))
	m := modern{
		typ:  byte(writev2.FromMetadataType(meta.Type)),
		help: strings.ToValidUTF8(meta.Help, "\uFFFD"),
		unit: strings.ToValidUTF8(meta.Unit, "\uFFFD"),
	}
	if string(c.encoded) != legal {
		m.labels = string(c.encoded)
		return &m
	}
	if m == (modern{}) {
		return nil
	}
	if shared := c.moderns[meta]; shared != nil {
		return shared
	}
	if len(c.moderns) >= maxFamilies { // of which many are gone
		clear(c.moderns)
	}
	c.moderns[meta] = &m
	return &m
}

// valid returns ls as the specification of remote write 2.0 allows it: names may be any
// UTF-8. Wrong bytes become U+FFFD; if that makes names equal, legal's form is sent.
func (c *seriesCache) valid(ls labels.Labels) labels.Labels {
	ok := true
	ls.Range(func(l labels.Label) { ok = ok && utf8.ValidString(l.Name) && utf8.ValidString(l.Value) })
	if ok {
		return ls
	}
	c.scratch.Reset()
	ls.Range(func(l labels.Label) {
		c.scratch.Add(strings.ToValidUTF8(l.Name, "\uFFFD"), strings.ToValidUTF8(l.Value, "\uFFFD"))
	})
	c.scratch.Sort()
	valid := c.scratch.Labels()
	if _, twice := valid.HasDuplicateLabelNames(); twice {
		return c.legal(ls)
	}
	return valid
}

// legal returns ls as the specification of remote write 1.0 allows it: metric names
// of [a-zA-Z_:][a-zA-Z0-9_:]*, label names of [a-zA-Z_][a-zA-Z0-9_]*, and valid UTF-8,
// which protocol buffers demand of every string. Other runes of a name become
// underscores, as in Prometheus' underscore escaping; when that makes two label names
// of a series equal, their values are joined by ";" in the order of the original
// names, as the OpenTelemetry translation does. A wrong byte of a value becomes U+FFFD.
// A receiver would refuse such a sample for ever; this way it arrives.
func (c *seriesCache) legal(ls labels.Labels) labels.Labels {
	ok := true
	ls.Range(func(l labels.Label) {
		switch {
		case l.Name == model.MetricNameLabel:
			ok = ok && model.LegacyValidation.IsValidMetricName(l.Value)
		default:
			ok = ok && model.LegacyValidation.IsValidLabelName(l.Name) && utf8.ValidString(l.Value)
		}
	})
	if ok {
		return ls
	}
	values := map[string]string{}
	ls.Range(func(l labels.Label) {
		name, value := l.Name, strings.ToValidUTF8(l.Value, "\uFFFD")
		if name == model.MetricNameLabel {
			value = model.EscapeName(value, model.UnderscoreEscaping)
		} else {
			name = legalLabelName(name)
		}
		if before, twice := values[name]; twice {
			value = before + ";" + value
		}
		values[name] = value
	})
	c.scratch.Reset()
	for name, value := range values {
		c.scratch.Add(name, value)
	}
	c.scratch.Sort()
	return c.scratch.Labels()
}

// legalLabelName differs from a metric name in the colon.
func legalLabelName(name string) string {
	name = model.EscapeName(name, model.UnderscoreEscaping)
	return strings.ReplaceAll(name, ":", "_")
}
