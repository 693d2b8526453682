package reply

import (
	"bytes"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes/snmp/recording"
)

// written is a variable as text: OID, type and value, as gosnmp has them.
func written(v *Variable) string {
	name := ""
	for _, n := range v.OID {
		name += "." + strconv.FormatUint(uint64(n), 10)
	}
	var value any
	switch v.Type {
	case Integer:
		value = int(int64(v.Number))
	case Counter32, Gauge32:
		value = uint(v.Number)
	case TimeTicks:
		value = uint32(v.Number)
	case Counter64:
		value = v.Number
	case OpaqueFloat:
		value = math.Float32bits(math.Float32frombits(uint32(v.Number)))
	case OpaqueDouble:
		value = v.Number
	case OctetString, Opaque:
		value = v.Octets
	case ObjectIdentifier:
		value = "." + string(AppendOID(nil, v.Octets))
	case IPAddress:
		value = net.IP(v.Octets).String()
	}
	return fmt.Sprintf("%s %d %T %v", name, v.Type, value, value)
}

// writtenPDU is written of gosnmp's variable.
func writtenPDU(v gosnmp.SnmpPDU) string {
	switch x := v.Value.(type) {
	case float32:
		v.Value = math.Float32bits(x)
	case float64:
		v.Value = math.Float64bits(x)
	}
	return fmt.Sprintf("%s %d %T %v", v.Name, v.Type, v.Value, v.Value)
}

// same compares the decoded packet in m with the results of gosnmp for the packet and for its brief.
func same(t *testing.T, m *Message, packet []byte) {
	t.Helper()
	codec := &gosnmp.GoSNMP{Version: gosnmp.Version2c, MaxRepetitions: 1}
	want, err := codec.SnmpDecodePacket(bytes.Clone(packet))
	if err != nil {
		t.Fatalf("gosnmp refuses what was decoded: %v\n% x", err, packet)
	}
	if len(want.Variables) != len(m.Variables) {
		t.Fatalf("%d variables, gosnmp has %d\n% x", len(m.Variables), len(want.Variables), packet)
	}
	for i := range m.Variables {
		if got, want := written(&m.Variables[i]), writtenPDU(want.Variables[i]); got != want {
			t.Errorf("variable %d is %s, gosnmp has %s\n% x", i, got, want, packet)
		}
	}
	brief, err := codec.SnmpDecodePacket(m.AppendBrief(nil))
	if err != nil {
		t.Fatalf("gosnmp refuses the brief: %v\n% x", err, m.AppendBrief(nil))
	}
	if len(brief.Variables) != 1 || brief.Variables[0].Type != gosnmp.Null {
		t.Errorf("the brief has %v", brief.Variables)
	}
	head := func(p *gosnmp.SnmpPacket) string {
		return fmt.Sprintf("%d %q %s %d %d %d", p.Version, p.Community, p.PDUType, p.RequestID, p.Error, p.ErrorIndex)
	}
	if head(brief) != head(want) {
		t.Errorf("the brief is of %s, the packet of %s", head(brief), head(want))
	}
}

// answers are packets with all variables of the recordings, and of more types at their limits.
func answers(t testing.TB) (all [][]byte) {
	t.Helper()
	files, err := filepath.Glob("../testdata/devices/*.snmprec")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rec, _, err := recording.Parse(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for some := range slices.Chunk(rec.All(), 25) {
			all = append(all, answer(t, gosnmp.Version2c, gosnmp.NoError, some...))
		}
	}
	for _, v := range limits() {
		all = append(all, answer(t, gosnmp.Version2c, gosnmp.NoError, v), answer(t, gosnmp.Version1, gosnmp.GenErr, v))
	}
	return append(all, answer(t, gosnmp.Version2c, gosnmp.NoError, limits()...))
}

