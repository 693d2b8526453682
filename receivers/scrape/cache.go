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

	"hwsagent/internal/refs"
)

// familyScrapes is for how many scrapes the description of a metric family is kept after it was
// last shown.
const familyScrapes = 10

// cache is the state that a loop keeps of a target between scrapes: the series by the digests of
// their texts, and the metric families. It belongs to one goroutine at a time.
type cache struct {
	used   bool   // a loop has scraped with it
	scrape uint32 // number of the current scrape
	// series are in the order of the last successful scrape. Targets show their series in the same order each time, which saves
	// most look-ups and most parsing of labels.
	series refs.List[series]
	at     int // position of the series of the current line; the next one is expected behind it. -1 at the start
	// byDigest are the positions of all series, nil until a scrape needs them: one that shows all series in order does not.
	byDigest *refs.Positions
	// order are the positions of the series that the current scrape has shown, nil while they ascend. newest is the last of them.
	order  []uint32
	newest int

	// digest is the digest of a series' text as the target shows it. Its key is random, so that a target cannot construct
	// texts with the same digest.
	digest   func(text []byte) uint64
	families map[string]*family
	numbers  uint32 // given to families
	steady   int    // number of series and families after the last successful scrape

	// seen and tracked count the series that the current scrape has shown or tracked; kept, those of them that were
	// also tracked in the previous scrape; before, those tracked in the previous scrape.
	seen, tracked, kept, before int
}

// series is a line of a target, without value and time. An agent may have a million: it takes 24 bytes, and the log alone
// has the labels.
type series struct {
	digest uint64            // of the text that the target shows; see cache.digest
	ref    storage.SeriesRef // 0 if the log has never accepted a sample
	text   uint32            // the bytes of the text, above the flags
	family uint32            // number of the family that the page described before it, when that was checked last
}

// flags are properties of a series.
type flags uint32

const (
	plain         flags = 1 << iota // the text comes from the text format
	dropped                         // metric_relabel_configs drop it: ref and tracking are not used
	odd                             // the last scrape that showed it has an odd number; see cache.shown
	tracked                         // that scrape has an accepted sample of it, and it is to be marked stale at its end
	trackedBefore                   // likewise in the scrape before that one
	inFamily                        // it belongs to that family

	flagBits = iota // a text has at most maxSeriesBytes, so that it fits above the flags
)

// seriesOf returns the series of a text without labels.
func (c *cache) seriesOf(text []byte) series {
	return series{digest: c.digest(text), text: uint32(len(text)) << flagBits} // #nosec G115 -- see flagBits
}

// size returns the bytes of the text.
func (s *series) size() int { return int(s.text >> flagBits) }

// is reports whether a series has a property.
func (s *series) is(f flags) bool { return s.text&uint32(f) != 0 }

// set sets whether a series has a property.
func (s *series) set(f flags, yes bool) {
	s.text &^= uint32(f)
	if yes {
		s.text |= uint32(f)
	}
}

// shown reports whether the current scrape has shown a series. One bit of the scrape's number is enough: a successful scrape
// removes the series that it has not shown, and after a failed one these pass for shown and not tracked, which means the same.
func (c *cache) shown(s *series) bool { return s.is(odd) == c.odd() }

// odd reports whether the number of the current scrape is odd.
func (c *cache) odd() bool { return c.scrape%2 == 1 }

// ends reports whether the previous scrape tracked a series, and the current one does not.
func (c *cache) ends(s *series) bool {
	if c.shown(s) {
		return s.is(trackedBefore) && !s.is(tracked)
	}
	return s.is(tracked)
}

// family is a metric family of a target.
type family struct {
	name   string
	meta   metadata.Metadata
	number uint32 // another one after each change of the type
	seen   uint32
}

func newCache() *cache {
	seed := maphash.MakeSeed()
	return &cache{
		digest: func(text []byte) uint64 { return maphash.Bytes(seed, text) },
		series: refs.NewList[series](), at: -1, families: map[string]*family{},
	}
}

// guess returns the series of the next line, if the target shows its series in the order of the last scrape; nil if
// there is none. It is valid until the next call of add.
func (c *cache) guess() *series {
	if c.at+1 >= c.series.Len() {
		return nil
	}
	return c.series.At(c.at + 1)
}

// find returns the series of a text, or nil. It compares the digest and the length: a false match is practically
// impossible. The series found is that of the current line, and valid until the next call of add.
func (c *cache) find(text []byte) *series {
	digest := c.digest(text)
	is := func(i int) bool {
		s := c.series.At(i)
		return s.digest == digest && s.size() == len(text)
	}
	i := c.at + 1
	if i >= c.series.Len() || !is(i) {
		i = c.positions().Find(digest, is)
	}
	if i < 0 {
		return nil
	}
	c.at = i
	return c.series.At(i)
}

