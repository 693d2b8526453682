package redfish

import (
	"strings"
	"testing"
)

// TestTwoSchemas: of two resources for one part each reading is sent once and the worse health counts; what is switched off has no reading; a
// limit is no meter; a processor's ports are read.
func TestTwoSchemas(t *testing.T) {
	for file, c := range map[string]struct{ has, lacks []string }{
		"null-sensor.json": {
			has:   []string{"hw_temperature_celsius [] 60", "hw_temperature_celsius [] 55", "hw_temperature_celsius [] 41"},
			lacks: []string{`"CPU Temperature"`, `"j1" in`},
		},
		"powered-off.json": {has: []string{"hw_temperature_celsius [] 21"}, lacks: []string{"hw_fan_speed", " -1"}},
		"two-healths.json": {has: []string{"degraded+predicted_failure", "hw_temperature_celsius [] 38"}, lacks: []string{"SmartStorage", "P408i"}},
		"nvlink-down.json": {has: []string{`"GPU_0 NVLink_0" in "Systems/1/Processors/GPU_0": failed`, "hw_network_up [] 0"}},
		"new-only.json":    {has: []string{"hw_power_limit_watts", "hw_host_power_watts"}, lacks: []string{"power_meter"}},
	} {
		got := text(reports(load(t, "cases/"+file).walk(t)))
		for _, want := range c.has {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %s in\n%s", file, want, got)
			}
		}
		for _, not := range c.lacks {
			if strings.Contains(got, not) {
				t.Errorf("%s: there is %s in\n%s", file, not, got)
			}
		}
		if n := strings.Count(got, "hw_temperature_celsius [] 41"); n > 1 {
			t.Errorf("%s: 41 °C is there %d times", file, n)
		}
	}
}

// TestPartWords: names in two schemas differ by the words for what is measured.
func TestPartWords(t *testing.T) {
	for name, want := range map[string]string{"CPU1 Temp": "cpu1", "CPU1": "cpu1", "01-Inlet Ambient": "01 inlet ambient", "System Board Inlet Temperature": "system board inlet", "Temp": ""} {
		if got := partWords(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
