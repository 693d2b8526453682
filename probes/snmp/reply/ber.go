package reply

import (
	"encoding/binary"
	"math"
	"strconv"
)

// cut splits a value with this tag off b, and returns its contents and the rest. ok is false if b does not begin with a
// complete one. Lengths have the definite form, in at most four octets: RFC 3417 section 8.
func cut(b []byte, tag byte) (content, rest []byte, ok bool) {
	if len(b) < 2 || b[0] != tag {
		return nil, nil, false
	}
	n, b := int(b[1]), b[2:]
	if n >= 0x80 {
		octets := n & 0x7f
		if octets == 0 || octets > 4 || octets > len(b) {
			return nil, nil, false
		}
		n = 0
		for _, c := range b[:octets] {
			n = n<<8 | int(c)
		}
		b = b[octets:]
	}
	if n < 0 || n > len(b) { // negative if int has 32 bits
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// whole is cut for a value that fills b.
func whole(b []byte, tag byte) (content []byte, ok bool) {
	content, rest, ok := cut(b, tag)
	return content, ok && len(rest) == 0
}

func signed(b []byte) uint64 {
	n := unsigned(b)
	if b[0] >= 0x80 {
		n |= math.MaxUint64 << (8 * len(b)) // 0 if that is 64
	}
	return n
}

func unsigned(b []byte) (n uint64) {
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// netSNMPFloat begins an Opaque that holds a number of Net-SNMP: NET-SNMP-TC, section on Float.
const netSNMPFloat = 0x9f

// setOpaque sets v to an Opaque, or to the number in it.
func (v *Variable) setOpaque(b []byte) bool {
	switch {
	case len(b) == 0:
		return false
	case b[0] != netSNMPFloat:
		v.Octets = b
		return true
	case len(b) == 3+4 && b[1] == byte(OpaqueFloat) && b[2] == 4:
		v.Type, v.Number = OpaqueFloat, uint64(binary.BigEndian.Uint32(b[3:]))
		return true
	case len(b) == 3+8 && b[1] == byte(OpaqueDouble) && b[2] == 8:
		v.Type, v.Number = OpaqueDouble, binary.BigEndian.Uint64(b[3:])
		return true
	}
	return false
}

// arc splits one number off an object identifier. ok is false if it is truncated or has more than 32 bits.
func arc(b []byte) (n uint32, rest []byte, ok bool) {
	for i, c := range b {
		if n > math.MaxUint32>>7 {
			return 0, nil, false
		}
		n = n<<7 | uint32(c&0x7f)
		if c < 0x80 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}

// first returns the two arcs encoded in the first number of an object identifier: X.690 section 8.19.4.
func first(n uint32) (a, b uint32) {
	if n < 80 {
		return n / 40, n % 40
	}
	return 2, n - 80
}

// appendArcs appends the arcs of a nonempty object identifier.
func appendArcs(to []uint32, b []byte) ([]uint32, bool) {
	n, b, ok := arc(b)
	if !ok {
		return to, false
	}
	one, two := first(n)
	to = append(to, one, two)
	for len(b) > 0 {
		if n, b, ok = arc(b); !ok {
			return to, false
		}
		to = append(to, n)
	}
	return to, true
}

// soundOID reports whether b is a valid nonempty object identifier.
func soundOID(b []byte) bool {
	ok := len(b) > 0
	for ok && len(b) > 0 {
		_, b, ok = arc(b)
	}
	return ok
}

// AppendOID appends the Octets of an ObjectIdentifier to text, in dotted form.
func AppendOID(text, b []byte) []byte {
	n, b, _ := arc(b)
	one, two := first(n)
	text = strconv.AppendUint(text, uint64(one), 10)
	text = append(text, '.')
	text = strconv.AppendUint(text, uint64(two), 10)
	for len(b) > 0 {
		n, b, _ = arc(b)
		text = append(text, '.')
		text = strconv.AppendUint(text, uint64(n), 10)
	}
	return text
}
