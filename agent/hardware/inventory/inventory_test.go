package inventory

import (
	"strings"
	"testing"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// Components stand below those that they are in; a circle of parents ends.
func TestTree(t *testing.T) {
	status := &probes.Family{Name: "hw_status"}
	r := probes.NewRound(0)
	for _, c := range [][3]string{{"a", "", "ok"}, {"b", "a", "failed"}, {"c", "d", "ok"}, {"d", "c", "ok"}, {"e", "missing", "ok"}, {"f", "f", "ok"}} {
		r.Add(status, 1, "hw_id", c[0], "hw_name", "n\x1b"+c[0], "hw_parent", c[1], "hw_type", "fan", "hw_state", c[2])
		r.Add(status, 0, "hw_id", c[0], "hw_name", "n\x1b"+c[0], "hw_parent", c[1], "hw_type", "fan", "hw_state", "degraded")
	}
	want := `p (snmp t): 6 components: 1 failed, 5 ok
  ok        fan "n\x1ba"
    failed    fan "n\x1bb"
  ok        fan "n\x1be"
  ok        fan "n\x1bf"
  ok        fan "n\x1bc"
    ok        fan "n\x1bd"
`
	if got := shownText(t, r); got != want {
		t.Errorf("%s", got)
	}
}

// A component has its states, facts and values; several values of one metric stay distinct; the values of the whole machine
// are printed below the tree.
func TestValues(t *testing.T) {
	r := probes.NewRound(0)
	disk := hw.Report{Status: hw.OK | hw.PredictedFailure, Component: hw.Component{Kind: hw.PhysicalDisk, ID: "d", Name: "sda", Facts: []string{hw.Model, "M\n1", hw.Serial, "S1"}}}
	disk.Add(hw.DiskSize, 1e12)
	disk.Add(hw.DiskSMART, 7, hw.LabelSMARTAttribute, "5")
	disk.AddTo(r)
	heat := hw.Report{Status: hw.Degraded, Component: hw.Component{Kind: hw.Temperature, ID: "t", Name: "inlet"}}
	heat.Add(hw.TemperatureNow, 23.5)
	heat.Add(hw.TemperatureLimit, 40, "hw_limit_type", "high.degraded")
	heat.Add(hw.TemperatureLimit, 50, "hw_limit_type", "high.critical")
	heat.Add(hw.VoltageNow, 2313)
	heat.AddTo(r)
	host := hw.Report{Component: hw.Component{Kind: hw.Host}}
	host.Add(hw.HostPower, 120, "hw_quality", hw.Measured)
	host.AddTo(r)
	r.Add(&probes.Family{Name: "node_load1"}, 1)
	want := `p (snmp t): 2 components: 1 degraded, 1 predicted_failure
  predicted_failure physical_disk "sda" M 1 S1
      size 1 TB
      smart 5 7
  degraded  temperature "inlet" 23.5 °C, degraded above 40 °C, critical above 50 °C
  the whole machine: power measured 120 W
  not sent, because hardware cannot have it: 1 value: voltage_volts 2313 of "inlet"
  not all could be read: one two
`
	if got := shownText(t, r, "one\ntwo"); got != want {
		t.Errorf("%s", got)
	}
}

func shownText(t *testing.T, r *probes.Round, problem ...string) string {
	t.Helper()
	inv := Inventory{Name: "p", Type: "snmp", Target: "t", Problem: strings.Join(problem, "")}
	inv.Add(r)
	var b strings.Builder
	if err := inv.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A device without components is printed with its description, its classification, and how to find out more.
func TestDeviceWithoutComponents(t *testing.T) {
	r := probes.NewRound(0)
	for name, value := range map[string]string{"sysName": "core\x1b1", "sysDescr": "Example OS 7\nx86_64", "sysObjectID": "1.3.6.1.4.1.99999.1"} {
		r.Add(&probes.Family{Name: name}, 1, name, value)
	}
	r.Add(&probes.Family{Name: "snmp_device_info"}, 1, "vendor", "", "family", "")
	const device = `  device "core\x1b1": Example OS 7 x86_64
  recognised by sysObjectID 1.3.6.1.4.1.99999.1 and the description as: `
	want := "p (snmp t): 0 components\n" + device + `no vendor that the library has, so only standard MIBs were read
  It has none of the objects that the library reads from such a device. These commands show its objects:
    hwsagent record PROBE device.snmprec    (PROBE as for this command; writes all of the device's answers)
    hwsagent snmp test device.snmprec    (lists the objects that no module reads)
  hwsagent snmp import converts definitions of LibreNMS and others, which know more devices; or write one: docs/snmp-library.md
`
	if got := shownText(t, r); got != want {
		t.Errorf("%s", got)
	}
	r.Add(&probes.Family{Name: "snmp_device_info"}, 1, "vendor", "Example", "family", "example-os")
	want = "p (snmp t): 0 components\n" + device + "Example, family example-os\n  not all could be read: broken\n"
	if got := shownText(t, r, "broken"); got != want {
		t.Errorf("%s", got)
	}
}

// Names with numbers have the order of their numbers.
func TestNatural(t *testing.T) {
	sorted := []string{"", "CPU 1", "FAN", "FAN1", "FAN2", "FAN2B", "FAN10", "FAN010", "FAN11 A2", "FAN11 A10", "fan1"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := natural(a, b); (got < 0) != (i < j) && !strings.Contains(a+b, "010") || got != -natural(b, a) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}
