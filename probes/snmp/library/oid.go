package library

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// OID is an object identifier, or the part of one that is the index of a row.
type OID []uint32

// maxArcs is the greatest length of an object identifier: RFC 2578 section 3.5.
const maxArcs = 128

// ParseOID parses a dotted OID, with or without a leading dot.
func ParseOID(s string) (OID, error) {
	s = strings.TrimPrefix(s, ".")
	n := strings.Count(s, ".") + 1
	if s == "" || n > maxArcs {
		return nil, fmt.Errorf("%.40q is not an OID of 1 to %d numbers", s, maxArcs)
	}
	o := make(OID, 0, n)
	for part := range strings.SplitSeq(s, ".") {
		v, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%.40q is not an OID", s)
		}
		o = append(o, uint32(v))
	}
	return o, nil
}

// String returns the dotted form.
func (o OID) String() string {
	b := make([]byte, 0, 4*len(o))
	for i, v := range o {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendUint(b, uint64(v), 10)
	}
	return string(b)
}

// within reports whether o is p or below it.
func (o OID) within(p OID) bool { return len(o) >= len(p) && slices.Equal(o[:len(p)], p) }

// join returns o with more arcs appended.
func (o OID) join(more ...uint32) OID {
	return append(append(make(OID, 0, len(o)+len(more)), o...), more...)
}
