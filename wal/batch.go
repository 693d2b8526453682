package wal

import (
	"math"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/record"

	"hwsagent/wal/internal/segment"
)

// maxBatch bounds a batch, in bytes of its records without metadata. It leaves room below
// segment.MaxCommit for the last sample appended and for maxCommitMetadata.
const maxBatch = segment.MaxCommit / 2

// batch is the content of one commit. The appender owns it while it is open; then the
// writer's mutex guards it. The writer keeps it until it is durable, to log it again if
// its segment fails.
type batch struct {
	samples    []record.RefSample
	histograms []record.RefHistogramSample
	floats     []record.RefFloatHistogramSample
	exemplars  []record.RefExemplar

	// touched holds each series of the batch's samples and exemplars, at least once; see seriesMap.nowLocked.
	touched []*Series

	// others holds, by reference, the batch's newest samples of series that another batch owned at the time.
	others map[uint64]lastSample

	minT, maxT int64
	bytes      int   // upper bound of the batch's records, without metadata
	ahead      int64 // ms: the batch's begin plus clockAhead

	// The rest is the writer's.
	waits  bool   // it is written, so it survives a process kill, and neither durable nor failed yet
	always bool   // the commit returns, and is published, only after its fsync
	err    error  // why the batch is not in the log; nil if it is
	number uint64 // of the commit
	total  uint64 // of the log, this commit included
	refs   int    // references held by the appender and the writer
}

// count is the number of samples as the ledger counts them.
func (b *batch) count() uint64 {
	return uint64(len(b.samples) + len(b.histograms) + len(b.floats))
}

// empty reports whether the batch has neither samples nor exemplars.
func (b *batch) empty() bool { return b.count() == 0 && len(b.exemplars) == 0 }

// memory estimates the memory that b takes, in bytes.
func (b *batch) memory() int {
	const sample, histogram, exemplar = 32 + 8, 1024, 256
	return len(b.samples)*sample + (len(b.histograms)+len(b.floats))*histogram + len(b.exemplars)*exemplar
}

// reset empties b and clears its pointers.
func (b *batch) reset() {
	clear(b.histograms)
	clear(b.floats)
	clear(b.exemplars)
	clear(b.touched)
	*b = batch{
		samples:    b.samples[:0],
		histograms: b.histograms[:0],
		floats:     b.floats[:0],
		exemplars:  b.exemplars[:0],
		touched:    b.touched[:0],
		minT:       math.MaxInt64,
		maxT:       math.MinInt64,
	}
}

// place locates a sample in a batch: the index in the list of its kind, above two bits for the
// kind. 0 means that the batch has no sample.
type place uint32

const (
	inSamples place = 1 + iota
	inHistograms
	inFloats
)

// next is the place of l if it is added next.
func (b *batch) next(l *lastSample) place {
	switch { // a list has less than maxBatch / 40 samples
	case l.isFloat():
		return inSamples | place(len(b.samples))<<2 // #nosec G115 -- below 2^30
	case l.fh != nil:
		return inFloats | place(len(b.floats))<<2 // #nosec G115 -- likewise
	default:
		return inHistograms | place(len(b.histograms))<<2 // #nosec G115 -- likewise
	}
}

// at is the sample at a place that is not 0.
func (b *batch) at(p place) lastSample {
	switch i := p >> 2; p & 3 {
	case inSamples:
		return lastSample{t: b.samples[i].T, v: b.samples[i].V}
	case inFloats:
		return lastSample{t: b.floats[i].T, native: native{fh: b.floats[i].FH}}
	default:
		return lastSample{t: b.histograms[i].T, native: native{h: b.histograms[i].H}}
	}
}

// clockAhead is how far ahead of this host's clock a sample may be and still be the newest of its series. One further ahead
// comes from a wrong clock. It is logged like all others, but if it counted as the newest, it would hide every later sample
// until the clock reaches its time. Prometheus' scrapes have the same bound.
const clockAhead = 10 * time.Minute

// newer reports whether a sample at time t replaces one at time other as the newest of its series: one up to ahead replaces
// each one beyond.
func newer(t, other, ahead int64) bool {
	if (t > ahead) != (other > ahead) {
		return t <= ahead
	}
	return t > other
}

// newestLocked returns the newest sample of a series that the batch knows: its own (mine), or the committed one.
func (b *batch) newestLocked(m *seriesMap, s *Series) (newest lastSample, mine, ok bool) {
	if s.owner == b && s.place != 0 {
		return b.at(s.place), true, true
	}
	if l, mine := b.others[s.ref]; mine {
		return l, true, true
	}
	if s.committed {
		newest = m.lastLocked(s)
	}
	return newest, false, s.committed
}

