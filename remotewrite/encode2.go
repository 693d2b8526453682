package remotewrite

import (
	"encoding/binary"
	"math"

	"github.com/prometheus/prometheus/model/labels"
)

// Keys of the messages of remote write 2.0, from
// prompb/io/prometheus/write/v2/types.proto in prometheus/prometheus (2.0-rc.4), where
// they are not those of 1.0: Histogram and BucketSpan have the same, and two fields more.
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

// modern is what remote write 2.0 says of a series beyond what 1.0 says of it. Series with
// the same metadata share one.
type modern struct {
	labels     string // as series.encoded, where that differs: names may be any UTF-8 here
	typ        byte   // a writev2.Metadata_MetricType
	help, unit string // valid UTF-8
}

// encoder2 is encoder for remote write 2.0. newEncoder2 makes one.
//
// The texts of a series are looked up in the request's symbol table each time. That is
// quicker than it looks: neighbours in the log share most of their labels, and a label that
// the series before has at the same place is known already. So a series costs no memory
// for 2.0, whatever it was sent as before, and nothing has to be forgotten with it.
type encoder2 struct {
	symbols    *symbols
	before     []labelRefs // of the series encoded last
	exemplars  int         // in the message
	meta       *modern     // encoded last
	metaBytes  []byte      // as what
	series     []byte      // the encoded TimeSeries
	raw        []byte      // the protobuf message
	compressed []byte
}

// labelRefs is an encoded label, as in series.encoded, and what it is in this request.
type labelRefs struct {
	label       string
	name, value uint32
}

func newEncoder2() *encoder2 { return &encoder2{symbols: newSymbols()} }

// encode returns the body of a request with the points: a snappy block of an
// io.prometheus.write.v2.Request. As encoder.encode otherwise, but for exemplars beside no
// sample of their series in points: a TimeSeries must have one. They are left out.
func (e *encoder2) encode(points []point) []byte {
	e.build(points)
	e.compressed = compress(e.compressed, e.raw)
	return e.compressed
}

// build makes the message in raw.
func (e *encoder2) build(points []point) {
	e.symbols.reset()
	clear(e.before)
	e.before, e.meta, e.series, e.exemplars = e.before[:0], nil, e.series[:0], 0
	for len(points) > 0 {
		n, exemplars := sameSeries(points)
		if exemplars < n {
			e.timeSeries(points[:n], exemplars)
			e.exemplars += exemplars
		}
		points = points[n:]
	}
	// Symbols first: a receiver may read the message in one go.
	e.raw = e.raw[:0]
	for _, text := range e.symbols.texts {
		e.raw = binary.AppendUvarint(append(e.raw, keySymbol), uint64(len(text)))
		e.raw = append(e.raw, text...)
	}
	e.raw = append(e.raw, e.series...)
}

func (e *encoder2) timeSeries(points []point, exemplars int) {
	s := points[0].series
	encoded := s.encoded
	if s.modern != nil && s.modern.labels != "" {
		encoded = s.modern.labels
	}
	dst, at := open(e.series, keyTimeSeries2, 1)
	dst = e.refs(dst, encoded)
	for i := range points {
		switch p := &points[i]; p.kind {
		case float:
			dst = appendSample2(dst, p)
		case intHistogram:
			dst = appendIntHistogram(dst, keySeriesHistogram2, p.st, p.t, p.aux.h)
		case floatHistogram:
			dst = appendFloatHistogram(dst, keySeriesHistogram2, p.st, p.t, p.aux.fh)
		}
	}
	if exemplars > 0 {
		for i := range points {
			if points[i].kind == exemplarPoint {
				dst = e.exemplar(dst, &points[i])
			}
		}
	}
	if s.modern != nil {
		dst = e.metadata(dst, s.modern)
	}
	e.series = shut(dst, at, 1)
}

// refs appends the references of labels that are encoded as in a prompb TimeSeries.
func (e *encoder2) refs(dst []byte, encoded string) []byte {
	dst, at := open(dst, keySeriesRefs, 1)
	for i := 0; encoded != ""; i++ {
		var label string
		label, encoded = cutLabel(encoded)
		if i == len(e.before) {
			e.before = append(e.before, labelRefs{})
		}
		b := &e.before[i]
		if b.label != label {
			name, value := labelTexts(label)
			*b = labelRefs{label, e.symbols.ref(name), e.symbols.ref(value)}
		}
		dst = appendRef(dst, b.name)
		dst = appendRef(dst, b.value)
	}
	return shut(dst, at, 1)
}

func (e *encoder2) exemplar(dst []byte, p *point) []byte {
	dst, at := open(dst, keySeriesExemplar2, 1)
	if !p.aux.labels.IsEmpty() {
		var inner int
		dst, inner = open(dst, keyExemplarRefs, 1)
		p.aux.labels.Range(func(l labels.Label) {
			dst = appendRef(dst, e.symbols.ref(l.Name))
			dst = appendRef(dst, e.symbols.ref(l.Value))
		})
		dst = shut(dst, inner, 1)
	}
	dst = appendDouble(dst, keyExemplarValue, p.v)
	dst = appendVarint(dst, keyExemplarTime, uint64(p.t))
	return shut(dst, at, 1)
}

func (e *encoder2) metadata(dst []byte, m *modern) []byte {
	if m != e.meta {
		b, at := open(e.metaBytes[:0], keySeriesMetadata, 1)
		b = appendVarint(b, keyMetadataType, uint64(m.typ))
		b = appendVarint(b, keyMetadataHelp, uint64(e.symbols.ref(m.help)))
		b = appendVarint(b, keyMetadataUnit, uint64(e.symbols.ref(m.unit)))
		e.meta, e.metaBytes = m, shut(b, at, 1)
	}
	return append(dst, e.metaBytes...)
}

// appendSample2 is appendSample with a start timestamp.
func appendSample2(dst []byte, p *point) []byte {
	var b [33]byte
	b[0] = keySeriesSample2
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
	if p.st != 0 {
		b[n] = keySampleStart
		n++
		n += binary.PutUvarint(b[n:], uint64(p.st))
	}
	b[1] = byte(n - 2)
	return append(dst, b[:n]...)
}

// appendNewer appends what a histogram has in remote write 2.0 only.
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

// appendRef is binary.AppendUvarint, made for small numbers.
func appendRef(dst []byte, ref uint32) []byte {
	switch {
	case ref < 1<<7:
		return append(dst, byte(ref))
	case ref < 1<<14:
		return append(dst, byte(ref)|0x80, byte(ref>>7))
	}
	return binary.AppendUvarint(dst, uint64(ref))
}

// cutLabel splits the first label off labels as appendLabels wrote them.
func cutLabel(encoded string) (label, rest string) {
	n, at := textLength(encoded[1:])
	end := 1 + at + n
	return encoded[:end], encoded[end:]
}

// labelTexts returns name and value of a label as appendLabels wrote it. Neither is empty
// in a series.
func labelTexts(label string) (name, value string) {
	_, at := textLength(label[1:])
	fields := label[1+at:]
	n, at := textLength(fields[1:])
	name, fields = fields[1+at:1+at+n], fields[1+at+n:]
	n, at = textLength(fields[1:])
	return name, fields[1+at : 1+at+n]
}

// textLength decodes the length at the front of s, and tells how many bytes it takes.
func textLength(s string) (n, size int) {
	if s[0] < 0x80 {
		return int(s[0]), 1
	}
	for i := range len(s) {
		n |= int(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			return n, i + 1
		}
	}
	return 0, len(s) // cannot be: this package encoded it
}
