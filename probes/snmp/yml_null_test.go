package snmp

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gosnmp/gosnmp"
)

// NULL in place of a value is what snmp_exporter makes of it in a module of a file, and no sample in a module of ours.
func TestNull(t *testing.T) {
	const ifSpeed, ifAlias = "1.3.6.1.2.1.2.2.1.5", "1.3.6.1.2.1.31.1.1.1.18"
	a := newFakeAgent(t, pdu(ifSpeed+".1", gosnmp.Null, nil), pdu(ifAlias+".1", gosnmp.Null, nil))
	text := "modules:\n  m:\n    walk: [" + ifSpeed + ", " + ifAlias + "]\n    metrics:\n" +
		"    - {name: ifSpeed, oid: " + ifSpeed + ", type: gauge}\n    - {name: ifAlias, oid: " + ifAlias + ", type: DisplayString}\n"
	for module, want := range map[string]map[string]float64{
		"m":      {"ifSpeed{}": 0, "ifAlias{}": 1}, // a label without a text is none
		"if_mib": {},
	} {
		r, err := collect(t, fromFile(t, a, []byte(text), module))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, withoutScrape(lines(r))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", module, diff)
		}
	}
}

// An object that the device lacks stays missing, whichever decoder read the answer.
func TestMissingIsNotNull(t *testing.T) {
	for _, typ := range []gosnmp.Asn1BER{gosnmp.NoSuchObject, gosnmp.NoSuchInstance, gosnmp.EndOfMibView} {
		if v := valueOf(typ, nil); v.typ != typ || !v.missing() {
			t.Errorf("%s became %s", typ, v.typ)
		}
	}
	for _, typ := range []gosnmp.Asn1BER{gosnmp.IPAddress, gosnmp.UnknownType, gosnmp.Null} {
		if v := valueOf(typ, nil); v.typ != gosnmp.Null {
			t.Errorf("%s without a value became %s", typ, v.typ)
		}
	}
}

// The end of a device's objects ends a walk, also if gosnmp decodes the answer.
func TestEndOfTheObjectsDecodedByGosnmp(t *testing.T) {
	p := newProbe(t, newFakeAgent(t, interfaces(1)...).config("if_mib"))
	first, err := collect(t, p)
	if err != nil {
		t.Fatal(err)
	}
	p.session.line.brief = false
	second, err := collect(t, p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withoutScrape(lines(first)), withoutScrape(lines(second))); diff != "" {
		t.Error(diff)
	}
}
