package redfish

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/probes/hw"
)

var update = flag.Bool("update", false, "write the reports of testdata anew")

// memory is a source of resources by their paths.
type memory map[string]object

func (m memory) stale() {}

func (m memory) at(string) int64 { return 0 }

func (m memory) read(_ context.Context, w want) (object, error) {
	path, _, _ := strings.Cut(w.path, "?")
	return m[path], nil
}

func load(t testing.TB, file string) memory {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	m := memory{}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m memory) walk(t testing.TB) *tree {
	t.Helper()
	w := walker{source: m, changed: func([]string, bool) bool { return false }}
	tr, err := w.walk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// text is reports for people: a line for each component, and below it those of its readings.
func text(all []hw.Report) string {
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "%s %q %q in %q: %s %q\n", p.Kind, p.ID, p.Name, p.Parent, p.Status, p.Facts)
		for _, r := range p.Readings {
			fmt.Fprintf(&b, "\t%s %q %.6g\n", r.Metric.Family().Name, r.Attributes, r.Value)
		}
	}
	return b.String()
}

// TestReports compares the reports of testdata's services with what was read through and kept.
func TestReports(t *testing.T) {
	for _, name := range []string{"rackmount1", "localstorage", "idrac", "ilo", "coolingunit"} {
		t.Run(name, func(t *testing.T) {
			all := reports(load(t, name+".json").walk(t))
			checkVocabulary(t, all)
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(text(all)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), text(all)); d != "" {
				t.Errorf("go test -update writes it (-want +got):\n%s", d)
			}
		})
	}
}

// small returns a service of one chassis and one system, whose properties are given as JSON.
func small(t *testing.T, chassis, system string, more ...string) []hw.Report {
	t.Helper()
	m := memory{}
	put := func(path, text string) {
		o, err := parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		m[rootPath+path] = o
	}
	put("", `{"Chassis":{"@odata.id":"/redfish/v1/Chassis/"},"Systems":{"@odata.id":"/redfish/v1/Systems"}}`)
	put("/Chassis", `{"Members":[{"@odata.id":"/redfish/v1/Chassis/1/"}]}`)
	put("/Systems", `{"Members":[{"@odata.id":"/redfish/v1/Systems/1"}]}`)
	put("/Chassis/1", chassis)
	put("/Systems/1", system)
	for i := 0; i+1 < len(more); i += 2 {
		put(more[i], more[i+1])
	}
	all := reports(m.walk(t))
	checkVocabulary(t, all)
	return all
}

