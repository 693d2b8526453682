package remotewrite

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
)

// Keys (field number << 3 | wire type) of the messages of remote write 1.0, from
// prompb/remote.proto and prompb/types.proto in prometheus/prometheus. Every field
// number is below 16, so each key is one byte; those above are 2.0's (see encode2.go).
const (
	keyTimeSeries = 1<<3 | wireBytes // WriteRequest.timeseries
	keyMetadata   = 3<<3 | wireBytes // WriteRequest.metadata

	keySeriesLabel     = 1<<3 | wireBytes // TimeSeries
	keySeriesSample    = 2<<3 | wireBytes
	keySeriesExemplar  = 3<<3 | wireBytes
	keySeriesHistogram = 4<<3 | wireBytes

	keyLabelName  = 1<<3 | wireBytes // Label
	keyLabelValue = 2<<3 | wireBytes

	keySampleValue = 1<<3 | wireFixed64 // Sample
	keySampleTime  = 2<<3 | wireVarint

	keyExemplarLabel = 1<<3 | wireBytes // Exemplar
	keyExemplarValue = 2<<3 | wireFixed64
	keyExemplarTime  = 3<<3 | wireVarint

	keyCountInt       = 1<<3 | wireVarint // Histogram
	keyCountFloat     = 2<<3 | wireFixed64
	keySum            = 3<<3 | wireFixed64
	keySchema         = 4<<3 | wireVarint
	keyZeroThreshold  = 5<<3 | wireFixed64
	keyZeroCountInt   = 6<<3 | wireVarint
	keyZeroCountFloat = 7<<3 | wireFixed64
	keyNegativeSpans  = 8<<3 | wireBytes
	keyNegativeDeltas = 9<<3 | wireBytes
	keyNegativeCounts = 10<<3 | wireBytes
	keyPositiveSpans  = 11<<3 | wireBytes
	keyPositiveDeltas = 12<<3 | wireBytes
	keyPositiveCounts = 13<<3 | wireBytes
	keyResetHint      = 14<<3 | wireVarint
	keyHistogramTime  = 15<<3 | wireVarint

	keySpanOffset = 1<<3 | wireVarint // BucketSpan
	keySpanLength = 2<<3 | wireVarint

	keyFamilyType = 1<<3 | wireVarint // MetricMetadata
	keyFamilyName = 2<<3 | wireBytes
	keyFamilyHelp = 4<<3 | wireBytes
	keyFamilyUnit = 5<<3 | wireBytes
)

// Wire types of protocol buffers.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
)

// encoder turns points into request bodies. It owns its buffers, so that a shard
// which has one allocates nothing once they have grown. Not safe for concurrent use.
type encoder struct {
	raw        []byte // the protobuf message
	compressed []byte
}

// encode returns the body of a request with the points: a snappy block (not the
// framed format, which the protocol forbids) of a prometheus.WriteRequest. Adjacent
// points of one series share a TimeSeries. No points make an empty write. The body is
// valid until the following call.
func (e *encoder) encode(points []point) []byte {
	e.raw = appendRequest(e.raw[:0], points)
	return e.compress()
}

func (e *encoder) compress() []byte {
	e.compressed = compress(e.compressed, e.raw)
	return e.compressed
}

// compress returns raw as a snappy block, in the memory of dst if it is enough. It uses
// golang/snappy because that measures better: see docs/adr/0008. What that would allocate
// fits raw and not one byte more, so a message that is a little longer than each one before
// would take half a megabyte anew.
func compress(dst, raw []byte) []byte {
	if n := snappy.MaxEncodedLen(len(raw)); n > cap(dst) {
		dst = make([]byte, n+n/8)
	}
	return snappy.Encode(dst[:cap(dst)], raw)
}

// emptyRequest is the body of a request with nothing in it.
func emptyRequest() []byte { return snappy.Encode(nil, nil) }

// appendRequest appends the protobuf encoding of a prometheus.WriteRequest with the
// points to dst. Order is kept; adjacent points of one series go into one TimeSeries,
// floats and native histograms never into the same one, since a receiver appends all
// floats of a TimeSeries before its histograms.
func appendRequest(dst []byte, points []point) []byte {
	for len(points) > 0 {
		n, exemplars := sameSeries(points)
		dst = appendTimeSeries(dst, points[:n], exemplars)
		points = points[n:]
	}
	return dst
}

