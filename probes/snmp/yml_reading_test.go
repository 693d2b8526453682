package snmp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gosnmp/gosnmp"
)

// The probe's configuration takes precedence over the module's own parameters.
func TestTuning(t *testing.T) {
	three := 3
	path := write(t, "modules:\n  slow: {max_repetitions: 10, retries: 0, timeout: 20s}\n  plain: {walk: [1.3.6]}\n")
	for _, tc := range []struct {
		c       Config
		module  int
		bulk    int
		retries int
		timeout time.Duration
	}{
		{Config{}, 0, 10, 0, 20 * time.Second},
		{Config{}, 1, DefaultMaxRepetitions, DefaultRetries, DefaultPacketTimeout},
		{Config{MaxRepetitions: 5, Retries: &three, PacketTimeout: 1e9}, 0, 5, 3, time.Second},
	} {
		tc.c.Target, tc.c.ConfigFiles, tc.c.Modules = "127.0.0.1:1", []string{path}, []string{"slow", "plain"}
		s := newProbe(t, tc.c).session
		p := newProbe(t, tc.c).modules[tc.module].module.params
		if s.tune(p); s.bulk != tc.bulk || s.retries != tc.retries || s.timeout != tc.timeout {
			t.Errorf("%d, %d, %s", s.bulk, s.retries, s.timeout)
		}
		s.learned = 4
		if s.tune(p); s.bulk != 4 {
			t.Errorf("%d: what was learnt of the device is forgotten", s.bulk)
		}
	}
}

// filtered is a device with a table of four ports, of which two are up.
func portsUpDown() []gosnmp.SnmpPDU {
	var tree []gosnmp.SnmpPDU
	for i := 1; i <= 4; i++ {
		tree = append(tree, pdu(fmt.Sprintf("%s.1.%d", kindsRoot, i), gosnmp.Integer, 1+i%2), pdu(fmt.Sprintf("%s.2.%d", kindsRoot, i), gosnmp.OctetString, fmt.Sprintf("port %d", i)),
			pdu(fmt.Sprintf("%s.3.%d", kindsRoot, i), gosnmp.Integer, 10*i))
	}
	return tree
}

