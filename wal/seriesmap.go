package wal

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"

	"hwsagent/refs"
)

// seriesIdle is how long a series may go without a sample before the log forgets it,
// and with it what the order of its samples is checked against, unless [Log.Remember] says that
// series are asked for longer.
const seriesIdle = time.Hour

// seriesStale is the same for a series that was marked stale: whoever appended to it says
// that it has ended, and a host may see many come and go in an hour.
const seriesStale = 5 * time.Minute

// sweepEvery is how often idle series are looked for, in seconds.
const sweepEvery = 60

// Bounds on what one series may bring along, in bytes. They keep every record far
// below segment.MaxRecord. Longer help is cut; a longer unit or family is left out.
const (
	maxLabelBytes  = 1 << 20
	maxHelpBytes   = 4 << 10
	maxUnitBytes   = 256
	maxFamilyBytes = 256

	maxHistogramBytes = 4 << 20  // of one sample
	maxExemplarBytes  = 64 << 10 // of an exemplar's labels
)

var errNoLabels = errors.New("series has no labels and its reference is unknown")

// lastSample is a sample of a series.
type lastSample struct {
	t int64
	v float64
	native
}

// native is a histogram; one of the two is nil, and both are of a float.
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

// memSeries is one label set that is being appended to. The seriesMap's mutex guards
// what is not immutable. There may be millions: it takes 80 bytes.
type memSeries struct {
	ref    uint64        // immutable
	labels labels.Labels // immutable
	next   *memSeries    // in seriesMap.byHash

	about *About // never nil; shared with other series

	// The newest committed sample; see seriesMap.lastLocked.
	t int64
	v float64

	// owner is a batch that holds samples of the series, and place where the newest of these is
	// that is not older than the committed one. A second batch that meets the series meanwhile
	// keeps its own account in batch.others.
	owner *batch
	place place

	epoch uint32 // names the segment file that has last announced the series; 0 is none
	used  uint32 // seriesMap.tick of the last append

	committed bool // there is a committed sample
	native    bool // it is a histogram, which is in seriesMap.natives
	described bool // the segment file of epoch has the present metadata, too
}

// seriesMap finds series by reference and by labels. It is safe for concurrent use.
type seriesMap struct {
	mu     sync.Mutex
	byRef  refs.Table[memSeries]
	byHash *refs.Chains[memSeries] // by the hash of the labels

	// ref is the reference given last. It starts at a random place, so that a reference
	// which a caller kept from an earlier process is unknown, and not another series.
	ref uint64

	natives map[*memSeries]native // the newest committed samples that are histograms

	abouts  *abouts
	unknown *About // of a series of which nothing was said

	idle  time.Duration // seriesIdle, or longer
	tick  uint32        // seconds since some moment, advanced by evict; it lasts for 136 years
	swept uint32        // tick when idle series were last looked for
}

func newSeriesMap() *seriesMap {
	return &seriesMap{
		byHash:  refs.NewChains(func(s *memSeries) uint64 { return s.labels.Hash() }, func(s *memSeries) **memSeries { return &s.next }),
		natives: map[*memSeries]native{},
		abouts:  newAbouts(),
		unknown: &About{},
		idle:    seriesIdle,
		ref:     1 + rand.Uint64N(1<<48), // #nosec G404 -- not a secret; short, because metadata records hold it as varint
	}
}

// getLocked returns the series of ls, and makes it if there is none.
func (m *seriesMap) getLocked(ls labels.Labels) (*memSeries, error) {
	ls = ls.WithoutEmpty()
	if s := m.byHash.Find(ls.Hash(), func(s *memSeries) bool { return labels.Equal(s.labels, ls) }); s != nil {
		return s, nil
	}
	if err := checkLabels(ls); err != nil {
		return nil, err
	}
	m.ref++
	s := &memSeries{ref: m.ref, labels: ls, about: m.unknown}
	m.byHash.Add(s)
	m.byRef.Put(s.ref, s)
	return s, nil
}

// find is the series of ls, nil if there is none. Its reference and its labels may be read.
func (m *seriesMap) find(ls labels.Labels) *memSeries {
	ls = ls.WithoutEmpty()
	hash := ls.Hash()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byHash.Find(hash, func(s *memSeries) bool { return labels.Equal(s.labels, ls) })
}

// lastLocked is the newest committed sample of a series that has one.
func (m *seriesMap) lastLocked(s *memSeries) lastSample {
	l := lastSample{t: s.t, v: s.v}
	if s.native {
		l.native = m.natives[s]
	}
	return l
}

// settleLocked notes a committed sample of a series.
func (m *seriesMap) settleLocked(s *memSeries, l *lastSample) {
	if s.committed && l.t <= s.t {
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

// checkLabels refuses labels that no receiver could take or no reader read: names ascend
// and are not empty, or what is announced in the same record is unreadable too.
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

// describeLocked notes the metadata and the family that came with a sample, within their
// bounds. They are announced with the next commit that holds the series. An input that names
// a family and gives no metadata does not know its type any more; one that names no family
// gives no description.
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
		d.Family = strings.Clone(family) // it may be a part of something large
	}
	s.about, s.described = m.abouts.share(d), false
}

// bounded is meta within the bounds of the log. It shares the memory of meta's texts.
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

// labelsOf are the labels of a reference, empty if it is unknown.
func (m *seriesMap) labelsOf(ref uint64) labels.Labels {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.byRef.Get(ref); s != nil {
		return s.labels
	}
	return labels.EmptyLabels()
}

// remember is [Log.Remember].
func (m *seriesMap) remember(idle time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle = max(seriesIdle, idle)
}

// evict forgets the series that have been idle for m.idle, those marked stale for
// seriesStale, or a little longer: it looks for them once a minute, because looking at
// each series costs more than appending to it. now is any clock that only goes forward,
// in seconds.
func (m *seriesMap) evict(now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tick = uint32(now) // #nosec G115 -- see tick
	if m.tick-m.swept < sweepEvery {
		return
	}
	m.swept = m.tick
	m.byRef.RemoveIf(func(s *memSeries) bool {
		limit := m.idle
		if !s.native && value.IsStaleNaN(s.v) {
			limit = seriesStale
		}
		idle := m.tick-s.used > uint32(limit/time.Second)
		if idle {
			m.byHash.Remove(s)
			delete(m.natives, s)
		}
		return idle
	})
}

// size is the number of series.
func (m *seriesMap) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byRef.Len()
}