// TestOddities has what single vendors and old services send.
func TestOddities(t *testing.T) {
	for _, c := range []struct {
		name            string
		chassis, system string
		more            []string
		want            []string // parts of the text
		not             string
	}{
		{name: "both generations", chassis: `{"Id":"1","Sensors":{"@odata.id":"/redfish/v1/Chassis/1/Sensors"},"Thermal":{"@odata.id":"/redfish/v1/Chassis/1/Thermal"}}`, system: `{}`,
			more: []string{"/Chassis/1/Sensors", `{"Members":[{"@odata.id":"/redfish/v1/Chassis/1/Sensors/T","Id":"T","Reading":21,"ReadingType":"Temperature","ReadingUnits":"Cel"}]}`,
				"/Chassis/1/Thermal", `{"Temperatures":[{"Name":"T","ReadingCelsius":21}],"Fans":[{"Name":"F","Reading":"4200","ReadingUnits":"RPM","Status":{"State":"Enabled","Health":null}}]}`},
			want: []string{`temperature "Chassis/1/Sensors/T"`, "hw_temperature_celsius [] 21\n", `fan "Chassis/1/Thermal/Fans/F" "F" in "Chassis/1": unknown []`, "hw_fan_speed_rpm [] 4200"}, not: `"Chassis/1/Thermal/Temperatures`},
		{name: "an unplugged supply", chassis: `{"Power":{"@odata.id":"/redfish/v1/Chassis/1/Power"}}`, system: `{}`,
			more: []string{"/Chassis/1/Power", `{"PowerSupplies":[{"MemberId":"A","Name":"PS1","LineInputVoltage":231,"PowerInputWatts":140,"Status":{"State":"Enabled","Health":"OK"}},` +
				`{"MemberId":"B","Name":"PS2","LineInputVoltage":0,"PowerInputWatts":0,"Status":{"State":"UnavailableOffline","Health":"Critical"}}]}`},
			want: []string{`"PS1" in "Chassis/1": ok`, `"PS2" in "Chassis/1": failed`, "hw_power_watts [] 140\n"}},
		{name: "words in the wrong place, and a member that is listed twice", chassis: `{}`, system: `{"Status":{"Health":"Enabled","State":"OK"},"Memory":{"@odata.id":"/redfish/v1/Systems/1/Memory"}}`,
			more: []string{"/Systems/1/Memory", `{"Members":[{"@odata.id":"/redfish/v1/Systems/1/Memory/A"},{"@odata.id":"/redfish/v1/Systems/1/Memory/A"}]}`,
				"/Systems/1/Memory/A", `{"Name":"DIMM A","CapacityMiB":"16384","Status":{"State":"Enabled","Health":"N/A"}}`},
			want: []string{`memory "Systems/1/Memory/A" "DIMM A" in "Systems/1": unknown`, "hw_memory_size_bytes [] 1.71799e+10\n"}, not: "Memory/A#2"},
		{name: "fahrenheit", chassis: `{"Sensors":{"@odata.id":"/redfish/v1/Chassis/1/Sensors"}}`, system: `{}`,
			more: []string{"/Chassis/1/Sensors", `{"Members":[{"@odata.id":"/redfish/v1/Chassis/1/Sensors/T","Id":"T","Reading":212,"ReadingType":"Temperature","ReadingUnits":"[degF]","Thresholds":{"UpperCritical":{"Reading":230}}}]}`},
			want: []string{"hw_temperature_celsius [] 100\n", `["hw_limit_type" "high.critical"] 110`}},
		{name: "units that do not fit", chassis: `{"Sensors":{"@odata.id":"/redfish/v1/Chassis/1/Sensors"}}`, system: `{}`,
			more: []string{"/Chassis/1/Sensors", `{"Members":[{"@odata.id":"/redfish/v1/Chassis/1/Sensors/A","Id":"A","Reading":9,"ReadingType":"Temperature","ReadingUnits":"degrees"},{"@odata.id":"/redfish/v1/Chassis/1/Sensors/B","Id":"B","Reading":2,"ReadingType":"Power","ReadingUnits":"MW"}]}`},
			want: []string{`hw_sensor_value ["hw_sensor_unit" "degrees"] 9`, `hw_sensor_value ["hw_sensor_unit" "MW"] 2`}},
		{name: "iDRAC", chassis: `{"Thermal":{"@odata.id":"/redfish/v1/Chassis/1/Thermal"},"PhysicalSecurity":{"IntrusionSensor":"HardwareIntrusion"}}`,
			system: `{"Storage":{"@odata.id":"/redfish/v1/Systems/1/Storage"}}`,
			more: []string{"/Systems/1/Storage", `{"Members":[{"@odata.id":"/redfish/v1/Systems/1/Storage/R","Id":"R","Drives":[{"@odata.id":"/redfish/v1/Systems/1/Storage/R/Drives/0"}],"Oem":{"Dell":{"DellControllerBattery":{"Name":"Battery","PrimaryStatus":"Degraded"}}}}]}`,
				"/Systems/1/Storage/R/Drives/0", `{"Id":"0","Model":"M","SerialNumber":"S","MediaType":"SSD","PredictedMediaLifeLeftPercent":87,"FailurePredicted":false,"Oem":{"Dell":{"DellPhysicalDisk":{"PredictiveFailureState":"SmartAlertPresent"}}}}`,
				"/Chassis/1/Thermal", `{"Fans":[{"FanName":"Fan 1","MemberId":"0x17||Fan.Embedded.1","Reading":17,"ReadingUnits":"Percent"}]}`},
			want: []string{`battery "Systems/1/Storage/R/DellControllerBattery" "Battery" in "Systems/1/Storage/R": degraded`, `physical_disk "serial:M:S"`, `predicted_failure`, `["hw_physical_disk_state" "remaining"] 0.87`,
				`fan "Chassis/1/Thermal/Fans/0x17||Fan.Embedded.1"`, "hw_fan_speed_ratio [] 0.17", `intrusion "Chassis/1/PhysicalSecurity"`}},
		{name: "iLO 4", chassis: `{"Thermal":{"@odata.id":"/redfish/v1/Chassis/1/Thermal"}}`, system: `{"Memory":{"@odata.id":"/redfish/v1/Systems/1/Memory"},"Oem":{"Hp":{"Links":{"SmartStorage":{"@odata.id":"/redfish/v1/Systems/1/SmartStorage/"}}}}}`,
			more: []string{"/Systems/1/SmartStorage", `{"Links":{"ArrayControllers":{"@odata.id":"/redfish/v1/Systems/1/SmartStorage/ArrayControllers/"}}}`,
				"/Systems/1/SmartStorage/ArrayControllers", `{"Members":[{"@odata.id":"/redfish/v1/Systems/1/SmartStorage/ArrayControllers/0/"}]}`,
				"/Systems/1/SmartStorage/ArrayControllers/0", `{"Id":"0","Name":"HpSmartStorageArrayController","Model":"P440ar","Status":{"Health":"OK","State":"Enabled"},"Links":{"PhysicalDrives":{"@odata.id":"/redfish/v1/Systems/1/SmartStorage/ArrayControllers/0/DiskDrives"}}}`,
				"/Systems/1/SmartStorage/ArrayControllers/0/DiskDrives", `{"Members":[{"@odata.id":"/redfish/v1/Systems/1/SmartStorage/ArrayControllers/0/DiskDrives/0"}]}`,
				"/Systems/1/SmartStorage/ArrayControllers/0/DiskDrives/0", `{"Id":"0","CapacityMiB":100,"CurrentTemperatureCelsius":33,"SSDEnduranceUtilizationPercentage":4,"Status":{"Health":"Warning"}}`,
				"/Systems/1/Memory", `{"Members":[{"@odata.id":"/redfish/v1/Systems/1/Memory/1"}]}`, "/Systems/1/Memory/1", `{"Name":"proc1dimm1","SizeMB":16384,"DIMMStatus":"GoodInUse"}`,
				"/Chassis/1/Thermal", `{"Fans":[{"FanName":"Fan 1","CurrentReading":17,"Units":"Percent"}]}`},
			want: []string{`disk_controller "Systems/1/SmartStorage/ArrayControllers/0"`, "degraded", "hw_physical_disk_size_bytes [] 1.04858e+08", "hw_temperature_celsius [] 33", `"remaining"] 0.96`, `memory "Systems/1/Memory/1" "proc1dimm1" in "Systems/1": ok`, "hw_fan_speed_ratio [] 0.17"}},
		{name: "drives of one serial number", chassis: `{}`, system: `{"Storage":{"@odata.id":"/redfish/v1/Systems/1/Storage"}}`,
			more: []string{"/Systems/1/Storage", `{"Members":[{"@odata.id":"/redfish/v1/Systems/1/Storage/R","Id":"R","Drives":[{"@odata.id":"/redfish/v1/a/Drives/0"},{"@odata.id":"/redfish/v1/b/Drives/0"},{"@odata.id":"/redfish/v1/a/Drives/1"}]}]}`,
				"/a/Drives/0", `{"Id":"0","Model":"M","SerialNumber":"S"}`, "/b/Drives/0", `{"Id":"0","Model":"M","SerialNumber":"S"}`, "/a/Drives/1", `{"Id":"1","Model":"M","SerialNumber":"S"}`},
			want: []string{`physical_disk "serial:M:S"`, `physical_disk "a/Drives/1"`}, not: "b/Drives"},
		{name: "leak", chassis: `{"ThermalSubsystem":{"@odata.id":"/redfish/v1/Chassis/1/TS"}}`, system: `{}`,
			more: []string{"/Chassis/1/TS", `{"LeakDetection":{"@odata.id":"/redfish/v1/Chassis/1/LD"}}`, "/Chassis/1/LD", `{"LeakDetectors":{"@odata.id":"/redfish/v1/Chassis/1/LDs"}}`,
				"/Chassis/1/LDs", `{"Members":[{"@odata.id":"/redfish/v1/Chassis/1/LDs/A"}]}`, "/Chassis/1/LDs/A", `{"Id":"A","DetectorState":"Critical","Status":{"State":"Enabled","Health":"OK"}}`},
			want: []string{`leak_detector "Chassis/1/LDs/A" "A" in "Chassis/1": failed`}},
		{name: "a fan with two rotors", chassis: `{"ThermalSubsystem":{"@odata.id":"/redfish/v1/Chassis/1/TS"}}`, system: `{}`,
			more: []string{"/Chassis/1/TS", `{"Fans":{"@odata.id":"/redfish/v1/Chassis/1/Fans"}}`, "/Chassis/1/Fans", `{"Members":[{"@odata.id":"/redfish/v1/Chassis/1/Fans/A"}]}`,
				"/Chassis/1/Fans/A", `{"Id":"A","SpeedPercent":{"Reading":45,"SpeedRPM":2200},"SecondarySpeedPercent":{"Reading":40,"SpeedRPM":2000},"RatedSecondarySpeedRPM":5000}`},
			want: []string{"hw_fan_speed_rpm [] 2200", `hw_fan_speed_rpm ["hw_sensor_location" "secondary"] 2000`, `hw_fan_speed_ratio ["hw_sensor_location" "secondary"] 0.4`, `hw_fan_speed_limit_rpm ["hw_sensor_location" "secondary" "hw_limit_type" "max"] 5000`}},
		{name: "transceivers", chassis: `{"NetworkAdapters":{"@odata.id":"/redfish/v1/Chassis/1/NA"}}`, system: `{}`,
			more: []string{"/Chassis/1/NA", `{"Members":[{"@odata.id":"/redfish/v1/Chassis/1/NA/1"}]}`, "/Chassis/1/NA/1", `{"Id":"1","Ports":{"@odata.id":"/redfish/v1/Chassis/1/NA/1/Ports"}}`,
				"/Chassis/1/NA/1/Ports", `{"Members":[{"@odata.id":"/redfish/v1/Chassis/1/NA/1/Ports/1"},{"@odata.id":"/redfish/v1/Chassis/1/NA/1/Ports/2"}]}`,
				"/Chassis/1/NA/1/Ports/1", `{"Id":"1","Metrics":{"@odata.id":"/redfish/v1/Chassis/1/NA/1/Ports/1/M"}}`, "/Chassis/1/NA/1/Ports/2", `{"Id":"2","Metrics":{"@odata.id":"/redfish/v1/Chassis/1/NA/1/Ports/2/M"}}`,
				"/Chassis/1/NA/1/Ports/1/M", `{"Transceivers":[{"RXInputPowerMilliWatts":0.1,"TXOutputPowerMilliWatts":1,"TXBiasCurrentMilliAmps":49,"SupplyVoltage":3.3}]}`,
				"/Chassis/1/NA/1/Ports/2/M", `{"Transceivers":[{"RXInputPowerMilliWatts":9,"ByLane":[{"RXInputPowerMilliWatts":0.01},{"RXInputPowerMilliWatts":0}]}]}`},
			want: []string{`hw_optical_power_dbm ["hw_sensor_location" "receive"] -10` + "\n", `hw_optical_power_dbm ["hw_sensor_location" "transmit"] 0` + "\n", `hw_current_amperes ["hw_sensor_location" "transmit"] 0.049`, "hw_voltage_volts [] 3.3",
				`hw_optical_power_dbm ["hw_sensor_location" "receive.1"] -20`}, not: `"receive.2"`},
		{name: "a breaker that has tripped", chassis: `{}`, system: `{}`,
			more: []string{"", `{"PowerEquipment":{"@odata.id":"/redfish/v1/PE"}}`, "/PE", `{"RackPDUs":{"@odata.id":"/redfish/v1/PE/PDUs"}}`, "/PE/PDUs", `{"Members":[{"@odata.id":"/redfish/v1/PE/PDUs/1"}]}`,
				"/PE/PDUs/1", `{"Id":"1","Branches":{"@odata.id":"/redfish/v1/PE/PDUs/1/B"}}`, "/PE/PDUs/1/B", `{"Members":[{"@odata.id":"/redfish/v1/PE/PDUs/1/B/A"},{"@odata.id":"/redfish/v1/PE/PDUs/1/B/C"}]}`,
				"/PE/PDUs/1/B/A", `{"Id":"A","BreakerState":"Tripped","Status":{"Health":"OK"}}`, "/PE/PDUs/1/B/C", `{"Id":"C","BreakerState":"Normal","Status":{"Health":"OK"}}`},
			want: []string{`outlet "PE/PDUs/1/B/A" "A" in "PE/PDUs/1": failed`, `outlet "PE/PDUs/1/B/C" "C" in "PE/PDUs/1": ok`}},
		{name: "NVMe's SMART", chassis: `{"Drives":{"@odata.id":"/redfish/v1/Chassis/1/Drives"}}`, system: `{}`,
			more: []string{"/Chassis/1/Drives", `{"Members":[{"@odata.id":"/redfish/v1/Chassis/1/Drives/A"}]}`, "/Chassis/1/Drives/A", `{"Id":"A","Metrics":{"@odata.id":"/redfish/v1/Chassis/1/Drives/A/M"}}`,
				"/Chassis/1/Drives/A/M", `{"NVMeSMART":{"PercentageUsed":130,"TemperatureSensorsCelsius":[34,-3]}}`},
			want: []string{`hw_physical_disk_endurance_utilization_ratio ["hw_physical_disk_state" "remaining"] 0` + "\n", `hw_temperature_celsius ["hw_sensor_location" "sensor_2"] -3`}},
		{name: "GPU", chassis: `{}`, system: `{"Processors":{"@odata.id":"/redfish/v1/Systems/1/Processors"}}`,
			more: []string{"/Systems/1/Processors", `{"Members":[{"@odata.id":"/redfish/v1/Systems/1/Processors/G"}]}`, "/Systems/1/Processors/G", `{"Id":"G","ProcessorType":"GPU","Metrics":{"@odata.id":"/redfish/v1/Systems/1/Processors/G/M"},"MemorySummary":{"TotalMemorySizeMiB":1024}}`,
				"/Systems/1/Processors/G/M", `{"CacheMetricsTotal":{"LifeTime":{"CorrectableECCErrorCount":3}},"CoreVoltage":{"Reading":0.7},"Oem":{"Nvidia":{"SMUtilizationPercent":50}}}`},
			want: []string{`gpu "Systems/1/Processors/G"`, `hw_errors_total ["error_type" "corrected"] 3`, `hw_voltage_volts ["hw_sensor_location" "core"] 0.7`, `hw_gpu_utilization_ratio ["hw_gpu_task" "general"] 0.5`, "hw_gpu_memory_limit_bytes [] 1.07374e+09"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := text(small(t, c.chassis, c.system, c.more...))
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("%s is missing", w)
				}
			}
			if c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("%s is there", c.not)
			}
			if t.Failed() {
				t.Log(got)
			}
		})
	}
}

