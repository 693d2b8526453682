package exposition

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of the fields of io.prometheus.client.MetricFamily and what is in it, see
// https://github.com/prometheus/client_model/blob/v0.6.2/io/prometheus/client/metrics.proto.
const (
	familyName, familyHelp, familyMetric, familyUnit = 1, 2, 4, 5

	metricLabel, metricSummary, metricHistogram = 1, 4, 7

	summaryQuantile = 3

	histogramBucket                            = 3
	negativeSpan, negativeDelta, negativeCount = 9, 10, 11
	positiveSpan, positiveDelta, positiveCount = 12, 13, 14
)

// checkProtobuf checks the bounds of delimited families, without making anything of them. convert is
// whether classic histograms are to be converted. It returns the families that have metrics: the parser
// takes a frame of the stack for each of the others that follow each other, which nothing bounds.
func checkProtobuf(body []byte, convert bool) ([]byte, error) {
	c := protobufCheck{convert: convert}
	kept, changed := body[:0:0], false // kept is the body up to here, if it is changed
	for at := 0; at < len(body); {
		b, n := protowire.ConsumeBytes(body[at:])
		if n < 0 {
			return nil, fmt.Errorf("offset %d: read a family: %w", at, protowire.ParseError(n))
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

	// Of the family at hand.
	nameBytes int
	expanded  int // bytes that come out of it
}

// family checks a family, and counts its metrics.
func (c *protobufCheck) family(b []byte) (metrics int, err error) {
	c.nameBytes, c.expanded = 0, 0
	err = fields(b, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case familyName: // which may come behind the metrics
			c.nameBytes = len(value)
			return bound("the name of a family", len(value), maxRecordBytes)
		case familyHelp:
			return bound("the help of a family", len(value), maxRecordBytes)
		case familyUnit:
			return bound("the unit of a family", len(value), maxUnitBytes)
		case familyMetric:
			metrics++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	err = fields(b, func(number protowire.Number, value []byte, _ uint64) error {
		if number != familyMetric {
			return nil
		}
		return c.metric(value)
	})
	if err != nil {
		return 0, err
	}
	return metrics, checkExpansion(c.expanded, len(b))
}

func (c *protobufCheck) metric(b []byte) error {
	if err := bound("a metric", len(b), maxRecordBytes); err != nil {
		return err
	}
	labels, seriesBytes, series, h := 0, c.nameBytes, 1, buckets{}
	err := fields(b, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case metricLabel:
			labels++
			seriesBytes += len(value)
		case metricSummary:
			series += 2 // count and sum
			return fields(value, func(number protowire.Number, _ []byte, _ uint64) error {
				if number == summaryQuantile {
					series++
				}
				return nil
			})
		case metricHistogram:
			series += 3 // count, sum and the bucket +Inf
			return fields(value, h.field)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case labels > maxLabels:
		return fmt.Errorf("%w: a series has %d labels, more than %d", ErrBound, labels, maxLabels)
	case c.convert && h.classic > maxConverted:
		return fmt.Errorf("%w: a histogram has %d buckets, more than %d, too many for a conversion to a native one", ErrBound, h.classic, maxConverted)
	}
	bytes, err := expanded(series+h.classic, seriesBytes)
	c.expanded += bytes + h.work()
	return err
}

// buckets are counted in a metric. Fields and messages may be repeated: they add up.
type buckets struct {
	classic            int
	positive, negative side
}

func (h *buckets) field(number protowire.Number, value []byte, one uint64) error {
	switch number {
	case histogramBucket:
		h.classic++
	case positiveSpan:
		h.positive.n++
	case negativeSpan:
		h.negative.n++
	case positiveDelta:
		return h.positive.deltas(value, one)
	case negativeDelta:
		return h.negative.deltas(value, one)
	case positiveCount:
		return h.positive.counts(value, one)
	case negativeCount:
		return h.negative.counts(value, one)
	}
	return nil
}

// work is what the removal of empty buckets costs, as the bytes of labels that could be made in the same
// time: for each of them, all buckets that follow are moved.
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

// deltas counts buckets that are differences, packed or, if packed is nil, one.
func (s *side) deltas(packed []byte, one uint64) error {
	if packed == nil {
		s.delta(one)
		return nil
	}
	for len(packed) > 0 {
		v, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			return protowire.ParseError(n)
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

// counts counts buckets that are numbers, packed or, if packed is nil, one.
func (s *side) counts(packed []byte, one uint64) error {
	if packed == nil {
		s.count(one)
		return nil
	}
	for len(packed) > 0 {
		v, n := protowire.ConsumeFixed64(packed)
		if n < 0 {
			return protowire.ParseError(n)
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

// bound says that a part of a body is too long.
func bound(part string, bytes, most int) error {
	if bytes > most {
		return fmt.Errorf("%w: %s has %d bytes, more than %d", ErrBound, part, bytes, most)
	}
	return nil
}

// fields calls f for each field of a message: value is what a field of variable length holds, nil for
// another; one is the number that a field of fixed length or a varint holds.
func fields(b []byte, f func(number protowire.Number, value []byte, one uint64) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var value []byte
		var one uint64
		switch kind {
		case protowire.BytesType:
			if value, n = protowire.ConsumeBytes(b); value == nil {
				value = []byte{}
			}
		case protowire.VarintType:
			one, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			one, n = protowire.ConsumeFixed64(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := f(number, value, one); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
