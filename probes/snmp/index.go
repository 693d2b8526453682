package snmp

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// splitIndex turns the index part of an OID into labels, by RFC 2578 section 7.7. It pads an
// index that is too short with zeros: some agents drop them.
func splitIndex(rest oid, indexes []index, into *labelSet) {
	for i := range indexes {
		var arcs oid
		var text string
		arcs, text, rest = indexes[i].take(rest)
		into.set(indexes[i].labelname, text, arcs)
	}
}

// take cuts one index off o, and returns its numbers, its text, and the rest.
func (x *index) take(o oid) (arcs oid, text string, rest oid) {
	switch x.typ {
	case typeOctetString, typeDisplayString:
		var content oid
		switch {
		case x.fixedSize > 0:
			content, rest = cut(o, x.fixedSize)
			arcs = content
		case x.implied:
			content, arcs = o, o
		default:
			var length oid
			length, rest = cut(o, 1)
			// A length beyond the OID comes from a broken agent: take the available part.
			content, rest = cut(rest, min(int(length[0]), len(rest)))
			arcs = append(append(make(oid, 0, len(content)+1), length...), content...)
		}
		return arcs, stringOf(x.typ, bytesOf(content)), rest
	case typeInetAddress, typeInetAddressMissingSize, typeLldpPortID:
		return takeCombined(x.typ, o)
	case typeInetAddressIPv4:
		arcs, rest = cut(o, 4)
		return arcs, inetAddressIPv4(arcs), rest
	case typeInetAddressIPv6:
		arcs, rest = cut(o, 16)
		return arcs, inetAddressIPv6(arcs), rest
	case typePhysAddress48:
		arcs, rest = cut(o, 6)
		return arcs, physAddress(bytesOf(arcs)), rest
	case typeEnumAsInfo:
		arcs, rest = cut(o, 1)
		return arcs, enumText(int64(arcs[0]), x.enumValues), rest
	default: // gauge, counter, Integer32
		arcs, rest = cut(o, 1)
		return arcs, strconv.FormatUint(uint64(arcs[0]), 10), rest
	}
}

// cut splits o after n arcs, padding with zeros.
func cut(o oid, n int) (head, rest oid) {
	if len(o) >= n {
		return o[:n:n], o[n:]
	}
	head = make(oid, n)
	copy(head, o)
	return head, nil
}

func bytesOf(o oid) []byte {
	b := make([]byte, len(o))
	for i, v := range o {
		b[i] = byte(v)
	}
	return b
}

func oidOf(b []byte) oid {
	o := make(oid, len(b))
	for i, v := range b {
		o[i] = uint32(v)
	}
	return o
}

// stringOf converts bytes to text by type; the result is valid UTF-8. Bytes of a type that is a
// number or an address are read as the arcs of an index of that type.
func stringOf(t metricType, b []byte) string {
	switch t {
	case typeDisplayString:
		return strings.ToValidUTF8(string(b), "\uFFFD")
	case typePhysAddress:
		return physAddress(b)
	case typeOctetString, typeBits, "":
		return octets(b)
	}
	_, text, _ := (&index{typ: t}).take(oidOf(b))
	return text
}

func octets(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return "0x" + strings.ToUpper(hex.EncodeToString(b))
}

// physAddress formats a MAC address. An empty one, as of a loopback, becomes all zeros, as in
// snmp_exporter; a longer one, as of InfiniBand, keeps its length.
func physAddress(b []byte) string {
	if len(b) < 6 {
		b = append(bytes.Clone(b), make([]byte, 6-len(b))...)
	}
	var s strings.Builder
	for i, c := range b {
		if i > 0 {
			s.WriteByte(':')
		}
		fmt.Fprintf(&s, "%02X", c)
	}
	return s.String()
}

func enumText(v int64, names map[int]string) string {
	if t, ok := names[int(v)]; ok {
		return t
	}
	return strconv.FormatInt(v, 10)
}
