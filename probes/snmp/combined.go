package snmp

import (
	"fmt"
	"strconv"
	"strings"
)

// combined are types of values whose actual type precedes the value: in an index as its first
// arc, for a column in the preceding column. InetAddress is from RFC 4001 section 3, LldpPortId
// from IEEE 802.1AB (LldpPortIdSubtype).
var combined = map[metricType]map[int]metricType{
	typeInetAddress:            {1: typeInetAddressIPv4, 2: typeInetAddressIPv6},
	typeInetAddressMissingSize: {1: typeInetAddressIPv4, 2: typeInetAddressIPv6},
	typeLldpPortID: {
		1: typeDisplayString, 2: typeDisplayString, 3: typePhysAddress48,
		5: typeDisplayString, 7: typeDisplayString,
	},
}

// takeCombined cuts an index off o that begins with its type, followed by its length except
// for an InetAddressMissingSize. A value of an unknown type is written in hex, with type and
// length.
func takeCombined(t metricType, o oid) (arcs oid, text string, rest oid) {
	n := 2
	if t == typeInetAddressMissingSize {
		n = 1
	}
	head, tail := cut(o, n)
	inner, known := combined[t][int(head[0])]
	switch {
	case !known && n == 1:
		return o, octets(bytesOf(o)), nil
	case !known:
		arcs, rest = cut(o, min(2+int(head[1]), max(2, len(o))))
		return arcs, octets(bytesOf(arcs)), rest
	case inner == typeDisplayString:
		value, rest := cut(tail, min(int(head[1]), len(tail)))
		return join(head, value), stringOf(inner, bytesOf(value)), rest
	}
	value, text, rest := (&index{typ: inner}).take(tail)
	return join(head, value), text, rest
}

func join(a, b oid) oid { return append(append(make(oid, 0, len(a)+len(b)), a...), b...) }

// innerType returns the type of a value of column, in the row given by rest, from the
// preceding column. ok is false if that column lacks the row or has an unknown type.
func (h *harvest) innerType(t metricType, column, rest oid) (inner metricType, ok bool) {
	if len(column) == 0 || column[len(column)-1] == 0 {
		return t, false
	}
	at := join(column, rest)
	at[len(column)-1]--
	v := h.lookup(at)
	if v == nil {
		return t, false
	}
	n, whole := v.integer()
	if !whole {
		return t, false
	}
	inner, ok = combined[t][int(n)]
	return inner, ok
}

func inetAddressIPv4(o oid) string {
	parts := make([]string, len(o))
	for i, v := range o {
		parts[i] = strconv.FormatUint(uint64(v), 10)
	}
	return strings.Join(parts, ".")
}

// inetAddressIPv6 writes all eight groups in capital letters, as snmp_exporter does.
func inetAddressIPv6(o oid) string {
	var s strings.Builder
	for i, v := range o {
		if i > 0 && i%2 == 0 {
			s.WriteByte(':')
		}
		fmt.Fprintf(&s, "%02X", v)
	}
	return s.String()
}
