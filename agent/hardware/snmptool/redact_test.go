package snmptool

import (
	"testing"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes/snmp"
	"hwsagent/probes/tape"
)

// A Unix machine has its host's name in sysDescr, which may differ from sysName; a text that only resembles such a description is kept.
func TestRedactorFindsTheHostInSysDescr(t *testing.T) {
	for description, replaced := range map[string]bool{
		"Linux backup7.fra.example.net 6.1.0-44-amd64 #1 SMP x86_64":       true,
		"FreeBSD backup7 14.2-RELEASE FreeBSD 14.2-RELEASE amd64":          true,
		"Linux release:2.6.18 machine:i686":                                false,
		"Example Software, version backup7 6.1 (see www.vendor.example) x": false,
	} {
		words, err := tape.NewRedactor(nil)
		if err != nil {
			t.Fatal(err)
		}
		r := redactor{words}
		v := snmp.Variable{OID: snmp.SysDescr, Type: gosnmp.OctetString, Value: []byte(description)}
		other := snmp.Variable{OID: "1.3.6.1.4.1.8072.1", Type: gosnmp.OctetString, Value: []byte("peer of backup7")}
		r.learn([]snmp.Variable{v, other})
		for _, v := range []snmp.Variable{v, other} {
			before := string(v.Value.([]byte))
			if after := string(r.value(v).Value.([]byte)); (after != before) != replaced {
				t.Errorf("%q became %q", before, after)
			}
		}
	}
}
