package snmp

import (
	"slices"
	"testing"
)

// FuzzOID: an OID is bounded, and printed so that it reads back as itself.
func FuzzOID(f *testing.F) {
	for _, s := range []string{"1.3.6.1.2.1", ".1.3", "", ".", "1..2", "4294967295", "4294967296", "+1", "1.-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := parseOID(s)
		if err != nil {
			return
		}
		again, err := parseOID(o.String())
		if err != nil || !slices.Equal(o, again) || len(o) > maxArcs || len(o.key()) != 4*len(o) {
			t.Errorf("%q is %v, then %v, %v", s, o, again, err)
		}
	})
}

// FuzzTarget: an accepted target has a host and a port, and its printed form names the same
// place.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"switch", "udp:switch:162", "tcp://[::1]:161", "::1", "[::1]", "a:b:c", ":161", "h:0", "udp:", "h:70000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := parseTarget(s)
		if err == nil && (e.host == "" || e.port == 0 || e.network != "udp" && e.network != "tcp") {
			t.Errorf("%q is %+v", s, e)
		}
	})
}
