package snmp

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"
	"github.com/prometheus/common/model"
)

// fakeAgent answers v1 and v2c on loopback from a list of variables, as a device does,
// and can be made to misbehave. gosnmp is its codec too, so values are checked
// against Net-SNMP elsewhere; here it is behaviour that counts.
type fakeAgent struct {
	conn net.PacketConn
	done chan struct{}

	mu   sync.Mutex
	tree []gosnmp.SnmpPDU // sorted
	// fault may answer instead of the agent; handled says that it did, and a nil
	// answer is silence.
	fault func(req *gosnmp.SnmpPacket) (answer *gosnmp.SnmpPacket, handled bool)
	// raw, if set, is sent in place of every answer.
	raw []byte
	// from, if set, is the socket that answers.
	from net.PacketConn
	// late is sent just before the next answer: one that the network held back.
	late  []byte
	seen  []*gosnmp.SnmpPacket // every request
	fired int                  // requests that fault or raw handled
}

func newFakeAgent(t testing.TB, tree ...gosnmp.SnmpPDU) *fakeAgent {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newFakeAgentAt(t, conn, tree...)
}

// newFakeAgentAt answers at conn.
func newFakeAgentAt(t testing.TB, conn net.PacketConn, tree ...gosnmp.SnmpPDU) *fakeAgent {
	t.Helper()
	a := &fakeAgent{conn: conn, done: make(chan struct{})}
	a.tree = append(tree, pdu("1.3.6.1.2.1.1.3.0", gosnmp.TimeTicks, uint32(4711)))
	slices.SortFunc(a.tree, func(x, y gosnmp.SnmpPDU) int { return mustOID(x.Name).compare(mustOID(y.Name)) })
	go a.run()
	t.Cleanup(func() { _ = conn.Close(); <-a.done })
	return a
}

func pdu(name string, typ gosnmp.Asn1BER, v any) gosnmp.SnmpPDU {
	return gosnmp.SnmpPDU{Name: "." + name, Type: typ, Value: v}
}

func (a *fakeAgent) config(modules ...string) Config {
	return Config{
		Target: a.conn.LocalAddr().String(), Modules: modules,
		PacketTimeout: model.Duration(150 * time.Millisecond),
	}
}

// misbehave sets the fault from now on and forgets what was seen.
func (a *fakeAgent) misbehave(f func(*gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault, a.seen, a.fired = f, nil, 0
}

// forget drops what was seen and keeps the fault.
func (a *fakeAgent) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = nil
}

// replace sends raw in place of every answer; nil ends that.
func (a *fakeAgent) replace(raw []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.raw = raw
}

func (a *fakeAgent) requests() []*gosnmp.SnmpPacket {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen)
}

// faults is how often a fault fired; a test that sees none has proven nothing.
func (a *fakeAgent) faults(t testing.TB) int {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fired == 0 {
		t.Error("the fault never fired")
	}
	return a.fired
}

func (a *fakeAgent) run() {
	defer close(a.done)
	codec := &gosnmp.GoSNMP{Version: gosnmp.Version2c}
	buf := make([]byte, 65536)
	for {
		n, from, err := a.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		req, err := codec.SnmpDecodePacket(slices.Clone(buf[:n]))
		if err != nil {
			continue
		}
		held, out := a.answer(req)
		for _, b := range [][]byte{held, out} {
			if b != nil {
				_, _ = a.answerer().WriteTo(b, from)
			}
		}
	}
}

func (a *fakeAgent) answerer() net.PacketConn {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.from != nil {
		return a.from
	}
	return a.conn
}

// answer is what to send: a late answer to another request, if there is one, and the
// answer to this one.
func (a *fakeAgent) answer(req *gosnmp.SnmpPacket) (held, out []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	held, a.late = a.late, nil
	a.seen = append(a.seen, req)
	resp, handled := (*gosnmp.SnmpPacket)(nil), false
	if a.fault != nil {
		resp, handled = a.fault(req)
	}
	switch {
	case a.raw != nil:
		a.fired++
		return held, a.raw
	case handled && resp == nil:
		a.fired++
		return nil, nil
	case handled:
		a.fired++
	default:
		resp = a.serve(req)
	}
	return held, marshal(resp)
}

func marshal(p *gosnmp.SnmpPacket) []byte {
	b, err := p.MarshalMsg()
	if err != nil {
		panic(err)
	}
	return b
}

func respond(req *gosnmp.SnmpPacket, status gosnmp.SNMPError, vars ...gosnmp.SnmpPDU) *gosnmp.SnmpPacket {
	return &gosnmp.SnmpPacket{
		Version: req.Version, Community: req.Community, RequestID: req.RequestID,
		PDUType: gosnmp.GetResponse, Error: status, Variables: vars,
	}
}

// serve answers as RFC 3416 says (RFC 1157 for v1).
func (a *fakeAgent) serve(req *gosnmp.SnmpPacket) *gosnmp.SnmpPacket {
	var out []gosnmp.SnmpPDU
	for _, v := range req.Variables {
		at := mustOID(v.Name)
		i, found := slices.BinarySearchFunc(a.tree, at, func(p gosnmp.SnmpPDU, o oid) int { return mustOID(p.Name).compare(o) })
		n := 1
		switch req.PDUType {
		case gosnmp.GetRequest:
			if !found {
				if req.Version == gosnmp.Version1 {
					return respond(req, gosnmp.NoSuchName, req.Variables...)
				}
				out = append(out, gosnmp.SnmpPDU{Name: v.Name, Type: gosnmp.NoSuchObject})
				continue
			}
		default:
			if found {
				i++
			}
			if req.PDUType == gosnmp.GetBulkRequest {
				n = int(req.MaxRepetitions)
			}
		}
		for range n {
			if i >= len(a.tree) {
				if req.Version == gosnmp.Version1 {
					return respond(req, gosnmp.NoSuchName, req.Variables...)
				}
				out = append(out, gosnmp.SnmpPDU{Name: v.Name, Type: gosnmp.EndOfMibView})
				break
			}
			out = append(out, a.tree[i])
			i++
		}
	}
	return respond(req, gosnmp.NoError, out...)
}

// startOtherAddress answers from another port than it is asked at, as a device with several
// addresses may, and returns where it is asked.
func startOtherAddress(t *testing.T) string {
	t.Helper()
	other, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := newFakeAgent(t)
	a.mu.Lock()
	a.from = other
	a.mu.Unlock()
	t.Cleanup(func() { _ = other.Close() })
	return a.conn.LocalAddr().String()
}

// faultsSoFar is how often the fault fired until now.
func (a *fakeAgent) faultsSoFar() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fired
}
