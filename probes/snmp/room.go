package snmp

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes/snmp/reply"
)

// room is memory for a round of a probe that later rounds of any probe reuse: otherwise a round of a large device
// would leave a megabyte of garbage. It is for one round at a time.
type room struct {
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

func newRoom() *room {
	return &room{packet: make([]byte, maxPacket), harvest: newHarvest()}
}

// client returns gosnmp's client of the room, without a connection. gosnmp makes its buffer with a socket, which is closed at once.
func (x *room) client() (*gosnmp.GoSNMP, error) {
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

// rooms holds the rooms that no round uses. It is safe for concurrent use.
type rooms struct{ free sync.Pool } // of *room

func (r *rooms) take() *room {
	if x, ok := r.free.Get().(*room); ok {
		return x
	}
	return newRoom()
}

// give takes back a room that is no longer in use.
func (r *rooms) give(x *room) { r.free.Put(x) }

// variables returns the variables of an answer, in order. They are valid until the next answer. A variable with
// an invalid OID gets an empty one; a variable of type Null has no value.
func (x *room) variables(p *gosnmp.SnmpPacket) []variable {
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

func (x *room) fromReply(r *reply.Variable) variable {
	v := variable{oid: r.OID, typ: gosnmp.Asn1BER(r.Type), bits: r.Number, octets: r.Octets}
	switch r.Type {
	case reply.ObjectIdentifier:
		var room [4 * 32]byte
		v.octets = x.text.copy(reply.AppendOID(room[:0], r.Octets))
	case reply.IPAddress:
		var room [len("255.255.255.255")]byte
		v.octets = x.text.copy(netip.AddrFrom4([4]byte(r.Octets)).AppendTo(room[:0]))
	}
	return v
}

// fromPDU converts a variable that gosnmp has decoded.
func (x *room) fromPDU(pdu *gosnmp.SnmpPDU) variable {
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
