package snmp

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/gosnmp/gosnmp"

	"hwsagent/probes"
)

func TestSplitIndex(t *testing.T) {
	for _, tc := range []struct {
		name    string
		rest    string
		indexes []index
		want    []string // name, value, …
		arcs    []string
	}{
		{"gauge", "42", []index{{labelname: "a", typ: typeGauge}}, []string{"a", "42"}, []string{"42"}},
		{"largest", "4294967295", []index{{labelname: "a", typ: typeGauge}}, []string{"a", "4294967295"}, []string{"4294967295"}},
		{"two", "7.1001", []index{{labelname: "a", typ: typeGauge}, {labelname: "b", typ: typeGauge}}, []string{"a", "7", "b", "1001"}, []string{"7", "1001"}},
		{"text with length", "3.101.116.104.9", []index{{labelname: "a", typ: typeDisplayString}, {labelname: "b", typ: typeGauge}}, []string{"a", "eth", "b", "9"}, []string{"3.101.116.104", "9"}},
		{"fixed text", "101.116.104.9", []index{{labelname: "a", typ: typeDisplayString, fixedSize: 3}, {labelname: "b", typ: typeGauge}}, []string{"a", "eth", "b", "9"}, []string{"101.116.104", "9"}},
		{"implied text", "101.116.104", []index{{labelname: "a", typ: typeDisplayString, implied: true}}, []string{"a", "eth"}, []string{"101.116.104"}},
		{"octets", "2.0.171", []index{{labelname: "a", typ: typeOctetString}}, []string{"a", "0x00AB"}, []string{"2.0.171"}},
		{"no octets", "0", []index{{labelname: "a", typ: typeOctetString}}, []string{"a", ""}, []string{"0"}},
		{"MAC address", "2.252.0.0.0.1.5", []index{{labelname: "a", typ: typePhysAddress48}, {labelname: "b", typ: typeGauge}}, []string{"a", "02:FC:00:00:00:01", "b", "5"}, []string{"2.252.0.0.0.1", "5"}},
		{"enumeration", "2", []index{{labelname: "a", typ: typeEnumAsInfo, enumValues: map[int]string{2: "down"}}}, []string{"a", "down"}, []string{"2"}},
		{"unknown enumeration", "9", []index{{labelname: "a", typ: typeEnumAsInfo}}, []string{"a", "9"}, []string{"9"}},
		{"not text", "2.255.254", []index{{labelname: "a", typ: typeDisplayString}}, []string{"a", "\uFFFD"}, []string{"2.255.254"}},
		{"too short", "7", []index{{labelname: "a", typ: typeGauge}, {labelname: "b", typ: typeGauge}}, []string{"a", "7", "b", "0"}, []string{"7", "0"}},
		{"length beyond the end", "200.101", []index{{labelname: "a", typ: typeDisplayString}}, []string{"a", "e"}, []string{"200.101"}},
		{"length of 2^32-1", "4294967295.101", []index{{labelname: "a", typ: typeDisplayString}}, []string{"a", "e"}, []string{"4294967295.101"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got labelSet
			splitIndex(mustOID(tc.rest), tc.indexes, &got)
			if diff := cmp.Diff(tc.want, got.pairs); diff != "" {
				t.Error(diff)
			}
			for i, want := range tc.arcs {
				if got.arcs[i].String() != want {
					t.Errorf("arcs %d are %s, want %s", i, got.arcs[i], want)
				}
			}
		})
	}
}

func TestOIDs(t *testing.T) {
	for _, bad := range []string{"", ".", "1..2", "1.x", "1.4294967296", "-1", strings.Repeat("1.", 200) + "1"} {
		if o, err := parseOID(bad); err == nil {
			t.Errorf("parseOID(%q) = %s", bad, o)
		}
	}
	o, err := parseOID(".1.3.6.1.4294967295")
	if err != nil || o.String() != "1.3.6.1.4294967295" {
		t.Errorf("%s, %v", o, err)
	}
	if o.hasPrefix(o) || !o.hasPrefix(o[:4]) || mustOID("1.3.60").hasPrefix(mustOID("1.3.6")) {
		t.Error("hasPrefix")
	}
	if mustOID("1.9").compare(mustOID("1.10")) >= 0 || mustOID("1.2").compare(mustOID("1.2.0")) >= 0 {
		t.Error("compare")
	}
}

