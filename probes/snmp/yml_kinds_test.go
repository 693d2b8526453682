package snmp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/gosnmp/gosnmp"
	"github.com/prometheus/common/model"
)

// object is a mapping of a file of modules.
type object = map[string]any

// kinds is a device and a module with every cell of the cross products that a file of modules
// can ask for: each type of a metric by each kind of value, each type and form of an index,
// each type of a lookup, and each option. The OIDs lie under the enterprise that RFC 5612 keeps
// for documentation.
type kinds struct {
	old     bool // for Debian's exporter
	tree    []gosnmp.SnmpPDU
	metrics []object
	table   int
	// newer are metrics that Debian's exporter does not know, by name.
	newer map[string]bool
}

const kindsRoot = "1.3.6.1.4.1.32473"

// at is the OID of a new column.
func (k *kinds) at() string {
	k.table++
	return fmt.Sprintf("%s.%d", kindsRoot, k.table)
}

func (k *kinds) metric(name, at, typ string, more object) {
	m := object{"name": name, "oid": at, "type": typ, "help": "A metric. - " + at}
	maps.Copy(m, more)
	for _, key := range []string{"scale", "offset", "datetime_pattern", "display_hint"} {
		k.newer[name] = k.newer[name] || m[key] != nil
	}
	k.newer[name] = k.newer[name] || slices.Contains([]string{"ParseDateAndTime", "NTPTimeStamp"}, typ)
	k.metrics = append(k.metrics, m)
}

// value is something that a device may answer with.
type value struct {
	name string
	typ  gosnmp.Asn1BER
	v    any
}

// isNumber tells values with a numeric type.
func (v value) isNumber() bool {
	return !slices.Contains([]gosnmp.Asn1BER{gosnmp.OctetString, gosnmp.ObjectIdentifier, gosnmp.IPAddress}, v.typ)
}

// isText reports whether a value is UTF-8: other texts make Debian's exporter fail as a whole.
func (v value) isText() bool {
	s, ok := v.v.(string)
	return !ok || utf8.ValidString(s)
}

var kindsOfValue = []value{
	{"zero", gosnmp.Integer, 0}, {"two", gosnmp.Integer, 2}, {"negative", gosnmp.Integer, -5}, {"large", gosnmp.Integer, 300},
	{"counter32", gosnmp.Counter32, uint32(4294967295)}, {"gauge32", gosnmp.Gauge32, uint32(4000000000)},
	{"ticks", gosnmp.TimeTicks, uint32(12345)}, {"counter64", gosnmp.Counter64, uint64(1)<<53 + 7},
	{"empty", gosnmp.OctetString, ""}, {"text", gosnmp.OctetString, "rack 4"}, {"bytes", gosnmp.OctetString, "\xff\xfe\x41"},
	{"mac", gosnmp.OctetString, "\x02\xfc\x00\x00\x00\xab"}, {"ip4", gosnmp.OctetString, "\xc0\x00\x02\x01"},
	{"ip6", gosnmp.OctetString, "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"},
	{"date", gosnmp.OctetString, "\x07\xea\x02\x1c\x0d\x1e\x0f\x00"}, {"east", gosnmp.OctetString, "\x07\xea\x02\x1c\x0d\x1e\x0f\x00+\x02\x1e"},
	{"west", gosnmp.OctetString, "\x07\xea\x02\x1c\x0d\x1e\x0f\x00-\x05\x00"}, {"never", gosnmp.OctetString, "\x00\x00\x00\x00\x00\x00\x00\x00"},
	{"printed", gosnmp.OctetString, "2026-02-28 13:30:15"}, {"measured", gosnmp.OctetString, "41.5 C"},
	{"oid", gosnmp.ObjectIdentifier, ".1.3.6.1.4.1.32473"}, {"address", gosnmp.IPAddress, "192.0.2.9"},
	{"float", gosnmp.OpaqueFloat, float32(1.5)}, {"double", gosnmp.OpaqueDouble, -2.25}, {"null", gosnmp.Null, nil},
}

var kindsEnum = map[int]string{0: "off", 1: "standby", 2: "on", 9: "lost"}

