package snmp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"

	"hwsagent/internal/tools/tier"
	"hwsagent/probes"
)

// interfaces is an ifTable and ifXTable of n rows.
func interfaces(n int) (tree []gosnmp.SnmpPDU) {
	for i := 1; i <= n; i++ {
		tree = append(tree,
			pdu(fmt.Sprintf("1.3.6.1.2.1.2.2.1.1.%d", i), gosnmp.Integer, i),
			pdu(fmt.Sprintf("1.3.6.1.2.1.2.2.1.2.%d", i), gosnmp.OctetString, fmt.Sprintf("port %d", i)),
			pdu(fmt.Sprintf("1.3.6.1.2.1.2.2.1.8.%d", i), gosnmp.Integer, 1),
			pdu(fmt.Sprintf("1.3.6.1.2.1.31.1.1.1.1.%d", i), gosnmp.OctetString, fmt.Sprintf("p%d", i)),
			pdu(fmt.Sprintf("1.3.6.1.2.1.31.1.1.1.6.%d", i), gosnmp.Counter64, uint64(1)<<53+uint64(i)),
			pdu(fmt.Sprintf("1.3.6.1.2.1.31.1.1.1.18.%d", i), gosnmp.OctetString, fmt.Sprintf("to rack %d", i)),
		)
	}
	return tree
}

func wantInterfaces(t *testing.T, r *probes.Round, n int) {
	t.Helper()
	got := lines(r)
	for i := 1; i <= n; i++ {
		want := fmt.Sprintf(`ifHCInOctets{ifAlias="to rack %d",ifDescr="port %d",ifIndex="%d",ifName="p%d"}`, i, i, i, i)
		if v, ok := got[want]; !ok || v != float64(i) { // 2^53 + i, wrapped
			t.Errorf("%s = %v, %v, want %d", want, v, ok, i)
		}
	}
}

func isBulk(req *gosnmp.SnmpPacket) bool { return req.PDUType == gosnmp.GetBulkRequest }

func TestBulkSizeShrinks(t *testing.T) {
	for _, tc := range []struct {
		name     string
		takes    uint32 // variables that the device can answer with
		refusal  func(*gosnmp.SnmpPacket) *gosnmp.SnmpPacket
		want     int
		retried  bool
		maxFault int
	}{
		{"tooBig", 5, func(r *gosnmp.SnmpPacket) *gosnmp.SnmpPacket { return respond(r, gosnmp.TooBig, r.Variables...) }, 3, false, 3},
		{"silence", 10, func(*gosnmp.SnmpPacket) *gosnmp.SnmpPacket { return nil }, 6, true, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newFakeAgent(t, interfaces(20)...)
			a.misbehave(func(r *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
				if isBulk(r) && r.MaxRepetitions > tc.takes {
					return tc.refusal(r), true
				}
				return nil, false
			})
			p := newProbe(t, a.config("if_mib"))
			r, err := collect(t, p)
			if err != nil {
				t.Fatal(err)
			}
			wantInterfaces(t, r, 20)
			if n := a.faults(t); n != tc.maxFault {
				t.Errorf("%d requests were too big, want %d", n, tc.maxFault)
			}
			if p.session.bulk != tc.want {
				t.Errorf("asks for %d now, want %d", p.session.bulk, tc.want)
			}
			if got := lines(r)[`snmp_scrape_packets_retried{module="if_mib"}`] > 0; got != tc.retried {
				t.Errorf("retried = %v", got)
			}
			// The next round knows.
			a.forget()
			if _, err := collect(t, p); err != nil {
				t.Fatal(err)
			}
			for _, q := range a.requests() {
				if isBulk(q) && int(q.MaxRepetitions) != tc.want {
					t.Errorf("asked for %d again", q.MaxRepetitions)
				}
			}
		})
	}
}

// One lost packet is no reason to ask for less.
func TestOneLostPacket(t *testing.T) {
	a := newFakeAgent(t, interfaces(20)...)
	lost := false
	a.misbehave(func(r *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
		if isBulk(r) && !lost {
			lost = true
			return nil, true
		}
		return nil, false
	})
	p := newProbe(t, a.config("if_mib"))
	r, err := collect(t, p)
	if err != nil {
		t.Fatal(err)
	}
	wantInterfaces(t, r, 20)
	a.faults(t)
	if p.session.bulk != DefaultMaxRepetitions {
		t.Errorf("asks for %d now", p.session.bulk)
	}
}

// An agent that says genErr where it means too much is read in smaller portions, and only where
// it says so.
func TestGenErrForTooMuch(t *testing.T) {
	a := newFakeAgent(t, interfaces(20)...)
	a.misbehave(func(r *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
		if isBulk(r) && r.MaxRepetitions > 6 && strings.HasPrefix(r.Variables[0].Name, ".1.3.6.1.2.1.2.") || r.PDUType == gosnmp.GetRequest && len(r.Variables) > 3 {
			return respond(r, gosnmp.GenErr, r.Variables...), true
		}
		return nil, false
	})
	p := newProbe(t, a.config("system", "if_mib"))
	r, err := collect(t, p)
	if err != nil {
		t.Fatal(err)
	}
	a.faults(t)
	wantInterfaces(t, r, 20)
	if p.session.bulk != DefaultMaxRepetitions {
		t.Errorf("asks for %d now", p.session.bulk)
	}
}

