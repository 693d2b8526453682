package otlp

import (
	"errors"
	"math"

	"github.com/prometheus/prometheus/model/value"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"google.golang.org/protobuf/encoding/protowire"
)

// errOther ends a walk through a request that is not plain.
var errOther = errors.New("the request is not plain")

// rawMetric is a metric of a plain request, as bytes of its message. They determine the series of its points and their
// metadata.
type rawMetric struct {
	scope, url              []byte // of the ScopeMetrics
	name, description, unit []byte
	more                    [][]byte // its metadata
	kind                    byte     // one of the following
	points                  []byte   // the Gauge or the Sum
}

const (
	rawGauge   byte = iota
	rawSum          // not monotonic
	rawCounter      // monotonic
)

// visitor sees the parts of a plain request, in their order. An error ends the walk.
type visitor interface {
	resource(bytes []byte) error
	metric(m *rawMetric) error
	resourceEnds() error
}

// walk passes the parts of an ExportMetricsServiceRequest to v. The error is errOther for any request, valid or not, that has
// anything but gauges and cumulative sums, or a field twice: pdata decodes that. Fields may come in any order. Points are
// only looked at by rawMetric.each.
//
// Source: https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/metrics/v1/metrics.proto.
func walk(body []byte, v visitor) error {
	return fieldsOf(body, func(tag byte, value []byte, _ uint64) error {
		if tag != tagBytes1 {
			return errOther
		}
		return walkResource(value, v)
	})
}

func walkResource(m []byte, v visitor) error {
	var resource []byte
	if err := fieldsOf(m, func(tag byte, value []byte, _ uint64) error {
		switch tag {
		case tagBytes1:
			return once(&resource, value)
		case tagBytes2, tagBytes3: // scopes; the URL of a schema, which is in no label
			return nil
		}
		return errOther
	}); err != nil {
		return err
	}
	if err := v.resource(resource); err != nil {
		return err
	}
	if err := fieldsOf(m, func(tag byte, value []byte, _ uint64) error {
		if tag != tagBytes2 {
			return nil
		}
		return walkScope(value, v)
	}); err != nil {
		return err
	}
	return v.resourceEnds()
}

func walkScope(m []byte, v visitor) error {
	var one rawMetric
	if err := fieldsOf(m, func(tag byte, value []byte, _ uint64) error {
		switch tag {
		case tagBytes1:
			return once(&one.scope, value)
		case tagBytes2:
			return nil
		case tagBytes3:
			return once(&one.url, value)
		}
		return errOther
	}); err != nil {
		return err
	}
	return fieldsOf(m, func(tag byte, value []byte, _ uint64) error {
		if tag != tagBytes2 {
			return nil
		}
		one = rawMetric{scope: one.scope, url: one.url, more: one.more[:0]}
		if err := one.read(value); err != nil {
			return err
		}
		return v.metric(&one)
	})
}

// read reads a Metric into m.
func (m *rawMetric) read(message []byte) error {
	err := fieldsOf(message, func(tag byte, value []byte, _ uint64) error {
		switch tag {
		case tagBytes1:
			return once(&m.name, value)
		case tagBytes2:
			return once(&m.description, value)
		case tagBytes3:
			return once(&m.unit, value)
		case tagGauge:
			m.kind = rawGauge
			return once(&m.points, value)
		case tagSum:
			m.kind = rawSum
			return once(&m.points, value)
		case tagMetadata:
			m.more = append(m.more, value)
			return nil
		}
		return errOther
	})
	if err != nil || m.points == nil {
		return errOther
	}
	return m.check()
}

// check reads what a Gauge or a Sum has beside its points.
func (m *rawMetric) check() error {
	const cumulative = 2
	var temporality, monotonic uint64
	seen := 0
	err := fieldsOf(m.points, func(tag byte, _ []byte, number uint64) error {
		switch {
		case tag == tagBytes1:
			return nil
		case tag == tagVarint2 && m.kind == rawSum:
			temporality = number
		case tag == tagVarint3 && m.kind == rawSum:
			monotonic = number
		default:
			return errOther
		}
		if seen++; seen > 2 {
			return errOther
		}
		return nil
	})
	switch {
	case err != nil, m.kind == rawSum && temporality != cumulative, monotonic > 1:
		return errOther
	case monotonic == 1:
		m.kind = rawCounter
	}
	return nil
}