// scalars are every type by every kind of value, under each set of options.
func (k *kinds) scalars() {
	options := map[string]object{
		"":        {},
		"scaled":  {"scale": 0.1},
		"offset":  {"offset": -273.15},
		"both":    {"scale": -2.0, "offset": 10.0},
		"matched": {"regex_extracts": object{"Found": []object{{"regex": `nothing`}, {"regex": `([\d.]+) C`}}, "Whole": []object{{"regex": `.*`, "value": "7"}}, "None": []object{{"regex": "(x)"}}}},
		"hinted":  {"display_hint": "1x:"},
		"hints":   {"display_hint": "2d-1d-1d,1d:1d:1d.1d,1a1d:1d"},
		"badhint": {"display_hint": "x"},
	}
	for _, typ := range metricTypes {
		for _, v := range kindsOfValue {
			for _, option := range slices.Sorted(maps.Keys(options)) {
				if typ == typeBits && v.typ != gosnmp.OctetString || combined[typ] != nil {
					continue // the exporter gives an error for the whole device; the others have a test of their own
				}
				if k.old && typ == typeDisplayString && !v.isText() {
					continue
				}
				at := k.at()
				name := "m" + string(typ) + "_" + v.name + option
				more := object{"enum_values": kindsEnum}
				if typ == typeParseDateAndTime {
					more["datetime_pattern"] = "%Y-%m-%d %H:%M:%S"
				}
				maps.Copy(more, options[option])
				k.metric(name, at, string(typ), more)
				k.tree = append(k.tree, pdu(at+".0", v.typ, v.v))
			}
		}
	}
}

// combinedColumns adds the values whose type is in the preceding column.
func (k *kinds) combinedColumns() {
	for _, typ := range []string{"InetAddress", "InetAddressMissingSize", "LldpPortId"} {
		for _, prefix := range []string{"c", "l"} {
			at := k.at()
			indexes := []object{{"labelname": "row", "type": "gauge"}}
			if prefix == "c" {
				k.metric("c"+typ, at+".2", typ, object{"indexes": indexes})
			} else {
				k.newer["l"+typ] = true // Debian's takes every value for octets
				k.metric("l"+typ, at+".3", "gauge", object{"indexes": indexes, "lookups": []object{{"labels": []string{"row"}, "labelname": "found", "oid": at + ".2", "type": typ}}})
			}
			for inner := range 9 {
				for i, v := range kindsOfValue {
					if prefix == "l" && inner != 1 && inner != 2 && inner != 3 && inner != 5 && inner != 7 && v.typ == gosnmp.OctetString {
						continue // an unknown type: the exporter reads the value as an index, lengths and all
					}
					if typ != "LldpPortId" && (inner == 3 || inner == 5 || inner == 7) && prefix == "l" && v.typ == gosnmp.OctetString {
						continue
					}
					if typ == "LldpPortId" && inner == 2 && prefix == "l" && v.typ == gosnmp.OctetString && v.v == "" {
						continue
					}
					if k.old && typ == "LldpPortId" && !v.isText() {
						continue
					}
					row := 100*inner + i
					if inner != 8 { // the column before lacks the row
						k.tree = append(k.tree, pdu(fmt.Sprintf("%s.1.%d", at, row), gosnmp.Integer, inner))
					} else if prefix == "l" && v.typ == gosnmp.OctetString {
						continue
					}
					k.tree = append(k.tree, pdu(fmt.Sprintf("%s.2.%d", at, row), v.typ, v.v), pdu(fmt.Sprintf("%s.3.%d", at, row), gosnmp.Integer, row))
				}
			}
		}
	}
}

