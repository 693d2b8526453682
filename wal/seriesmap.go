package wal

import (
	"cmp"
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
	maxLabelBytes  = 1 << 20
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

// memSeries is one label set with recent samples. The seriesMap's mutex guards the mutable
// fields. There may be millions, so it takes only 80 bytes.
type memSeries struct {
	ref    uint64     // immutable
	labels packed     // immutable
	next   *memSeries // in seriesMap.byHash

	about *About // never nil; shared with other series

	// The newest committed sample; see seriesMap.lastLocked.
	t int64
	v float64

	// owner is a batch with samples of the series. place locates the newest of them, unless the
	// committed sample is newer. A second batch with samples of the series tracks its newest one
	// in batch.others.
	owner *batch
	place place

	epoch uint32 // identifies the last segment file that announced the series; 0: none
	used  uint32 // seriesMap.tick of the last append

	committed bool // there is a committed sample
	native    bool // it is a histogram, which is in seriesMap.natives
	described bool // the segment file of epoch also has the current metadata
}

// seriesMap finds series by reference and by labels. It is safe for concurrent use.
type seriesMap struct {
	symbols *symbols
	seed    maphash.Seed

	mu     sync.Mutex
	byRef  refs.Table[memSeries]
	byHash *refs.Chains[memSeries] // by the hash of the packed labels

	announced, packed []byte // scratch of findLocked

	// ref is the last reference assigned. It starts at a random value, so that a reference kept
	// from an earlier process is unknown and does not identify another series.
	ref uint64

	natives map[*memSeries]native // the newest committed samples that are histograms

	// ended are series that were removed and that readers may still hold. The next commits announce their end (see
	// encoder.end), so readers need not hold them until two further segments have passed.
	ended []*memSeries

	abouts  *abouts
	unknown *About // of a series without metadata and family

	idle  time.Duration // seriesIdle, or longer
	tick  uint32        // seconds since an arbitrary time, advanced by evict; lasts 136 years
	swept uint32        // tick of the last search for idle series
}

func newSeriesMap() *seriesMap {
	seed := maphash.MakeSeed()
	return &seriesMap{
		symbols: newSymbols(),
		seed:    seed,
		byHash:  refs.NewChains(func(s *memSeries) uint64 { return maphash.String(seed, string(s.labels)) }, func(s *memSeries) **memSeries { return &s.next }),
		natives: map[*memSeries]native{},
		abouts:  newAbouts(),
		unknown: &About{},
		idle:    seriesIdle,
		ref:     1 + rand.Uint64N(1<<48), // #nosec G404 -- not a secret; short, because metadata records hold it as varint
	}
}

// getLocked returns the series of ls, and creates it if there is none.
func (m *seriesMap) getLocked(ls labels.Labels) (*memSeries, error) {
	ls = ls.WithoutEmpty()
	if s := m.findLocked(ls); s != nil {
		return s, nil
	}
	if err := checkLabels(ls); err != nil {
		return nil, err
	}
	m.ref++
	s := &memSeries{ref: m.ref, labels: m.symbols.hold(m.announced), about: m.unknown}
	m.byHash.Add(s)
	m.byRef.Put(s.ref, s)
	return s, nil
}

// findLocked returns the series of ls, which has no empty labels, or nil. m.announced is then the announcement of ls.
func (m *seriesMap) findLocked(ls labels.Labels) *memSeries {
	m.announced = appendAnnouncement(m.announced[:0], ls)
	var ok bool
	if m.packed, ok = m.symbols.find(m.packed[:0], m.announced); !ok {
		return nil
	}
	return m.byHash.Find(maphash.Bytes(m.seed, m.packed), func(s *memSeries) bool { return string(s.labels) == string(m.packed) })
}

// find returns the reference of the series of ls, 0 if there is none.
func (m *seriesMap) find(ls labels.Labels) uint64 {
	ls = ls.WithoutEmpty()
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.findLocked(ls); s != nil {
		return s.ref
	}
	return 0
}

// lastLocked is the newest committed sample of a series that has one.
func (m *seriesMap) lastLocked(s *memSeries) lastSample {
	l := lastSample{t: s.t, v: s.v}
	if s.native {
		l.native = m.natives[s]
	}
	return l
}

// settleLocked records a committed sample of a series, of a batch with that bound; see newer.
func (m *seriesMap) settleLocked(s *memSeries, l *lastSample, ahead int64) {
	if s.committed && !newer(l.t, s.t, ahead) {
		return
	}
	was := s.native
	s.t, s.v, s.committed, s.native = l.t, l.v, true, !l.isFloat()
	switch {
	case s.native:
		m.natives[s] = l.native
	case was:
		delete(m.natives, s)
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
func (m *seriesMap) describeLocked(s *memSeries, meta *metadata.Metadata, family string) {
	said := bounded(*meta)
	newMeta := (family != "" || !said.IsEmpty()) && !said.Equals(s.about.Meta)
	newFamily := family != "" && family != s.about.Family && len(family) <= maxFamilyBytes
	if !newMeta && !newFamily {
		return
	}
	d := *s.about
	if newMeta {
		d.Meta = said
		if len(said.Help) < len(meta.Help) {
			d.Meta.Help = strings.Clone(said.Help)
		}
	}
	if newFamily {
		d.Family = strings.Clone(family) // it may be a part of a large string
	}
	s.about, s.described = m.abouts.share(d), false
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

// get returns the series of a reference, nil if it is unknown. Callers may read only what is immutable.
func (m *seriesMap) get(ref uint64) *memSeries {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byRef.Get(ref)
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
	m.forgetLocked(func(s *memSeries) bool {
		limit := m.idle
		if !s.native && value.IsStaleNaN(s.v) {
			limit = seriesStale
		}
		return m.tick-s.used > uint32(limit/time.Second)
	})
}

// forgetLocked forgets the series for which which returns true.
func (m *seriesMap) forgetLocked(which func(*memSeries) bool) {
	before := len(m.ended)
	m.byRef.RemoveIf(func(s *memSeries) bool {
		if !which(s) {
			return false
		}
		m.byHash.Remove(s)
		leave(m.symbols, s, s.labels)
		delete(m.natives, s)
		if s.epoch != 0 && len(m.ended) < maxEnded {
			m.ended = append(m.ended, s)
		}
		return true
	})
	slices.SortFunc(m.ended[before:], func(a, b *memSeries) int { return cmp.Compare(a.ref, b.ref) }) // their record is short
}

// saidEnded removes the first n of the ended series, whose end is in the log.
func (m *seriesMap) saidEnded(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended = slices.Delete(m.ended, 0, n); len(m.ended) == 0 {
		m.ended = nil // there may have been very many
	}
}

// size is the number of series.
func (m *seriesMap) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byRef.Len()
}