// An answer that comes after its request was given up is not taken for the next one's.
func TestLateAnswer(t *testing.T) {
	a := newFakeAgent(t, interfaces(20)...)
	n := 0
	a.misbehave(func(r *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
		if !isBulk(r) {
			return nil, false
		}
		n++
		if n == 2 { // give up the second answer, and send rubbish with its number later
			a.late = marshal(respond(r, gosnmp.NoError, pdu("1.3.6.1.2.1.31.1.1.1.6.99", gosnmp.Counter64, uint64(99))))
			return nil, true
		}
		return nil, false
	})
	r, err := collect(t, newProbe(t, a.config("if_mib")))
	if err != nil {
		t.Fatal(err)
	}
	a.faults(t)
	wantInterfaces(t, r, 20)
	for k := range lines(r) {
		if strings.Contains(k, `ifIndex="99"`) {
			t.Errorf("%s comes from the late answer", k)
		}
	}
}

func TestOIDNotIncreasing(t *testing.T) {
	a := newFakeAgent(t, append(interfaces(3), pdu("1.3.6.1.2.1.1.5.0", gosnmp.OctetString, "switch"))...)
	a.misbehave(func(r *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
		if isBulk(r) {
			return respond(r, gosnmp.NoError, pdu("1.3.6.1.2.1.2.2.1.1.9", gosnmp.Integer, 9), pdu("1.3.6.1.2.1.2.2.1.1.4", gosnmp.Integer, 4)), true
		}
		return nil, false
	})
	r, err := collect(t, newProbe(t, a.config("if_mib", "system")))
	if err == nil || !strings.Contains(err.Error(), "module if_mib") || !strings.Contains(err.Error(), "OID not increasing") {
		t.Errorf("error: %v", err)
	}
	a.faults(t)
	got := lines(r)
	if got[`sysName{sysName="switch"}`] != 1 {
		t.Error("the module after the failed one was not read")
	}
	for k := range got {
		if strings.HasPrefix(k, "if") {
			t.Errorf("%s of the failed module was kept", k)
		}
	}
}

func TestErrorStatusFailsTheModuleOnly(t *testing.T) {
	a := newFakeAgent(t, pdu("1.3.6.1.2.1.1.5.0", gosnmp.OctetString, "switch"))
	a.misbehave(func(r *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
		if isBulk(r) {
			return respond(r, gosnmp.GenErr, r.Variables...), true
		}
		return nil, false
	})
	c := a.config("if_mib", "host_resources", "system")
	c.PacketTimeout = 0 // 5 s: each packet is answered, and a busy machine asks none again
	r, err := collect(t, newProbe(t, c))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"module if_mib: walk 1.3.6.1.2.1.2 at", "module host_resources:", "genErr"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	// Each of the two modules for 25, 12, 6, 3 and 1 variables: it might have been too much.
	if n := a.faults(t); n != 10 {
		t.Errorf("asked %d times", n)
	}
	if lines(r)[`sysName{sysName="switch"}`] != 1 {
		t.Error("system was not read")
	}
}

func TestDeadDevice(t *testing.T) {
	a := newFakeAgent(t, interfaces(2)...)
	a.misbehave(func(*gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) { return nil, true })
	p := newProbe(t, a.config("if_mib", "system"))
	r, err := collect(t, p)
	if err == nil || !strings.Contains(err.Error(), "to 4 packets") || !strings.Contains(err.Error(), "wrong community") {
		t.Errorf("error: %v", err)
	}
	if n := a.faults(t); n != 1+DefaultRetries {
		t.Errorf("a dead device cost %d packets", n)
	}
	if n := len(r.Samples()); n != 0 {
		t.Errorf("%d samples of a dead device", n)
	}
	// It comes back, and nothing was learnt from its silence.
	a.misbehave(nil)
	r, err = collect(t, p)
	if err != nil {
		t.Fatal(err)
	}
	wantInterfaces(t, r, 2)
	if p.session.bulk != DefaultMaxRepetitions {
		t.Errorf("asks for %d now", p.session.bulk)
	}
}

func TestCancelInterruptsTheWait(t *testing.T) {
	a := newFakeAgent(t)
	ctx, cancel := context.WithCancel(t.Context())
	a.misbehave(func(*gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) { cancel(); return nil, true })
	c := a.config("system")
	c.PacketTimeout = 0 // 5 s
	p := newProbe(t, c)
	start := time.Now()
	err := p.Collect(ctx, probes.NewRound(0))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	if took := time.Since(start); took > tier.Within(2*time.Second) {
		t.Errorf("took %s", took)
	}
	a.faults(t)
	a.misbehave(nil)
	if _, err := collect(t, p); err != nil {
		t.Errorf("the next round: %v", err)
	}
}