// indexed are tables with each type and form of an index before another one.
func (k *kinds) indexed() {
	mac, ip4 := "2.252.0.0.0.171", "192.0.2.1"
	ip6 := "32.1.13.184.0.0.0.0.0.0.0.0.0.0.0.1"
	for _, x := range []struct {
		typ   string
		more  object
		rests []string
	}{
		{"gauge", nil, []string{"7.8", "4294967295.1", "0.0", "9"}},
		{"counter", nil, []string{"7.8"}}, {"Integer", nil, []string{"7.8"}}, {"Integer32", nil, []string{"7.8"}},
		{"EnumAsInfo", object{"enum_values": kindsEnum}, []string{"2.1", "3.1"}},
		{"EnumAsInfo", nil, []string{"2.1"}},
		{"PhysAddress48", nil, []string{mac + ".1", "2.252"}},
		{"OctetString", nil, []string{"3.101.116.104.9", "0.9", "1.0.9"}},
		{"OctetString", object{"fixed_size": 3}, []string{"101.116.104.9", "101.116"}},
		{"OctetString", object{"implied": true}, []string{"101.116.104.9"}},
		{"DisplayString", nil, []string{"3.101.116.104.9", "0.9", "2.255.254.9"}},
		{"DisplayString", object{"fixed_size": 3}, []string{"101.116.104.9"}},
		{"DisplayString", object{"implied": true}, []string{"101.116.104.9"}},
		{"InetAddressIPv4", nil, []string{ip4 + ".9", "10.0"}},
		{"InetAddressIPv6", nil, []string{ip6 + ".9", "32.1"}},
		{"InetAddress", nil, []string{"1.4." + ip4 + ".9", "2.16." + ip6 + ".9", "3.2.7.8.9", "0.0.9", "16.3.97.98.99.9"}},
		{"InetAddressMissingSize", nil, []string{"1." + ip4 + ".9", "2." + ip6 + ".9", "3.2.7.8.9"}},
		{"LldpPortId", nil, []string{"3.6." + mac + ".9", "4.2.7.8.9"}},
	} {
		at := k.at()
		first := object{"labelname": "first", "type": x.typ}
		maps.Copy(first, x.more)
		k.metric(fmt.Sprintf("i%d", k.table), at+".1", "gauge", object{
			"indexes": []object{first, {"labelname": "second", "type": "gauge"}},
			"lookups": []object{
				{"labels": []string{"first"}, "labelname": "byFirst", "oid": at + ".2", "type": "DisplayString"},
				{"labels": []string{"first", "second"}, "labelname": "byBoth", "oid": at + ".2", "type": "DisplayString"},
				{"labels": []string{"second", "first"}, "labelname": "byOther", "oid": at + ".2", "type": "DisplayString"},
				{"labels": []string{}, "labelname": "second"},
			},
		})
		for i, rest := range x.rests {
			if k.old && rest == "2.255.254.9" {
				continue
			}
			k.tree = append(k.tree, pdu(at+".1."+rest, gosnmp.Integer, i), pdu(at+".2."+rest, gosnmp.OctetString, fmt.Sprintf("found %d", i)))
			if j := strings.LastIndex(rest, "."); j > 0 {
				k.tree = append(k.tree, pdu(at+".2."+rest[:j], gosnmp.OctetString, "by first"))
			}
		}
	}
}

// lookedUp are lookups of each type by each kind of value, and a chain that goes on from it.
func (k *kinds) lookedUp() {
	for _, typ := range append([]metricType{""}, metricTypes...) {
		if combined[typ] != nil {
			continue
		}
		if typ == typeFloat || typ == typeDouble || typ == typeDateAndTime || typ == typeParseDateAndTime || typ == typeNTPTimeStamp || typ == typeEnumAsStateSet {
			continue // the exporter panics at text
		}
		if typ == typeBits {
			continue // not known to Debian's
		}
		at := k.at()
		name := "k" + string(typ)
		lookup := object{"labels": []string{"row"}, "labelname": "found", "oid": at + ".2", "type": typ}
		k.metric(name, at+".1", "gauge", object{
			"indexes": []object{{"labelname": "row", "type": "gauge"}},
			"lookups": []object{lookup, {"labels": []string{"found"}, "labelname": "chained", "oid": at + ".3", "type": "DisplayString"}},
		})
		for i, v := range kindsOfValue {
			if k.old && typ == typeDisplayString && !v.isText() {
				continue
			}
			k.tree = append(k.tree, pdu(fmt.Sprintf("%s.1.%d", at, i+1), gosnmp.Integer, i), pdu(fmt.Sprintf("%s.2.%d", at, i+1), v.typ, v.v))
		}
		k.tree = append(k.tree, pdu(at+".3.300", gosnmp.OctetString, "the large one"), pdu(at+".3.2", gosnmp.OctetString, "two"))
	}
	// Options of lookups that Debian's exporter does not know.
	for option, more := range map[string]object{"named": {"type": "EnumAsInfo", "enum_values": kindsEnum}, "hinted": {"type": "OctetString", "display_hint": "1d."}, "untyped": {"display_hint": "1x:"}} {
		at := k.at()
		lookup := object{"labels": []string{"row"}, "labelname": "found", "oid": at + ".2"}
		maps.Copy(lookup, more)
		k.metric("k"+option, at+".1", "gauge", object{"indexes": []object{{"labelname": "row", "type": "gauge"}}, "lookups": []object{lookup}})
		k.newer["k"+option] = true
		for i, v := range kindsOfValue {
			if option == "named" && !v.isNumber() {
				continue // the exporter takes text for 0
			}
			if option == "named" && (v.name == "float" || v.name == "double") {
				continue
			}
			k.tree = append(k.tree, pdu(fmt.Sprintf("%s.1.%d", at, i+1), gosnmp.Integer, i), pdu(fmt.Sprintf("%s.2.%d", at, i+1), v.typ, v.v))
		}
	}
}

