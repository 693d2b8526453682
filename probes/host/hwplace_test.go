//go:build linux

package host

import (
	"strings"
	"testing"

	"hwsagent/probes/hw"
)

func TestStablePlace(t *testing.T) {
	attributes := map[string]string{
		"pci0000:00/0000:00:1f.4/i2c-3/name":                 "SMBus I801 adapter at efa0",
		"pci0000:00/0000:00:17.0/ata3/ata_port/ata3/port_no": "1",
		"virtual/thermal/thermal_zone2/type":                 "x86_pkg_temp",
	}
	for rel, want := range map[string]string{
		"":                                     "",
		"pci0000:00/0000:00:1f.4/i2c-3/3-0050": "pci:0000:00:1f.4/i2c:smbus_i801_adapter_at_efa0/0050",
		"pci0000:00/0000:00:1f.4/i2c-7/7-0050": "pci:0000:00:1f.4/i2c/0050",
		"pci0000:00/0000:00:1d.0/0000:01:00.0/nvme/nvme0":                             "pci:0000:01:00.0/nvme",
		"pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0":                      "pci:0000:00:17.0/ata1/0:0:0",
		"pci0000:00/0000:00:03.0/virtio2":                                             "pci:0000:00:03.0/virtio",
		"pci0000:00/0000:00:14.0/usb1/1-3/1-3.2/1-3.2:1.0/0003:1B1C:0C10.0005/hidraw": "pci:0000:00:14.0/3/3.2/3.2:1.0/0003:1B1C:0C10/hidraw",
		"pci10000:e0/10000:e0:06.0/10000:e1:00.0":                                     "pci:10000:e1:00.0",
		"platform/nct6775.656":                                                        "nct6775.656",
		"platform/coretemp.1":                                                         "coretemp.1",
		"LNXSYSTM:00/LNXSYBUS:00/ACPI000D:00":                                         "ACPI000D:00",
		"virtual/thermal/thermal_zone2":                                               "thermal:x86_pkg_temp",
		"platform/soc/18000000.wifi/ieee80211/phy3/hwmon/hwmon4":                      "soc/18000000.wifi/ieee80211/phy",
		"pci0000:3a/0000:3a:00.0/0000:3b:00.1/net/eth0":                               "pci:0000:3b:00.1/eth0", // of the adapter, not of what the kernel calls its link, people ask
	} {
		if got := stablePlace(rel, func(path string) string { return attributes[path] }); got != want {
			t.Errorf("%s is at %q, want %q", rel, got, want)
		}
	}
}

// FuzzStablePlace numbers hwmon, host and I²C anew: the place is the same.
func FuzzStablePlace(f *testing.F) {
	f.Add("pci0000:00/0000:00:1f.4/i2c-3/3-0050")
	f.Add("platform/a//b/hwmon/hwmon3")
	none := func(string) string { return "" }
	f.Fuzz(func(t *testing.T, rel string) {
		place := stablePlace(rel, none)
		if len(place) > 5*len(rel)+16 {
			t.Errorf("%q is at %q", rel, place)
		}
		if rel != "" && !strings.HasSuffix(rel, "/") && stablePlace(rel+"/hwmon/hwmon1", none) != stablePlace(rel+"/hwmon/hwmon22", none) {
			t.Errorf("%q depends on a number", rel)
		}
	})
}

