package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
)

// Encoder writes the samples of one request after another. It reuses its buffers, so it
// allocates nothing once they have grown. The zero value needs Begin before anything else.
// Not safe for concurrent use.
//
// Adjacent samples of one series share a TimeSeries as far as the protocol allows: they
// must be in time order, and floats and native histograms never share one,
// because a receiver appends all floats of a TimeSeries before its histograms.
type Encoder struct {
	version    Version
	by         Compression
	buf        []byte // the encoded TimeSeries; those of 1.0 for snappy only as far as they are not in the compressor
	refs       *references
	raw        []byte // a message of 2.0: symbols, then buf
	compressor compressor
	exemplars  int // in the message

	// The state of the TimeSeries being written.
	series  Series // without a form: there is none
	at      int    // offset of its content in buf
	last    int64  // time of its newest sample, in milliseconds
	content content
	traces  int // number of its exemplars
}

// content is the set of sample kinds in a TimeSeries.
type content uint8

const (
	floats content = 1 << iota
	histograms
)

// Begin begins a request whose body will be compressed in that way. The specification allows only
// [Snappy] (1.0 and 2.0, "Protocol": the block format, not the framed one).
func (e *Encoder) Begin(v Version, by Compression) {
	e.version, e.by = v, by
	e.compressor.reset()
	e.buf, e.series, e.exemplars = e.buf[:0], Series{}, 0
	if v == V2 {
		if e.refs == nil {
			e.refs = newReferences()
		}
		e.refs.reset()
	}
}

// Series begins a series: the samples added from now on belong to it. The texts and metadata behind s must
// not change before the request is complete, its slice of labels not before the next series.
func (e *Encoder) Series(s Series) {
	e.end()
	if e.by == Snappy && e.version == V1 { // in 2.0 the symbols come first, which are not complete yet
		e.buf = e.compressor.take(e.buf)
	}
	e.series = s
	e.open()
}

// Float adds a sample of the present series. st is the start timestamp, 0 if unknown; 1.0 cannot
// carry it. Times are in milliseconds.
func (e *Encoder) Float(st, t int64, v float64) {
	if t < e.last || e.content&histograms != 0 {
		e.again()
	}
	e.last, e.content = t, e.content|floats
	if e.version == V1 {
		st = 0
	}
	e.buf = appendSample(e.buf, st, t, v)
}

// Histogram adds a native histogram: h, or fh if h is nil. Times are as for [Encoder.Float].
// 1.0 cannot carry custom buckets: the caller omits such histograms.
func (e *Encoder) Histogram(st, t int64, h *histogram.Histogram, fh *histogram.FloatHistogram) {
	if t < e.last || e.content&floats != 0 {
		e.again()
	}
	e.last, e.content = t, e.content|histograms
	key := byte(keySeriesHistogram2)
	if e.version == V1 {
		key, st = keySeriesHistogram, 0
	}
	if h != nil {
		e.buf = appendIntHistogram(e.buf, key, st, t, h)
	} else {
		e.buf = appendFloatHistogram(e.buf, key, st, t, fh)
	}
}

// Exemplar adds an exemplar to the samples of the present series added just before.
// Without such samples, 2.0 omits it: a TimeSeries of 2.0 must have a sample.
func (e *Encoder) Exemplar(t int64, v float64, ls labels.Labels) {
	e.traces++
	e.exemplars++
	if e.version == V2 {
		e.buf = e.refs.exemplar(e.buf, t, v, ls)
		return
	}
	dst, at := open(e.buf, keySeriesExemplar, 1)
	dst = appendLabels(dst, keyExemplarLabel, ls)
	dst = appendDouble(dst, keyExemplarValue, v)
	dst = appendVarint(dst, keyExemplarTime, uint64(t))
	e.buf = shut(dst, at, 1)
}

// Exemplars returns how many exemplars the request has. It is final after AppendBody.
func (e *Encoder) Exemplars() int { return e.exemplars }

// AppendBody ends the request and appends its body to dst: the compressed message. It is called once for each request.
func (e *Encoder) AppendBody(dst []byte) []byte {
	if e.by == Zstd {
		return e.compressor.appendZstd(dst, e.rest())
	}
	return e.compressor.appendSnappy(dst, e.rest())
}

// rest ends the request and returns the message, as far as it is not in the compressor. It is valid until the next Begin.
func (e *Encoder) rest() []byte {
	e.end()
	e.series = Series{}
	if e.version == V1 {
		return e.buf
	}
	// Symbols come first, so that a receiver can decode the message in one pass.
	e.raw = append(e.refs.symbols.appendTo(e.raw[:0]), e.buf...)
	return e.raw
}

// Guesses for the width, in bytes, of the length of a TimeSeries.
const (
	width1 = 2
	width2 = 1
)

// again begins another TimeSeries for the present series.
func (e *Encoder) again() {
	e.end()
	e.open()
}

// open begins a TimeSeries for the present series.
func (e *Encoder) open() {
	e.last, e.content, e.traces = math.MinInt64, 0, 0
	if e.version == V2 {
		e.buf, e.at = open(e.buf, keyTimeSeries2, width2)
		e.buf = e.refs.labels(e.buf, &e.series)
		return
	}
	dst, at := open(e.buf, keyTimeSeries, width1)
	for part := range e.series.Form.parts(V1, e.series.Labels) {
		for i := range part {
			dst = appendLabel(dst, keySeriesLabel, &part[i])
		}
	}
	e.buf, e.at = dst, at
}

// end ends the present TimeSeries, if there is one.
func (e *Encoder) end() {
	switch {
	case e.series.Form == nil:
	case e.version == V1:
		e.buf = shut(e.buf, e.at, width1)
	case e.content == 0:
		e.buf = e.buf[:e.at-width2-1]
		e.exemplars -= e.traces
	default:
		if m := e.series.Meta; m != nil {
			e.buf = e.refs.metadata(e.buf, m)
		}
		e.buf = shut(e.buf, e.at, width2)
	}
}

// maxSample bounds an encoded Sample, in bytes: key, length, a value, and two times.
const maxSample = 2 + 9 + 11 + 11

// appendSample appends a Sample of either version. Its length is below 128 and takes
// one byte, which is written last.
func appendSample(dst []byte, st, t int64, v float64) []byte {
	at := len(dst)
	dst = slices.Grow(dst, maxSample)
	b := dst[at : at+maxSample]
	n := 2
	if v := math.Float64bits(v); v != 0 {
		b[n] = keySampleValue
		binary.LittleEndian.PutUint64(b[n+1:], v)
		n += 9
	}
	if t != 0 {
		b[n] = keySampleTime
		n++
		n += binary.PutUvarint(b[n:], uint64(t))
	}
	if st != 0 {
		b[n] = keySampleStart
		n++
		n += binary.PutUvarint(b[n:], uint64(st))
	}
	b[0], b[1] = keySeriesSample, byte(n-2)
	return dst[:at+n]
}
