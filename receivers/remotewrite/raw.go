package remotewrite

import (
	"encoding/binary"
	"math"

	"github.com/prometheus/prometheus/prompb"
)

// Tags of protocol buffers: the number of a field, and its kind in the lowest three bits.
const (
	tagFixed1   = 1<<3 | 1
	tagMessage1 = 1<<3 | 2
	tagVarint2  = 2<<3 | 0
	tagMessage2 = 2<<3 | 2
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
	if len(m) >= 9 && m[0] == tagFixed1 {
		s.Value = math.Float64frombits(binary.LittleEndian.Uint64(m[1:]))
		m = m[9:]
	}
	if len(m) > 0 && m[0] == tagVarint2 {
		t, n := binary.Uvarint(m[1:])
		if n <= 0 {
			return s, false
		}
		s.Timestamp = int64(t) // #nosec G115 -- a negative time has the highest bit set
		m = m[1+n:]
	}
	return s, len(m) == 0
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
