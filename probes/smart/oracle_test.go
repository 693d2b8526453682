//go:build linux

package smart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hwsagent/probes"
)

// fact is a number of a capture, where in hw_* it belongs, and as which value.
type fact struct {
	path   string // in the JSON, with dots
	metric string // with the label that tells it from others, as NAME or NAME VALUE-OF-A-LABEL
	value  func(v float64) float64
}

func same(v float64) float64 { return v }

var facts = []fact{
	{"temperature.current", "hw_temperature_celsius", same},
	{"nvme_smart_health_information_log.media_errors", "hw_errors_total media", same},
	{"nvme_smart_health_information_log.percentage_used", "hw_physical_disk_endurance_utilization_ratio remaining", func(v float64) float64 { return max(0, 1-v/100) }},
	{"scsi_error_counter_log.read.total_uncorrected_errors", "hw_errors_total read", same},
	{"scsi_error_counter_log.write.total_uncorrected_errors", "hw_errors_total write", same},
	{"temperature.current", "smartctl_device_temperature current", same},
	{"user_capacity.bytes", "smartctl_device_capacity_bytes", same},
	{"power_on_time.hours", "smartctl_device_power_on_seconds", func(v float64) float64 { return v * 3600 }},
	{"power_cycle_count", "smartctl_device_power_cycle_count", same},
	{"scsi_grown_defect_list", "smartctl_scsi_grown_defect_list", same},
	{"nvme_smart_health_information_log.data_units_read", "smartctl_device_bytes_read", func(v float64) float64 { return v * 512_000 }},
	{"nvme_smart_health_information_log.data_units_written", "smartctl_device_bytes_written", func(v float64) float64 { return v * 512_000 }},
	{"nvme_smart_health_information_log.available_spare", "smartctl_device_available_spare", same},
	{"nvme_smart_health_information_log.critical_warning", "smartctl_device_critical_warning", same},
}

// elsewhere are further paths from which a metric may come, for other protocols and versions of smartctl.
var elsewhere = map[string][]string{
	"hw_physical_disk_endurance_utilization_ratio remaining": {"endurance_used.current_percent", "scsi_percentage_used_endurance_indicator", "ata_smart_attributes.table"},
	"smartctl_device_power_cycle_count":                      {"scsi_start_stop_cycle_counter.accumulated_start_stop_cycles"},
	"smartctl_device_bytes_read":                             {"scsi_error_counter_log.read.gigabytes_processed"},
	"smartctl_device_bytes_written":                          {"scsi_error_counter_log.write.gigabytes_processed"},
}

