package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/status"
)

// machine returns a server with a board, processors, memory, disks, fans and supplies, of which one disk fails; its values were read four
// seconds ago, those of the disk a minute before.
func machine(now time.Time, fans int) inventory.Inventory {
	var all []inventory.Sample
	add := func(age time.Duration, metric string, v float64, labels ...string) {
		all = append(all, inventory.Sample{Name: "hw_" + metric, Labels: labels, Value: v, At: now.Add(-age)})
	}
	part := func(id, kind, name, parent, state string, facts ...string) []string {
		labels := []string{"hw_id", id, "hw_name", name, "hw_type", kind, "hw_parent", parent}
		add(4*time.Second, "status", 1, append(labels, "hw_state", state)...)
		add(4*time.Second, "component_info", 1, append(labels, facts...)...)
		return labels
	}
	part("c", "enclosure", "Chassis", "", "ok", "hw_vendor", "Dell Inc.", "hw_model", "PowerEdge R760", "hw_serial_number", "7XK2", "hw_bios_version", "2.1.5")
	cpu := part("cpu1", "cpu", "CPU 1", "c", "ok", "hw_vendor", "Intel", "hw_model", "Xeon Gold 6430")
	add(4*time.Second, "cpu_speed_hertz", 2.1e9, cpu...)
	heat := part("t1", "temperature", "CPU 1 Temp", "cpu1", "degraded")
	add(4*time.Second, "temperature_celsius", 91.5, heat...)
	add(4*time.Second, "temperature_limit_celsius", 90, append(heat, "hw_limit_type", "high.degraded")...)
	add(4*time.Second, "temperature_limit_celsius", 100, append(heat, "hw_limit_type", "high.critical")...)
	memory := part("m1", "memory", "DIMM A1", "c", "ok", "hw_vendor", "Samsung", "hw_model", "M321R8GA0BB0", "hw_serial_number", "80CE01")
	add(4*time.Second, "memory_size_bytes", 64<<30, memory...)
	disk := part("d1", "physical_disk", "Disk 1", "c", "predicted_failure", "hw_vendor", "SEAGATE", "hw_model", "ST16000NM", "hw_serial_number", "ZL2A77")
	add(64*time.Second, "physical_disk_size_bytes", 16e12, disk...)
	add(64*time.Second, "temperature_celsius", 34, disk...)
	supply := part("p1", "power_supply", "PSU 1", "c", "ok", "hw_vendor", "Delta", "hw_model", "DPS-1400")
	add(4*time.Second, "power_supply_usage_watts", 212, supply...)
	add(4*time.Second, "power_supply_limit_watts", 1400, append(supply, "hw_limit_type", "max")...)
	for i := range fans {
		fan := part(fmt.Sprintf("f%d", i), "fan", fmt.Sprintf("Fan %d", i+1), "c", map[bool]string{true: "failed", false: "ok"}[fans > 9 && i == fans-1])
		add(4*time.Second, "fan_speed_rpm", 8400+float64(i), fan...)
	}
	add(4*time.Second, "host_power_watts", 412, "hw_quality", "measured")
	inv := inventory.Inventory{Name: "node-01"}
	inv.Build(all)
	for _, c := range inv.Components {
		c.Since, c.First = now.Add(-30*time.Hour), true
		if c.ID == "d1" {
			c.Since, c.First = now.Add(-40*time.Minute), false
		}
	}
	return inv
}

func deviceAt(t *testing.T, inv inventory.Inventory, address string) string {
	t.Helper()
	s := status.Judge(fleet(1))
	h := pageOf(Options{Status: func() status.Status { return s }, Device: func(name string) inventory.Inventory {
		if name != inv.Name {
			return inventory.Inventory{Name: name}
		}
		return inv
	}})
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "http://localhost"+address, nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("%s: %d", address, rec.Code)
	}
	return rec.Body.String()
}

