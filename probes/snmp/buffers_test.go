package snmp

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes"
)

// Devices that are read at the same time share buffers, and none has a value or a label of another.
func TestSharedRooms(t *testing.T) {
	plans := new(Plans)
	var wg sync.WaitGroup
	for device := range 4 {
		tree := []gosnmp.SnmpPDU{pdu("1.3.6.1.2.1.1.5.0", gosnmp.OctetString, fmt.Sprintf("switch %d", device))}
		for row := range 10 + 20*device {
			tree = append(tree,
				pdu(fmt.Sprintf("1.3.6.1.2.1.2.2.1.2.%d", row+1), gosnmp.OctetString, fmt.Sprintf("port %d of %d", row, device)),
				pdu(fmt.Sprintf("1.3.6.1.2.1.2.2.1.10.%d", row+1), gosnmp.Counter32, uint(1000*device+row)))
		}
		c := newFakeAgent(t, tree...).config("system", "if_mib")
		p, err := plans.New(c, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		wg.Go(func() {
			for range 20 {
				r := probes.NewRound(0)
				if err := p.Collect(t.Context(), r); err != nil {
					t.Error(err)
					return
				}
				got := maps.Collect(func(yield func(string, float64) bool) {
					for k, v := range lines(r) {
						if strings.HasPrefix(k, "ifInOctets") || strings.HasPrefix(k, "sysName") {
							yield(k, v)
						}
					}
				})
				if len(got) != 11+20*device || got[fmt.Sprintf("sysName{sysName=%q}", fmt.Sprintf("switch %d", device))] != 1 {
					t.Errorf("device %d: %v", device, got)
					return
				}
				for row := range 10 + 20*device {
					series := fmt.Sprintf(`ifInOctets{ifDescr="port %d of %d",ifIndex="%d"}`, row, device, row+1)
					if got[series] != float64(1000*device+row) {
						t.Errorf("device %d: %s = %v in %v", device, series, got[series], got)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// Usual packets are decoded without gosnmp; unusual ones are decoded by it, with the same samples.
func TestUnusualAnswersAreDecodedByGosnmp(t *testing.T) {
	const sysName = "06082b06010201010500"
	packet := func(value string) []byte {
		list := tlvHex("30", tlvHex("30", sysName, value))
		b, err := hex.DecodeString(tlvHex("30", "020101", "04067075626c6963", tlvHex("a2", "020100", "020100", "020100", list)))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for what, tc := range map[string]struct {
		value   string
		decoded bool
	}{
		"usual":                 {"0406737769746368", true},
		"a length one too long": {"0407737769746368", false},
		"a length of 5 octets":  {"04850000000006737769746368", false},
		"a length of 4 octets":  {"048400000006737769746368", true},
		"a length of 2 of them": {"04820006737769746368", true},
	} {
		t.Run(what, func(t *testing.T) {
			a := newFakeAgent(t)
			a.replace(packet(tc.value))
			s := newProbe(t, a.config("system")).session
			s.buffers = newBuffers()
			if err := s.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			h := newHarvest()
			if err := s.get(t.Context(), []string{"1.3.6.1.2.1.1.5.0"}, h); err != nil {
				t.Fatal(err)
			}
			a.faults(t)
			if len(h.vars) != 1 || h.vars[0].text(typeDisplayString) != "switch" {
				t.Errorf("%+v", h.vars)
			}
			if s.buffers.decoded != tc.decoded {
				t.Errorf("decoded without gosnmp: %t, want %t", s.buffers.decoded, tc.decoded)
			}
		})
	}
}

// tlvHex is a value of BER of less than 128 octets, in hexadecimal digits.
func tlvHex(tag string, contents ...string) string {
	content := strings.Join(contents, "")
	return fmt.Sprintf("%s%02x%s", tag, len(content)/2, content)
}

// emitting is a round of a switch with so many ports, without its requests.
func emitting(t testing.TB, ports int) (variables int, r *probes.Round, round func()) {
	t.Helper()
	var vars []variable
	for _, p := range interfaces(ports) {
		if text, ok := p.Value.(string); ok {
			p.Value = []byte(text)
		}
		vars = append(vars, decoded(p))
	}
	e, h := newEmitter(compile("if_mib", ifModule)), newHarvest()
	r = probes.NewRound(0)
	return len(vars), r, func() {
		h.reset()
		r.Reset(0)
		for _, v := range vars {
			if err := h.add(v); err != nil {
				t.Fatal(err)
			}
		}
		e.emit(h, r)
	}
}

// What a round reads and emits is in memory that the next one uses again, but for the texts of labels.
func TestEmittingLeavesLittleGarbage(t *testing.T) {
	const ports = 48
	variables, r, round := emitting(t, ports)
	// Texts and lookups of a row; before, there were as many for each variable.
	if got, most := testing.AllocsPerRun(100, round), 16.0*ports; got > most {
		t.Errorf("%v allocations for %d variables in %d rows, want at most %v", got, variables, ports, most)
	} else {
		t.Logf("%v allocations for %d variables", got, variables)
	}
	if len(r.Samples()) < 3*ports {
		t.Errorf("%d samples", len(r.Samples()))
	}
}

// BenchmarkEmit is what a variable costs between the decoder and the log.
func BenchmarkEmit(b *testing.B) {
	variables, _, round := emitting(b, 48)
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*variables), "ns/variable")
}

// Between rounds a device keeps its socket, but no buffers, and buffers keep nothing of a device.
func TestDevicesKeepNoRoom(t *testing.T) {
	p := newProbe(t, newFakeAgent(t, interfaces(1)...).config("if_mib"))
	if _, err := collect(t, p); err != nil {
		t.Fatal(err)
	}
	if s := p.session; s.buffers != nil || s.line == nil || s.line.buffers != nil {
		t.Errorf("the session has buffers %p and line %+v", s.buffers, s.line)
	}
	s := p.session
	s.buffers = newBuffers()
	if err := s.get(t.Context(), []string{sysUpTime}, newHarvest()); err != nil {
		t.Fatal(err)
	}
	if g := s.buffers.g; g == nil || g.Conn != nil || g.SecurityParameters != nil || g.OnSent != nil {
		t.Errorf("the buffers have client %+v", g)
	}
}
