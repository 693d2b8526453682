package snmp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// oid is an object identifier, or the part of one that is a table index.
type oid []uint32

// maxArcs is the greatest length of an object identifier: RFC 2578 section 3.5.
const maxArcs = 128

// parseOID parses a dotted OID, with or without a leading dot.
func parseOID(s string) (oid, error) {
	s = strings.TrimPrefix(s, ".")
	n := strings.Count(s, ".") + 1
	if s == "" || n > maxArcs {
		return nil, fmt.Errorf("invalid OID of %d arcs", n)
	}
	return appendOID(make(oid, 0, n), s)
}

// appendOID is parseOID into existing memory with room for maxArcs, or for as many arcs as s has.
func appendOID(o oid, s string) (oid, error) {
	s = strings.TrimPrefix(s, ".")
	for part := range strings.SplitSeq(s, ".") {
		v, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("invalid OID %q: %w", s, err)
		}
		if len(o) == maxArcs {
			return nil, fmt.Errorf("invalid OID of more than %d arcs", maxArcs)
		}
		o = append(o, uint32(v))
	}
	return o, nil
}

// mustOID parses the OIDs in the tables of this package.
func mustOID(s string) oid {
	o, err := parseOID(s)
	if err != nil {
		panic(err)
	}
	return o
}

func (o oid) String() string {
	b := make([]byte, 0, 4*len(o))
	for i, v := range o {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendUint(b, uint64(v), 10)
	}
	return string(b)
}

// key returns a compact form for maps.
func (o oid) key() string {
	var buf [4 * 32]byte // enough for most OIDs
	return string(o.appendKey(buf[:0]))
}

// appendKey appends the key to b, for a map look-up without allocation.
func (o oid) appendKey(b []byte) []byte {
	for _, v := range o {
		b = append(b, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return b
}

func (o oid) compare(p oid) int { return slices.Compare(o, p) }

func (o oid) hasPrefix(p oid) bool { return len(o) > len(p) && slices.Equal(o[:len(p)], p) }