// TestPartKeys: taking a part out, or another order, leaves the others' IDs as they were.
func TestPartKeys(t *testing.T) {
	ids := func(text string) (out []string) {
		for _, p := range small(t, `{"Thermal":{"@odata.id":"/redfish/v1/Chassis/1/Thermal"}}`, `{}`, "/Chassis/1/Thermal", text) {
			if p.Kind == hw.Temperature {
				out = append(out, p.ID)
			}
		}
		slices.Sort(out)
		return out
	}
	all := ids(`{"Temperatures":[{"MemberId":"0","SensorNumber":5,"ReadingCelsius":1},{"MemberId":"1","Name":"A","ReadingCelsius":2},{"MemberId":"x","ReadingCelsius":3},{"MemberId":"3","Name":"B","ReadingCelsius":3}]}`)
	fewer := ids(`{"Temperatures":[{"MemberId":"0","Name":"B","ReadingCelsius":3},{"MemberId":"x","ReadingCelsius":3},{"MemberId":"2","SensorNumber":5,"ReadingCelsius":1}]}`)
	want := []string{"B", "sensor 5", "x"}
	for _, w := range want {
		id := "Chassis/1/Thermal/Temperatures/" + w
		if !slices.Contains(all, id) || !slices.Contains(fewer, id) {
			t.Errorf("%s is not among %q and %q", id, all, fewer)
		}
	}
}