// limits are variables of all types.
func limits() (all []gosnmp.SnmpPDU) {
	add := func(typ gosnmp.Asn1BER, values ...any) {
		for _, v := range values {
			all = append(all, gosnmp.SnmpPDU{Name: fmt.Sprintf(".1.3.6.1.4.1.4294967295.%d", len(all)), Type: typ, Value: v})
		}
	}
	add(gosnmp.Integer, 0, -1, 127, 128, -128, -129, 1<<31-1, -1<<31)
	add(gosnmp.Counter32, uint(0), uint(127), uint(128), uint(math.MaxUint32))
	add(gosnmp.Gauge32, uint(255), uint(256))
	add(gosnmp.TimeTicks, uint32(0), uint32(math.MaxUint32))
	add(gosnmp.Counter64, uint64(0), uint64(1)<<63, uint64(math.MaxUint64))
	add(gosnmp.OctetString, "", "text", strings.Repeat("long", 100), []byte{0, 0xff})
	add(gosnmp.ObjectIdentifier, ".0.0", ".1.3.6.1", ".2.39.5", ".2.999.4294967295")
	add(gosnmp.IPAddress, "0.0.0.0", "255.254.0.1")
	add(gosnmp.OpaqueFloat, float32(1.5), float32(math.Inf(-1)))
	add(gosnmp.OpaqueDouble, 2.25, math.MaxFloat64)
	add(gosnmp.Null, nil)
	add(gosnmp.NoSuchObject, nil)
	add(gosnmp.NoSuchInstance, nil)
	add(gosnmp.EndOfMibView, nil)
	return all
}