// rawPoint is a NumberDataPoint without exemplars.
type rawPoint struct {
	attributes []byte // as they are encoded
	st, t      pcommon.Timestamp
	v          float64
	none       bool // it has no value
}

// value returns the value, or a stale marker if there is none.
func (p rawPoint) value() float64 {
	if p.none {
		return math.Float64frombits(value.StaleNaN)
	}
	return p.v
}

// each passes the points of the metric to f.
func (m *rawMetric) each(f func(p rawPoint) error) error {
	return fieldsOf(m.points, func(tag byte, value []byte, _ uint64) error {
		if tag != tagBytes1 {
			return nil
		}
		p, ok := readPoint(value)
		if !ok {
			return errOther
		}
		return f(p)
	})
}

// readPoint reads a NumberDataPoint. It reports false for one with exemplars, with a field twice, without a time, or that
// is not valid.
func readPoint(message []byte) (p rawPoint, ok bool) {
	const noRecordedValue = 1 // of the flags
	const values = 1<<4 | 1<<6
	var seen uint16  // by the numbers of fields
	from, to := 0, 0 // of the attributes
	for at := 0; at < len(message); {
		tag, _, number, n := fieldOf(message[at:])
		if n < 0 {
			return p, false
		}
		bit := uint16(1) << (tag >> 3)
		switch tag {
		case tagAttributes:
			// All attributes must follow each other, so that one piece of the message has them.
			switch to {
			case 0:
				from = at
			case at:
			default:
				return p, false
			}
			to, bit = at+n, 0
		case tagStart:
			p.st = pcommon.Timestamp(number)
		case tagTime:
			p.t = pcommon.Timestamp(number)
		case tagDouble:
			p.v, bit = math.Float64frombits(number), values
		case tagInt:
			p.v, bit = float64(int64(number)), values // #nosec G115 -- a negative number has the highest bit set
		case tagFlags:
			p.none = number&noRecordedValue != 0
		default:
			return p, false
		}
		if seen&bit != 0 {
			return p, false
		}
		seen |= bit
		at += n
	}
	p.attributes = message[from:to]
	return p, p.t != 0
}

// once sets a field that comes once.
func once(to *[]byte, value []byte) error {
	if *to != nil {
		return errOther
	}
	*to = value[:len(value):len(value)]
	return nil
}

// Tags of protocol buffers: the number of a field, and its kind in the lowest three bits.
const (
	tagBytes1  = 1<<3 | 2
	tagBytes2  = 2<<3 | 2
	tagBytes3  = 3<<3 | 2
	tagVarint2 = 2 << 3
	tagVarint3 = 3 << 3

	tagGauge    = 5<<3 | 2 // of a Metric
	tagSum      = 7<<3 | 2
	tagMetadata = 12<<3 | 2

	tagStart      = 2<<3 | 1 // of a NumberDataPoint
	tagTime       = 3<<3 | 1
	tagDouble     = 4<<3 | 1
	tagInt        = 6<<3 | 1
	tagAttributes = 7<<3 | 2
	tagFlags      = 8 << 3
)

// fieldsOf calls f for each field of a message, with its bytes or its number.
func fieldsOf(message []byte, f func(tag byte, value []byte, number uint64) error) error {
	for len(message) > 0 {
		tag, value, number, n := fieldOf(message)
		if n < 0 {
			return errOther
		}
		if err := f(tag, value, number); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}

// fieldOf reads the first field of a message, of n bytes; n is negative for one that is invalid, in a group, of 32 bits, or
// with a number above 15.
func fieldOf(m []byte) (tag byte, value []byte, number uint64, n int) {
	if tag = m[0]; tag>>3 == 0 || tag >= 1<<7 {
		return 0, nil, 0, -1
	}
	switch protowire.Type(tag & 7) {
	case protowire.VarintType:
		number, n = protowire.ConsumeVarint(m[1:])
	case protowire.Fixed64Type:
		number, n = protowire.ConsumeFixed64(m[1:])
	case protowire.BytesType:
		value, n = protowire.ConsumeBytes(m[1:])
	default:
		return 0, nil, 0, -1
	}
	if n < 0 {
		return 0, nil, 0, -1
	}
	return tag, value, number, n + 1
}