// at is the value at a path of a JSON, nil if there is none.
func at(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// TestOracle reads captures of smartctl from a directory that is not in the repository, CORPUS. Each reading that a
// simple search of the JSON finds must be there once, and there must be no other hw_* samples.
func TestOracle(t *testing.T) {
	root := os.Getenv("CORPUS")
	if root == "" {
		t.Skip("needs captures of smartctl in CORPUS: run by hand, see internal/tools/README.md")
	}
	var files []string
	for _, pattern := range []string{"testdata/*.json", "smartctl_exporter/testdata/*.json", "telegraf/plugins/inputs/smartctl/testcases_device/*/response.json"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	readings := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal(text, &v); err != nil || at(v, "smartctl.exit_status") == nil {
			t.Logf("%s is no capture: %v", file, err)
			continue
		}
		t.Run(strings.TrimPrefix(file, root), func(t *testing.T) { readings += judge(t, text, v) })
	}
	if len(files) == 0 {
		t.Skipf("there are no captures of smartctl in %s", root)
	}
	t.Logf("%d captures, %d readings", len(files), readings)
}

// samplesOf are the values that a capture becomes, by metric, by metric and value of a label, and by metric and label=value.
func samplesOf(t *testing.T, text []byte) map[string][]float64 {
	t.Helper()
	c, err := parseCapture(text)
	if err != nil {
		t.Fatal(err)
	}
	p := newProbe(t, Config{})
	r := probes.NewRound(0)
	p.add(r, Device{Device: "/dev/x"}, answer{capture: c}, map[string]bool{})
	got, series := map[string][]float64{}, map[string]bool{}
	for _, s := range r.Samples() {
		key := fmt.Sprint(s.Family.Name, s.Labels)
		if series[key] {
			t.Errorf("%s is there twice", key)
		}
		series[key] = true
		got[s.Family.Name] = append(got[s.Family.Name], s.Value)
		for i := 1; i < len(s.Labels); i += 2 {
			for _, key := range []string{s.Labels[i], s.Labels[i-1] + "=" + s.Labels[i]} {
				got[s.Family.Name+" "+key] = append(got[s.Family.Name+" "+key], s.Value)
			}
		}
	}
	return got
}

// judge compares the samples of a capture with its JSON, and returns the number of compared readings.
func judge(t *testing.T, text []byte, v map[string]any) int {
	t.Helper()
	got := samplesOf(t, text)
	expect := func(metric string, want ...float64) {
		if fmt.Sprint(got[metric]) != fmt.Sprint(want) && len(got[metric])+len(want) > 0 {
			t.Errorf("%s is %v, want %v", metric, got[metric], want)
		}
	}
	n := 0
	for _, f := range facts {
		number, ok := at(v, f.path).(float64)
		if !ok {
			if !slices.ContainsFunc(elsewhere[f.metric], func(path string) bool { return at(v, path) != nil }) {
				expect(f.metric)
			}
			continue
		}
		n++
		want := f.value(number)
		if minutes, ok := at(v, "power_on_time.minutes").(float64); ok && f.path == "power_on_time.hours" {
			want += minutes * 60
		}
		expect(f.metric, want)
	}
	for _, size := range []string{"nvme_total_capacity", "user_capacity.bytes"} {
		if bytes, ok := at(v, size).(float64); ok {
			expect("hw_physical_disk_size_bytes", bytes)
			break
		}
	}
	n += judgeAttributes(t, v, got)
	if passed, ok := at(v, "smart_status.passed").(bool); ok {
		want := 0.0
		if passed {
			want = 1
		}
		expect("smartctl_device_smart_status", want)
		ill := 0.0
		for _, state := range []string{"predicted_failure", "degraded", "failed"} {
			for _, v := range got["hw_status "+state] {
				ill += v
			}
		}
		if passed != (ill == 0) {
			t.Errorf("passed is %t, and %v of its ill states are 1", passed, ill)
		}
	}
	serial, _ := at(v, "serial_number").(string)
	if serial != "" && strings.Trim(serial, serial[:1]) == "" {
		return n // XXXXXXX in the place of a serial number
	}
	if n := len(got["hw_component_info hw_serial_number="+serial]); serial != "" && n != 1 {
		t.Errorf("the serial number %q is in %d hw_component_info", serial, n)
	}
	return n
}

// judgeAttributes compares the ATA attributes: each of the four that go before failures once in hw_*, all of them in smartctl_*.
func judgeAttributes(t *testing.T, v map[string]any, got map[string][]float64) (n int) {
	t.Helper()
	table, _ := at(v, "ata_smart_attributes.table").([]any)
	for _, one := range table {
		id, _ := at(one, "id").(float64)
		want, _ := at(one, "raw.value").(float64)
		name := map[float64]string{5: "reallocated_sectors", 187: "reported_uncorrectable", 197: "pending_sectors", 198: "offline_uncorrectable"}[id]
		if have := got["hw_physical_disk_smart_ratio "+name]; name != "" && fmt.Sprint(have) != fmt.Sprint([]float64{want}) {
			t.Errorf("%s is %v, want %v", name, have, want)
		}
		n++
		if have := len(got["smartctl_device_attribute attribute_id="+strconv.Itoa(int(id))]); have != 4 {
			t.Errorf("the attribute %v has %d values, want value, worst, thresh and raw", id, have)
		}
	}
	return n
}