func TestDeadlineCutsTheWalk(t *testing.T) {
	a := newFakeAgent(t, interfaces(5)...)
	a.misbehave(func(r *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) { return nil, isBulk(r) })
	c := a.config("system", "if_mib", "host_resources")
	c.PacketTimeout = 0
	p := newProbe(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r := probes.NewRound(0)
	err := p.Collect(ctx, r)
	if err == nil || !strings.Contains(err.Error(), "module if_mib: no answer") || !strings.Contains(err.Error(), "module host_resources and later ones not read") {
		t.Errorf("error: %v", err)
	}
	a.faults(t)
	if _, ok := lines(r)["sysUpTime{}"]; !ok {
		t.Error("what was read before the deadline is lost")
	}
}

func TestMalformedAnswer(t *testing.T) {
	a := newFakeAgent(t)
	a.replace([]byte{0x30, 0x82, 0xff, 0xff, 2, 1})
	p := newProbe(t, a.config("system"))
	if _, err := collect(t, p); err == nil || !strings.Contains(err.Error(), "ask udp ") {
		t.Errorf("error: %v", err)
	}
	if n := a.faults(t); n != 2 { // once more over a new connection
		t.Errorf("asked %d times", n)
	}
	a.replace(nil)
	if _, err := collect(t, p); err != nil {
		t.Errorf("the next round: %v", err)
	}
}

// Only a Response-PDU answers a request. An echo sends the request itself back, which decodes
// and holds no value: taken for an answer, it would make a device that does not exist look well.
func TestAnswerIsNoResponse(t *testing.T) {
	kinds := []gosnmp.PDUType{gosnmp.GetRequest, gosnmp.GetNextRequest, gosnmp.GetBulkRequest, gosnmp.SetRequest, gosnmp.InformRequest, gosnmp.SNMPv2Trap, gosnmp.Report}
	for _, version := range []int{1, 2} {
		for _, module := range []string{"system", "if_mib"} {
			for _, kind := range kinds {
				t.Run(fmt.Sprintf("v%d %s %s", version, module, kind), func(t *testing.T) {
					a := newFakeAgent(t, interfaces(1)...)
					a.misbehave(func(r *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
						p := *r
						p.PDUType = kind
						return &p, true
					})
					c := a.config(module)
					c.Auth.Version = version
					p := newProbe(t, c)
					if _, err := collect(t, p); err == nil || !strings.Contains(err.Error(), "not an SNMP agent") {
						t.Errorf("error: %v", err)
					}
					a.faults(t)
				})
			}
		}
	}
}

// A walk of a device that invents rows endlessly is cut off.
func TestWalkIsBounded(t *testing.T) {
	a := newFakeAgent(t)
	row := 0
	a.misbehave(func(r *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
		if !isBulk(r) {
			return nil, false
		}
		row++
		return respond(r, gosnmp.NoError, pdu(fmt.Sprintf("1.3.6.1.2.1.2.2.1.2.%d", row), gosnmp.OctetString, strings.Repeat("x", 1000))), true
	})
	for _, tc := range []struct{ vars, bytes int }{{100, 1 << 30}, {1 << 30, 100_000}} {
		p := newProbe(t, a.config("if_mib"))
		p.session.buffers = newBuffers()
		if err := p.session.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		h := newHarvest()
		h.maxVars, h.maxBytes = tc.vars, tc.bytes
		if err := p.session.walk(t.Context(), mustOID("1.3.6.1.2.1.2"), increasing, h); !errors.Is(err, errTooMuch) {
			t.Errorf("error: %v", err)
		}
		if n := len(h.vars); n > 100 {
			t.Errorf("%d variables kept", n)
		}
	}
	a.faults(t)
}

func TestRefusedPort(t *testing.T) {
	port := freePort(t)
	for _, network := range []string{"udp", "tcp"} {
		p := newProbe(t, Config{Target: fmt.Sprintf("%s:127.0.0.1:%d", network, port), Modules: []string{"system"}})
		start := time.Now()
		_, err := collect(t, p)
		if err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", network, err)
		}
		if took := time.Since(start); took > tier.Within(3*time.Second) {
			t.Errorf("%s: took %s", network, took)
		}
	}
}

// A decoder that panics takes its connection with it.
func TestPanicClosesTheConnection(t *testing.T) {
	a := newFakeAgent(t, interfaces(1)...)
	p := newProbe(t, a.config("if_mib"))
	if _, err := collect(t, p); err != nil {
		t.Fatal(err)
	}
	broken := *p.modules[0].module
	broken.derive = func(*harvest, *emitter) { panic("boom") }
	p.modules[0].module = &broken
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = collect(t, p)
	}()
	if p.session.line != nil {
		t.Error("the connection is kept")
	}
}
