package scrape

import (
	"errors"
	"hash/maphash"
	"math"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/refs"
)

// familyScrapes is for how many scrapes the description of a metric family is kept after it was
// last shown.
const familyScrapes = 10

// cache is the state that a loop keeps of a target between scrapes: the series by the digests of
// their texts, and the metric families. It belongs to one goroutine at a time.
type cache struct {
	scrape uint32 // number of the current scrape
	series *refs.Chains[series]
	// digest and second are two digests of a series' text as the target shows it. Their keys are random, so that a
	// target cannot construct texts with the same digests.
	digest   func(text []byte) uint64
	second   func(text []byte) uint16
	families map[string]*family
	steady   int // number of series and families after the last successful scrape

	// seen and tracked count the series whose field of that name equals scrape; kept, those of them that were
	// also tracked in the previous scrape; before, those tracked in the previous scrape.
	seen, tracked, kept, before int

	// Targets show their series in the same order each time: last.next is expected after last, and
	// begin at the start. This saves most look-ups and most parsing of labels.
	begin, last *series
}

// series is a line of a target, without value and time. A target may have a million: it takes 64 bytes.
type series struct {
	digest  uint64  // of the text that the target shows, like second; see cache.digest
	link    *series // used by cache.series
	size    uint32  // bytes of the text
	second  uint16
	plain   bool // the text comes from the text format
	dropped bool // metric_relabel_configs drop it; of the fields below only seen and next are used then

	labels  labels.Labels
	ref     storage.SeriesRef // 0 if the log has never accepted a sample
	seen    uint32            // last scrape that showed it; 0: removed from the cache
	tracked uint32            // last scrape with an accepted sample of a series to be marked stale at its end
	next    *series           // successor in the last scrape; nil if gone
}

// family is a metric family of a target.
type family struct {
	name string
	meta metadata.Metadata
	seen uint32
}

func newCache() *cache {
	first, second := maphash.MakeSeed(), maphash.MakeSeed()
	return &cache{
		scrape: 2, // tracked and seen begin at 0
		digest: func(text []byte) uint64 { return maphash.Bytes(first, text) },
		second: func(text []byte) uint16 { return uint16(maphash.Bytes(second, text)) }, // #nosec G115 -- a part of it
		series: refs.NewChains(func(s *series) uint64 { return s.digest }, func(s *series) **series { return &s.link }), families: map[string]*family{},
	}
}

// guess returns the series of the next line, if the target shows its series in the order of the last scrape; nil if
// there is none.
func (c *cache) guess() *series {
	guess := c.begin
	if c.last != nil {
		guess = c.last.next
	}
	if guess == nil || guess.seen == 0 {
		return nil
	}
	return guess
}

// follow records that s came after last.
func (c *cache) follow(s *series) {
	if c.last == nil {
		c.begin = s
	} else {
		c.last.next = s
	}
	c.last = s
}

// find returns the series of a text, or nil. It compares both digests and the length: a false match is practically
// impossible.
func (c *cache) find(text []byte) *series {
	digest, second := c.digest(text), c.second(text)
	is := func(s *series) bool {
		return s.digest == digest && s.second == second && int(s.size) == len(text)
	}
	if s := c.guess(); s != nil && is(s) {
		return s
	}
	return c.series.Find(digest, is)
}

// add adds a series that is not in the cache.
func (c *cache) add(s *series) {
	c.show(s)
	c.series.Add(s)
	c.follow(s)
}

// forget removes the series that the current scrape did not show.
func (c *cache) forget() {
	c.series.RemoveIf(func(s *series) bool {
		if s.seen == c.scrape {
			return false
		}
		s.seen, s.next = 0, nil
		return true
	})
}

// show records that the page shows a series. It reports whether this is the first time in the scrape.
func (c *cache) show(s *series) bool {
	if s.seen == c.scrape {
		return false
	}
	s.seen = c.scrape
	c.seen++
	return true
}

