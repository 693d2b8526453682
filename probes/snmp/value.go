package snmp

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/timefmt-go"
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
func (v *variable) text(t metricType) string {
	switch x := v.value.(type) {
	case []byte:
		return stringOf(t, x)
	case string: // an OID or an address
		return strings.ToValidUTF8(strings.TrimPrefix(x, "."), "\uFFFD")
	case float32:
		return strconv.FormatFloat(float64(x), 'f', -1, 32)
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case int:
		return strconv.Itoa(x)
	case uint64: // a Counter64 in full: only numbers wrap
		return strconv.FormatUint(x, 10)
	}
	f, _ := v.number(t)
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// hinted is text by a DISPLAY-HINT, which counts for octets only.
func (v *variable) hinted(t metricType, hint string) string {
	if b, ok := v.value.([]byte); ok && hint != "" && (t == typeOctetString || t == "") {
		if text, ok := applyHint(hint, b); ok {
			return text
		}
	}
	return v.text(t)
}

// time is a value that tells a time, in Unix seconds; ok is false if it tells none.
func (v *variable) time(m *metric) (float64, bool) {
	b, ok := v.value.([]byte)
	if m.typ == typeParseDateAndTime {
		t, err := timefmt.Parse(v.text(typeDisplayString), m.timePattern)
		return float64(t.Unix()), err == nil
	}
	if !ok {
		return 0, false
	}
	if m.typ == typeNTPTimeStamp {
		return ntpTimeStamp(b)
	}
	return dateAndTime(b)
}

// ntpEpoch is how many seconds 1900 was before 1970: RFC 5905 section 6.
const ntpEpoch = 2208988800

// ntpTimeStamp reads the whole seconds of NtpTimeStamp (RFC 5907).
func ntpTimeStamp(b []byte) (float64, bool) {
	if len(b) < 8 {
		return 0, false
	}
	return float64(int64(binary.BigEndian.Uint32(b)) - ntpEpoch), true
}

// dateAndTime reads the textual convention DateAndTime of RFC 2579 as Unix seconds. ok
// is false for anything else, the all-zero value for "never" included.
func dateAndTime(b []byte) (float64, bool) {
	if len(b) != 8 && len(b) != 11 {
		return 0, false
	}
	zone := time.UTC
	if len(b) == 11 {
		if b[8] != '+' && b[8] != '-' {
			return 0, false
		}
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