// The page of a device shows the tree of its components with state, maker and values in people's units, each value with its age, a
// temperature with its limits, and since when a part fails and what to do.
func TestDevicePage(t *testing.T) {
	s := status.Judge(fleet(1))
	v := newDevice(s.Now, machine(s.Now, 2), false)
	if v.Summary != "8 components, 1 degraded, 1 predicted failure" || v.Level != status.SeverityWarning || v.Left != 0 {
		t.Errorf("%q, %s, %d left", v.Summary, v.Level, v.Left)
	}
	if diff := cmp.Diff([]valueView{{status.LevelOK, "power measured", "412 W", "", "4 s ago"}}, v.Whole); diff != "" {
		t.Errorf("the whole machine (-want +got):\n%s", diff)
	}
	ok := status.LevelOK
	want := []partView{
		{0, ok, "ok", "Chassis", "enclosure", "Dell Inc. PowerEdge R760 · serial 7XK2 · BIOS 2.1.5", "", "", "4 s ago", "", moment{}, nil, 0},
		{1, ok, "ok", "CPU 1", "cpu", "Intel Xeon Gold 6430", "", "", "4 s ago", "", moment{}, []valueView{{ok, "speed", "2.1 GHz", "", ""}}, 0},
		{2, status.SeverityWarning, "degraded", "CPU 1 Temp", "temperature", "", "since before", "first seen 30 h ago", "4 s ago", "", moment{"Nov 19 06:00", "2026-11-19T06:00:00Z"}, []valueView{{status.SeverityWarning, "", "91.5 °C", "degraded above 90 °C, critical above 100 °C", ""}}, 0},
		{1, ok, "ok", "Fan 1", "fan", "", "", "", "4 s ago", "", moment{}, []valueView{{ok, "speed", "8400 rpm", "", ""}}, 0},
		{1, ok, "ok", "Fan 2", "fan", "", "", "", "4 s ago", "", moment{}, []valueView{{ok, "speed", "8401 rpm", "", ""}}, 0},
		{1, ok, "ok", "DIMM A1", "memory", "Samsung M321R8GA0BB0 · serial 80CE01", "", "", "4 s ago", "", moment{}, []valueView{{ok, "size", "64 GiB", "", ""}}, 0},
		{1, status.SeverityWarning, "predicted failure", "Disk 1", "physical disk", "SEAGATE ST16000NM · serial ZL2A77", "since", "40 min", "4 s ago", "copy its data and replace it before it fails; serial ZL2A77", moment{"11:20:00", "2026-11-20T11:20:00Z"}, []valueView{{ok, "size", "16 TB", "", "64 s ago"}, {ok, "temperature", "34 °C", "", "64 s ago"}}, 0},
		{1, ok, "ok", "PSU 1", "power supply", "Delta DPS-1400", "", "", "4 s ago", "", moment{}, []valueView{{ok, "usage", "212 W", "", ""}, {ok, "limit max", "1400 W", "", ""}}, 0},
	}
	if diff := cmp.Diff(want, v.Parts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	body := deviceAt(t, machine(s.Now, 2), "/device?name=node-01")
	for _, want := range []string{"<h1>node-01: 8 components, 1 degraded", "<ul class=\"rows tree\"><li class=\"ok\">", "<b>91.5 °C</b> <small>degraded above 90 °C", `<a href="/">`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	none := inventory.Inventory{Name: "node-02"}
	none.Build([]inventory.Sample{{Name: "hw_component_info", Labels: []string{"hw_id", "x"}, At: s.Now}})
	if v := newDevice(s.Now, none, false); v.Parts[0].State != "no state" || v.Parts[0].Level != status.SeverityNote || v.Level != ok {
		t.Errorf("a component without a state: %+v", v)
	}
	if body := deviceAt(t, machine(s.Now, 2), "/device?name=other"); !strings.Contains(body, "<h1>other: no hardware of it is in memory</h1>") {
		t.Errorf("a device without hardware:\n%s", body)
	}
}

// The heating margin says of which sensor it is, and has the mark of a temperature that is as close to its limit.
func TestHeatingMarginHasItsSensor(t *testing.T) {
	s := status.Judge(fleet(1))
	for _, c := range []struct {
		celsius      float64
		level, value string
	}{{70, status.LevelOK, "20 °C"}, {86, status.SeverityWarning, "! 4 °C"}, {91, status.SeverityError, "✗ -1 °C"}} {
		var all []inventory.Sample
		add := func(name string, v float64, labels ...string) {
			all = append(all, inventory.Sample{Name: "hw_" + name, Labels: labels, Value: v, At: s.Now.Add(-4 * time.Second)})
		}
		for _, sensor := range []struct {
			id            string
			celsius, most float64
		}{{"CPU 1", c.celsius, 90}, {"DIMM 1", 40, 85}} {
			labels := []string{"hw_id", sensor.id, "hw_name", sensor.id + " Temp", "hw_type", "temperature"}
			add("status", 1, append(labels, "hw_state", "ok")...)
			add("temperature_celsius", sensor.celsius, labels...)
			add("temperature_limit_celsius", sensor.most, append(labels, "hw_limit_type", "high.critical")...)
			add("temperature_limit_celsius", sensor.celsius-1, append(labels, "hw_limit_type", "low.critical")...)
		}
		add("host_heating_margin_celsius", 90-c.celsius)
		inv := inventory.Inventory{Name: "node-01"}
		inv.Build(all)
		want := []valueView{{c.level, "heating margin", c.value, "to the limit of CPU 1 Temp", "4 s ago"}}
		if diff := cmp.Diff(want, newDevice(s.Now, inv, false).Whole); diff != "" {
			t.Errorf("%v °C (-want +got):\n%s", c.celsius, diff)
		}
	}
}

// A device with thousands of components has a page of 120 KB at most: those with problems and what contains them come first, and the page
// leads to one with all of them.
func TestPageOfLargeDevice(t *testing.T) {
	now := status.Judge(fleet(1)).Now
	inv := machine(now, 5000)
	v := newDevice(now, inv, false)
	if len(v.Worst) != 3 || v.Worst[0].Name != "Fan 5000" {
		t.Errorf("%d parts with problems, or the failed one is not the first", len(v.Worst))
	}
	body := deviceAt(t, inv, "/device?name=node-01")
	t.Logf("%d bytes", len(body))
	if len(body) > 120_000 {
		t.Errorf("%d bytes", len(body))
	}
	if n := strings.Count(body, `<div class="comp">`); n != 200+len(v.Worst) || !strings.Contains(body, "<b>Fan 5000</b>") || !strings.Contains(body, `4806 more without problems: <a href="/device?all&amp;name=node-01">`) {
		t.Errorf("%d components, or without the failed one", n)
	}
	whole := deviceAt(t, inv, "/device?all&name=node-01")
	if n := strings.Count(whole, `<div class="comp">`); n != 5006+len(v.Worst) {
		t.Errorf("with all rows there are %d components", n)
	}
	if strings.Count(whole, "<li ") != strings.Count(whole, "</li>") || strings.Count(whole, "<ul") != strings.Count(whole, "</ul>") {
		t.Error("an element is not closed")
	}
}

// Each device of the overview leads to its page: those that fail first; what is left out is counted.
func TestDevicesOfThePage(t *testing.T) {
	s := status.Judge(fleet(1))
	v := newHardware(s, site(40, s.Now), false)
	if len(v.Devices) != mostDevices || v.Left != 16 {
		t.Fatalf("%d devices, %d left", len(v.Devices), v.Left)
	}
	if diff := cmp.Diff(kindView{status.SeverityError, "node-01", "6", "1 failed, 1 predicted failure"}, v.Devices[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var p page
	showHardware(&p, v)
	if n := strings.Count(p.b.String(), `<a href="/device?name=node-01">`); n != 1+2+1 {
		t.Errorf("%d links to the device that fails, want one beside each of its bad components and its temperature, and its own", n)
	}
}

// The first sentence of the page, its colour, title and icon are those of the worse of data and hardware.
func TestVerdictHasTheHardware(t *testing.T) {
	s := status.Judge(fleet(1))
	body := func(parts []status.Component) string {
		rec := httptest.NewRecorder()
		pageOf(Options{Status: func() status.Status { return s }, Hardware: func() []status.Component { return parts }}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
		return rec.Body.String()
	}
	failed := site(2, s.Now)
	will := slices.DeleteFunc(slices.Clone(failed), func(c status.Component) bool { return c.State == "failed" })
	two := slices.Clone(failed)
	two[len(two)-2].State = "degraded" // of the other machine
	for _, c := range []struct {
		name  string
		parts []status.Component
		level string
		icon  markup
		title string
	}{
		{"well", nil, status.LevelOK, iconOK, "✓ plant-7: All data arrives, 1.2 s behind"},
		{"will fail", will, status.SeverityWarning, iconWarning, "! plant-7: All data arrives, 1.2 s behind; hardware of node-01: 1 predicted failure"},
		{"failed", failed, status.SeverityError, iconError, "✗ plant-7: All data arrives, 1.2 s behind; hardware of node-01: 1 failed, 1 predicted failure"},
		{"two machines", two, status.SeverityError, iconError, "✗ plant-7: All data arrives, 1.2 s behind; hardware of 2 devices: 1 failed, 1 degraded, 1 predicted failure"},
	} {
		got := body(c.parts)
		for _, want := range []string{"<title>" + c.title + "</title>", `<header class="verdict ` + c.level + `">`, `id="icon" href="` + string(c.icon) + `"`, "<h1>" + strings.SplitN(c.title, ": ", 2)[1] + "</h1>"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the page has no %s:\n%.2500s", c.name, want, got)
			}
		}
	}
}

// Components with many values and long texts do not make the page larger: what is left out is counted.
func TestDeviceOfManyWords(t *testing.T) {
	now := status.Judge(fleet(1)).Now
	var all []inventory.Sample
	for i := range 500 {
		labels := []string{"hw_id", fmt.Sprint(i), "hw_name", strings.Repeat("long ", 60), "hw_type", "physical_disk", "hw_state", "ok", "hw_vendor", strings.Repeat("maker ", 60), "hw_serial_number", strings.Repeat("serial ", 60)}
		all = append(all, inventory.Sample{Name: "hw_component_info", Labels: labels, At: now})
		for j := range 40 {
			all = append(all, inventory.Sample{Name: "hw_physical_disk_smart_ratio", Labels: append(labels[:8:8], "hw_physical_disk_smart_attribute", fmt.Sprintf("%d %s", j, strings.Repeat("attribute ", 60))), Value: 5, At: now})
		}
	}
	inv := inventory.Inventory{Name: "node-01"}
	inv.Build(all)
	body := deviceAt(t, inv, "/device?name=node-01")
	t.Logf("%d bytes", len(body))
	if len(body) > 120_000 || !strings.Contains(body, "and 28 more") || !strings.Contains(body, " more without problems") {
		t.Errorf("%d bytes, or nothing is counted", len(body))
	}
}
