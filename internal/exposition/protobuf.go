package exposition

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of io.prometheus.client.MetricFamily and its messages, see
// https://github.com/prometheus/client_model/blob/v0.6.2/io/prometheus/client/metrics.proto.
const (
	familyName, familyHelp, familyType, familyMetric, familyUnit = 1, 2, 3, 4, 5

	metricLabel, metricSummary, metricHistogram = 1, 4, 7

	summaryQuantile = 3

	histogramBucket                            = 3
	negativeSpan, negativeDelta, negativeCount = 9, 10, 11
	positiveSpan, positiveDelta, positiveCount = 12, 13, 14
)

// errMalformed means that a body is not valid protobuf.
var errMalformed = errors.New("it is not protobuf")

func malformed(code int) error { return fmt.Errorf("%w: %w", errMalformed, protowire.ParseError(code)) }

// checkProtobuf checks the bounds of delimited families without building them. convert says whether
// classic histograms will be converted. It returns only the families that have metrics: the parser uses
// one stack frame for each consecutive family without metrics, without a bound.
func checkProtobuf(body []byte, convert bool) ([]byte, error) {
	c := protobufCheck{convert: convert}
	kept, changed := body[:0:0], false // kept is the body up to here, if changed
	for at := 0; at < len(body); {
		b, n := protowire.ConsumeBytes(body[at:])
		if n < 0 {
			return nil, fmt.Errorf("offset %d: read a family: %w", at, malformed(n))
		}
		if n-len(b) > binary.MaxVarintLen32 {
			return nil, fmt.Errorf("offset %d: %w: the length of a family takes %d bytes", at, errMalformed, n-len(b))
		}
		metrics, err := c.family(b)
		if err != nil {
			return nil, fmt.Errorf("family at offset %d: %w", at, err)
		}
		if metrics == 0 && !changed {
			kept, changed = append(kept, body[:at]...), true
		}
		if metrics > 0 && changed {
			kept = append(kept, body[at:at+n]...)
		}
		at += n
	}
	if changed {
		return kept, nil
	}
	return body, nil
}

// protobufCheck is the state of a check.
type protobufCheck struct {
	convert bool

	// About the current family.
	nameBytes int
	expanded  int // bytes that it produces
}

// family checks a family and counts its metrics.
func (c *protobufCheck) family(b []byte) (metrics int, err error) {
	c.nameBytes, c.expanded = 0, 0
	err = fields(b, func(f field) error {
		switch f.number {
		case familyName: // which may follow the metrics
			c.nameBytes = len(f.value)
			return f.check("the name", maxRecordBytes)
		case familyHelp:
			return f.check("the help", maxRecordBytes)
		case familyUnit:
			return f.check("the unit", maxUnitBytes)
		case familyMetric:
			metrics++
			return f.check("a metric", maxRecordBytes)
		case familyType:
			if f.kind != protowire.VarintType {
				return errors.New("the type is not a number")
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	err = fields(b, func(f field) error {
		if f.number != familyMetric {
			return nil
		}
		return c.metric(f.value)
	})
	if err != nil {
		return 0, err
	}
	return metrics, checkExpansion(c.expanded, len(b))
}

func (c *protobufCheck) metric(b []byte) error {
	labels, seriesBytes, series, h := 0, c.nameBytes, 1, buckets{}
	err := fields(b, func(f field) error {
		switch f.number {
		case metricLabel:
			labels++
			seriesBytes += len(f.value)
		case metricSummary:
			series += 2 // count and sum
			return fields(f.value, func(f field) error {
				if f.number == summaryQuantile {
					series++
				}
				return nil
			})
		case metricHistogram:
			series += 3 // count, sum and the bucket +Inf
			return fields(f.value, h.field)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case labels > maxLabels:
		return fmt.Errorf("%w, %d of at most %d", ErrLabels, labels, maxLabels)
	case c.convert && h.classic > maxConverted:
		return fmt.Errorf("%w: a histogram has %d buckets, more than %d, too many for a conversion to a native one", ErrBound, h.classic, maxConverted)
	}
	bytes, err := expanded(series+h.classic, seriesBytes)
	c.expanded += bytes + h.work()
	return err
}

// buckets counts the buckets of a metric. Fields and messages may be repeated: they add up.
type buckets struct {
	classic            int
	positive, negative side
}

func (h *buckets) field(f field) error {
	switch f.number {
	case histogramBucket:
		h.classic++
	case positiveSpan:
		h.positive.n++
	case negativeSpan:
		h.negative.n++
	case positiveDelta:
		return h.positive.deltas(f)
	case negativeDelta:
		return h.negative.deltas(f)
	case positiveCount:
		return h.positive.counts(f)
	case negativeCount:
		return h.negative.counts(f)
	}
	return nil
}

// work is the cost of removing empty buckets, as the bytes of labels that could be built in the same
// time: for each empty bucket, all following buckets are moved.
func (h *buckets) work() int {
	work := (float64(h.positive.n)*float64(h.positive.empty) + float64(h.negative.n)*float64(h.negative.empty)) / 4
	return int(min(work, math.MaxInt32))
}

// side is the buckets of a native histogram above or below zero.
type side struct {
	n     int // buckets and spans
	empty int // buckets
	value int64
}

// deltas counts buckets encoded as differences: a field holds one, or many in packed form.
func (s *side) deltas(f field) error {
	if f.kind != protowire.BytesType {
		s.delta(f.one)
		return nil
	}
	for packed := f.value; len(packed) > 0; {
		v, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			return malformed(n)
		}
		s.delta(v)
		packed = packed[n:]
	}
	return nil
}

func (s *side) delta(v uint64) {
	s.n++
	if s.value += protowire.DecodeZigZag(v); s.value == 0 {
		s.empty++
	}
}

// counts counts buckets encoded as absolute numbers: a field holds one, or many in packed form.
func (s *side) counts(f field) error {
	if f.kind != protowire.BytesType {
		s.count(f.one)
		return nil
	}
	for packed := f.value; len(packed) > 0; {
		v, n := protowire.ConsumeFixed64(packed)
		if n < 0 {
			return malformed(n)
		}
		s.count(v)
		packed = packed[n:]
	}
	return nil
}

func (s *side) count(v uint64) {
	s.n++
	if math.Float64frombits(v) == 0 {
		s.empty++
	}
}

// field is one field of a message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  []byte // of a field of variable length
	one    uint64 // of a field of 8 bytes or a varint
}

// check bounds a field of a family, which must be of variable length.
func (f field) check(part string, most int) error {
	switch {
	case f.kind != protowire.BytesType:
		return fmt.Errorf("%s of a family has the wire type %d", part, f.kind)
	case len(f.value) > most:
		return fmt.Errorf("%w: %s of a family has %d bytes, more than %d", ErrBound, part, len(f.value), most)
	}
	return nil
}

// fields calls do for each field of a message.
func fields(b []byte, do func(field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return malformed(n)
		}
		b = b[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.BytesType:
			f.value, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.one, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.one, n = protowire.ConsumeFixed64(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return malformed(n)
		}
		if err := do(f); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
