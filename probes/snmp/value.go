package snmp

import (
	"math"
	"strings"
	"time"
)

// wrap is where 64-bit counters are made to wrap. A float64 holds every integer only up
// to 2^53; above it a counter would move in steps and make rates jitter.
const wrap = 1 << 53

// number is a value as a float; ok is false if it is none.
func (v *variable) number(t metricType) (float64, bool) {
	switch x := v.value.(type) {
	case int:
		return float64(x), true
	case uint:
		return unsigned(uint64(x), t), true
	case uint32:
		return unsigned(uint64(x), t), true
	case uint64:
		return unsigned(x, t), true
	case float32:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

func unsigned(u uint64, t metricType) float64 {
	if t == typeInteger32 && u <= math.MaxUint32 {
		return float64(int32(uint32(u)))
	}
	return float64(u % wrap)
}

// integer is a whole number, for enumerations and lookup chains.
func (v *variable) integer() (int64, bool) {
	f, ok := v.number(typeGauge)
	if !ok || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

// text is a value as a label value, by type.
func (v *variable) text(t metricType, enum map[int]string) string {
	switch x := v.value.(type) {
	case []byte:
		return stringOf(t, x)
	case string: // an OID or an address
		return strings.ToValidUTF8(strings.TrimPrefix(x, "."), "\uFFFD")
	}
	if t == typeInteger32 {
		f, _ := v.number(t)
		return formatFloat(f)
	}
	if n, ok := v.integer(); ok {
		return enumText(n, enum)
	}
	f, _ := v.number(t)
	return formatFloat(f)
}

// dateAndTime reads the textual convention DateAndTime of RFC 2579 as Unix seconds. ok
// is false for anything else, the all-zero value for "never" included.
func dateAndTime(b []byte) (float64, bool) {
	if len(b) != 8 && len(b) != 11 {
		return 0, false
	}
	zone := time.UTC
	if len(b) == 11 {
		offset := int(b[9])*3600 + int(b[10])*60
		if b[8] == '-' {
			offset = -offset
		}
		zone = time.FixedZone("", offset)
	}
	month, day := time.Month(b[2]), int(b[3])
	if month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, false
	}
	t := time.Date(int(b[0])<<8|int(b[1]), month, day, int(b[4]), int(b[5]), int(b[6]), 0, zone)
	return float64(t.Unix()), true
}