// TestSensorStatus has each way in which a driver tells how a sensor is.
func TestSensorStatus(t *testing.T) {
	for _, c := range []struct {
		name, files string
		want        hw.Status
		readings    int
	}{
		{"a value alone", "temp1 input=40000", 0, 1},
		{"below its limits", "temp1 input=40000 max=80000 crit=90000", hw.OK, 3},
		{"above the first", "temp1 input=85000 max=80000 crit=90000", hw.Degraded, 3},
		{"above both", "temp1 input=95000 max=80000 crit=90000", hw.Failed, 3},
		{"emergency alone", "temp1 input=99000 emergency=95000", hw.Failed, 2},
		{"the driver knows better", "temp1 input=85000 max=80000 max_alarm=0", hw.OK, 2},
		{"the driver's alarm", "temp1 input=40000 crit=90000 crit_alarm=1", hw.Failed, 2},
		{"a limit that is not set", "temp1 input=40000 max=0", 0, 1},
		{"a limit beyond reason", "temp1 input=40000 max=65261850", 0, 1},
		{"an open sensor", "temp1 input=127000 fault=1 max=80000", hw.Unknown, 1},
		{"no value, but a limit", "temp1 max=80000", hw.Unknown, 1},
		{"a fan that turns", "fan1 input=900 min=300", hw.OK, 2},
		{"a fan too slow", "fan1 input=200 min=300", hw.Degraded, 2},
		{"a fan that stands", "fan1 input=0 min=300", hw.Failed, 2},
		{"a fan that stands by its alarm", "fan1 input=0 alarm=1", hw.Failed, 1},
		{"a fan with a fault", "fan1 input=900 fault=1", hw.Failed, 1},
		{"a fan without a plug", "fan1 input=0 min=0", 0, 1},
		{"a fan above its maximum", "fan1 input=9000 max=8000", 0, 2},
		{"a voltage between limits that are not set", "in1 input=3300 min=0 max=0", 0, 1},
		{"a voltage below", "in1 input=900 min=1000 max=1400", hw.Degraded, 3},
		{"a negative voltage", "in1 input=-12100 min=-13000 max=-11000", hw.OK, 2},
		{"a voltage below the critical limit", "in1 input=900 lcrit=950 min=1000", hw.Failed, 3},
		{"a current", "curr1 input=1500 max=3000", hw.OK, 2},
		{"a rail's power", "power1 input=12000000 max=20000000 cap=0", hw.OK, 2},
		{"energy", "energy1 input=3600000000", 0, 1},
		{"humidity", "humidity1 input=41230 max=90000", hw.OK, 2},
		{"a case", "intrusion0 alarm=0", hw.OK, 0},
		{"an opened case", "intrusion0 alarm=1", hw.Failed, 0},
		{"rubbish", "temp1 input=hot max=cold fault=?", 0, 0},
	} {
		words := strings.Fields(c.files)
		s := sensor{name: words[0], kind: strings.TrimRight(words[0], "0123456789")}
		for _, w := range words[1:] {
			name, value, _ := strings.Cut(w, "=")
			s.properties = append(s.properties, property{name, value})
		}
		p, ok := sensorReport("chip", origin{id: "place"}, s)
		if p.Status != c.want || len(p.Readings) != c.readings || ok == (c.want == 0 && c.readings == 0) {
			t.Errorf("%s is %q with %v, %t; want %q and %d readings", c.name, p.Status, p.Readings, ok, c.want, c.readings)
		}
	}
}

func TestArrayStatus(t *testing.T) {
	for _, c := range []struct {
		state, level   string
		disks, missing float64
		want           hw.Status
	}{
		{"clean", "raid1", 2, 0, hw.OK}, {"active", "raid1", 2, 1, hw.Degraded}, {"clean", "raid1", 3, 3, hw.Failed},
		{"clean", "raid5", 4, 1, hw.Degraded}, {"clean", "raid5", 4, 2, hw.Failed}, {"clean", "raid6", 5, 2, hw.Degraded}, {"clean", "raid6", 5, 3, hw.Failed},
		{"clean", "raid0", 2, 0, hw.OK}, {"broken", "raid0", 2, 0, hw.Failed}, {"inactive", "raid1", 2, 0, hw.Failed}, {"", "raid1", 2, 0, hw.Unknown},
		{"clean", "raid10", 4, 2, hw.Degraded},
	} {
		if got := arrayStatus(c.state, c.level, c.disks, c.missing); got != c.want {
			t.Errorf("%+v is %q", c, got)
		}
	}
}
