package snmp

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gosnmp/gosnmp"
	"github.com/itchyny/timefmt-go"
)

// wrap is where 64-bit counters are made to wrap. A float64 holds every integer only up to 2^53;
// above it a counter would advance in steps and make rates jitter.
const wrap = 1 << 53

// variable is one variable binding.
type variable struct {
	oid oid
	typ gosnmp.Asn1BER
	// bits is a number: an Integer in two's complement, an OpaqueFloat or OpaqueDouble as the bits of the float.
	bits uint64
	// octets holds an OctetString or Opaque, or the text of an ObjectIdentifier (without a leading dot) or IPAddress.
	octets []byte
}

// any returns the value as gosnmp decodes it.
func (v *variable) any() any {
	switch v.typ {
	case gosnmp.Integer:
		return int(int64(v.bits)) // #nosec G115 -- two's complement
	case gosnmp.Counter32, gosnmp.Gauge32:
		return uint(v.bits)
	case gosnmp.TimeTicks, gosnmp.Uinteger32:
		return uint32(v.bits) // #nosec G115 -- of 32 bits
	case gosnmp.OpaqueFloat:
		return v.float32()
	case gosnmp.OpaqueDouble:
		return math.Float64frombits(v.bits)
	case gosnmp.ObjectIdentifier:
		return "." + string(v.octets)
	case gosnmp.IPAddress:
		return string(v.octets)
	case gosnmp.OctetString, gosnmp.Opaque:
		return v.octets
	}
	return v.bits // a Counter64
}

// has reports whether the device has a value.
func (v *variable) has() bool { return !v.missing() && v.typ != gosnmp.Null }

// missing reports whether the device lacks the object: RFC 3416 section 3.
func (v *variable) missing() bool {
	return v.typ == gosnmp.NoSuchObject || v.typ == gosnmp.NoSuchInstance || v.typ == gosnmp.EndOfMibView
}

// bytes returns the octets; ok is false if the value has another type.
func (v *variable) bytes() (b []byte, ok bool) {
	return v.octets, v.typ == gosnmp.OctetString || v.typ == gosnmp.Opaque
}

// number returns the value as a float; ok is false if it is not a number. NULL is 0: only modules whose samples are those of snmp_exporter
// keep it, see [harvest.accepts].
func (v *variable) number(t metricType) (float64, bool) {
	switch v.typ {
	case gosnmp.Null:
		return 0, true
	case gosnmp.Integer:
		return float64(int64(v.bits)), true // #nosec G115 -- two's complement
	case gosnmp.Counter32, gosnmp.Gauge32, gosnmp.TimeTicks, gosnmp.Uinteger32, gosnmp.Counter64:
		return unsigned(v.bits, t), true
	case gosnmp.OpaqueFloat:
		return float64(v.float32()), true
	case gosnmp.OpaqueDouble:
		return math.Float64frombits(v.bits), true
	}
	return 0, false
}

func (v *variable) float32() float32 {
	return math.Float32frombits(uint32(v.bits)) // #nosec G115 -- the bits of one
}

func (v *variable) setFloat32(f float32) { v.bits = uint64(math.Float32bits(f)) }
func (v *variable) setFloat64(f float64) { v.bits = math.Float64bits(f) }

func unsigned(u uint64, t metricType) float64 {
	if t == typeInteger32 && u <= math.MaxUint32 {
		return float64(int32(uint32(u)))
	}
	return float64(u % wrap)
}

// integer returns a whole number, for enumerations and lookup chains.
func (v *variable) integer() (int64, bool) {
	f, ok := v.number(typeGauge)
	if !ok || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

// text formats a value as a label value, by type. NULL is an empty text.
func (v *variable) text(t metricType) string {
	switch v.typ {
	case gosnmp.Null:
		return ""
	case gosnmp.OctetString, gosnmp.Opaque:
		return stringOf(t, v.octets)
	case gosnmp.ObjectIdentifier, gosnmp.IPAddress:
		return strings.ToValidUTF8(string(v.octets), "\uFFFD")
	case gosnmp.OpaqueFloat:
		return strconv.FormatFloat(float64(v.float32()), 'f', -1, 32)
	case gosnmp.OpaqueDouble:
		return strconv.FormatFloat(math.Float64frombits(v.bits), 'f', -1, 64)
	case gosnmp.Integer:
		return strconv.FormatInt(int64(v.bits), 10) // #nosec G115 -- two's complement
	case gosnmp.Counter64: // in full: only sample values wrap
		return strconv.FormatUint(v.bits, 10)
	}
	f, _ := v.number(t)
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// hinted is text with a DISPLAY-HINT, which applies only to octets.
func (v *variable) hinted(t metricType, hint string) string {
	if b, ok := v.bytes(); ok && hint != "" && (t == typeOctetString || t == "") {
		if text, ok := applyHint(hint, b); ok {
			return text
		}
	}
	return v.text(t)
}

// time returns a time value of type t in Unix seconds; pattern is of a ParseDateAndTime; ok is false if it is not one. exact means that it is
// snmp_exporter's value, which takes a month or a day of 0 for the one before the first.
func (v *variable) time(t metricType, pattern string, exact bool) (float64, bool) {
	b, ok := v.bytes()
	if t == typeParseDateAndTime {
		at, err := timefmt.Parse(v.text(typeDisplayString), pattern)
		return float64(at.Unix()), err == nil
	}
	if !ok {
		return 0, false
	}
	if t == typeNTPTimeStamp {
		return ntpTimeStamp(b)
	}
	return dateAndTime(b, exact)
}

// ntpEpoch is the number of seconds from 1900 to 1970: RFC 5905 section 6.
const ntpEpoch = 2208988800

// ntpTimeStamp returns the whole seconds of an NtpTimeStamp (RFC 5907).
func ntpTimeStamp(b []byte) (float64, bool) {
	if len(b) < 8 {
		return 0, false
	}
	return float64(int64(binary.BigEndian.Uint32(b)) - ntpEpoch), true
}

// maxZoneHours is the largest offset of a time zone from UTC. RFC 2579 says 13; Kiribati has 14.
const maxZoneHours = 14

// dateAndTime parses the textual convention DateAndTime of RFC 2579 to Unix seconds. ok is
// false for anything else, including the all-zero value for "never", unless exact.
func dateAndTime(b []byte, exact bool) (float64, bool) {
	if len(b) != 8 && len(b) != 11 {
		return 0, false
	}
	zone := time.UTC
	if len(b) == 11 {
		if b[8] != '+' && b[8] != '-' {
			return 0, false
		}
		if b[9] > maxZoneHours || b[10] > 59 {
			return 0, false
		}
		offset := int(b[9])*3600 + int(b[10])*60
		if b[8] == '-' {
			offset = -offset
		}
		zone = time.FixedZone("", offset)
	}
	month, day := time.Month(b[2]), int(b[3])
	if !exact && (month < 1 || month > 12 || day < 1 || day > 31) {
		return 0, false
	}
	t := time.Date(int(b[0])<<8|int(b[1]), month, day, int(b[4]), int(b[5]), int(b[6]), 0, zone)
	return float64(t.Unix()), true
}
