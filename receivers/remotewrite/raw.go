package remotewrite

import (
	"encoding/binary"
	"math"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
)

// Tags of protocol buffers: the number of a field, and its kind in the lowest three bits.
const (
	tagVarint1  = 1 << 3
	tagFixed1   = 1<<3 | 1
	tagMessage1 = 1<<3 | 2
	tagVarint2  = 2 << 3
	tagMessage2 = 2<<3 | 2
	tagVarint3  = 3 << 3
	tagVarint4  = 4 << 3
	tagMessage5 = 5<<3 | 2
)

// floats1 reads a prometheus.TimeSeries that has labels, then only floats, as senders write it. It returns the bytes of
// the labels, which are part of message and determine them, and appends the floats to into. plain is false for any other
// message, valid or not: prompb decodes that.
//
// Source: https://github.com/prometheus/prometheus/blob/main/prompb/types.proto.
func floats1(message []byte, into []prompb.Sample) (key []byte, floats []prompb.Sample, plain bool) {
	rest := message
	for len(rest) > 0 && rest[0] == tagMessage1 {
		label, after, ok := bytesOf(rest[1:])
		if !ok || !pairOfTexts(label) {
			return nil, into, false
		}
		rest = after
	}
	key = message[:len(message)-len(rest)]
	for len(rest) > 0 {
		if rest[0] != tagMessage2 {
			return nil, into, false
		}
		sample, after, ok := bytesOf(rest[1:])
		if !ok {
			return nil, into, false
		}
		s, ok := float1(sample)
		if !ok {
			return nil, into, false
		}
		into, rest = append(into, s), after
	}
	return key, into, true
}

// nameOf returns the name in the labels that floats1 has read, as [prompb] reads it.
func nameOf(key []byte) (name []byte) {
	for len(key) > 0 {
		label, after, _ := bytesOf(key[1:])
		key = after
		var n, v []byte
		if len(label) > 0 && label[0] == tagMessage1 {
			n, label, _ = bytesOf(label[1:])
		}
		if len(label) > 0 {
			v, _, _ = bytesOf(label[1:])
		}
		if string(n) == model.MetricNameLabel {
			return v
		}
	}
	return nil
}

// pairOfTexts reports whether a prometheus.Label has at most a name and then a value.
func pairOfTexts(label []byte) bool {
	for _, tag := range [...]byte{tagMessage1, tagMessage2} {
		if len(label) > 0 && label[0] == tag {
			_, after, ok := bytesOf(label[1:])
			if !ok {
				return false
			}
			label = after
		}
	}
	return len(label) == 0
}

// float1 reads a prometheus.Sample: at most a value and then a time.
func float1(m []byte) (s prompb.Sample, ok bool) {
	s.Value, m = fixed(m, tagFixed1)
	ok = varint(&m, tagVarint2, &s.Timestamp)
	return s, ok && len(m) == 0
}

// bytesOf reads a length and as many bytes.
func bytesOf(m []byte) (value, after []byte, ok bool) {
	size, n := binary.Uvarint(m)
	if n <= 0 || size > uint64(len(m)-n) {
		return nil, nil, false
	}
	end := n + int(size) // #nosec G115 -- at most len(m)
	return m[n:end], m[end:], true
}

// plain2 is an io.prometheus.write.v2.TimeSeries that has labels, then only floats, then metadata, as senders write it.
type plain2 struct {
	refs       []uint32
	floats     []float2
	kind       int32
	help, unit uint32 // references
}

// float2 is an io.prometheus.write.v2.Sample.
type float2 struct {
	v     float64
	t, st int64
}

// read reads a message into p. It reports false for any other message, valid or not: the generated code decodes that.
//
// Source: https://github.com/prometheus/prometheus/blob/main/prompb/io/prometheus/write/v2/types.proto.
func (p *plain2) read(m []byte) bool {
	p.refs, p.floats, p.kind, p.help, p.unit = p.refs[:0], p.floats[:0], 0, 0, 0
	if len(m) > 0 && m[0] == tagMessage1 {
		refs, after, ok := bytesOf(m[1:])
		if !ok {
			return false
		}
		for m = after; len(refs) > 0; {
			ref, n := binary.Uvarint(refs)
			if n <= 0 || ref > math.MaxUint32 {
				return false
			}
			p.refs, refs = append(p.refs, uint32(ref)), refs[n:]
		}
	}
	for len(m) > 0 && m[0] == tagMessage2 {
		sample, after, ok := bytesOf(m[1:])
		if !ok {
			return false
		}
		var f float2
		if f.v, sample = fixed(sample, tagFixed1); !varint(&sample, tagVarint2, &f.t) || !varint(&sample, tagVarint3, &f.st) || len(sample) > 0 {
			return false
		}
		p.floats, m = append(p.floats, f), after
	}
	return len(m) == 0 || m[0] == tagMessage5 && p.readMetadata(m[1:])
}

// readMetadata reads the metadata, which ends the message.
func (p *plain2) readMetadata(m []byte) bool {
	m, after, ok := bytesOf(m)
	var kind, help, unit int64
	if !ok || len(after) > 0 || !varint(&m, tagVarint1, &kind) || !varint(&m, tagVarint3, &help) || !varint(&m, tagVarint4, &unit) || len(m) > 0 {
		return false
	}
	p.kind, p.help, p.unit = int32(kind), uint32(help), uint32(unit) // #nosec G115 -- the next line checks it
	return int64(p.kind) == kind && int64(p.help) == help && int64(p.unit) == unit
}

// fixed reads a float with that tag, if it comes next, else 0.
func fixed(m []byte, tag byte) (v float64, after []byte) {
	if len(m) < 9 || m[0] != tag {
		return 0, m
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(m[1:])), m[9:]
}

// varint reads a number with that tag, if it comes next. It reports false if the number is none.
func varint(m *[]byte, tag byte, to *int64) bool {
	if len(*m) == 0 || (*m)[0] != tag {
		return true
	}
	v, n := binary.Uvarint((*m)[1:])
	if n <= 0 {
		return false
	}
	*to, *m = int64(v), (*m)[1+n:] // #nosec G115 -- a negative number has the highest bit set
	return true
}
