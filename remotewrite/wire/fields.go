package wire

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/prometheus/prometheus/model/labels"
)

// Keys (field number << 3 | wire type) of the messages of remote write 1.0, from
// prompb/remote.proto and prompb/types.proto in prometheus/prometheus. Every field
// number is below 16, so each key is one byte; 2.0 has some above (keyCustomValues, keyHistogramStart).
const (
	keyTimeSeries = 1<<3 | wireBytes // WriteRequest.timeseries

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
)

// Keys of the messages of remote write 2.0, from
// prompb/io/prometheus/write/v2/types.proto in prometheus/prometheus (2.0-rc.4), where
// they differ from those of 1.0: Histogram and BucketSpan are the same, with two more fields in Histogram.
const (
	keySymbol      = 4<<3 | wireBytes // Request.symbols
	keyTimeSeries2 = 5<<3 | wireBytes // Request.timeseries

	keySeriesRefs       = 1<<3 | wireBytes // TimeSeries
	keySeriesSample2    = 2<<3 | wireBytes
	keySeriesHistogram2 = 3<<3 | wireBytes
	keySeriesExemplar2  = 4<<3 | wireBytes
	keySeriesMetadata   = 5<<3 | wireBytes

	keySampleStart = 3<<3 | wireVarint // Sample

	keyExemplarRefs = 1<<3 | wireBytes // Exemplar

	keyMetadataType = 1<<3 | wireVarint // Metadata
	keyMetadataHelp = 3<<3 | wireVarint
	keyMetadataUnit = 4<<3 | wireVarint

	keyCustomValues   = 16<<3 | wireBytes // Histogram; of two bytes
	keyHistogramStart = 17<<3 | wireVarint
)

// Wire types of protocol buffers.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
)

// appendLabels appends the labels as repeated Label messages of the given field.
func appendLabels(dst []byte, key byte, ls labels.Labels) []byte {
	ls.Range(func(l labels.Label) { dst = appendLabel(dst, key, &l) })
	return dst
}

// appendLabel appends a label as a Label message of the given field.
func appendLabel(dst []byte, key byte, l *labels.Label) []byte {
	name, value := l.Name, l.Value
	n := 2 + len(name) + 2 + len(value)
	if n < 0x80 && name != "" && value != "" { // each length takes one byte
		dst = append(dst, key, byte(n), keyLabelName, byte(len(name)))
		dst = append(dst, name...)
		dst = append(dst, keyLabelValue, byte(len(value)))
		return append(dst, value...)
	}
	dst, at := open(dst, key, 1)
	dst = appendString(dst, keyLabelName, l.Name)
	dst = appendString(dst, keyLabelValue, l.Value)
	return shut(dst, at, 1)
}

// The append functions of scalar fields omit the zero value, as in proto3.
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

// open begins a length-delimited field: it appends the key and reserves width bytes
// for the length. at is the offset of the field's content.
func open(dst []byte, key byte, width int) (_ []byte, at int) {
	dst = append(dst, key, 0, 0)[:len(dst)+1+width]
	return dst, len(dst)
}

// shut writes the length of the field that open began, in its shortest form. It moves the content if the
// guessed width was wrong.
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
