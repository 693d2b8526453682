//go:build linux

package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// TestGPUsOverTime: Intel's power is its energy over time, and its load the time in which it was not idle; AMD's energy is its power over
// time. A counter that begins anew gives no value for one round, and a GPU that is gone is forgotten.
func TestGPUsOverTime(t *testing.T) {
	c := server(t, unchanged)
	c.Collectors = []string{"hw_gpus"}
	now := time.Unix(1_700_000_000, 0)
	p := mustNew(t, c)
	gpus, _ := p.collectors[0].reader.(*hardwareGPUs)
	gpus.now = func() time.Time { return now }
	put := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(c.SysPath, "devices", file), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	values := func() map[string]float64 {
		t.Helper()
		r := probes.NewRound(0)
		if err := p.Collect(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		got := make(map[string]float64)
		for _, s := range r.Samples() {
			if i := slices.Index(s.Labels, hw.LabelName); i >= 0 {
				switch s.Family.Name {
				case "hw_power_watts", "hw_energy_joules_total", "hw_gpu_utilization_ratio":
					got[s.Labels[i+1]+" "+s.Family.Name] = s.Value
				}
			}
		}
		now = now.Add(10 * time.Second)
		return got
	}
	const amd, xe, i915 = "pci0000:40/0000:40:01.1/0000:43:00.0/", "pci0000:50/0000:50:01.0/0000:51:00.0/", "pci0000:60/0000:60:01.0/0000:61:00.0/"
	steps := []struct {
		change func()
		want   map[string]float64
	}{
		{func() {}, map[string]float64{
			"card0 hw_energy_joules_total": 0, "card0 hw_gpu_utilization_ratio": 0.87, "card0 hw_power_watts": 212,
			"card1 hw_energy_joules_total": 5000, "card2 hw_energy_joules_total": 1000}},
		{func() {
			put(xe+"hwmon/hwmon11/energy1_input", "6900000000")
			put(xe+"tile0/gt0/gtidle/idle_residency_ms", "92500") // idle for a quarter of the time
			put(i915+"hwmon/hwmon12/energy1_input", "1050000000")
			put(i915+"drm/card2/gt/gt0/rc6_residency_ms", "17500") // more than has passed: it was read late
		}, map[string]float64{
			"card0 hw_energy_joules_total": 2120, "card0 hw_gpu_utilization_ratio": 0.87, "card0 hw_power_watts": 212,
			"card1 hw_energy_joules_total": 6900, "card1 hw_power_watts": 190, "card1 hw_gpu_utilization_ratio": 1, // gt1 was never idle
			"card2 hw_energy_joules_total": 1050, "card2 hw_power_watts": 5, "card2 hw_gpu_utilization_ratio": 0}},
		{func() {
			put(xe+"hwmon/hwmon11/energy1_input", "1000000")
			put(xe+"tile0/gt0/gtidle/idle_residency_ms", "0")
			put(xe+"tile0/gt1/gtidle/idle_residency_ms", "0")
			put(amd+"hwmon/hwmon10/power1_average", "100000000")
			if err := os.Remove(filepath.Join(c.SysPath, "class/drm/card2")); err != nil {
				t.Fatal(err)
			}
		}, map[string]float64{
			"card0 hw_energy_joules_total": 3120, "card0 hw_gpu_utilization_ratio": 0.87, "card0 hw_power_watts": 100,
			"card1 hw_energy_joules_total": 1}},
	}
	for i, step := range steps {
		step.change()
		if d := cmp.Diff(step.want, values()); d != "" {
			t.Errorf("round %d (-want +got):\n%s", i, d)
		}
	}
	if len(gpus.before) != 2 {
		t.Errorf("%d GPUs are remembered, want 2", len(gpus.before))
	}
}

// TestGPUsAndTheirSensors: each reading appears once, its sensors are parts of the GPU, and a GPU of NVIDIA's driver is left to its own probe.
func TestGPUsAndTheirSensors(t *testing.T) {
	got := hardwareOf(t, server(t, unchanged))
	for line, times := range map[string]int{
		`hw_power_watts{hw_id="pci:0000:43:00.0",hw_name="card0",hw_parent="enclosure",hw_type="gpu"} 212`:                                  1,
		`hw_power_limit_watts{hw_id="pci:0000:43:00.0",hw_limit_type="max",hw_name="card0",hw_parent="enclosure",hw_type="gpu"} 300`:        1,
		`hw_power_limit_watts{hw_id="pci:0000:51:00.0",hw_limit_type="max",hw_name="card1",hw_parent="enclosure",hw_type="gpu"} 190`:        1,
		`hw_power_limit_watts{hw_id="pci:0000:61:00.0"`:                                                                                     0, // 0: no limit
		`hw_errors_total{error_type="corrected",hw_id="pci:0000:43:00.0",hw_name="card0",hw_parent="enclosure",hw_type="gpu"} 22`:           1,
		`hw_errors_total{error_type="uncorrected",hw_id="pci:0000:43:00.0",hw_name="card0",hw_parent="enclosure",hw_type="gpu"} 1`:          1,
		`hw_gpu_memory_utilization_ratio{hw_id="pci:0000:43:00.0",hw_name="card0",hw_parent="enclosure"} 0.2500`:                            1,
		`hw_temperature_celsius{hw_id="pci:0000:43:00.0/amdgpu/temp2",hw_name="amdgpu junction",hw_parent="pci:0000:43:00.0"} 51`:           1,
		`hw_temperature_celsius{hw_id="pci:0000:51:00.0/xe/temp3",hw_name="xe vram",hw_parent="pci:0000:51:00.0"} 52`:                       1,
		`hw_fan_speed_rpm{hw_id="pci:0000:43:00.0/amdgpu/fan1",hw_name="amdgpu fan1",hw_parent="pci:0000:43:00.0"} 1320`:                    1,
		`hw_energy_joules_total{hw_id="pci:0000:61:00.0/i915_gt0/energy1",hw_name="i915_gt0 energy1",hw_parent="pci:0000:61:00.0",hw_type=`: 1, // of one part of the card
		`amdgpu/power1`: 0, `xe/energy1`: 0, `/i915/energy1`: 0, `0000:71:00.0`: 0,
	} {
		if n := strings.Count(got, line); n != times {
			t.Errorf("%s is there %d times, want %d", line, n, times)
		}
	}
}
