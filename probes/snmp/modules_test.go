package snmp

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/probes"
)

// oracle is what snmpwalk printed: OID → value, strings without their quotes.
type oracle map[string]string

func (d *daemon) walk(t testing.TB, roots ...string) oracle {
	t.Helper()
	o := make(oracle)
	for _, root := range roots {
		// -Ox prints strings in hex where they are not text, -OQ drops the types' names,
		// -Oe gives enumerations and -Ot time ticks as numbers.
		for line := range strings.Lines(d.ask(t, "snmpwalk", "-OQet", root)) {
			k, v, ok := strings.Cut(strings.TrimSpace(line), " = ")
			if ok && !strings.HasPrefix(v, "No ") {
				o[strings.TrimPrefix(k, ".")] = strings.Trim(v, `"`)
			}
		}
	}
	if len(o) == 0 {
		t.Fatalf("snmpwalk of %v printed nothing", roots)
	}
	return o
}

// instance is the OID that a sample was read from: its column and the index in its labels.
func instance(m metric, s probes.Sample) string {
	o := m.oid
	if len(m.indexes) == 0 {
		return o + ".0"
	}
	for _, x := range m.indexes {
		o += "." + labelOf(s, x.labelname)
	}
	return o
}

func labelOf(s probes.Sample, name string) string {
	for i := 0; i < len(s.Labels); i += 2 {
		if s.Labels[i] == name {
			return s.Labels[i+1]
		}
	}
	return ""
}

// Every number of every built-in module is the one that Net-SNMP's own client reads
// from the same agent, and none of the agent's is missing.
func TestValuesEqualNetSNMP(t *testing.T) {
	d := startSnmpd(t)
	for name := range builtin {
		t.Run(name, func(t *testing.T) {
			m := builtin[name]
			roots := m.walk
			for _, g := range m.get {
				roots = append(roots, strings.TrimSuffix(g, ".0"))
			}
			p := newProbe(t, Config{Target: d.target("udp"), Auth: v2(), Modules: []string{name}})
			before := d.walk(t, roots...)
			r, err := collect(t, p)
			if err != nil {
				t.Fatal(err)
			}
			after := d.walk(t, roots...)
			byName := make(map[string]metric)
			for _, x := range m.metrics {
				byName[x.name] = x
			}
			seen := make(map[string]bool)
			for _, s := range r.Samples() {
				x, ok := byName[strings.TrimSuffix(s.Family.Name, "_info")]
				if !ok {
					continue // derived
				}
				at := instance(x, s)
				seen[at] = true
				switch x.typ {
				case typeGauge, typeCounter:
					lo, hi := number(t, before[at]), number(t, after[at])
					if v := (s.Value - x.offset) / nonZero(x.scale); v < min(lo, hi) || v > max(lo, hi) {
						t.Errorf("%s = %v, snmpwalk says %v before and %v after", series(s), v, lo, hi)
					}
				case typeDisplayString:
					if got := labelOf(s, x.name); got != before[at] {
						t.Errorf("%s: snmpwalk says %q", series(s), before[at])
					}
				}
			}
			for at := range after {
				o := mustOID(at)
				if x := compile(name, m).columns.find(o); x != nil && x.typ != typeDateAndTime && !seen[at] {
					t.Errorf("%s (%s = %s) is missing", x.name, at, after[at])
				}
			}
			if len(seen) == 0 {
				t.Error("the agent serves nothing of this module: the test proves nothing")
			}
		})
	}
}

func nonZero(f float64) float64 {
	if f == 0 {
		return 1
	}
	return f
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatalf("snmpwalk printed %q for a number", s)
	}
	return f
}

func TestSystem(t *testing.T) {
	d := startSnmpd(t)
	r, err := collect(t, newProbe(t, Config{Target: d.target("udp"), Auth: v2(), Modules: []string{"system"}}))
	if err != nil {
		t.Fatal(err)
	}
	got := lines(r)
	for _, want := range []string{
		`sysName{sysName="bench-7"}`, `sysLocation{sysLocation="rack 4"}`, `sysContact{sysContact="nobody"}`,
		`sysObjectID{sysObjectID="1.3.6.1.4.1.8072.3.2.10"}`,
	} {
		if got[want] != 1 {
			t.Errorf("%s is missing", want)
		}
	}
	// One GET brings the whole module.
	cost := map[string]float64{}
	for k, v := range got {
		if strings.HasPrefix(k, "snmp_scrape_p") {
			cost[k] = v
		}
	}
	want := map[string]float64{
		`snmp_scrape_packets_sent{module="system"}`: 1, `snmp_scrape_packets_retried{module="system"}`: 0,
		`snmp_scrape_pdus_returned{module="system"}`: 6,
	}
	if diff := cmp.Diff(want, cost); diff != "" {
		t.Error(diff)
	}
}

func TestInterfaces(t *testing.T) {
	d := startSnmpd(t)
	const lo = `ifDescr="lo",ifIndex="1",ifName="lo"`
	for _, tc := range []struct {
		network string
		auth    Auth
		wide    bool // 64-bit counters, which v1 does not have
	}{
		{"udp", v2(), true}, {"tcp", v2(), true}, {"udp", strong, true}, {"tcp", strong, true},
		{"udp", Auth{Version: 1, Community: "hwtest"}, false},
	} {
		r, err := collect(t, newProbe(t, Config{Target: d.target(tc.network), Auth: tc.auth, Modules: []string{"if_mib"}}))
		if err != nil {
			t.Fatal(err)
		}
		got := lines(r)
		for _, want := range []string{"ifInOctets{" + lo + "}", "ifOperStatus{" + lo + "}", `ifType_info{` + lo + `,ifType="softwareLoopback"}`} {
			if got[want] == 0 {
				t.Errorf("%s v%d: %s is missing", tc.network, tc.auth.version(), want)
			}
		}
		if got["ifHCInOctets{"+lo+"}"] > 0 != tc.wide {
			t.Errorf("%s v%d: ifHCInOctets = %v", tc.network, tc.auth.version(), got["ifHCInOctets{"+lo+"}"])
		}
	}
}

// Every built-in module compiles and no two of its metrics share a name or an OID.
func TestModulesCompile(t *testing.T) {
	for name, m := range builtin {
		compile(name, m)
		names, oids := map[string]bool{}, map[string]bool{}
		for _, x := range m.metrics {
			if names[x.name] || oids[x.oid] {
				t.Errorf("%s: %s or %s is there twice", name, x.name, x.oid)
			}
			names[x.name], oids[x.oid] = true, true
			if x.help == "" || !strings.HasSuffix(x.help, ".") {
				t.Errorf("%s: %s has no help sentence", name, x.name)
			}
			if (x.typ == typeEnumAsInfo || x.typ == typeEnumAsStateSet) && len(x.enumValues) == 0 {
				t.Errorf("%s: %s has no enumeration", name, x.name)
			}
			covered := false
			for _, root := range append(m.walk, m.get...) {
				covered = covered || strings.HasPrefix(x.oid+".", root+".") || root == x.oid+".0"
			}
			if !covered {
				t.Errorf("%s: %s is never read", name, x.name)
			}
		}
	}
}
