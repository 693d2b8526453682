package wal

import (
	"sync/atomic"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
)

// Series is one label set with its metadata and family, as the cursors of a log have it. A cursor hands
// out the same *Series for the same labels, in whichever segment they appear, until it evicts the series
// for being idle or its metadata changes; a consumer may therefore cache what it derives from it. All
// cursors of the log share it. It may be read from any goroutine.
type Series struct {
	// Slot is a small dense index: below the greatest number of label sets that the cursors of the log held
	// at a time. A series with other metadata has the slot of the one before, whose place in a cache it so takes.
	// A slot is reused after eviction, so a cache indexed by it must compare the *Series pointer too.
	Slot int

	// Labels are immutable.
	Labels labels.Labels

	// About is the newest that was announced about the series, nil if nothing was. Others of
	// its family share it.
	About *About

	// holders is how many tables of cursors have it, or isGone. The pool's mutex guards it, but for reading.
	holders atomic.Int32
	hash    uint32 // of the encoded labels; the pool's
}

// isGone stands in Series.holders when the series has left the pool.
const isGone = -1

// Gone reports whether no cursor has the series any more. None will hand it out again, so a consumer can forget data that it
// derived from it. Safe for concurrent use.
func (s *Series) Gone() bool { return s.holders.Load() == isGone }

// Meta is the newest metadata announced for the series; zero if there is none.
func (s *Series) Meta() metadata.Metadata {
	if s.About == nil {
		return metadata.Metadata{}
	}
	return s.About.Meta
}

// Family is the name of the series' metric family, "" when the appender did not say.
func (s *Series) Family() string {
	if s.About == nil {
		return ""
	}
	return s.About.Family
}

// About is what appenders said about a series. It never changes.
type About struct {
	Meta   metadata.Metadata
	Family string // "" if no appender said
}

// bytes is about how much memory a takes.
func (a *About) bytes() int { return 64 + len(a.Meta.Help) + len(a.Meta.Unit) + len(a.Family) }

// abouts has one *About for all series of which the same was said. It may forget: then
// equal ones are no longer shared, which costs memory and nothing else.
type abouts struct {
	shared map[About]*About
	bytes  int // of all that are shared
}

// maxAboutBytes bounds abouts. A family takes one or two of some hundred bytes each, unless
// a sender changes its help all the time.
const maxAboutBytes = 4 << 20

func newAbouts() *abouts { return &abouts{shared: map[About]*About{}} }

// share finds the shared one that equals a, or makes it.
func (s *abouts) share(a About) *About {
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

// Exemplar belongs to the series' samples of the same commit. Exemplars are not
// counted in totals.
type Exemplar struct {
	Series *Series
	T      int64
	V      float64
	Labels labels.Labels
}

// Entry is one commit, as [Reader.Next] yields it. The slices, and what they hold,
// are valid until the following call of Next: a consumer copies the values that it
// keeps (the *Series may be kept).
type Entry struct {
	// End is the mark of this commit; acknowledging the entry means advancing to it.
	End Mark

	// MinT and MaxT bound the timestamps of the samples, milliseconds.
	MinT, MaxT int64

	Samples    []Sample
	Histograms []Histogram
	Exemplars  []Exemplar

	// Missing counts samples that were acknowledged, lie between the entry that Next
	// yielded before and the end of this one, and cannot be read any more, by reason
	// (Damage or PowerCut). Totals differ by exactly the samples here plus these:
	//
	// Invariant: End.Total - previous.End.Total = Count() + Missing.Lost(), where
	// previous.End is the mark at which the log let data go (dropped for the budget, and
	// counted in the ledger already) if that lies in between.
	Missing Outcome
}

// Count is the number of samples in the entry as the ledger counts them.
func (e *Entry) Count() uint64 { return uint64(len(e.Samples) + len(e.Histograms)) }