func TestResourcePath(t *testing.T) {
	for ref, want := range map[string]string{
		"/redfish/v1/Chassis/1/": "/redfish/v1/Chassis/1", "/redfish/v1/Chassis/1/Thermal#/Fans/0": "/redfish/v1/Chassis/1/Thermal", "/redfish/v1/a b": "/redfish/v1/a%20b",
		"/redfish/v1/x?$skip=1": "/redfish/v1/x?$skip=1", "https://192.0.2.1/redfish/v1/x": "", "//192.0.2.1/redfish": "", "redfish/v1": "", "/redfish/v1/../x": "", "/redfish/v1//x": "", "/etc/passwd": "", "": "",
		"/redfish/" + strings.Repeat("x", 2000): "", "/redfish/v1/%zz": "",
	} {
		if got, ok := resourcePath(ref); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %t", ref, got, ok)
		}
	}
}

func TestLockout(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var l lockout
	if l.wait(now, "a") != nil {
		t.Error("a first login waits")
	}
	for i, minutes := range []int{10, 20, 40, 80, 160, 320, 360, 360} {
		pause := time.Duration(minutes) * time.Minute
		l.refused(now, "a", os.ErrPermission)
		if l.wait(now.Add(pause-time.Second), "a") == nil || l.wait(now.Add(pause), "a") != nil || l.wait(now, "b") != nil {
			t.Errorf("after refusal %d the pause is not %s", i+1, pause)
		}
		now = now.Add(pause)
	}
	l.refused(now, "b", os.ErrPermission)
	if l.wait(now.Add(10*time.Minute), "b") != nil {
		t.Error("a new password waits for the old one")
	}
	l.accepted()
	if l.wait(now, "b") != nil {
		t.Error("it waits after a success")
	}
}

