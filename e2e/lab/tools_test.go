//go:build linux && amd64

package lab

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// latest are the newest values of a job, by name and labels, of series that have not ended.
type latest map[string]float64

func (r *record) latest(job string) latest {
	out := latest{}
	for _, s := range r.copy() {
		if s.job != job || len(s.samples) == 0 {
			continue
		}
		if x := s.samples[len(s.samples)-1]; !x.stale() {
			out[identity(s.name, s.labels)] = x.v
		}
	}
	return out
}

// comparison counts what equals and notes what does not.
type comparison struct {
	ours     latest
	equal    int
	problems []string
}

func (c *comparison) problem(format string, values ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, values...))
}

// settled repeats comparisons that find something wrong in the probe's next round: on a loaded host a disk may have been too slow
// for one. It returns how many values are equal.
func (g *rig) settled(job string, compare func() []*comparison) (equal int) {
	g.t.Helper()
	const looks = 5
	for n := 1; ; n++ {
		equal = 0
		var problems []string
		for _, c := range compare() {
			equal += c.equal
			problems = append(problems, c.problems...)
		}
		if len(problems) == 0 {
			return equal
		}
		if n == looks {
			for _, p := range problems {
				g.t.Error(p)
			}
			return equal
		}
		g.t.Logf("%d values differ from a tool's in look %d; the first: %s", len(problems), n, problems[0])
		since := g.now()
		eventually(g.t, 2*time.Minute, func() string {
			if len(rounds(g.r.copy(), job, since)) < 2 {
				return "the probe " + job + " has no more rounds"
			}
			return ""
		})
	}
}

// want compares one value with the series of that name that has these labels, and maybe more: exactly one must.
func (c *comparison) want(value float64, name string, labels ...string) {
	var found []string
	for key := range c.ours {
		if series, _, _ := strings.Cut(key, "{"); series != name {
			continue
		}
		all := true
		for i := 0; i < len(labels); i += 2 {
			all = all && strings.Contains(key, fmt.Sprintf("%s=%q", labels[i], labels[i+1]))
		}
		if all {
			found = append(found, key)
		}
	}
	switch {
	case len(found) != 1:
		c.problem("%s %q: the agent has %d such series, %q; a tool says %v", name, labels, len(found), found, value)
	case c.ours[found[0]] != value && !near(c.ours[found[0]], value):
		c.problem("%s is %v; a tool says %v", found[0], c.ours[found[0]], value)
	default:
		c.equal++
	}
}

// near reports equality within the rounding of the printed values.
func near(a, b float64) bool {
	d := a - b
	return d < 0.0051 && d > -0.0051
}

// object is JSON of a tool.
type object map[string]any

// number is the value at a path of keys; false where there is none. A boolean is 1 or 0, and a string may hold a number.
func (o object) number(path ...string) (float64, bool) {
	var at any = map[string]any(o)
	for _, key := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return 0, false
		}
		at = m[key]
	}
	switch x := at.(type) {
	case float64:
		return x, true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	case string:
		f, err := strconv.ParseFloat(x, 64)
		return f, err == nil
	}
	return 0, false
}

func (o object) text(key string) string {
	s, _ := o[key].(string)
	return s
}

