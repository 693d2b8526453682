package reply

// Message is a decoded answer. Decode reuses its memory. The zero value is ready for use. It is not safe for
// concurrent use.
type Message struct {
	// Variables are the variables of the answer, in order. They are valid until the next Decode, and their Octets only
	// while the packet does not change.
	Variables []Variable

	head []byte // of the packet: version and community, encoded
	ids  []byte // of the packet: request ID, error status and error index, encoded
	arcs []uint32
}

// Variable is one variable binding.
type Variable struct {
	OID  []uint32 // 2 to [MaxArcs] arcs
	Type Type
	// Number is the value of a number: of an Integer its two's complement, of an OpaqueFloat and an OpaqueDouble the
	// IEEE 754 bits, else an unsigned number. It is 0 for other types.
	Number uint64
	// Octets are the contents of an OctetString, an Opaque, an IPAddress (4 octets) and an ObjectIdentifier (in BER;
	// see [AppendOID]); nil for other types. They are part of the packet.
	Octets []byte
}

// MaxArcs is the maximum length of an object identifier: RFC 2578 section 3.5.
const MaxArcs = 128

// Type is the type of a value, by its tag in BER: RFC 3416 section 3.
type Type byte

// Types of values. OpaqueFloat and OpaqueDouble are wrapped in an Opaque by Net-SNMP; their tags are the inner ones.
const (
	Integer          Type = 0x02
	OctetString      Type = 0x04
	Null             Type = 0x05
	ObjectIdentifier Type = 0x06
	IPAddress        Type = 0x40
	Counter32        Type = 0x41
	Gauge32          Type = 0x42
	TimeTicks        Type = 0x43
	Opaque           Type = 0x44
	Counter64        Type = 0x46
	OpaqueFloat      Type = 0x78
	OpaqueDouble     Type = 0x79
	NoSuchObject     Type = 0x80
	NoSuchInstance   Type = 0x81
	EndOfMibView     Type = 0x82
)

const (
	sequence    = 0x30
	getResponse = 0xa2
	version2c   = 1
)

// Decode decodes one packet. It returns false, and leaves m without variables, if the packet is not a Response-PDU of
// version 1 or 2c with at least one variable, or if it is unusual in any way.
func (m *Message) Decode(packet []byte) bool {
	m.Variables, m.arcs = m.Variables[:0], m.arcs[:0]
	if m.decode(packet) {
		return true
	}
	m.Variables = m.Variables[:0]
	return false
}

func (m *Message) decode(packet []byte) bool {
	body, ok := whole(packet, sequence)
	if !ok {
		return false
	}
	version, rest, ok := cut(body, byte(Integer))
	if !ok || len(version) != 1 || version[0] > version2c {
		return false
	}
	_, rest, ok = cut(rest, byte(OctetString)) // the community
	if !ok {
		return false
	}
	m.head = body[:len(body)-len(rest)]
	pdu, ok := whole(rest, getResponse)
	if !ok {
		return false
	}
	rest = pdu
	for range 3 { // request ID, error status, error index
		var n []byte
		if n, rest, ok = cut(rest, byte(Integer)); !ok || len(n) == 0 || len(n) > 8 {
			return false
		}
	}
	m.ids = pdu[:len(pdu)-len(rest)]
	if rest, ok = whole(rest, sequence); !ok {
		return false
	}
	for len(rest) > 0 {
		var binding []byte
		if binding, rest, ok = cut(rest, sequence); !ok || !m.bind(binding) {
			return false
		}
	}
	return len(m.Variables) > 0
}

// bind decodes one variable binding.
func (m *Message) bind(b []byte) bool {
	name, value, ok := cut(b, byte(ObjectIdentifier))
	if !ok || len(value) == 0 {
		return false
	}
	v := Variable{Type: Type(value[0])}
	content, ok := whole(value, value[0])
	if !ok || !v.set(content) {
		return false
	}
	at := len(m.arcs)
	if m.arcs, ok = appendArcs(m.arcs, name); !ok || len(m.arcs)-at > MaxArcs {
		return false
	}
	v.OID = m.arcs[at:len(m.arcs):len(m.arcs)]
	m.Variables = append(m.Variables, v)
	return true
}

// set sets v from the contents of a value of v.Type.
func (v *Variable) set(b []byte) bool {
	switch v.Type {
	case Integer:
		if len(b) == 0 || len(b) > 8 {
			return false
		}
		v.Number = signed(b)
	case TimeTicks, Counter32, Gauge32:
		if len(b) == 0 || len(b) > 5 || len(b) == 5 && b[0] != 0 {
			return false
		}
		v.Number = unsigned(b)
	case Counter64:
		if len(b) == 0 || len(b) > 9 || len(b) == 9 && b[0] != 0 {
			return false
		}
		v.Number = unsigned(b)
	case OctetString:
		v.Octets = b
	case ObjectIdentifier:
		v.Octets = b
		return soundOID(b)
	case IPAddress:
		v.Octets = b
		return len(b) == 4
	case Opaque:
		return v.setOpaque(b)
	case Null, NoSuchObject, NoSuchInstance, EndOfMibView:
		return len(b) == 0
	default:
		return false
	}
	return true
}
