package nvidia

import (
	"strings"

	"hwsagent/probes"
)

// writer adds the nvidia_* metrics of one GPU.
type writer struct {
	families
	round *probes.Round
	uuid  string
}

func (w *writer) set(name string, v float64, labels ...string) {
	w.round.Add(w.families[name], v, append([]string{"uuid", w.uuid}, labels...)...)
}

// from adds the number at a path if there is one.
func (w *writer) from(g *node, path, name string, labels ...string) {
	if v, ok := g.number(path); ok {
		w.set(name, v, labels...)
	}
}

// flag adds 1 for on or yes, 0 for off or no.
func (w *writer) flag(g *node, path, name string, labels ...string) {
	switch g.say(path) {
	case "Enabled", "Yes", "Active":
		w.set(name, 1, labels...)
	case "Disabled", "No", "Not Active":
		w.set(name, 0, labels...)
	}
}

// native adds the values that have no place in hw_*.
func (w *writer) native(g *node) {
	w.set("gpu_info", 1, "name", g.say("product_name"), "pci_bus_id", g.id, "minor_number", g.say("minor_number"), "serial", g.say("serial"), "vbios_version", g.say("vbios_version"))
	for _, clock := range [...]string{"graphics", "sm", "mem", "video"} {
		w.from(g, "clocks/"+clock+"_clock", "gpu_clock_hertz", "clock", clock)
		w.from(g, "max_clocks/"+clock+"_clock", "gpu_clock_hertz", "clock", "max_"+clock)
	}
	if v, ok := number(strings.TrimPrefix(g.say("performance_state"), "P")); ok {
		w.set("gpu_performance_state", v)
	}
	w.throttling(g)
	for _, engine := range [...]string{"gpu", "memory", "encoder", "decoder", "jpeg", "ofa"} {
		w.from(g, "utilization/"+engine+"_util", "gpu_utilization_ratio", "engine", engine)
	}
	for _, kind := range [...]string{"total", "used"} {
		w.from(g, "bar1_memory_usage/"+kind, "gpu_bar1_memory_bytes", "kind", kind)
	}
	for _, limit := range [...]struct{ kind, older string }{ // what older drivers call it
		{"current", "enforced_power_limit"}, {"requested", "power_limit"}, {"default", "default_power_limit"}, {"min", "min_power_limit"}, {"max", "max_power_limit"},
	} {
		if v, ok := g.number("gpu_power_readings/"+limit.kind+"_power_limit", "power_readings/"+limit.older); ok {
			w.set("gpu_power_limit_watts", v, "kind", limit.kind)
		}
	}
	w.from(g, "temperature/gpu_temp_tlimit", "gpu_temperature_margin_celsius")
	w.memory(g)
	link := "pci/pci_gpu_link_info/"
	for _, kind := range [...]string{"current", "max"} {
		w.from(g, link+"pcie_gen/"+kind+"_link_gen", "gpu_pcie_link_generation", "kind", kind)
		w.from(g, link+"link_widths/"+kind+"_link_width", "gpu_pcie_link_lanes", "kind", kind)
	}
	w.from(g, "pci/replay_counter", "gpu_pcie_replays_total")
	w.from(g, "pci/tx_util", "gpu_pcie_throughput_bytes_per_second", "direction", "transmit")
	w.from(g, "pci/rx_util", "gpu_pcie_throughput_bytes_per_second", "direction", "receive")
	w.from(g, "encoder_stats/session_count", "gpu_encoder_sessions")
	w.flag(g, "mig_mode/current_mig", "gpu_mig_mode")
	for _, m := range g.at("mig_devices").all("mig_device") {
		w.from(m, "device_attributes/shared/multiprocessor_count", "gpu_mig_multiprocessors", "mig", instance(m))
	}
}

// throttling adds the reasons for lower clocks. Drivers before 535 call them throttle reasons, later ones event reasons.
func (w *writer) throttling(g *node) {
	for _, word := range [...]string{"clocks_event_reason", "clocks_throttle_reason"} {
		if reasons := g.at(word + "s"); reasons != nil {
			for _, r := range reasons.kids {
				w.flag(reasons, r.name, "gpu_throttle_reason", "reason", strings.TrimPrefix(r.name, word+"_"))
			}
		}
	}
	const counters = "clocks_event_reasons_counters"
	if all := g.at(counters); all != nil {
		for _, r := range all.kids {
			w.from(all, r.name, "gpu_throttle_seconds_total", "reason", strings.TrimPrefix(r.name, counters+"_"))
		}
	}
}

// memory adds the errors in the GPU's memory, and their repairs.
func (w *writer) memory(g *node) {
	w.flag(g, "ecc_mode/current_ecc", "gpu_ecc_mode")
	for _, scope := range [...]string{"volatile", "aggregate"} {
		each(g, scope, func(kind string, v float64) { w.set("gpu_ecc_errors_total", v, "scope", scope, "kind", kind) })
	}
	w.from(g, "retired_pages/multiple_single_bit_retirement/retired_count", "gpu_retired_pages", "cause", "single_bit")
	w.from(g, "retired_pages/double_bit_retirement/retired_count", "gpu_retired_pages", "cause", "double_bit")
	w.from(g, "remapped_rows/remapped_row_corr", "gpu_remapped_rows", "cause", "correctable")
	w.from(g, "remapped_rows/remapped_row_unc", "gpu_remapped_rows", "cause", "uncorrectable")
	for _, r := range repairs {
		w.flag(g, r.path, "gpu_repair_pending", "repair", r.name)
	}
}

// each calls add with the counts of errors in memory. Drivers differ in their names: single_bit/total before 418,
// dram_correctable and so on after.
func each(g *node, scope string, add func(kind string, v float64)) {
	counts := g.at("ecc_errors/" + scope)
	if counts == nil {
		return
	}
	for _, c := range counts.kids {
		if v, ok := number(c.text); ok {
			add(c.name, v)
		} else if v, ok := c.number("total"); ok {
			add(c.name, v)
		}
	}
}

// processes adds the memory of each process; it adds up two with the same number and name.
func (w *writer) processes(g *node) {
	type process struct{ pid, name, kind string }
	sums := make(map[process]float64)
	var order []process
	for _, p := range g.at("processes").all("process_info") {
		v, ok := p.number("used_memory")
		if !ok {
			continue
		}
		key := process{p.say("pid"), p.say("process_name"), p.say("type")}
		if _, there := sums[key]; !there {
			order = append(order, key)
		}
		sums[key] += v
	}
	for _, key := range order {
		w.set("gpu_process_memory_bytes", sums[key], "pid", key.pid, "process", key.name, "type", key.kind)
	}
}

// instance returns the label of an instance of a divided GPU.
func instance(m *node) string { return m.say("gpu_instance_id") + "/" + m.say("compute_instance_id") }
