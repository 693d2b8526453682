package snmp

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gosnmp/gosnmp"
)

// indexArcs are the arcs of one index in a made-up row.
func indexArcs(x index, row int) oid {
	text := fmt.Sprintf("r%d", row)
	switch x.typ {
	case typeDisplayString, typeOctetString:
		switch {
		case x.fixedSize > 0:
			return oidOf(slices.Repeat([]byte{byte('0' + row)}, x.fixedSize))
		case x.implied:
			return oidOf([]byte(text))
		}
		return append(oid{2}, oidOf([]byte(text))...)
	case typePhysAddress48:
		return oid{2, 252, 0, 0, 0, uint32(row)}
	case typeInetAddressIPv4:
		return oid{192, 0, 2, uint32(row)}
	case typeInetAddressIPv6:
		return oid{32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, uint32(row)}
	case typeInetAddress:
		return oid{1, 4, 192, 0, 2, uint32(row)}
	case typeInetAddressMissingSize:
		return oid{1, 192, 0, 2, uint32(row)}
	case typeLldpPortID:
		return oid{3, 6, 2, 252, 0, 0, 0, uint32(row)}
	}
	return oid{uint32(row)}
}

// madeUp is a value of that type, another for each n.
func madeUp(t metricType, n int) (gosnmp.Asn1BER, any) {
	switch t {
	case typeCounter:
		return gosnmp.Counter64, uint64(n) << 20
	case typeGauge, typeEnumAsInfo, typeEnumAsStateSet:
		return gosnmp.Integer, n % 7
	case typeFloat:
		return gosnmp.OpaqueFloat, float32(n) / 4
	case typeDouble:
		return gosnmp.OpaqueDouble, float64(n) / 8
	case typeDateAndTime, typeNTPTimeStamp:
		return gosnmp.OctetString, string([]byte{7, 234, byte(1 + n%12), 3, 4, 5, 6, 0})
	case typePhysAddress48:
		return gosnmp.OctetString, string([]byte{2, 252, 0, 0, 0, byte(n)})
	case typeInetAddressIPv4:
		return gosnmp.IPAddress, fmt.Sprintf("192.0.2.%d", n%250)
	case typeParseDateAndTime:
		return gosnmp.OctetString, fmt.Sprintf("2026-02-%02d 10:11:12", 1+n%28)
	case typeBits, typeOctetString:
		return gosnmp.OctetString, string([]byte{byte(n), 0x5a})
	}
	return gosnmp.OctetString, fmt.Sprintf("%d.5 C", n)
}

// synthetic returns a device with two rows in every table of a module, and with the objects of its lookups.
func synthetic(m module) (tree []gosnmp.SnmpPDU) {
	values := map[string]gosnmp.SnmpPDU{}
	named, n := map[string]bool{}, 0
	add := func(at oid, t metricType) {
		n++
		if _, ok := values[at.String()]; !ok {
			typ, v := madeUp(t, n)
			values[at.String()] = pdu(at.String(), typ, v)
		}
	}
	for _, x := range m.metrics {
		// Rows that differ in nothing but an index that a lookup removes, and two objects of one
		// name: the exporter fails. No device has both of the latter.
		if strings.HasPrefix(x.name, "mtxrNeighbor") || named[x.name] {
			continue
		}
		named[x.name] = true
		for row := 1; row <= 2; row++ {
			at := slices.Clone(mustOID(x.oid))
			labels := map[string]oid{}
			for _, i := range x.indexes {
				labels[i.labelname] = indexArcs(i, row)
				at = append(at, labels[i.labelname]...)
			}
			if len(x.indexes) == 0 {
				at = append(at, 0)
			}
			if texts := extractable(x); len(texts) > 0 {
				values[at.String()] = pdu(at.String(), gosnmp.OctetString, texts[row%len(texts)])
			}
			add(at, x.typ)
			for _, l := range x.lookups {
				if l.oid == "" {
					continue
				}
				found := slices.Clone(mustOID(l.oid))
				for _, label := range l.labels {
					found = append(found, labels[label]...)
				}
				add(found, l.typ)
			}
		}
	}
	delete(values, sysUpTime) // the agent has it of itself
	return slices.Collect(maps.Values(values))
}

// extractable are texts in which a rule of the metric finds a number.
func extractable(x metric) (texts []string) {
	for _, text := range []string{"41.5 C", "4125", "7", "True", "False"} {
		found := slices.ContainsFunc(x.extracts, func(e extract) bool {
			return slices.ContainsFunc(e.rules, func(r extractRule) bool {
				at := r.regex.FindStringSubmatchIndex(text)
				_, err := strconv.ParseFloat(string(r.regex.ExpandString(nil, r.value, text, at)), 64)
				return at != nil && err == nil
			})
		})
		if found {
			texts = append(texts, text)
		}
	}
	return texts
}

// Every module of a published file, on a device that has rows for all of it, gives the series and
// values of snmp_exporter.
func TestPublishedOverSyntheticDevices(t *testing.T) {
	list, exporter := os.Getenv("SNMP_YML"), os.Getenv("SNMP_EXPORTER")
	if list == "" || exporter == "" {
		t.Skip("SNMP_YML and SNMP_EXPORTER name no files: run by hand, see internal/tools/README.md")
	}
	path := filepath.SplitList(list)[0]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, broken := parseYML(path, text, all)
	if len(broken) > 0 {
		t.Fatal(broken)
	}
	addr := startExporterProgram(t, exporter, text)
	equal := 0
	for _, name := range whole.names {
		equal += compareMadeUp(t, addr, path, name, whole.modules[name].module)
	}
	t.Logf("%d modules, %d samples equal", len(whole.names), equal)
}

// compareMadeUp compares all samples of a module of a device made up for it with those of the exporter at addr, and returns how many are equal.
func compareMadeUp(t *testing.T, addr, file, name string, m module) (equal int) {
	t.Helper()
	a := newFakeAgent(t, synthetic(m)...)
	c := a.config(name)
	c.ConfigFiles, c.PacketTimeout = []string{file}, 5e9
	r, err := collect(t, newProbe(t, c))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return 0
	}
	ours := withoutScrape(lines(r))
	theirs := exporterLines(t, addr, a.conn.LocalAddr().String(), name)
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("%s: (-exporter +ours)\n%.1500s", name, diff)
	}
	if len(theirs) == 0 {
		t.Errorf("%s: there is no sample to compare", name)
	}
	for s, v := range theirs {
		if ours[s] == v {
			equal++
		}
	}
	return equal
}
