package nvidia

import (
	"strings"

	"hwsagent/probes/hw"
)

// powerDraw are the paths of a GPU's power, in the order of their worth.
var powerDraw = []string{"gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw", "power_readings/power_draw", "gpu_power_readings/average_power_draw"}

// repairs maps a GPU's reports about repairs of its memory to states.
var repairs = []struct {
	path, name string
	yes        hw.Status
}{
	{"retired_pages/pending_retirement", "page_retirement", hw.Degraded},
	{"retired_pages/pending_blacklist", "page_blacklist", hw.Degraded},
	{"remapped_rows/remapped_row_pending", "row_remapping", hw.Degraded},
	{"remapped_rows/remapped_row_failure", "row_remapping_failed", hw.Degraded | hw.PredictedFailure},
	{"ecc_errors/channel_repair_pending", "channel", hw.Degraded},
	{"ecc_errors/tpc_repair_pending", "tpc", hw.Degraded},
	{"ecc_errors/unrepairable_memory", "unrepairable_memory", hw.Degraded | hw.PredictedFailure},
	{"gpu_reset_status/reset_required", "reset", hw.Failed},
	{"gpu_reset_status/drain_and_reset_recommended", "drain_and_reset", hw.Degraded},
}

// lost are words in place of values for a GPU that does not answer its driver.
var lost = []string{"GPU is lost", "GPU requires reset", "Unknown Error", "ERR!"}

// slowdowns are reasons for lower clocks that are problems: heat, power supply.
var slowdowns = []string{"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"}

// status returns the state of a GPU.
func status(g *node) hw.Status {
	st := hw.OK
	for _, path := range [...]string{"temperature/gpu_temp", "fan_speed", "performance_state", "fb_memory_usage/total", "product_name"} {
		if k := g.at(path); k != nil {
			for _, word := range lost {
				if strings.Contains(k.text, word) {
					st = hw.Failed
				}
			}
		}
	}
	for _, r := range repairs {
		if g.say(r.path) == "Yes" {
			st = st.Join(r.yes)
		}
	}
	switch action := g.say("gpu_recovery_action"); { // None, Reset, Reboot, Drain P2P, Drain and Reset
	case strings.HasPrefix(action, "Drain"):
		st = st.Join(hw.Degraded)
	case action != "":
		st = st.Join(hw.Failed)
	}
	for _, reason := range slowdowns {
		if g.say("clocks_event_reasons/clocks_event_reason_"+reason, "clocks_throttle_reasons/clocks_throttle_reason_"+reason) == "Active" {
			st = st.Join(hw.Degraded)
		}
	}
	return st
}

// components returns a GPU, its fan and its instances in the vocabulary of package hw.
func components(g *node, driver string) []hw.Report {
	id := "gpu:" + identity(g)
	gpu := hw.Report{Status: status(g), Component: hw.Component{Kind: hw.GPU, ID: id, Name: strings.TrimSpace(g.say("product_name") + " " + strings.ToLower(strings.TrimPrefix(g.id, "0000"))), Facts: []string{
		hw.Vendor, "NVIDIA", hw.Model, g.say("product_name"), hw.Serial, g.say("serial"), hw.UUID, g.say("uuid"), hw.Firmware, g.say("vbios_version"), hw.Driver, driver, hw.Device, address(g.id)}}}
	add := func(m hw.Metric, attributes []string, paths ...string) {
		if v, ok := g.number(paths...); ok {
			gpu.Add(m, v, attributes...)
		}
	}
	for _, t := range [...]struct{ task, engine string }{{"general", "gpu"}, {"encoder", "encoder"}, {"decoder", "decoder"}} {
		add(hw.GPUUtilization, []string{hw.LabelGPUTask, t.task}, "utilization/"+t.engine+"_util")
	}
	memory(&gpu, g)
	add(hw.TemperatureNow, []string{hw.LabelLocation, "gpu"}, "temperature/gpu_temp")
	add(hw.TemperatureNow, []string{hw.LabelLocation, "memory"}, "temperature/memory_temp")
	add(hw.TemperatureLimit, []string{hw.LabelLocation, "gpu", hw.LabelLimitType, "high.degraded"}, "temperature/gpu_temp_slow_threshold")
	add(hw.TemperatureLimit, []string{hw.LabelLocation, "gpu", hw.LabelLimitType, "high.critical"}, "temperature/gpu_temp_max_threshold")
	add(hw.TemperatureLimit, []string{hw.LabelLocation, "memory", hw.LabelLimitType, "high.critical"}, "temperature/gpu_temp_max_mem_threshold")
	add(hw.Power, nil, powerDraw...)
	add(hw.PowerLimit, []string{hw.LabelLimitType, "max"}, "gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit", "power_readings/power_limit")
	add(hw.VoltageNow, nil, "voltage/graphics_volt")
	each(g, "volatile", func(kind string, v float64) { gpu.Add(hw.Errors, v, "error_type", "ecc_"+kind) })
	all := []hw.Report{gpu}
	if v, ok := g.number("fan_speed"); ok {
		fan := hw.Report{Component: hw.Component{Kind: hw.Fan, ID: id + "/fan", Name: "fan", Parent: id}}
		fan.Add(hw.FanSpeedRatio, v)
		all = append(all, fan)
	}
	for _, m := range g.at("mig_devices").all("mig_device") {
		part := hw.Report{Component: hw.Component{Kind: hw.GPU, ID: id + "/mig:" + instance(m), Name: "instance " + instance(m), Parent: id}}
		memory(&part, m)
		all = append(all, part)
	}
	return all
}

// address returns the kernel's form of a PCI address, with a domain of four digits.
func address(id string) string {
	low := strings.ToLower(id)
	if len(low) == len("00000000:02:00.0") {
		low = strings.TrimPrefix(low, "0000")
	}
	return low
}

// memory adds the size and the use of the memory of a GPU or an instance.
func memory(p *hw.Report, n *node) {
	total, known := n.number("fb_memory_usage/total")
	used, measured := n.number("fb_memory_usage/used")
	if known {
		p.Add(hw.GPUMemoryLimit, total)
	}
	if measured {
		p.Add(hw.GPUMemoryUsage, used)
	}
	if known && measured && total > 0 {
		p.Add(hw.GPUMemoryUtilization, used/total)
	}
}

// identity returns the ID of a GPU: its UUID, or else its bus address.
func identity(g *node) string {
	if uuid := g.say("uuid"); uuid != "" {
		return uuid
	}
	return "pci:" + strings.ToLower(g.id)
}