func answer(t testing.TB, version gosnmp.SnmpVersion, status gosnmp.SNMPError, vars ...gosnmp.SnmpPDU) []byte {
	t.Helper()
	p := &gosnmp.SnmpPacket{
		Version: version, Community: "public", RequestID: 0x7ffffff0, PDUType: gosnmp.GetResponse,
		Error: status, ErrorIndex: uint8(min(len(vars), 200)), Variables: vars,
	}
	b, err := p.MarshalMsg()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every answer of an ordinary device is decoded, as gosnmp decodes it.
func TestDecodesAsGosnmp(t *testing.T) {
	var m Message
	n := 0
	for _, packet := range answers(t) {
		if !m.Decode(packet) {
			t.Errorf("is not decoded: % x", packet)
			continue
		}
		same(t, &m, packet)
		n += len(m.Variables)
	}
	if n < 250 {
		t.Errorf("%d variables are too few to say much", n)
	}
	t.Logf("%d variables", n)
}

// A packet that is cut off, or of which any octet is another one, is not decoded, or as gosnmp decodes it.
func TestDamagedPackets(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	var m Message
	decoded, refused := 0, 0
	try := func(packet []byte) {
		if !m.Decode(packet) {
			if len(m.Variables) != 0 {
				t.Errorf("variables of what is not decoded: % x", packet)
			}
			refused++
			return
		}
		decoded++
		same(t, &m, packet)
	}
	for _, packet := range [][]byte{answer(t, gosnmp.Version1, gosnmp.NoError, limits()[:3]...), answer(t, gosnmp.Version2c, gosnmp.TooBig, limits()...)} {
		for i := range packet {
			try(packet[:i])
			for _, octet := range []byte{0, 1, 2, 4, 6, 0x30, 0x44, 0x7f, 0x80, 0x81, 0x82, 0x84, 0x9f, 0xff} {
				damaged := bytes.Clone(packet)
				damaged[i] = octet
				try(damaged)
			}
		}
	}
	if decoded == 0 || refused == 0 {
		t.Errorf("%d decoded, %d refused: the test says nothing", decoded, refused)
	}
}

// tlv is a value of BER.
func tlv(tag byte, contents ...[]byte) []byte {
	content := slices.Concat(contents...)
	return append(appendHead(nil, tag, len(content)), content...)
}

// Packets that are not answers, or are unusual in any way, are left to gosnmp.
func TestLeavesTheRestAlone(t *testing.T) {
	version2c, community, ids := []byte{2, 1, 1}, tlv(byte(OctetString)), []byte{2, 1, 7, 2, 1, 0, 2, 1, 0}
	name, five := []byte{6, 3, 0x2b, 6, 1}, []byte{2, 1, 5}
	binding := func(parts ...[]byte) []byte {
		return tlv(sequence, version2c, community, tlv(getResponse, ids, tlv(sequence, tlv(sequence, parts...))))
	}
	var m Message
	if !m.Decode(binding(name, five)) {
		t.Fatal("an ordinary answer is not decoded")
	}
	list := tlv(sequence, tlv(sequence, name, five))
	for what, packet := range map[string][]byte{
		"nothing":                nil,
		"no variable":            tlv(sequence, version2c, community, tlv(getResponse, ids, tlv(sequence))),
		"a request":              tlv(sequence, version2c, community, tlv(0xa0, ids, list)),
		"version 3":              tlv(sequence, []byte{2, 1, 3}, community, tlv(getResponse, ids, list)),
		"a number as community":  tlv(sequence, version2c, five, tlv(getResponse, ids, list)),
		"no error index":         tlv(sequence, version2c, community, tlv(getResponse, ids[:6], list)),
		"an empty request ID":    tlv(sequence, version2c, community, tlv(getResponse, []byte{2, 0, 2, 1, 0, 2, 1, 0}, list)),
		"octets after it":        append(binding(name, five), 0),
		"octets after the list":  tlv(sequence, version2c, community, tlv(getResponse, ids, list, five)),
		"octets after the value": binding(name, five, five),
		"no value":               binding(name),
		"no name":                binding(five, five),
		"an empty name":          binding([]byte{6, 0}, five),
		"too many arcs":          binding(tlv(byte(ObjectIdentifier), []byte{0x2b}, bytes.Repeat([]byte{1}, MaxArcs-1)), five),
		"an arc of 33 bits":      binding([]byte{6, 6, 0x2b, 0x90, 0x80, 0x80, 0x80, 0}, five),
		"an arc that is cut off": binding([]byte{6, 2, 0x2b, 0x81}, five),
		"an indefinite length":   binding(name, []byte{4, 0x80, 0, 0}),
		"a length of 5 octets":   binding(name, []byte{4, 0x85, 0, 0, 0, 0, 1, 7}),
		"a length beyond it":     binding(name, []byte{4, 2, 7}),
		"an unknown type":        binding(name, []byte{0x2a, 1, 5}),
		"an empty Integer":       binding(name, []byte{2, 0}),
		"an Integer of 9 octets": binding(name, tlv(byte(Integer), make([]byte, 9))),
		"a Gauge32 of 33 bits":   binding(name, []byte{0x42, 5, 1, 0, 0, 0, 0}),
		"an address of 16":       binding(name, tlv(byte(IPAddress), make([]byte, 16))),
		"an empty OID":           binding(name, []byte{6, 0}),
		"an OID that is cut off": binding(name, []byte{6, 2, 0x2b, 0x81}),
		"an empty Opaque":        binding(name, []byte{0x44, 0}),
		"a float cut off":        binding(name, []byte{0x44, 6, 0x9f, 0x78, 4, 0, 0, 0}),
	} {
		if m.Decode(packet) || len(m.Variables) != 0 {
			t.Errorf("%s is decoded: %+v", what, m.Variables)
		}
	}
}

// A message that is used again takes no memory.
func TestDecodeAllocatesNothing(t *testing.T) {
	packet := answer(t, gosnmp.Version2c, gosnmp.NoError, limits()...)
	var m Message
	room := make([]byte, 0, 1000)
	if n := testing.AllocsPerRun(100, func() {
		if !m.Decode(packet) {
			t.Fatal("is not decoded")
		}
		m.AppendBrief(room)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzDecode: a decoded packet equals that of gosnmp, and the brief belongs to the same request.
func FuzzDecode(f *testing.F) {
	for _, packet := range answers(f) {
		f.Add(packet)
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		var m Message
		if m.Decode(packet) {
			same(t, &m, packet)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	var vars []gosnmp.SnmpPDU
	for i := range 25 {
		vars = append(vars, gosnmp.SnmpPDU{Name: fmt.Sprintf(".1.3.6.1.2.1.31.1.1.1.6.%d", i+1), Type: gosnmp.Counter64, Value: uint64(i) << 40})
	}
	packet := answer(b, gosnmp.Version2c, gosnmp.NoError, vars...)
	var m Message
	b.ReportAllocs()
	for b.Loop() {
		if !m.Decode(packet) {
			b.Fatal("is not decoded")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(vars)), "ns/variable")
}