func newKinds(old bool) *kinds {
	k := &kinds{old: old, newer: map[string]bool{}}
	k.scalars()
	k.combinedColumns()
	k.indexed()
	k.lookedUp()
	return k
}

// file writes the module as an snmp.yml, in the old format and without the features that Debian's
// exporter lacks.
func (k *kinds) file(t *testing.T) []byte {
	t.Helper()
	var metrics []object
	for _, m := range k.metrics {
		if !k.old || !k.newer[m["name"].(string)] {
			metrics = append(metrics, m)
		}
	}
	mod := object{"walk": []string{kindsRoot}, "metrics": metrics}
	top := object{"modules": object{"kinds": mod}, "auths": object{"public_v2": object{"community": "hwtest"}}}
	if k.old {
		mod["version"], mod["auth"] = 2, object{"community": "hwtest"}
		top = object{"kinds": mod}
	}
	b, err := json.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`"(\d+)":`).ReplaceAll(b, []byte("$1: "))
}

// fromFile is a probe of the agent by a file of modules.
func fromFile(t *testing.T, a *fakeAgent, text []byte, modules ...string) *Probe {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snmp.yml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c := a.config(modules...)
	c.ConfigFiles, c.PacketTimeout = []string{path}, model.Duration(5*time.Second)
	return newProbe(t, c)
}

// The same file and device give the same series and values as snmp_exporter. Debian's exporter is asked for the features that it has; SNMP_EXPORTER
// names a newer one that is asked for all.
func TestKindsAsExporter(t *testing.T) {
	newer := os.Getenv("SNMP_EXPORTER")
	k := newKinds(newer == "")
	a := newFakeAgent(t, k.tree...)
	text := k.file(t)
	r, err := collect(t, fromFile(t, a, text, "kinds"))
	if err != nil {
		t.Fatal(err)
	}
	ours := withoutScrape(lines(r))
	theirs := exporterLines(t, startExporterProgram(t, newer, text), a.conn.LocalAddr().String(), "kinds")
	if newer != "" {
		count, sum := k.digest(theirs)
		t.Logf("what only a newer exporter knows: %d samples, %s", count, sum)
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("(-exporter +ours)\n%.6000s", diff)
	}
	if len(ours) < 1000 {
		t.Errorf("only %d series", len(ours))
	}
	t.Logf("%d series of ours, %d of the exporter", len(ours), len(theirs))
}

// Output of snmp_exporter for the metrics that need a newer version than Debian's: built from its
// source, commit 1d54f35 of July 2026. TestKindsAsExporter prints both when
// SNMP_EXPORTER names such a program.
const (
	newerSamples = 3027
	newerDigest  = "d12bd2b9f1890773"
)

func TestKindsOfNewerExporter(t *testing.T) {
	k := newKinds(false)
	r, err := collect(t, fromFile(t, newFakeAgent(t, k.tree...), k.file(t), "kinds"))
	if err != nil {
		t.Fatal(err)
	}
	if count, sum := k.digest(lines(r)); count != newerSamples || sum != newerDigest {
		t.Errorf("%d samples, %s; want %d, %s", count, sum, newerSamples, newerDigest)
	}
}

// digest counts and sums up the samples of metrics that Debian's exporter does not know.
func (k *kinds) digest(all map[string]float64) (int, string) {
	sum, count := sha256.New(), 0
	for _, s := range slices.Sorted(maps.Keys(all)) {
		if name := metricOf(s); k.newer[name] {
			fmt.Fprintln(sum, s, all[s])
			count++
		}
	}
	return count, hex.EncodeToString(sum.Sum(nil)[:8])
}

// metricOf is the name of the metric that a sample is of.
func metricOf(sample string) string {
	name, _, _ := strings.Cut(sample, "{")
	for _, suffix := range []string{"_info", "Found", "Whole", "None"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

func withoutScrape(all map[string]float64) map[string]float64 {
	maps.DeleteFunc(all, func(s string, _ float64) bool { return strings.HasPrefix(s, "snmp_scrape") })
	return all
}

// printedTicks is how Debian's exporter writes TimeTicks as text.
var printedTicks = regexp.MustCompile(`%!s\(uint32=(\d+)\)`)

// exporterLines are the exporter's samples in our notation.
func exporterLines(t *testing.T, addr, target, module string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for family, f := range scrape(t, addr, target, module) {
		for _, m := range f.GetMetric() {
			s, v := exported(family, m)
			if !math.IsNaN(v) {
				all[printedTicks.ReplaceAllString(s, "$1")] = v
			}
		}
	}
	return withoutScrape(all)
}
