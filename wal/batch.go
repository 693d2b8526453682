package wal

import (
	"math"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/record"

	"hwsagent/wal/internal/segment"
)

// maxBatch bounds a batch, in bytes of its records without metadata. Whatever is appended
// last, and with up to maxCommitMetadata, its commit stays below segment.MaxCommit.
const maxBatch = segment.MaxCommit / 2

// batchState is how far a batch has come.
type batchState uint8

const (
	batchOpen    batchState = iota // samples are being appended
	batchWritten                   // in the active segment; a process kill cannot take it
	batchDurable                   // a power cut cannot take it either
	batchFailed                    // err says why; it is nowhere in the log
)

// batch is the content of one commit. The appender owns it while it is open; then
// the writer's mutex guards it. The writer keeps it until it is durable, so that it
// can be logged again if the segment that it was written to turns out to be bad.
type batch struct {
	samples    []record.RefSample
	histograms []record.RefHistogramSample
	floats     []record.RefFloatHistogramSample
	exemplars  []record.RefExemplar

	// touched holds each series that the batch has samples or exemplars of, at least
	// once.
	touched []*memSeries

	// others are the newest samples of series whose pending belongs to another batch.
	others map[*memSeries]lastSample

	minT, maxT int64
	bytes      int // bounds the records that the batch will take, but for metadata

	// The rest is the writer's.
	state  batchState
	always bool // the commit returns, and is published, after its fsync only
	err    error
	number uint64 // of the commit
	total  uint64 // of the log, this commit included
	refs   int    // how many of appender and writer still need the batch
}

// count is the number of samples as the ledger counts them.
func (b *batch) count() uint64 {
	return uint64(len(b.samples) + len(b.histograms) + len(b.floats))
}

// empty reports whether there is nothing to log.
func (b *batch) empty() bool { return b.count() == 0 && len(b.exemplars) == 0 }

// memory estimates the bytes that keeping b takes.
func (b *batch) memory() int {
	const sample, histogram, exemplar = 32 + 8, 1024, 256
	return len(b.samples)*sample + (len(b.histograms)+len(b.floats))*histogram + len(b.exemplars)*exemplar
}

// reset makes b empty and lets go what it points to.
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

// admitLocked checks a sample against the newest one of its series. The sample is to be
// logged if the error is nil and repeated false; repeated is a sample that the log
// has already.
func (b *batch) admitLocked(s *memSeries, l lastSample, rejectOutOfOrder bool) (repeated bool, err error) {
	var newest *lastSample // nil: none
	if s.committed {
		newest = &s.last
	}
	var mine lastSample
	switch {
	case s.owner == b:
		newest = &s.pending
	case b.others != nil:
		if l, ok := b.others[s]; ok {
			mine, newest = l, &mine
		}
	}
	if newest != nil {
		switch {
		case l.t == newest.t && newest.same(&l):
			return true, nil
		case l.t == newest.t:
			return false, duplicateError(newest, &l)
		case l.t < newest.t && rejectOutOfOrder:
			return false, errOutOfOrder
		}
	}
	older := newest != nil && l.t < newest.t
	switch {
	case s.owner == b:
		if !older {
			s.pending = l
		}
	case s.owner == nil:
		s.owner, s.pending = b, l
		if older {
			s.pending = *newest
		}
		b.touch(s)
	case !older:
		if b.others == nil {
			b.others = make(map[*memSeries]lastSample)
		}
		b.others[s] = l
		fallthrough
	default:
		b.touch(s)
	}
	return false, nil
}

// touch notes that the batch has something of s.
func (b *batch) touch(s *memSeries) {
	b.touched = append(b.touched, s)
	b.bytes += 128 + int(s.labels.ByteSize())
}

// add puts an admitted sample into the batch.
func (b *batch) add(ref uint64, st int64, l lastSample) {
	b.minT, b.maxT = min(b.minT, l.t), max(b.maxT, l.t)
	b.bytes += 40
	switch n := l.native; {
	case n == nil:
		b.samples = append(b.samples, record.RefSample{Ref: headRef(ref), ST: st, T: l.t, V: l.v})
	case n.fh != nil:
		b.bytes += floatHistogramBytes(n.fh)
		b.floats = append(b.floats, record.RefFloatHistogramSample{Ref: headRef(ref), ST: st, T: l.t, FH: n.fh})
	default:
		b.bytes += histogramBytes(n.h)
		b.histograms = append(b.histograms, record.RefHistogramSample{Ref: headRef(ref), ST: st, T: l.t, H: n.h})
	}
}

// addExemplarsLocked copies the exemplars that came with a sample of time t. Those that
// come again with a repeated sample are logged again: receivers ignore them. One whose
// labels are longer than maxExemplarBytes is left out.
func (b *batch) addExemplarsLocked(s *memSeries, t int64, exemplars []exemplar.Exemplar) {
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

// finishLocked gives the series back; committed says whether their newest samples are now
// those of the batch.
func (b *batch) finishLocked(committed bool) {
	for _, s := range b.touched {
		if s.owner == b {
			if committed {
				s.settleLocked(s.pending)
			}
			s.owner, s.pending = nil, lastSample{}
		}
	}
	for s, l := range b.others {
		if committed {
			s.settleLocked(l)
		}
	}
	b.others = nil
}

// settleLocked notes a committed sample of the series.
func (s *memSeries) settleLocked(l lastSample) {
	if !s.committed || l.t > s.last.t {
		s.last, s.committed = l, true
	}
}

// checkHistogram refuses what could not be read back.
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