// decoded is a variable that gosnmp has decoded.
func decoded(p gosnmp.SnmpPDU) variable { return newBuffers().fromPDU(&p) }

// valued is a variable with a value of a type that fits it.
func valued(at oid, value any) variable {
	typ := map[string]gosnmp.Asn1BER{
		"int": gosnmp.Integer, "uint": gosnmp.Gauge32, "uint32": gosnmp.TimeTicks, "uint64": gosnmp.Counter64, "float32": gosnmp.OpaqueFloat,
		"float64": gosnmp.OpaqueDouble, "string": gosnmp.ObjectIdentifier, "[]uint8": gosnmp.OctetString,
	}[fmt.Sprintf("%T", value)]
	v := valueOf(typ, value)
	v.oid = at
	return v
}

// emitted are the samples that metrics make of variables.
func emitted(m []metric, vars ...gosnmp.SnmpPDU) map[string]float64 {
	h := newHarvest()
	for _, p := range vars {
		if v := decoded(p); v.has() {
			_ = h.add(v)
		}
	}
	r := probes.NewRound(0)
	newEmitter(compile("test", module{metrics: m})).emit(h, r)
	return lines(r)
}

func TestValues(t *testing.T) {
	const at = "1.3.9.1"
	enum := map[int]string{1: "on", 2: "off"}
	for _, tc := range []struct {
		name string
		m    metric
		typ  gosnmp.Asn1BER
		v    any
		want map[string]float64
	}{
		{"integer", metric{typ: typeGauge}, gosnmp.Integer, -5, map[string]float64{"m{}": -5}},
		{"counter up to 2^53", metric{typ: typeCounter}, gosnmp.Counter64, uint64(1)<<53 - 1, map[string]float64{"m{}": 1<<53 - 1}},
		{"counter wraps", metric{typ: typeCounter}, gosnmp.Counter64, uint64(math.MaxUint64), map[string]float64{"m{}": 1<<53 - 1}},
		{"float", metric{typ: typeGauge}, gosnmp.OpaqueFloat, float32(1.5), map[string]float64{"m{}": 1.5}},
		{"double", metric{typ: typeGauge}, gosnmp.OpaqueDouble, 2.25, map[string]float64{"m{}": 2.25}},
		{"scale and offset", metric{typ: typeGauge, scale: -1, offset: 2}, gosnmp.Integer, 2, map[string]float64{"m{}": 0}},
		{"signed in a gauge", metric{typ: typeInteger32}, gosnmp.Gauge32, uint(math.MaxUint32), map[string]float64{"m{}": -1}},
		{"text for a number", metric{typ: typeGauge}, gosnmp.OctetString, "x", map[string]float64{}},
		{"text", metric{typ: typeDisplayString}, gosnmp.OctetString, "rack 4", map[string]float64{`m{m="rack 4"}`: 1}},
		{"octets", metric{typ: typeOctetString}, gosnmp.OctetString, []byte{0, 0xab}, map[string]float64{`m{m="0x00AB"}`: 1}},
		{"OID", metric{typ: typeOctetString}, gosnmp.ObjectIdentifier, ".1.3.6", map[string]float64{`m{m="1.3.6"}`: 1}},
		{"address", metric{typ: typeOctetString}, gosnmp.IPAddress, "192.0.2.1", map[string]float64{`m{m="192.0.2.1"}`: 1}},
		{"number as text", metric{typ: typeDisplayString}, gosnmp.Integer, 3, map[string]float64{`m{m="3"}`: 1}},
		{"info", metric{typ: typeEnumAsInfo, enumValues: enum}, gosnmp.Integer, 2, map[string]float64{`m_info{m="off"}`: 1}},
		{"info of an unknown state", metric{typ: typeEnumAsInfo, enumValues: enum}, gosnmp.Integer, 7, map[string]float64{`m_info{m="7"}`: 1}},
		{"states", metric{typ: typeEnumAsStateSet, enumValues: enum}, gosnmp.Integer, 2, map[string]float64{`m{m="on"}`: 0, `m{m="off"}`: 1}},
		{"states and an unknown one", metric{typ: typeEnumAsStateSet, enumValues: enum}, gosnmp.Integer, 7, map[string]float64{`m{m="on"}`: 0, `m{m="off"}`: 0, `m{m="7"}`: 1}},
		{"date", metric{typ: typeDateAndTime}, gosnmp.OctetString, []byte{0x07, 0xea, 2, 28, 13, 30, 15, 0}, map[string]float64{"m{}": 1772285415}},
		{"date with zone", metric{typ: typeDateAndTime}, gosnmp.OctetString, []byte{0x07, 0xea, 2, 28, 13, 30, 15, 0, '+', 2, 0}, map[string]float64{"m{}": 1772278215}},
		{"date west of Greenwich", metric{typ: typeDateAndTime}, gosnmp.OctetString, []byte{0x07, 0xea, 2, 28, 13, 30, 15, 0, '-', 2, 30}, map[string]float64{"m{}": 1772294415}},
		{"no date", metric{typ: typeDateAndTime}, gosnmp.OctetString, make([]byte, 8), map[string]float64{}},
		{"cut date", metric{typ: typeDateAndTime}, gosnmp.OctetString, []byte{7, 0xea}, map[string]float64{}},
		{"missing", metric{typ: typeGauge}, gosnmp.NoSuchInstance, nil, map[string]float64{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := tc.m
			m.name, m.oid = "m", at
			v := tc.v
			if s, ok := v.(string); ok && tc.typ == gosnmp.OctetString {
				v = []byte(s)
			}
			if diff := cmp.Diff(tc.want, emitted([]metric{m}, pdu(at+".0", tc.typ, v))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Lookups: from an index, in a chain through a number, of a row that is missing, and one
// that removes a label.
func TestLookups(t *testing.T) {
	m := metric{
		name: "load", oid: "1.5.1", typ: typeGauge,
		indexes: []index{{labelname: "port", typ: typeGauge}},
		lookups: []lookup{
			{labels: []string{"port"}, labelname: "card", oid: "1.5.2", typ: typeGauge},
			{labels: []string{"card"}, labelname: "cardName", oid: "1.6.1", typ: typeDisplayString},
			{labels: []string{"card", "port"}, labelname: "both", oid: "1.6.2", typ: typeEnumAsInfo, enumValues: map[int]string{4: "four"}},
			{labelname: "card"},
		},
	}
	got := emitted([]metric{m},
		pdu("1.5.1.1", gosnmp.Gauge32, uint(10)), pdu("1.5.1.2", gosnmp.Gauge32, uint(20)),
		pdu("1.5.2.1", gosnmp.Integer, 30), pdu("1.6.1.30", gosnmp.OctetString, []byte("line card")),
		pdu("1.6.2.30.1", gosnmp.Integer, 4))
	want := map[string]float64{
		`load{both="four",cardName="line card",port="1"}`: 10,
		`load{port="2"}`: 20,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The last of two variables of one OID counts, and of nested metrics the outer one.
func TestDuplicatesAndNesting(t *testing.T) {
	got := emitted([]metric{
		{name: "outer", oid: "1.5.1", typ: typeGauge, indexes: []index{{labelname: "i", typ: typeGauge}}},
		{name: "inner", oid: "1.5.1.7", typ: typeGauge},
	},
		pdu("1.5.1.2", gosnmp.Integer, 1), pdu("1.5.1.2", gosnmp.Integer, 2), pdu("1.5.1.7.0", gosnmp.Integer, 3))
	if diff := cmp.Diff(map[string]float64{`outer{i="2"}`: 2, `outer{i="7"}`: 3}, got); diff != "" {
		t.Error(diff)
	}
}

// Whatever a device returns becomes valid labels or nothing, and never a panic.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 0, 3}, []byte("eth0"), uint64(1))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1}, []byte{0xff, 0}, uint64(math.MaxUint64))
	f.Add([]byte{}, []byte{7, 0xea, 2, 28, 13, 30, 15, 0, '-', 2, 30}, uint64(1<<53))
	types := []metricType{typeGauge, typeCounter, typeDisplayString, typeOctetString, typePhysAddress48, typePhysAddress, typeDateAndTime, typeEnumAsInfo, typeEnumAsStateSet, typeInteger32}
	f.Fuzz(func(t *testing.T, idx, content []byte, n uint64) {
		rest := make(oid, 0, len(idx)/4)
		for len(idx) >= 4 && len(rest) < maxArcs-8 {
			rest, idx = append(rest, binary.BigEndian.Uint32(idx)), idx[4:]
		}
		var metrics []metric
		h := newHarvest()
		for i, typ := range types {
			column := oid{1, 5, uint32(i)}
			var indexes []index
			for j, it := range types {
				indexes = append(indexes, index{labelname: "l" + string(rune('a'+j)), typ: it, implied: j == len(types)-1, fixedSize: int(n % 5)})
			}
			metrics = append(metrics, metric{
				name: "m" + string(rune('a'+i)), oid: column.String(), typ: typ, indexes: indexes,
				lookups:    []lookup{{labels: []string{"la", "lc"}, labelname: "found", oid: column.String(), typ: typ}},
				enumValues: map[int]string{1: "one"},
			})
			for j, v := range []any{content, n, int(int64(n)), uint32(n), string(content), math.Float64frombits(n)} {
				_ = h.add(valued(append(append(column, uint32(j)), rest...), v))
			}
		}
		r := probes.NewRound(0)
		newEmitter(compile("fuzz", module{metrics: metrics})).emit(h, r)
		for _, s := range r.Samples() {
			if len(s.Labels)%2 != 0 {
				t.Fatalf("labels %q", s.Labels)
			}
			seen := make(map[string]bool)
			for i, l := range s.Labels {
				if !utf8.ValidString(l) {
					t.Fatalf("%q is not valid UTF-8", l)
				}
				if i%2 == 0 {
					if seen[l] {
						t.Fatalf("label %s is there twice", l)
					}
					seen[l] = true
				}
			}
		}
	})
}

// The sensor tables take any row without panic.
func FuzzHardware(f *testing.F) {
	f.Add(int64(8), int64(9), int64(1), int64(235), int64(1), []byte("Inlet"))
	f.Add(int64(math.MinInt64), int64(-4), int64(400), int64(math.MaxInt64), int64(0), []byte{0xff})
	f.Fuzz(func(t *testing.T, kind, scale, precision, value, state int64, name []byte) {
		h := newHarvest()
		for i, v := range []int64{kind, scale, precision, value, state} {
			_ = h.add(valued(append(mustOID(entitySensorEntry), uint32(i+1), 7), int(v)))
		}
		_ = h.add(valued(append(mustOID(entPhysicalName), 7), name))
		r := probes.NewRound(0)
		newEmitter(compile("entity_sensor", entityModule)).emit(h, r)
		for _, s := range r.Samples() {
			if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
				t.Fatalf("%s = %v", series(s), s.Value)
			}
		}
	})
}

func BenchmarkEmitInterfaces(b *testing.B) {
	var vars []variable
	for _, p := range interfaces(48) {
		if p.Type == gosnmp.OctetString {
			p.Value = []byte(p.Value.(string))
		}
		vars = append(vars, decoded(p))
	}
	e, h, r := newEmitter(compile("if_mib", ifModule)), newHarvest(), probes.NewRound(0)
	b.ReportAllocs()
	for b.Loop() {
		h.reset()
		for i := range vars {
			if err := h.add(vars[i]); err != nil {
				b.Fatal(err)
			}
		}
		r.Reset(0)
		e.emit(h, r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(vars)), "ns/variable")
}

func BenchmarkCollectSnmpd(b *testing.B) {
	d := startSnmpd(b)
	p := newProbe(b, Config{Target: d.target("udp"), Auth: v2(), Modules: []string{"system", "if_mib"}})
	b.ReportAllocs()
	samples := 0
	r := probes.NewRound(0)
	for b.Loop() {
		r.Reset(0) // as the runner uses rounds again
		if err := p.Collect(b.Context(), r); err != nil {
			b.Fatal(err)
		}
		samples = len(r.Samples())
	}
	b.ReportMetric(float64(samples), "samples/round")
}