// admitLocked checks a sample against the newest one of its series. If the error is nil and
// repeated is false, the caller must [batch.add] it next; repeated means that it equals the newest.
func (b *batch) admitLocked(m *seriesMap, s *Series, l *lastSample, rejectOutOfOrder bool) (repeated bool, err error) {
	newest, mine, ok := b.newestLocked(m, s)
	if ok {
		switch {
		case l.t == newest.t && newest.same(l):
			return true, nil
		case l.t == newest.t:
			return false, duplicateError(&newest, l)
		case l.t < newest.t && rejectOutOfOrder && !newer(l.t, newest.t, b.ahead):
			return false, errOutOfOrder
		}
	}
	older := ok && !newer(l.t, newest.t, b.ahead)
	if s.owner == nil && !mine {
		s.owner, s.place = b, 0
		b.touch(s)
	} else if s.owner != b {
		b.touch(s)
	}
	switch {
	case older:
	case s.owner == b:
		s.place = b.next(l)
	default:
		if b.others == nil {
			b.others = make(map[uint64]lastSample)
		}
		b.others[s.ref] = *l
	}
	return false, nil
}

// touch records that the batch has a sample or exemplar of s.
func (b *batch) touch(s *Series) {
	b.touched = append(b.touched, s)
	b.bytes += 128 + s.labels.size()
}

// add puts an admitted sample into the batch.
func (b *batch) add(ref uint64, st int64, l *lastSample) {
	b.minT, b.maxT = min(b.minT, l.t), max(b.maxT, l.t)
	b.bytes += 40
	switch {
	case l.isFloat():
		b.samples = append(b.samples, record.RefSample{Ref: headRef(ref), ST: st, T: l.t, V: l.v})
	case l.fh != nil:
		b.bytes += floatHistogramBytes(l.fh)
		b.floats = append(b.floats, record.RefFloatHistogramSample{Ref: headRef(ref), ST: st, T: l.t, FH: l.fh})
	default:
		b.bytes += histogramBytes(l.h)
		b.histograms = append(b.histograms, record.RefHistogramSample{Ref: headRef(ref), ST: st, T: l.t, H: l.h})
	}
}

// addExemplarsLocked copies the exemplars of a sample at time t. Exemplars of a repeated
// sample are logged again, and receivers ignore them. Exemplars whose labels are longer
// than maxExemplarBytes are left out.
func (b *batch) addExemplarsLocked(s *Series, t int64, exemplars []exemplar.Exemplar) {
	for _, e := range exemplars {
		if e.Labels.ByteSize() > maxExemplarBytes {
			continue
		}
		if !e.HasTs && e.Ts == 0 {
			e.Ts = t
		}
		b.bytes += exemplarBytes(&e)
		b.exemplars = append(b.exemplars, record.RefExemplar{Ref: headRef(s.ref), T: e.Ts, V: e.Value, Labels: e.Labels.Copy()})
	}
	b.touch(s)
}

// exemplarBytes bounds the encoding of e.
func exemplarBytes(e *exemplar.Exemplar) int { return 32 + int(e.Labels.ByteSize()) }

// finishLocked ends the batch's ownership of series. If committed is true, the batch's newest
// samples become those of the series.
func (b *batch) finishLocked(m *seriesMap, committed bool) {
	for _, s := range b.touched {
		if !s.live {
			s = m.nowLocked(s)
		}
		if s.owner != b {
			continue
		}
		if committed && s.place != 0 {
			l := b.at(s.place)
			m.settleLocked(s, &l, b.ahead)
		}
		s.owner, s.place = nil, 0
	}
	for ref, l := range b.others {
		if s := m.byRef.Get(ref); s != nil && committed {
			m.settleLocked(s, &l, b.ahead)
		}
	}
	b.others = nil
}

// checkHistogram refuses histograms that readers would not accept.
func checkHistogram(h *histogram.Histogram, fh *histogram.FloatHistogram) error {
	switch {
	case fh != nil && floatHistogramBytes(fh) > maxHistogramBytes, h != nil && histogramBytes(h) > maxHistogramBytes:
		return errHugeHistogram
	case fh != nil:
		return fh.Validate()
	case h != nil:
		return h.Validate()
	}
	return nil
}