func TestValidate(t *testing.T) {
	good := Config{Target: "bmc.example.org", Username: "u", PasswordFile: "f"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, target := range []string{"192.0.2.1", "192.0.2.1:8443", "[2001:db8::1]:443", "2001:db8::1", "https://a/", "https://a/redfish/v1", "http://127.0.0.1:8000"} {
		if err := good.CheckTarget(target); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
	for name, change := range map[string]func(*Config){
		"target": func(c *Config) { c.Target = "" }, "target ": func(c *Config) { c.Target = "ftp://x" }, "target  ": func(c *Config) { c.Target = "https://u:p@x" }, "target   ": func(c *Config) { c.Target = "x/y" },
		"username": func(c *Config) { c.Username = "" }, "password": func(c *Config) { c.Password = "x" }, "password_file": func(c *Config) { c.PasswordFile = "" },
		"auth": func(c *Config) { c.Auth = "digest" }, "fingerprint": func(c *Config) { c.Fingerprint = "12" }, "request_timeout": func(c *Config) { c.RequestTimeout = -1 },
		"inventory_interval": func(c *Config) { c.InventoryInterval = -1 }, "max_requests": func(c *Config) { c.MaxRequests = -1 }, "tls_config": func(c *Config) { c.TLSConfig.CertFile = "x" },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(name)+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzReports: whatever a service sends, the walk ends, and what is reported fits the vocabulary.
func FuzzReports(f *testing.F) {
	for _, file := range []string{"rackmount1.json", "localstorage.json", "idrac.json", "ilo.json", "coolingunit.json"} {
		for _, o := range load(f, file) {
			text, _ := json.Marshal(o)
			f.Add(text, "sensor")
		}
	}
	names := make([]string, 0, len(roles))
	for name := range roles {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f.Add([]byte(`{"Id":"1","Status":{"Health":"OK","State":"Enabled"},"Reading":1,"Members":[{"@odata.id":"/redfish/v1/x","Id":"x"}]}`), name)
	}
	f.Fuzz(func(t *testing.T, text []byte, role string) {
		o, err := parse(text)
		if err != nil || roles[role] == nil {
			return
		}
		tr := newTree()
		tr.place(want{path: rootPath, role: "root"}, object{})
		chassis := tr.place(want{path: "/redfish/v1/Chassis/1", role: "chassis", parent: tr.nodes[0]}, object{"Id": "1"})
		next := append(chassis, tr.place(want{path: "/redfish/v1/Chassis/1/x", role: role, parent: tr.nodes[1]}, o)...)
		for range 50 { // the same object behind each link
			if next = append(next, tr.fallbacks()...); len(next) == 0 {
				break
			}
			w := next[0]
			next = append(next[1:], tr.place(w, o)...)
		}
		checkVocabulary(t, reports(tr))
	})
}
