package snmp

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gosnmp/gosnmp"

	"hwsagent/probes"
	"hwsagent/probes/snmp/recording"
)

var update = flag.Bool("update", false, "write what is made of the recordings anew")

// serve answers from a recording until the test ends.
func serve(t *testing.T, file string) *recording.Agent {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rec, notes, err := recording.Parse(f)
	if err != nil || len(notes) > 0 {
		t.Fatalf("%s: %v, %v", file, err, notes)
	}
	a, err := recording.Serve(rec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// hardwareOf are the sorted samples of hardware in a round; states that are not the component's are left out.
func hardwareOf(got map[string]float64) string {
	var all []string
	for k, v := range got {
		if strings.HasPrefix(k, "snmp_scrape") || strings.HasPrefix(k, "hw_status") && v == 0 {
			continue
		}
		all = append(all, fmt.Sprintf("%s %.10g\n", k, v))
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// TestLibraryDevices reads recorded devices by each version of the protocol that needs no login.
func TestLibraryDevices(t *testing.T) {
	files, err := filepath.Glob("testdata/devices/*.snmprec")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		golden := strings.TrimSuffix(file, ".snmprec") + ".txt"
		for _, version := range []int{1, 2} {
			a := serve(t, file)
			r, err := collect(t, newProbe(t, Config{Target: a.Addr(), Modules: []string{hardwareModule}, Auth: Auth{Version: version}}))
			if err != nil {
				t.Errorf("%s by v%d: %v", file, version, err)
				continue
			}
			got := hardwareOf(lines(r))
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("%s by v%d (-want +got):\n%s", file, version, d)
			}
		}
	}
}

// TestLibraryCost: a missing table is not requested in each round, and a new one is found later.
func TestLibraryCost(t *testing.T) {
	a := newFakeAgent(t,
		pdu(SysObjectID, gosnmp.ObjectIdentifier, ".1.3.6.1.4.1.9.1.1"),
		pdu("1.3.6.1.4.1.9.9.13.1.4.1.3.1", gosnmp.Integer, 1))
	p := newProbe(t, a.config(hardwareModule))
	rounds := make([]int, patience+2)
	for i := range rounds {
		a.forget()
		if _, err := collect(t, p); err != nil {
			t.Fatal(err)
		}
		rounds[i] = len(a.requests())
		if i == 0 {
			a.mu.Lock()
			a.tree = append(a.tree, pdu("1.3.6.1.4.1.9.9.13.1.5.1.3.1", gosnmp.Integer, 1))
			slices.SortFunc(a.tree, func(x, y gosnmp.SnmpPDU) int { return mustOID(x.Name).compare(mustOID(y.Name)) })
			a.mu.Unlock()
		}
	}
	if rounds[0] < 10 || slices.Max(rounds[1:patience]) > 6 {
		t.Errorf("requests by round: %v", rounds)
	}
	r, err := collect(t, p)
	if err != nil || !strings.Contains(hardwareOf(lines(r)), "power_supply") {
		t.Errorf("what is new is not found after %d rounds: %v, %v", len(rounds), lines(r), err)
	}
}

// TestLibraryPartFails: a table that cannot be read is named, and the others are reported.
func TestLibraryPartFails(t *testing.T) {
	a := newFakeAgent(t,
		pdu(SysObjectID, gosnmp.ObjectIdentifier, ".1.3.6.1.4.1.9.1.1"),
		pdu("1.3.6.1.4.1.9.9.13.1.3.1.3.1", gosnmp.Gauge32, uint(41)),
		pdu("1.3.6.1.4.1.9.9.13.1.4.1.3.1", gosnmp.Integer, 1))
	a.misbehave(func(req *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
		if req.PDUType == gosnmp.GetBulkRequest && strings.HasPrefix(req.Variables[0].Name, ".1.3.6.1.4.1.9.9.13.1.3.1") {
			return respond(req, gosnmp.ResourceUnavailable), true
		}
		return nil, false
	})
	r, err := collect(t, newProbe(t, a.config(hardwareModule)))
	a.faults(t)
	if err == nil || !strings.Contains(err.Error(), "1.3.6.1.4.1.9.9.13.1.3.1") {
		t.Errorf("the error is %v", err)
	}
	got := hardwareOf(lines(r))
	if !strings.Contains(got, `hw_type="fan"`) || strings.Contains(got, "temperature") {
		t.Errorf("got %s", got)
	}
}

func TestDefaultModules(t *testing.T) {
	a := newFakeAgent(t, pdu(SysDescr, gosnmp.OctetString, []byte("Cisco IOS Software, …")), pdu("1.3.6.1.2.1.1.5.0", gosnmp.OctetString, []byte("sw")), pdu("1.3.6.1.4.1.9.9.13.1.4.1.3.1", gosnmp.Integer, 1), pdu(SysObjectID, gosnmp.ObjectIdentifier, ".1.3.6.1.4.1.9.1.1"))
	r, err := collect(t, newProbe(t, a.config()))
	got := lines(r)
	if err != nil || got[`sysName{sysName="sw"}`] != 1 || got[`snmp_device_info{family="ios",vendor="Cisco"}`] != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestUserDefinitions(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte(`definition: mine
vendor: Mine
mib: MINE-MIB
detect: [{sysObjectID: 1.3.6.1.4.1.99999, family: mine}]
tables:
  - {table: mineTable, entry: 1.3.6.1.4.1.99999.1.1, kind: fan, name: "Fan {#}", values: [{object: mineSpeed, column: 2, metric: fan_speed}]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newFakeAgent(t, pdu(SysObjectID, gosnmp.ObjectIdentifier, ".1.3.6.1.4.1.99999.7"), pdu("1.3.6.1.4.1.99999.1.1.2.3", gosnmp.Integer, 1200))
	c := a.config(hardwareModule)
	c.Definitions = []string{dir}
	r, err := collect(t, newProbe(t, c))
	if newProbe(t, a.config(hardwareModule)).Version() != "" || newProbe(t, c).Version() == "" {
		t.Error("a change of a definition does not start the probe anew")
	}
	if got := lines(r); err != nil || got[`hw_fan_speed_rpm{hw_id="mine/Fan 3",hw_name="Fan 3"}`] != 1200 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestNothingKnown: a device that answers and has nothing that the library knows is a finding, and the rest of its round is good; not if a
// module fails.
func TestNothingKnown(t *testing.T) {
	a := newFakeAgent(t, pdu(SysDescr, gosnmp.OctetString, []byte("any")), pdu("1.3.6.1.2.1.1.5.0", gosnmp.OctetString, []byte("x")))
	r, err := collect(t, newProbe(t, a.config()))
	if !errors.Is(err, ErrNothingKnown) || !errors.Is(err, probes.ErrPartial) || lines(r)[`sysName{sysName="x"}`] != 1 || lines(r)[`snmp_device_info{}`] != 1 {
		t.Errorf("%v, %v", err, lines(r))
	}
	a.misbehave(func(req *gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) {
		if req.PDUType == gosnmp.GetBulkRequest && strings.HasPrefix(req.Variables[0].Name, ".1.3.6.1.2.1.99") {
			return respond(req, gosnmp.ResourceUnavailable), true
		}
		return nil, false
	})
	_, err = collect(t, newProbe(t, a.config()))
	a.faults(t)
	if err == nil || errors.Is(err, probes.ErrPartial) {
		t.Errorf("%v", err)
	}
	b := newFakeAgent(t, pdu(SysObjectID, gosnmp.ObjectIdentifier, ".1.3.6.1.4.1.9.1.1"), pdu("1.3.6.1.4.1.9.9.13.1.4.1.3.1", gosnmp.Integer, 1))
	if _, err := collect(t, newProbe(t, b.config(hardwareModule))); err != nil {
		t.Errorf("a device with a fan: %v", err)
	}
}
