package wal

import (
	"slices"

	"github.com/prometheus/prometheus/model/histogram"

	"hwsagent/wal/internal/segment"
)

// arena allocates values that are reused from entry to entry.
type arena[T any] struct {
	all  []*T
	used int
}

func (a *arena[T]) take() *T {
	if a.used == len(a.all) {
		a.all = append(a.all, new(T))
	}
	a.used++
	return a.all[a.used-1]
}

// intHistogram is a histogram with memory for its slices.
type intHistogram struct {
	h                  histogram.Histogram
	positive, negative []histogram.Span
	up, down           []int64
	custom             []float64
}

// decode reads an integer histogram from the front of r.
func (m *intHistogram) decode(r *segment.Decoder) *histogram.Histogram {
	m.h = histogram.Histogram{
		CounterResetHint: histogram.CounterResetHint(r.Byte()),
		Schema:           int32(r.Varint()),
		ZeroThreshold:    r.Float(),
		ZeroCount:        r.Uvarint(),
		Count:            r.Uvarint(),
		Sum:              r.Float(),
	}
	m.h.PositiveSpans = decodeSpans(r, &m.positive)
	m.h.NegativeSpans = decodeSpans(r, &m.negative)
	m.h.PositiveBuckets = decodeList(r, &m.up, 1, (*segment.Decoder).Varint)
	m.h.NegativeBuckets = decodeList(r, &m.down, 1, (*segment.Decoder).Varint)
	if histogram.IsCustomBucketsSchema(m.h.Schema) {
		m.h.CustomValues = decodeList(r, &m.custom, 8, (*segment.Decoder).Float)
	}
	return &m.h
}

// floatHistogram is a histogram with memory for its slices.
type floatHistogram struct {
	h                  histogram.FloatHistogram
	positive, negative []histogram.Span
	up, down, custom   []float64
}

// decode reads a float histogram from the front of r.
func (m *floatHistogram) decode(r *segment.Decoder) *histogram.FloatHistogram {
	m.h = histogram.FloatHistogram{
		CounterResetHint: histogram.CounterResetHint(r.Byte()),
		Schema:           int32(r.Varint()),
		ZeroThreshold:    r.Float(),
		ZeroCount:        r.Float(),
		Count:            r.Float(),
		Sum:              r.Float(),
	}
	m.h.PositiveSpans = decodeSpans(r, &m.positive)
	m.h.NegativeSpans = decodeSpans(r, &m.negative)
	m.h.PositiveBuckets = decodeList(r, &m.up, 8, (*segment.Decoder).Float)
	m.h.NegativeBuckets = decodeList(r, &m.down, 8, (*segment.Decoder).Float)
	if histogram.IsCustomBucketsSchema(m.h.Schema) {
		m.h.CustomValues = decodeList(r, &m.custom, 8, (*segment.Decoder).Float)
	}
	return &m.h
}

func decodeSpans(r *segment.Decoder, mem *[]histogram.Span) []histogram.Span {
	return decodeList(r, mem, 2, func(r *segment.Decoder) histogram.Span {
		return histogram.Span{Offset: int32(r.Varint()), Length: uint32(r.Uvarint())}
	})
}

// decodeList reads a length and that many elements, each of at least size bytes. It rejects
// an impossible length before it allocates memory. The list uses the memory of mem, and
// is nil if it is empty.
func decodeList[T any](r *segment.Decoder, mem *[]T, size uint64, element func(*segment.Decoder) T) []T {
	n := r.Uvarint()
	if n == 0 {
		return nil
	}
	if n > uint64(len(r.B))/size {
		r.Err = segment.ErrShort
		return nil
	}
	*mem = slices.Grow((*mem)[:0], int(n))[:n]
	for i := range *mem {
		(*mem)[i] = element(r)
	}
	return *mem
}

// readableInt reports whether this build knows the schema of h. It reduces a resolution
// that is too high for this build.
func readableInt(h *histogram.Histogram) bool {
	switch {
	case !histogram.IsKnownSchema(h.Schema):
		return false
	case h.Schema <= histogram.ExponentialSchemaMax:
		return true
	}
	return fits(h.PositiveSpans, len(h.PositiveBuckets)) && fits(h.NegativeSpans, len(h.NegativeBuckets)) &&
		h.ReduceResolution(histogram.ExponentialSchemaMax) == nil
}

// readableFloat is readableInt for float histograms.
func readableFloat(h *histogram.FloatHistogram) bool {
	switch {
	case !histogram.IsKnownSchema(h.Schema):
		return false
	case h.Schema <= histogram.ExponentialSchemaMax:
		return true
	}
	return fits(h.PositiveSpans, len(h.PositiveBuckets)) && fits(h.NegativeSpans, len(h.NegativeBuckets)) &&
		h.ReduceResolution(histogram.ExponentialSchemaMax) == nil
}

// fits reports whether the spans describe that number of buckets.
func fits(spans []histogram.Span, buckets int) bool {
	var n uint64
	for _, s := range spans {
		n += uint64(s.Length)
	}
	return n == uint64(buckets)
}