func parseObject(t *testing.T, text string) object {
	t.Helper()
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// field is a value of smartctl's JSON (smartctl(8), --json) and the series that has it.
type field struct {
	path   string
	factor float64
	name   string
	labels []string
}

func smartFields() []field {
	nvme := "nvme_smart_health_information_log "
	return []field{
		{"temperature current", 1, "smartctl_device_temperature", []string{"temperature_type", "current"}},
		{"power_on_time hours", 3600, "smartctl_device_power_on_seconds", nil},
		{"power_cycle_count", 1, "smartctl_device_power_cycle_count", nil},
		{"user_capacity bytes", 1, "smartctl_device_capacity_bytes", nil},
		{"user_capacity blocks", 1, "smartctl_device_capacity_blocks", nil},
		{"logical_block_size", 1, "smartctl_device_block_size", []string{"blocks_type", "logical"}},
		{"physical_block_size", 1, "smartctl_device_block_size", []string{"blocks_type", "physical"}},
		{"smart_status passed", 1, "smartctl_device_smart_status", nil},
		{"smartctl exit_status", 1, "smartctl_device_smartctl_exit_status", nil},
		{nvme + "percentage_used", 1, "smartctl_device_percentage_used", nil},
		{nvme + "available_spare", 1, "smartctl_device_available_spare", nil},
		{nvme + "available_spare_threshold", 1, "smartctl_device_available_spare_threshold", nil},
		{nvme + "critical_warning", 1, "smartctl_device_critical_warning", nil},
		{nvme + "media_errors", 1, "smartctl_device_media_errors", nil},
		{nvme + "num_err_log_entries", 1, "smartctl_device_num_err_log_entries", nil},
		{nvme + "data_units_read", 512000, "smartctl_device_bytes_read", nil},
		{nvme + "data_units_written", 512000, "smartctl_device_bytes_written", nil},
	}
}

// compareSmartctl compares the probe smart with smartctl, disk by disk.
func compareSmartctl(t *testing.T, v *vm, r *record) []*comparison {
	t.Helper()
	c := &comparison{ours: r.latest("smart")}
	read := 0
	for line := range strings.Lines(v.run("/usr/sbin/smartctl", "--scan")) {
		path, _, _ := strings.Cut(line, " ")
		device := strings.TrimPrefix(path, "/dev/")
		o := parseObject(t, v.try("/usr/sbin/smartctl", "--json=c", "-a", path).Stdout)
		read++
		c.want(1, "smartctl_device", "device", device, "serial_number", o.text("serial_number"))
		for _, f := range smartFields() {
			if x, ok := o.number(strings.Fields(f.path)...); ok {
				c.want(x*f.factor, f.name, append([]string{"device", device}, f.labels...)...)
			}
		}
		attributes, _ := o["ata_smart_attributes"].(map[string]any)
		table, _ := attributes["table"].([]any)
		for _, row := range table {
			attribute := object(row.(map[string]any))
			for kind, path := range map[string][]string{"value": {"value"}, "worst": {"worst"}, "thresh": {"thresh"}, "raw": {"raw", "value"}} {
				if x, ok := attribute.number(path...); ok {
					c.want(x, "smartctl_device_attribute", "device", device, "attribute_name", attribute.text("name"), "attribute_value_type", kind)
				}
			}
		}
	}
	c.want(float64(read), "smartctl_devices")
	if c.equal < 100 || read < 6 {
		c.problem("only %d values of %d disks equal smartctl's", c.equal, read)
	}
	return []*comparison{c}
}

// compareNVMe compares the probes host and smart with nvme-cli.
func compareNVMe(t *testing.T, v *vm, r *record) []*comparison {
	t.Helper()
	smart, host := &comparison{ours: r.latest("smart")}, &comparison{ours: r.latest("host")}
	var list struct{ Devices []object }
	if err := json.Unmarshal([]byte(v.run("/usr/sbin/nvme", "list", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Devices {
		namespace := strings.TrimPrefix(o.text("DevicePath"), "/dev/")
		device := namespace[:strings.LastIndexByte(namespace, 'n')]
		host.want(1, "node_nvme_info", "device", device, "serial", o.text("SerialNumber"), "model", o.text("ModelNumber"), "firmware_revision", o.text("Firmware"))
		size, _ := o.number("PhysicalSize")
		host.want(size, "node_nvme_namespace_size_bytes", "device", device)
		host.want(size, "hw_physical_disk_size_bytes", "hw_name", device)
		log := parseObject(t, v.run("/usr/sbin/nvme", "smart-log", "-o", "json", "/dev/"+device))
		number := func(key string) float64 {
			x, ok := log.number(key)
			if !ok {
				t.Errorf("nvme smart-log has no %s", key)
			}
			return x
		}
		host.want(number("temperature")-273.15, "node_hwmon_temp_celsius", "chip", "nvme_"+device) // the log has whole kelvins
		smart.want(number("temperature")-273, "smartctl_device_temperature", "device", device, "temperature_type", "current")
		smart.want(number("percent_used"), "smartctl_device_percentage_used", "device", device)
		smart.want(number("avail_spare"), "smartctl_device_available_spare", "device", device)
		smart.want(number("critical_warning"), "smartctl_device_critical_warning", "device", device)
		smart.want(number("media_errors"), "smartctl_device_media_errors", "device", device)
		smart.want(number("data_units_read")*512000, "smartctl_device_bytes_read", "device", device)
	}
	if len(list.Devices) != 2 {
		t.Errorf("nvme list names %d disks, not 2", len(list.Devices))
	}
	return []*comparison{host, smart}
}

// compareIPMI compares the probe ipmi with ipmitool.
func compareIPMI(t *testing.T, v *vm, r *record) []*comparison {
	t.Helper()
	c := &comparison{ours: r.latest("ipmi")}
	// "full" leaves out the records of the controller that is not there.
	rows, err := csv.NewReader(strings.NewReader(v.run("/usr/sbin/ipmitool", "-c", "sdr", "list", "full"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{
		"degrees C": "ipmi_temperature_celsius", "RPM": "ipmi_fan_speed_rpm", "Volts": "ipmi_voltage_volts", "Amps": "ipmi_current_amperes", "Watts": "ipmi_power_watts",
	}
	for _, row := range rows {
		x, err := strconv.ParseFloat(row[1], 64)
		if err != nil || names[row[2]] == "" {
			t.Errorf("ipmitool says %q", row)
			continue
		}
		c.want(x, names[row[2]], "name", row[0])
	}
	if len(rows) != len(sensors()) {
		t.Errorf("ipmitool reads %d sensors, not %d", len(rows), len(sensors()))
	}
	said := func(args ...string) map[string]string {
		all := map[string]string{}
		for line := range strings.Lines(v.run(append([]string{"/usr/sbin/ipmitool"}, args...)...)) {
			if key, value, ok := strings.Cut(line, ":"); ok {
				all[strings.TrimSpace(key)] = strings.TrimSpace(value)
			}
		}
		return all
	}
	c.want(1, "ipmi_bmc_info", "firmware_revision", said("mc", "info")["Firmware Revision"], "manufacturer_id", said("mc", "info")["Manufacturer ID"])
	var entries, free float64
	log := said("sel", "info")
	if _, err := fmt.Sscan(log["Entries"], &entries); err != nil {
		t.Error(err)
	}
	if _, err := fmt.Sscan(log["Free Space"], &free); err != nil {
		t.Error(err)
	}
	c.want(entries, "ipmi_sel_logs_count")
	c.want(free, "ipmi_sel_free_space_bytes")
	chassis := said("chassis", "status")
	state := map[string]float64{"on": 1, "off": 0, "true": 0, "false": 1} // of faults, 1 means that there is none
	c.want(state[chassis["System Power"]], "ipmi_chassis_power_state")
	c.want(state[chassis["Drive Fault"]], "ipmi_chassis_drive_fault_state")
	c.want(state[chassis["Cooling/Fan Fault"]], "ipmi_chassis_cooling_fault_state")
	c.want(1, "hw_component_info", "hw_id", "enclosure", "hw_serial_number", "LABMACHINE")
	return []*comparison{c}
}

// setSensors gives each sensor of the management controller its first reading, by Set Sensor Reading (IPMI 2.0, 35.17).
func setSensors(v *vm) {
	for _, s := range sensors() {
		v.setSensor(s.number, s.raw)
	}
}

func (v *vm) setSensor(number, raw byte) {
	v.t.Helper()
	v.run("/usr/sbin/ipmitool", "raw", "4", "0x30", strconv.Itoa(int(number)), "1", strconv.Itoa(int(raw)))
}
