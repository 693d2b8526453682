package snmp

import "testing"

func TestHarvestFindsTheLastVariableOfAnOIDInAnyOrder(t *testing.T) {
	for name, oids := range map[string][]string{
		"none":       nil,
		"increasing": {"1.3.1", "1.3.2", "1.3.2.1", "1.3.10"},
		"decreasing": {"1.3.10", "1.3.2.1", "1.3.2", "1.3.1"},
		"again":      {"1.3.1", "1.3.2", "1.3.2", "1.3.10"},
		"later":      {"1.3.1", "1.3.2", "1.3.10", "1.3.1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarvest()
			last := map[string]int{}
			for i, o := range oids {
				if err := h.add(valued(mustOID(o), i)); err != nil {
					t.Fatal(err)
				}
				last[o] = i
				for known, want := range last {
					if at, ok := h.place(mustOID(known)); !ok || at != want {
						t.Errorf("after %s: %s is at %d, %t; want %d", o, known, at, ok, want)
					}
				}
			}
			for i, o := range oids {
				if got := h.counts(i); got != (last[o] == i) {
					t.Errorf("variable %d (%s) counts: %t", i, o, got)
				}
			}
			if at, ok := h.place(mustOID("1.3.3")); ok {
				t.Errorf("an OID that was not added is at %d", at)
			}
		})
	}
}
