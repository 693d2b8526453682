package snmp

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes/snmp/reply"
)

// buffers are memory for a round of a probe that later rounds of any probe reuse: otherwise a round of a large device
// would leave a megabyte of garbage. They are for one round at a time.
type buffers struct {
	g       *gosnmp.GoSNMP // see client
	packet  []byte         // the packet received last, with room for the largest
	last    []byte         // of the latest answer, cut at maxReport
	message reply.Message
	// decoded means that message holds the latest answer, and that gosnmp got only a brief of it.
	decoded bool
	answer  []variable    // see variables
	arcs    arena[uint32] // of answer, if gosnmp decoded it
	text    arena[byte]   // of answer
	harvest *harvest
}

// maxPacket is larger than any datagram's payload.
const maxPacket = 1<<16 - 1

func newBuffers() *buffers {
	return &buffers{packet: make([]byte, maxPacket), harvest: newHarvest()}
}

// client returns gosnmp's client of the buffers, without a connection. gosnmp makes its buffer with a socket, which is closed at once.
func (x *buffers) client() (*gosnmp.GoSNMP, error) {
	if x.g != nil {
		return x.g, nil
	}
	g := &gosnmp.GoSNMP{Target: "127.0.0.1", UseUnconnectedUDPSocket: true}
	if err := g.Connect(); err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	if err := g.Close(); err != nil {
		return nil, fmt.Errorf("close a socket: %w", err)
	}
	x.g = g
	return g, nil
}

// bufferPool holds the buffers that no round uses. It is safe for concurrent use.
type bufferPool struct{ free sync.Pool } // of *buffers

func (r *bufferPool) take() *buffers {
	if x, ok := r.free.Get().(*buffers); ok {
		return x
	}
	return newBuffers()
}

// give takes back buffers that are no longer in use.
func (r *bufferPool) give(x *buffers) { r.free.Put(x) }

// variables returns the variables of an answer, in order. They are valid until the next answer. A variable with
// an invalid OID gets an empty one; a variable of type Null has no value.
func (x *buffers) variables(p *gosnmp.SnmpPacket) []variable {
	x.answer = x.answer[:0]
	x.arcs.reset()
	x.text.reset()
	if x.decoded {
		for i := range x.message.Variables {
			x.answer = append(x.answer, x.fromReply(&x.message.Variables[i]))
		}
		return x.answer
	}
	for i := range p.Variables {
		x.answer = append(x.answer, x.fromPDU(&p.Variables[i]))
	}
	return x.answer
}

func (x *buffers) fromReply(r *reply.Variable) variable {
	v := variable{oid: r.OID, typ: gosnmp.Asn1BER(r.Type), bits: r.Number, octets: r.Octets}
	switch r.Type {
	case reply.ObjectIdentifier:
		var buf [4 * 32]byte
		v.octets = x.text.copy(reply.AppendOID(buf[:0], r.Octets))
	case reply.IPAddress:
		var buf [len("255.255.255.255")]byte
		v.octets = x.text.copy(netip.AddrFrom4([4]byte(r.Octets)).AppendTo(buf[:0]))
	}
	return v
}

// fromPDU converts a variable that gosnmp has decoded.
func (x *buffers) fromPDU(pdu *gosnmp.SnmpPDU) variable {
	v := valueOf(pdu.Type, pdu.Value)
	if o, err := appendOID(x.arcs.take(maxArcs), pdu.Name); err == nil {
		v.oid = o
	}
	return v
}

// valueOf converts a value of gosnmp: int, uint, uint32, uint64, float32, float64, string (an OID or an address) or []byte.
func valueOf(typ gosnmp.Asn1BER, value any) variable {
	v := variable{typ: typ}
	switch n := value.(type) {
	case int:
		v.bits = uint64(n) // #nosec G115 -- two's complement
	case uint:
		v.bits = uint64(n)
	case uint32:
		v.bits = uint64(n)
	case uint64:
		v.bits = n
	case float32:
		v.setFloat32(n)
	case float64:
		v.setFloat64(n)
	case string:
		v.octets = []byte(strings.TrimPrefix(n, "."))
	case []byte:
		v.octets = n
	default:
		if !v.missing() { // an empty IPAddress, or a type that gosnmp does not know
			v.typ = gosnmp.Null
		}
	}
	return v
}
