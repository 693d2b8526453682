//go:build linux

package crashlab

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"

	"github.com/gosnmp/gosnmp"

	"hwsagent/e2e/mutate"
)

// device is a peer that speaks SNMP over UDP.
type device struct {
	name    string
	deck    *deck
	address string

	mu      sync.Mutex
	conn    net.PacketConn // nil while it is gone
	serving sync.WaitGroup
	asked   int
}

// variables returns those of a device, in their order.
func variables() []gosnmp.SnmpPDU {
	v := func(oid string, kind gosnmp.Asn1BER, value any) gosnmp.SnmpPDU {
		return gosnmp.SnmpPDU{Name: ".1.3.6.1.2.1." + oid, Type: kind, Value: value}
	}
	return []gosnmp.SnmpPDU{
		v("1.1.0", gosnmp.OctetString, []byte("a device")), v("1.3.0", gosnmp.TimeTicks, uint32(4711)), v("1.5.0", gosnmp.OctetString, []byte("mutant")),
		v("2.2.1.1.1", gosnmp.Integer, 1), v("2.2.1.1.2", gosnmp.Integer, 2), v("2.2.1.2.1", gosnmp.OctetString, []byte("eth0")), v("2.2.1.2.2", gosnmp.OctetString, []byte("eth1")),
		v("2.2.1.10.1", gosnmp.Counter32, uint32(7)), v("2.2.1.10.2", gosnmp.Counter32, uint32(8)),
		v("31.1.1.1.1.1", gosnmp.OctetString, []byte("e0")), v("31.1.1.1.6.1", gosnmp.Counter64, uint64(1)<<60),
	}
}

// right returns what a device answers (RFC 3416, section 4.2).
func right(req *gosnmp.SnmpPacket) []byte {
	answer := &gosnmp.SnmpPacket{Version: req.Version, Community: req.Community, RequestID: req.RequestID, PDUType: gosnmp.GetResponse}
	all := variables()
	for _, v := range req.Variables {
		at, found := slices.BinarySearchFunc(all, v.Name, func(p gosnmp.SnmpPDU, name string) int { return compareOIDs(p.Name, name) })
		repeat := 1
		if req.PDUType == gosnmp.GetBulkRequest {
			repeat = int(req.MaxRepetitions)
		}
		if req.PDUType != gosnmp.GetRequest && found {
			at++
		}
		for ; repeat > 0 && at < len(all) && (found || req.PDUType != gosnmp.GetRequest); repeat-- {
			answer.Variables = append(answer.Variables, all[at])
			at++
		}
		if repeat > 0 {
			answer.Variables = append(answer.Variables, gosnmp.SnmpPDU{Name: v.Name, Type: gosnmp.EndOfMibView})
		}
	}
	b, err := answer.MarshalMsg()
	if err != nil {
		return nil // a request that nothing can answer
	}
	return b
}

// compareOIDs compares by numbers.
func compareOIDs(a, b string) int {
	var x, y []int
	for _, p := range []struct {
		text string
		to   *[]int
	}{{a, &x}, {b, &y}} {
		n := 0
		for _, c := range p.text[1:] + "." {
			if c == '.' {
				*p.to = append(*p.to, n)
				n = 0
			} else {
				n = n*10 + int(c-'0')
			}
		}
	}
	return slices.CompareFunc(x, y, cmp.Compare[int])
}

// deviceKinds returns the ways to answer wrongly: by one datagram, by none, and by a walk that does
// not end.
func deviceKinds(req *gosnmp.SnmpPacket) []mutate.Kind {
	var all []mutate.Kind
	for _, c := range mutate.BER(func(*rand.Rand) []byte { return right(req) }) {
		all = append(all, mutate.Kind{Name: c.Name, Make: func(rnd *rand.Rand) mutate.Script {
			return mutate.Script{Steps: []mutate.Step{{Bytes: c.Make(rnd).Bytes()}}}
		}})
	}
	answer := func(name string, f func(rnd *rand.Rand, p *gosnmp.SnmpPacket)) {
		all = append(all, mutate.Kind{Name: name, Make: func(rnd *rand.Rand) mutate.Script {
			p := &gosnmp.SnmpPacket{Version: req.Version, Community: req.Community, RequestID: req.RequestID, PDUType: gosnmp.GetResponse, Variables: slices.Clone(req.Variables)}
			f(rnd, p)
			b, _ := p.MarshalMsg() // nothing is sent if it cannot be written
			return mutate.Script{Steps: []mutate.Step{{Bytes: b}}}
		}})
	}
	answer("a walk without end", func(rnd *rand.Rand, p *gosnmp.SnmpPacket) {
		for i := range p.Variables {
			p.Variables[i] = gosnmp.SnmpPDU{Name: p.Variables[i].Name + ".1", Type: gosnmp.Integer, Value: rnd.IntN(100)}
		}
	})
	answer("a walk in place", func(_ *rand.Rand, p *gosnmp.SnmpPacket) {
		for i := range p.Variables {
			p.Variables[i].Type, p.Variables[i].Value = gosnmp.OctetString, []byte("again")
		}
	})
	answer("a walk backwards", func(_ *rand.Rand, p *gosnmp.SnmpPacket) {
		for i := range p.Variables {
			p.Variables[i] = gosnmp.SnmpPDU{Name: ".1.3.6.1.2.1.1.1.0", Type: gosnmp.OctetString, Value: []byte("back")}
		}
	})
	answer("an error of SNMP", func(rnd *rand.Rand, p *gosnmp.SnmpPacket) {
		p.Error, p.ErrorIndex = gosnmp.SNMPError(rnd.IntN(30)), uint8(rnd.IntN(256))
	})
	answer("the answer to another request", func(rnd *rand.Rand, p *gosnmp.SnmpPacket) { p.RequestID ^= 1 << rnd.IntN(31) })
	answer("a value of 60 KB", func(_ *rand.Rand, p *gosnmp.SnmpPacket) {
		p.Variables = []gosnmp.SnmpPDU{{Name: ".1.3.6.1.2.1.1.1.0", Type: gosnmp.OctetString, Value: make([]byte, 60_000)}}
	})
	return append(all, mutate.Kind{Name: "silence", Make: func(*rand.Rand) mutate.Script { return mutate.Script{} }},
		mutate.Kind{Name: "the answer many times", Make: func(*rand.Rand) mutate.Script {
			return mutate.Script{Steps: []mutate.Step{{Bytes: right(req), Times: 50}}}
		}})
}

func (d *device) open() error {
	conn, err := net.ListenPacket("udp", d.address)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.conn = conn
	d.mu.Unlock()
	d.serving.Go(func() {
		codec, buf := &gosnmp.GoSNMP{Version: gosnmp.Version2c}, make([]byte, 65536)
		for {
			n, from, err := conn.ReadFrom(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			req, err := codec.SnmpDecodePacket(slices.Clone(buf[:n]))
			if err != nil {
				continue // not from an agent, or about a port that is closed
			}
			d.mu.Lock()
			d.asked++
			d.mu.Unlock()
			script, ok := d.deck.deal(d.name, deviceKinds(req))
			if !ok {
				script = mutate.Script{Steps: []mutate.Step{{Bytes: right(req)}}}
			}
			for _, step := range script.Steps {
				for range max(1, step.Times) {
					_, _ = conn.WriteTo(step.Bytes, from) // fails for one that is too long, or without a receiver
				}
			}
		}
	})
	return nil
}

func (d *device) shut() {
	d.mu.Lock()
	if d.conn != nil {
		d.conn.Close()
	}
	d.conn = nil
	d.mu.Unlock()
	d.serving.Wait()
}
