package reply

// noVariable is a list of one variable binding: 1.3.6.1 without a value.
var noVariable = [...]byte{sequence, 9, sequence, 7, byte(ObjectIdentifier), 3, 0x2b, 6, 1, byte(Null), 0}

// AppendBrief appends to b the last decoded packet with a single variable without a value in place of its variables:
// version, community, request ID, error status and index are the same. It serves a second decoder that only needs to
// match the answer to its request.
func (m *Message) AppendBrief(b []byte) []byte {
	pdu := len(m.ids) + len(noVariable)
	b = appendHead(b, sequence, len(m.head)+headLen(pdu)+pdu)
	b = append(b, m.head...)
	b = appendHead(b, getResponse, pdu)
	b = append(b, m.ids...)
	return append(b, noVariable[:]...)
}

// appendHead appends tag and length of a value of at most 65,535 octets.
func appendHead(b []byte, tag byte, n int) []byte {
	if n < 0x80 {
		return append(b, tag, byte(n))
	}
	return append(b, tag, 0x82, byte(n>>8), byte(n)) // #nosec G115 -- its octets
}

// headLen is the number of octets that appendHead appends.
func headLen(n int) int {
	if n < 0x80 {
		return 2
	}
	return 4
}
