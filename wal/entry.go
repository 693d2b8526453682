package wal

import (
	"cmp"
	"runtime"
	"sync/atomic"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/wal/queue"
)

// Series is one label set with its metadata and family, shared by the appender and all cursors of a log. A cursor returns
// the same *Series for the same labels in all segments, until it evicts the idle series or its metadata
// changes. Consumers may therefore cache data derived from it. Any goroutine may read it.
//
// There may be millions, so it takes only 96 bytes. It stays in the seriesMap as long as the appender or a cursor has it.
// While cursors are at places with different metadata, each metadata has a Series. All of these have the same reference and slot.
type Series struct {
	appended // first, because each append uses it

	ref    uint64 // identifies the labels to the appender
	labels packed
	next   *Series // in seriesMap.byHash

	// About is the last metadata and family announced for the series, zero without an announcement. Series of the
	// same family share it. It is set before a cursor returns the series, and immutable then.
	About *About

	slot uint32

	// holders is the number of cursor tables that have the series, isGone after the last one, 0 before the first.
	// Writers hold the mutex of the seriesMap.
	holders atomic.Int32
}

// appended is the appender's part of a series, zero while it does not have the series. The mutex of the seriesMap guards it.
type appended struct {
	said *About // by inputs; shared with other series

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

	live      bool // the appender has the series, in seriesMap.byRef
	committed bool // there is a committed sample
	native    bool // it is a histogram, which is in seriesMap.natives
	described bool // the segment file of epoch also has the current metadata
}

// NewSeries returns a series that no log returns. If about is that of a log's series, they share the memory of labels.
func NewSeries(slot int, ls labels.Labels, about *About) *Series {
	if about = cmp.Or(about, &About{}); about.symbols == nil {
		about = &About{Meta: about.Meta, Family: about.Family, symbols: newSymbols()}
	}
	s := &Series{slot: uint32(slot), labels: about.symbols.hold(appendAnnouncement(nil, ls)), About: about} // #nosec G115 -- few
	runtime.AddCleanup(s, about.symbols.release, s.labels)
	return s
}

// Slot is a small dense index, below the greatest number of label sets that the log and its cursors had
// at a time. After a change of metadata the new series has the slot of the old one, and so replaces it in
// a cache. Slots are reused after eviction, so a cache indexed by Slot must compare the *Series pointer too.
func (s *Series) Slot() int { return int(s.slot) }

// Labels makes the labels of the series, also after it is gone.
func (s *Series) Labels() labels.Labels {
	var few [24]labels.Label
	return labels.New(s.AppendLabels(few[:0])...)
}

// AppendLabels appends the labels of the series, also after it is gone, to dst, in the order of their names. Equal texts
// of different series usually share their memory.
func (s *Series) AppendLabels(dst []labels.Label) []labels.Label {
	defer runtime.KeepAlive(s) // the labels are held as long as it can be reached
	return s.About.symbols.labels(dst, s.labels)
}

// Name returns the metric name, "" if there is none. It costs less than Labels.
func (s *Series) Name() string {
	defer runtime.KeepAlive(s)
	return s.About.symbols.value(s.labels, model.MetricNameLabel)
}

// isGone is the value of Series.holders after all cursors have released the series.
const isGone = -1

// Gone reports whether all cursors have released the series. They will not return it again, so a consumer can forget data
// derived from it. Safe for concurrent use.
func (s *Series) Gone() bool { return s.holders.Load() == isGone }

// Meta is the last metadata announced for the series; zero if there is none.
func (s *Series) Meta() metadata.Metadata { return s.About.Meta }

// Family is the name of the series' metric family, "" if appenders did not give one.
func (s *Series) Family() string { return s.About.Family }

// About is the metadata and family that appenders gave for a series. It is immutable.
type About struct {
	Meta   metadata.Metadata
	Family string // "" if appenders did not give one

	symbols *symbols // what the labels of its series mean
}

// bytes is the approximate memory that a takes.
func (a *About) bytes() int { return 64 + len(a.Meta.Help) + len(a.Meta.Unit) + len(a.Family) }

// abouts shares one *About among all series with equal values. It may forget values: later
// equal ones are then not shared with earlier ones, which only costs memory.
type abouts struct {
	symbols *symbols
	shared  map[About]*About
	bytes   int // of all shared values
}

// maxAboutBytes bounds abouts. A family takes one or two values of some hundred bytes each,
// unless a sender changes its help all the time.
const maxAboutBytes = 4 << 20

func newAbouts(y *symbols) *abouts { return &abouts{symbols: y, shared: map[About]*About{}} }

// share returns the shared value equal to a, and adds it if there is none.
func (s *abouts) share(a About) *About {
	a.symbols = s.symbols
	if shared := s.shared[a]; shared != nil {
		return shared
	}
	if s.bytes += a.bytes(); s.bytes > maxAboutBytes {
		clear(s.shared)
		s.bytes = a.bytes()
	}
	s.shared[a] = &a
	return &a
}

// Sample is one float sample.
type Sample struct {
	Series *Series
	ST, T  int64 // start timestamp (0 = unknown) and timestamp, milliseconds since the epoch
	V      float64
}

// Histogram is one native histogram sample; exactly one of H and FH is set.
type Histogram struct {
	Series *Series
	ST, T  int64 // as in Sample
	H      *histogram.Histogram
	FH     *histogram.FloatHistogram
}

// Exemplar is an exemplar of a series. Totals do not count exemplars.
type Exemplar struct {
	Series *Series
	T      int64
	V      float64
	Labels labels.Labels
}

// Entry is one commit, as [Lane.Next] returns it. The slices and their elements are
// valid until the following call of Next: a consumer copies the values that it keeps
// (it may keep the *Series).
type Entry struct {
	// End is the mark of this commit; acknowledging the entry means advancing to it.
	End Mark

	// MinT and MaxT bound the timestamps of the samples, milliseconds.
	MinT, MaxT int64

	Samples    []Sample
	Histograms []Histogram
	Exemplars  []Exemplar

	// Ended are series that the log does not use any more: a consumer can forget data derived from them. It may
	// leave some out, and this entry may begin one of them again.
	Ended []*Series

	// Missing counts, by reason (Damage or PowerCut), acknowledged samples between the
	// previous entry and the end of this one that can no longer be read. Totals differ by
	// exactly the samples of this entry plus these:
	//
	// Invariant: End.Total - previous.End.Total = Count() + Missing.Lost(). If the log
	// dropped data in between (for the budget, and already counted in the ledger),
	// previous.End is the mark where the dropped data ends.
	Missing queue.Outcome
}

// Count is the number of samples in the entry as the ledger counts them.
func (e *Entry) Count() uint64 { return uint64(len(e.Samples) + len(e.Histograms)) }
