package wire

import (
	"encoding/binary"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
)

// appendIntHistogram writes the histogram of both protocols: they differ in the key, and
// in the start timestamp and custom buckets, which 1.0 lacks. An unknown reset hint is omitted
// like every zero value, and the receiver detects resets itself.
func appendIntHistogram(dst []byte, key byte, st, t int64, h *histogram.Histogram) []byte {
	dst, at := open(dst, key, 1)
	// The counts are in a oneof: they are written even if zero, because the one
	// that is present determines the kind of the histogram.
	dst = binary.AppendUvarint(append(dst, keyCountInt), h.Count)
	dst = appendDouble(dst, keySum, h.Sum)
	dst = appendVarint(dst, keySchema, zigzag(int64(h.Schema)))
	dst = appendDouble(dst, keyZeroThreshold, h.ZeroThreshold)
	dst = binary.AppendUvarint(append(dst, keyZeroCountInt), h.ZeroCount)
	dst = appendSpans(dst, keyNegativeSpans, h.NegativeSpans)
	dst = appendDeltas(dst, keyNegativeDeltas, h.NegativeBuckets)
	dst = appendSpans(dst, keyPositiveSpans, h.PositiveSpans)
	dst = appendDeltas(dst, keyPositiveDeltas, h.PositiveBuckets)
	dst = appendVarint(dst, keyResetHint, uint64(h.CounterResetHint))
	dst = appendVarint(dst, keyHistogramTime, uint64(t))
	dst = appendNewer(dst, st, h.CustomValues)
	return shut(dst, at, 1)
}

func appendFloatHistogram(dst []byte, key byte, st, t int64, h *histogram.FloatHistogram) []byte {
	dst, at := open(dst, key, 1)
	dst = binary.LittleEndian.AppendUint64(append(dst, keyCountFloat), math.Float64bits(h.Count))
	dst = appendDouble(dst, keySum, h.Sum)
	dst = appendVarint(dst, keySchema, zigzag(int64(h.Schema)))
	dst = appendDouble(dst, keyZeroThreshold, h.ZeroThreshold)
	dst = binary.LittleEndian.AppendUint64(append(dst, keyZeroCountFloat), math.Float64bits(h.ZeroCount))
	dst = appendSpans(dst, keyNegativeSpans, h.NegativeSpans)
	dst = appendCounts(dst, keyNegativeCounts, h.NegativeBuckets)
	dst = appendSpans(dst, keyPositiveSpans, h.PositiveSpans)
	dst = appendCounts(dst, keyPositiveCounts, h.PositiveBuckets)
	dst = appendVarint(dst, keyResetHint, uint64(h.CounterResetHint))
	dst = appendVarint(dst, keyHistogramTime, uint64(t))
	dst = appendNewer(dst, st, h.CustomValues)
	return shut(dst, at, 1)
}

func appendSpans(dst []byte, key byte, spans []histogram.Span) []byte {
	for _, s := range spans {
		var at int
		dst, at = open(dst, key, 1)
		dst = appendVarint(dst, keySpanOffset, zigzag(int64(s.Offset)))
		dst = appendVarint(dst, keySpanLength, uint64(s.Length))
		dst = shut(dst, at, 1)
	}
	return dst
}

func appendDeltas(dst []byte, key byte, deltas []int64) []byte {
	if len(deltas) == 0 {
		return dst
	}
	dst, at := open(dst, key, 1)
	for _, d := range deltas {
		dst = binary.AppendUvarint(dst, zigzag(d))
	}
	return shut(dst, at, 1)
}

func appendCounts(dst []byte, key byte, counts []float64) []byte {
	if len(counts) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(append(dst, key), uint64(8*len(counts)))
	for _, c := range counts {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(c))
	}
	return dst
}

// appendNewer appends the fields of a histogram that only remote write 2.0 has.
func appendNewer(dst []byte, st int64, custom []float64) []byte {
	if len(custom) > 0 {
		dst = binary.AppendUvarint(dst, keyCustomValues)
		dst = binary.AppendUvarint(dst, uint64(8*len(custom)))
		for _, v := range custom {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
	}
	if st != 0 {
		dst = binary.AppendUvarint(dst, keyHistogramStart)
		dst = binary.AppendUvarint(dst, uint64(st))
	}
	return dst
}
