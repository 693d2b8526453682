package wal

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/refs"
)

// seriesIdle is the time without a sample after which the log forgets a series, including
// its newest sample, against which the order of samples is checked. [Log.Remember] can
// extend it.
const seriesIdle = time.Hour

// seriesStale replaces seriesIdle for a series marked stale. It is shorter because the
// appender has declared the series ended, and many series may come and go in an hour.
const seriesStale = 2 * time.Minute

// maxEnded bounds the series whose end the log has not said yet, which are many where the disk takes no commit for a long
// time. Readers release the others once two further segments have passed.
const maxEnded = 100_000

// sweepEvery is the interval of searches for idle series, in seconds.
const sweepEvery = 60

// Size limits of the parts of one series, in bytes. They keep every record far below
// segment.MaxRecord. Longer help is truncated; a longer unit or family is left out.
const (
	maxLabelBytes  = 64 << 10 // in memory as long as the series is known; probes have the same bound for their text
	maxHelpBytes   = 4 << 10
	maxUnitBytes   = 256
	maxFamilyBytes = 256

	maxHistogramBytes = 4 << 20  // of one sample
	maxExemplarBytes  = 64 << 10 // of an exemplar's labels
)

var errNoLabels = fmt.Errorf("the series has no labels, and its reference is %w", storage.ErrNotFound)

// lastSample is a sample of a series.
type lastSample struct {
	t int64
	v float64
	native
}

// native is a histogram: one field is nil. For a float sample both are nil.
type native struct {
	h  *histogram.Histogram
	fh *histogram.FloatHistogram
}

func (n native) isFloat() bool { return n.h == nil && n.fh == nil }

// same reports whether o has the same value, NaNs by their bits.
func (l *lastSample) same(o *lastSample) bool {
	switch {
	case l.isFloat() || o.isFloat():
		return l.native == o.native && math.Float64bits(l.v) == math.Float64bits(o.v)
	case o.h != nil:
		return l.h != nil && l.h.Equals(o.h)
	default:
		return l.fh != nil && l.fh.Equals(o.fh)
	}
}

// seriesMap has the series of the appender and of all cursors. It finds them by reference and by labels, and is safe for concurrent use.
type seriesMap struct {
	symbols *symbols
	seed    maphash.Seed

	mu     sync.Mutex
	byRef  refs.Table[Series]   // those that the appender has
	byHash *refs.Chains[Series] // all, by the hash of the packed labels

	announced, packed []byte // scratch

	// ref is the last reference assigned. It starts at a random value, so that a reference kept
	// from an earlier process is unknown and does not identify another series.
	ref uint64

	slots uint32   // number of slots created; series with the same labels share one
	free  []uint32 // unused slots

	natives map[uint64]native // by reference, the newest committed samples that are histograms

	// ended are references that the appender has forgotten and that readers may still have. The next commits announce their end
	// (see encoder.end), so readers need not hold their series until two further segments have passed.
	ended []uint64

	abouts  *abouts
	unknown *About // of a series without metadata and family

	idle  time.Duration // seriesIdle, or longer
	tick  uint32        // seconds since an arbitrary time, advanced by evict; lasts 136 years
	swept uint32        // tick of the last search for idle series
}

func newSeriesMap() *seriesMap {
	m := &seriesMap{
		symbols: newSymbols(),
		seed:    maphash.MakeSeed(),
		natives: map[uint64]native{},
		idle:    seriesIdle,
		ref:     1 + rand.Uint64N(1<<48), // #nosec G404 -- not a secret; short, because metadata records hold it as varint
	}
	m.abouts = newAbouts(m.symbols)
	m.unknown = m.abouts.share(About{})
	m.byHash = refs.NewChains(m.hash, func(s *Series) **Series { return &s.next })
	return m
}

func (m *seriesMap) hash(s *Series) uint64 { return maphash.String(m.seed, string(s.labels)) }

// getLocked returns the appender's series of ls, and begins it if there is none.
func (m *seriesMap) getLocked(ls labels.Labels) (*Series, error) {
	ls = ls.WithoutEmpty()
	m.announced = appendAnnouncement(m.announced[:0], ls)
	s := m.findLocked(m.announced)
	if s != nil && s.live {
		return s, nil
	}
	if err := checkLabels(ls); err != nil {
		return nil, err
	}
	if s == nil {
		s = m.makeLocked(m.announced)
	}
	s.appended = appended{live: true, said: m.unknown}
	m.byRef.Put(s.ref, s)
	return s, nil
}

// find returns the reference of the appender's series of ls, 0 if there is none.
func (m *seriesMap) find(ls labels.Labels) uint64 {
	ls = ls.WithoutEmpty()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.announced = appendAnnouncement(m.announced[:0], ls)
	if s := m.findLocked(m.announced); s != nil && s.live {
		return s.ref
	}
	return 0
}