// track records an accepted sample of a series that is to be marked stale at its end.
func (c *cache) track(s *series) {
	if s.tracked == c.scrape {
		return
	}
	if s.tracked == c.scrape-1 {
		c.kept++
	}
	s.tracked = c.scrape
	c.tracked++
}

// family returns the metric family of that name, which the current scrape describes.
func (c *cache) family(name []byte) *family {
	f := c.families[string(name)]
	if f == nil {
		f = &family{name: string(name), meta: metadata.Metadata{Type: model.MetricTypeUnknown}}
		c.families[f.name] = f
	}
	f.seen = c.scrape
	return f
}

// end ends a scrape. After a successful scrape it removes the entries that the scrape did not show. After
// a failed one it does so only if the cache has grown a lot: a target whose scrapes all fail may show
// different series each time. forced reports that this was necessary.
func (c *cache) end(succeeded bool) (forced bool) {
	count := c.series.Len() + len(c.families)
	if succeeded {
		c.steady = count
	} else {
		forced = count > 2*c.steady+1000
	}
	if (succeeded || forced) && c.seen < c.series.Len() {
		c.forget()
	}
	if succeeded || forced {
		for name, f := range c.families {
			if c.scrape-f.seen > familyScrapes {
				delete(c.families, name)
			}
		}
	}
	c.scrape++
	c.last = nil
	c.seen, c.tracked, c.kept, c.before = 0, 0, 0, c.tracked
	return forced
}

// markEnded appends a stale marker for each series that the previous scrape showed and the current
// one does not.
func (c *cache) markEnded(a *appender, t int64) error {
	if c.kept == c.before {
		return nil
	}
	var ended []*series
	for s := range c.series.All() {
		if s.tracked == c.scrape-1 {
			ended = append(ended, s)
		}
	}
	// Relabelling may merge several lines into one series: it ends with the last of them.
	goesOn := map[storage.SeriesRef]bool{}
	for s := range c.series.All() {
		if s.tracked == c.scrape {
			goesOn[s.ref] = true
		}
	}
	for _, s := range ended {
		if goesOn[s.ref] {
			continue
		}
		goesOn[s.ref] = true // one marker is enough
		_, err := a.Append(s.ref, s.labels, 0, t, math.Float64frombits(value.StaleNaN), nil, nil, storage.AOptions{RejectOutOfOrder: true})
		if err != nil && !wentOn(err) {
			return err
		}
	}
	return nil
}

// wentOn reports whether a stale marker was refused because the series has a newer sample, as when the
// target came back.
func wentOn(err error) bool {
	return errors.Is(err, storage.ErrOutOfOrderSample) || errors.Is(err, storage.ErrDuplicateSampleForTimestamp)
}

// has reports whether a series of that name belongs to the family: the text formats describe a family in
// separate lines and do not mark its end.
func (f *family) has(name string) bool {
	if !strings.HasPrefix(name, f.name) {
		return false
	}
	want := f.name
	switch f.meta.Type {
	case model.MetricTypeCounter: // Prometheus' text has the suffix in both names
		want, name = strings.TrimSuffix(want, "_total"), strings.TrimSuffix(name, "_total")
	case model.MetricTypeInfo:
		want, name = strings.TrimSuffix(want, "_info"), strings.TrimSuffix(name, "_info")
	case model.MetricTypeHistogram:
		name = withoutOne(name, "_bucket", "_sum", "_count")
	case model.MetricTypeGaugeHistogram:
		name = withoutOne(name, "_bucket", "_gsum", "_gcount")
	case model.MetricTypeSummary:
		name = withoutOne(name, "_sum", "_count")
	}
	return name == want
}

func withoutOne(name string, suffixes ...string) string {
	for _, s := range suffixes {
		if short, ok := strings.CutSuffix(name, s); ok {
			return short
		}
	}
	return name
}