// Filters read only the rows that they name.
func TestFilters(t *testing.T) {
	const head = "modules:\n  m:\n    walk: [" + kindsRoot + ".3]\n    metrics: [{name: x, oid: " + kindsRoot + ".3, type: gauge, indexes: [{labelname: i, type: gauge}]}]\n    filters:"
	up := "[{oid: " + kindsRoot + ".1, targets: [" + kindsRoot + ".3], values: ['1']}"
	for _, tc := range []struct {
		name, filters string
		want          []string
	}{
		{"none", " []", []string{"1", "2", "3", "4"}},
		{"dynamic", " " + up + "]", []string{"2", "4"}},
		{"unanchored", " [{oid: " + kindsRoot + ".2, targets: [" + kindsRoot + ".3], values: ['t 1', '3$']}]", []string{"1", "3"}},
		{"both must pass", " " + up + ", {oid: " + kindsRoot + ".2, targets: [" + kindsRoot + ".3], values: ['port [34]']}]", []string{"4"}},
		{"nothing passes", " [{oid: " + kindsRoot + ".1, targets: [" + kindsRoot + ".3], values: ['7']}]", nil},
		{"the column is missing", " [{oid: " + kindsRoot + ".9, targets: [" + kindsRoot + ".3], values: ['7']}]", nil},
		{"as the generator reads them", " {dynamic: " + up + "]}", []string{"2", "4"}},
		{"static", " {static: [{targets: [" + kindsRoot + ".3], indices: ['1', '4']}]}", []string{"1", "4"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newFakeAgent(t, portsUpDown()...)
			r, err := collect(t, fromFile(t, a, []byte(head+tc.filters+"\n"), "m"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range r.Samples() {
				if s.Family.Name == "x" {
					got = append(got, labelOf(s, "i"))
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A filter whose column cannot be read fails its module, so that no row comes that should not.
func TestFilterThatFails(t *testing.T) {
	a := newFakeAgent(t, portsUpDown()...)
	a.misbehave(func(q *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
		if isBulk(q) && strings.HasPrefix(q.Variables[0].Name, "."+kindsRoot+".1") {
			return respond(q, gosnmp.GenErr, q.Variables...), true
		}
		return nil, false
	})
	text := "modules:\n  m:\n    walk: [" + kindsRoot + ".3]\n    metrics: [{name: x, oid: " + kindsRoot + ".3, type: gauge, indexes: [{labelname: i, type: gauge}]}]\n    filters: [{oid: " + kindsRoot + ".1, targets: [" + kindsRoot + ".3], values: ['1']}]\n"
	r, err := collect(t, fromFile(t, a, []byte(text), "m"))
	a.faults(t)
	if err == nil || len(withoutScrape(lines(r))) != 0 {
		t.Errorf("%v, %v", lines(r), err)
	}
}

// A table out of order is read where the module allows it, and one that leads back ends.
func TestNonIncreasing(t *testing.T) {
	rows := []int{3, 1, 2}
	next := func(loop bool) func(*gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
		return func(q *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
			if !isBulk(q) {
				return nil, false
			}
			at := mustOID(q.Variables[0].Name)
			i := 0
			if at.hasPrefix(mustOID(kindsRoot + ".3")) {
				i = slices.Index(rows, int(at[len(at)-1])) + 1
			}
			if i == len(rows) {
				if !loop {
					return respond(q, gosnmp.NoError, pdu(kindsRoot+".4.0", gosnmp.Integer, 1)), true
				}
				i = 0
			}
			return respond(q, gosnmp.NoError, pdu(fmt.Sprintf("%s.3.%d", kindsRoot, rows[i]), gosnmp.Integer, rows[i])), true
		}
	}
	text := "modules:\n  m:\n    walk: [" + kindsRoot + ".3]\n    metrics: [{name: x, oid: " + kindsRoot + ".3, type: gauge, indexes: [{labelname: i, type: gauge}]}]\n"
	for _, tc := range []struct {
		allow, loop bool
		err         string
		samples     int
	}{{true, false, "", 3}, {false, false, "OID not increasing", 0}, {true, true, "leads back", 0}} {
		a := newFakeAgent(t)
		a.misbehave(next(tc.loop))
		r, err := collect(t, fromFile(t, a, fmt.Appendf([]byte(text), "    allow_nonincreasing_oids: %t\n", tc.allow), "m"))
		a.faults(t)
		if n := len(withoutScrape(lines(r))); n != tc.samples || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%+v: %d samples, %v", tc, n, err)
		}
	}
}

// A subtree that is an object itself is read, too, as snmp_exporter's walk does.
func TestWalkOfAnObject(t *testing.T) {
	a := newFakeAgent(t, portsUpDown()...)
	r, err := collect(t, fromFile(t, a, []byte("modules:\n  m:\n    walk: ["+kindsRoot+".3.2]\n    metrics: [{name: x, oid: "+kindsRoot+".3, type: gauge, indexes: [{labelname: i, type: gauge}]}]\n"), "m"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]float64{`x{i="2"}`: 20}, withoutScrape(lines(r))); diff != "" {
		t.Error(diff)
	}
}

// An answer from another address is taken where the module allows it, and only there.
func TestUnconnectedSocket(t *testing.T) {
	d := startOtherAddress(t)
	for _, allow := range []bool{true, false} {
		path := write(t, fmt.Sprintf("modules:\n  m:\n    get: [1.3.6.1.2.1.1.3.0]\n    metrics: [{name: x, oid: 1.3.6.1.2.1.1.3, type: gauge}]\n    use_unconnected_udp_socket: %t\n", allow))
		p := newProbe(t, Config{Target: d, ConfigFiles: []string{path}, Modules: []string{"m"}, Retries: new(0), PacketTimeout: 3e8})
		r, err := collect(t, p)
		if got := lines(r)["x{}"] == 4711; got != allow || (err == nil) != allow {
			t.Errorf("allowed: %t, got %v, %v", allow, lines(r), err)
		}
	}
}