// positions returns the positions of all series by digest.
func (c *cache) positions() *refs.Positions {
	if c.byDigest == nil {
		c.byDigest = refs.NewPositions(c.series.Len())
		for _, s := range c.series.All() {
			c.byDigest.Add(s.digest)
		}
	}
	return c.byDigest
}

// add adds a series that is not in the cache, as that of the current line, and returns where it is now.
func (c *cache) add(s series) *series {
	if c.byDigest != nil {
		c.byDigest.Add(s.digest)
	}
	s.set(odd, !c.odd())
	added := c.series.Add(s)
	c.at = c.series.Len() - 1
	c.show(added)
	return added
}

// show records that the page shows s, the series of the current line. It reports whether this is the first time in the scrape.
func (c *cache) show(s *series) bool {
	if c.shown(s) {
		return false
	}
	if c.at < c.newest && c.order == nil {
		c.order = make([]uint32, 0, c.series.Len())
		for i, s := range c.series.All() {
			if c.shown(s) {
				c.order = append(c.order, uint32(i)) // #nosec G115 -- memory ends before 2^32 series
			}
		}
	}
	if c.order != nil {
		c.order = append(c.order, uint32(c.at)) // #nosec G115 -- likewise
	}
	s.set(trackedBefore, s.is(tracked))
	s.set(tracked, false)
	s.set(odd, c.odd())
	c.newest = c.at
	c.seen++
	return true
}

// arrange moves the series into the order in which the current scrape has shown them, and those that it has not shown behind them.
func (c *cache) arrange() {
	for i, from := range c.order {
		for int(from) < i { // moved already, to make room for another one
			from = c.order[from]
		}
		a, b := c.series.At(i), c.series.At(int(from))
		*a, *b = *b, *a
	}
}

// track records an accepted sample of a series that is to be marked stale at its end. The current scrape has shown the series.
func (c *cache) track(s *series) {
	if s.is(tracked) {
		return
	}
	if s.is(trackedBefore) {
		c.kept++
	}
	s.set(tracked, true)
	c.tracked++
}

// family returns the metric family of that name, which the current scrape describes.
func (c *cache) family(name []byte) *family {
	f := c.families[string(name)]
	if f == nil {
		f = &family{name: string(name), meta: metadata.Metadata{Type: model.MetricTypeUnknown}, number: c.number()}
		c.families[f.name] = f
	}
	f.seen = c.scrape
	return f
}

// number returns a number that no family has. It repeats only after 2^32 of them.
func (c *cache) number() uint32 {
	c.numbers++
	return c.numbers
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
	if succeeded {
		c.arrange()
	}
	if (succeeded || forced) && c.seen < c.series.Len() {
		c.series.Keep(c.shown)
	}
	if !succeeded {
		for _, s := range c.series.All() {
			if !c.shown(s) {
				s.set(odd, c.odd())
				s.set(tracked, false)
			}
		}
	}
	if succeeded || forced {
		for name, f := range c.families {
			if c.scrape-f.seen > familyScrapes {
				delete(c.families, name)
			}
		}
	}
	c.scrape++
	c.at, c.newest, c.byDigest, c.order = -1, 0, nil, nil
	c.seen, c.tracked, c.kept, c.before = 0, 0, 0, c.tracked
	return forced
}

// markEnded appends a stale marker for each series that the previous scrape showed and the current
// one does not. It ends with the scrape's context, because there may be very many.
func (c *cache) markEnded(a *appender, t int64) error {
	if c.kept == c.before {
		return nil
	}
	var ended []*series
	for _, s := range c.series.All() {
		if c.ends(s) {
			ended = append(ended, s) // it stays where it is: nothing is added meanwhile
		}
	}
	// Relabelling may merge several lines into one series: it ends with the last of them.
	goesOn := map[storage.SeriesRef]bool{}
	for _, s := range c.series.All() {
		if c.shown(s) && s.is(tracked) {
			goesOn[s.ref] = true
		}
	}
	for i, s := range ended {
		if i%1024 == 0 && a.ctx.Err() != nil {
			return a.ctx.Err()
		}
		if goesOn[s.ref] {
			continue
		}
		goesOn[s.ref] = true // one marker is enough
		_, err := a.Append(s.ref, labels.EmptyLabels(), 0, t, math.Float64frombits(value.StaleNaN), nil, nil, storage.AOptions{RejectOutOfOrder: true})
		if err != nil && !needless(err) {
			return err
		}
	}
	return nil
}

// needless reports whether a stale marker was refused because the series has a newer sample, as when the
// target came back, or because the log has forgotten the series.
func needless(err error) bool {
	return errors.Is(err, storage.ErrOutOfOrderSample) || errors.Is(err, storage.ErrDuplicateSampleForTimestamp) || errors.Is(err, storage.ErrNotFound)
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