// sameSeries is how many points at the front can share one TimeSeries, and how many
// of them are exemplars. Samples of a TimeSeries are ordered by time: one that is older
// than the one before it begins another.
func sameSeries(points []point) (n, exemplars int) {
	first, last := points[0].series, int64(math.MinInt64)
	floats, histograms := false, false
	for n = range points {
		p := &points[n]
		if p.series != first {
			return n, exemplars
		}
		switch p.kind {
		case exemplarPoint:
			exemplars++
			continue
		case float:
			floats = true
		default:
			histograms = true
		}
		if floats && histograms || p.t < last {
			return n, exemplars
		}
		last = p.t
	}
	return len(points), exemplars
}

func appendTimeSeries(dst []byte, points []point, exemplars int) []byte {
	dst, at := open(dst, keyTimeSeries, 2)
	dst = append(dst, points[0].series.encoded...)
	for i := range points {
		switch p := &points[i]; p.kind {
		case float:
			dst = appendSample(dst, p)
		case intHistogram:
			dst = appendIntHistogram(dst, keySeriesHistogram, 0, p.t, p.aux.h)
		case floatHistogram:
			dst = appendFloatHistogram(dst, keySeriesHistogram, 0, p.t, p.aux.fh)
		}
	}
	if exemplars > 0 {
		for i := range points {
			if points[i].kind == exemplarPoint {
				dst = appendExemplar(dst, &points[i])
			}
		}
	}
	return shut(dst, at, 2)
}

// appendSample writes the length first: it is below 128, so it takes one byte.
func appendSample(dst []byte, p *point) []byte {
	var b [22]byte
	b[0] = keySeriesSample
	n := 2
	if v := math.Float64bits(p.v); v != 0 {
		b[n] = keySampleValue
		binary.LittleEndian.PutUint64(b[n+1:], v)
		n += 9
	}
	if p.t != 0 {
		b[n] = keySampleTime
		n++
		n += binary.PutUvarint(b[n:], uint64(p.t))
	}
	b[1] = byte(n - 2)
	return append(dst, b[:n]...)
}

func appendExemplar(dst []byte, p *point) []byte {
	dst, at := open(dst, keySeriesExemplar, 1)
	dst = appendLabels(dst, keyExemplarLabel, p.aux.labels)
	dst = appendDouble(dst, keyExemplarValue, p.v)
	dst = appendVarint(dst, keyExemplarTime, uint64(p.t))
	return shut(dst, at, 1)
}

// appendIntHistogram leaves the reset hint to the receiver's own check where it is
// unknown, as every zero value is left out. It writes the histogram of both protocols:
// they differ in key, and in the start timestamp and custom buckets, which 1.0 has not.
func appendIntHistogram(dst []byte, key byte, st, t int64, h *histogram.Histogram) []byte {
	dst, at := open(dst, key, 1)
	// The counts are in a oneof: they are written even when zero, because which of the
	// two is present says what kind of histogram it is.
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

// appendLabels appends the labels as repeated Label messages of the given field.
func appendLabels(dst []byte, key byte, ls labels.Labels) []byte {
	ls.Range(func(l labels.Label) {
		var at int
		dst, at = open(dst, key, 1)
		dst = appendString(dst, keyLabelName, l.Name)
		dst = appendString(dst, keyLabelValue, l.Value)
		dst = shut(dst, at, 1)
	})
	return dst
}

// The append functions of scalar fields leave out the zero value, as proto3 does.
// Negative zero is not the zero value.

func appendDouble(dst []byte, key byte, v float64) []byte {
	if b := math.Float64bits(v); b != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, key), b)
	}
	return dst
}

func appendVarint(dst []byte, key byte, v uint64) []byte {
	if v != 0 {
		dst = binary.AppendUvarint(append(dst, key), v)
	}
	return dst
}

func appendString(dst []byte, key byte, s string) []byte {
	if s != "" {
		dst = binary.AppendUvarint(append(dst, key), uint64(len(s)))
		dst = append(dst, s...)
	}
	return dst
}

func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// open begins a length-delimited field: it appends the key and leaves width bytes
// for the length. at is where the field's content begins.
func open(dst []byte, key byte, width int) (_ []byte, at int) {
	dst = append(dst, key, 0, 0)[:len(dst)+1+width]
	return dst, len(dst)
}

// shut writes the length of the field that open began, moving the content where the
// guessed width was wrong: a length is in its shortest form.
func shut(dst []byte, at, width int) []byte {
	n := len(dst) - at
	need := (bits.Len(uint(n)|1) + 6) / 7
	if need != width {
		for range need - width {
			dst = append(dst, 0)
		}
		copy(dst[at-width+need:], dst[at:at+n])
		dst = dst[:at-width+need+n]
	}
	binary.PutUvarint(dst[at-width:at-width+need], uint64(n))
	return dst
}