// lastLocked is the newest committed sample of a series that has one.
func (m *seriesMap) lastLocked(s *Series) lastSample {
	l := lastSample{t: s.t, v: s.v}
	if s.native {
		l.native = m.natives[s.ref]
	}
	return l
}

// settleLocked records a committed sample of a series, of a batch with that bound; see newer.
func (m *seriesMap) settleLocked(s *Series, l *lastSample, ahead int64) {
	if s.committed && !newer(l.t, s.t, ahead) {
		return
	}
	if s.native {
		delete(m.natives, s.ref)
	}
	s.t, s.v, s.committed = l.t, l.v, true
	if s.native = !l.isFloat(); s.native {
		m.natives[s.ref] = l.native
	}
}

// checkLabels refuses labels that receivers or readers do not accept. Names must ascend and
// not be empty, because otherwise the whole record of announcements is unreadable.
func checkLabels(ls labels.Labels) error {
	if ls.IsEmpty() {
		return errNoLabels
	}
	if name, dup := ls.HasDuplicateLabelNames(); dup {
		return fmt.Errorf("label %q is there twice", name)
	}
	last, sorted := "", true
	ls.Range(func(l labels.Label) {
		sorted = sorted && l.Name > last
		last = l.Name
	})
	if !sorted {
		return fmt.Errorf("labels %s are not sorted by name, or a name is empty", ls)
	}
	if n := ls.ByteSize(); n > maxLabelBytes {
		return fmt.Errorf("labels take %d bytes, more than the %d that are allowed", n, maxLabelBytes)
	}
	return nil
}

// describeLocked records the metadata and the family that came with a sample, within their
// bounds. The next commit with the series announces them. An input that names only a family
// no longer knows the type. An input that gives neither changes nothing.
func (m *seriesMap) describeLocked(s *Series, meta *metadata.Metadata, family string) {
	if family == "" && meta.IsEmpty() || family == s.said.Family && *meta == s.said.Meta {
		return // as of most samples
	}
	d := *s.said
	if said := bounded(*meta); family != "" || !said.IsEmpty() {
		d.Meta = said
	}
	if family != "" && len(family) <= maxFamilyBytes {
		d.Family = family
	}
	if d == *s.said {
		return
	}
	d.Family = strings.Clone(d.Family) // it may be a part of a large string
	if len(d.Meta.Help) < len(meta.Help) {
		d.Meta.Help = strings.Clone(d.Meta.Help)
	}
	s.said, s.described = m.abouts.share(d), false
}

// bounded returns meta within the bounds of the log. It shares the memory of meta's strings.
func bounded(meta metadata.Metadata) metadata.Metadata {
	if len(meta.Help) > maxHelpBytes {
		n := maxHelpBytes
		for n > 0 && !utf8.RuneStart(meta.Help[n]) {
			n--
		}
		meta.Help = meta.Help[:n]
	}
	if len(meta.Unit) > maxUnitBytes {
		meta.Unit = ""
	}
	return meta
}

// remember implements [Log.Remember].
func (m *seriesMap) remember(idle time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle = max(seriesIdle, idle)
}

// evict forgets the series that have been idle for m.idle, or if marked stale for
// seriesStale. It checks all series only once a minute, because a check costs more than an
// append. now is the reading, in seconds, of any clock that only goes forward.
func (m *seriesMap) evict(now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tick = uint32(now) // #nosec G115 -- see tick
	if m.tick-m.swept < sweepEvery {
		return
	}
	m.swept = m.tick
	m.forgetLocked(func(s *Series) bool {
		limit := m.idle
		if !s.native && value.IsStaleNaN(s.v) {
			limit = seriesStale
		}
		return m.tick-s.used > uint32(limit/time.Second)
	})
}

// forgetLocked forgets the appender's series for which which returns true.
func (m *seriesMap) forgetLocked(which func(*Series) bool) {
	before := len(m.ended)
	m.byRef.RemoveIf(func(s *Series) bool {
		if !which(s) {
			return false
		}
		if s.epoch != 0 && len(m.ended) < maxEnded {
			m.ended = append(m.ended, s.ref)
		}
		delete(m.natives, s.ref)
		s.appended = appended{said: s.said} // of a batch that still has the series
		m.leaveLocked(s)
		return true
	})
	slices.Sort(m.ended[before:]) // their record is short
}

// saidEnded removes the first n of the ended references, whose end is in the log.
func (m *seriesMap) saidEnded(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended = slices.Delete(m.ended, 0, n); len(m.ended) == 0 {
		m.ended = nil // there may have been very many
	}
}

// size is the number of series that the appender has.
func (m *seriesMap) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byRef.Len()
}
