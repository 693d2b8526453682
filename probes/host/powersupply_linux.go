package host

// newPowerSupply reads batteries, chargers and mains (the kernel's
// Documentation/ABI/testing/sysfs-class-power: microvolts, microamperes, tenths of a
// degree, seconds).
func newPowerSupply(e *environment) reader {
	const micro, tenth = 1e6, 10
	var attrs []attr
	group := func(div float64, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			file, name := pairs[i], pairs[i+1]
			attrs = append(attrs, attr{file, gauge("node_power_supply_"+name, "The power supply's attribute "+file+", in base units."), div})
		}
	}
	group(0,
		"authentic", "authentic", "calibrate", "calibrate", "capacity", "capacity",
		"capacity_alert_max", "capacity_alert_max", "capacity_alert_min", "capacity_alert_min",
		"cycle_count", "cyclecount", "online", "online", "present", "present",
		"time_to_empty_now", "time_to_empty_seconds", "time_to_full_now", "time_to_full_seconds")
	group(micro,
		"current_boot", "current_boot", "current_max", "current_max", "current_now", "current_ampere",
		"energy_empty", "energy_empty", "energy_empty_design", "energy_empty_design", "energy_full", "energy_full",
		"energy_full_design", "energy_full_design", "energy_now", "energy_watthour",
		"voltage_boot", "voltage_boot", "voltage_max", "voltage_max", "voltage_max_design", "voltage_max_design",
		"voltage_min", "voltage_min", "voltage_min_design", "voltage_min_design", "voltage_now", "voltage_volt",
		"voltage_ocv", "voltage_ocv", "charge_control_limit", "charge_control_limit",
		"charge_control_limit_max", "charge_control_limit_max", "charge_counter", "charge_counter",
		"charge_empty", "charge_empty", "charge_empty_design", "charge_empty_design", "charge_full", "charge_full",
		"charge_full_design", "charge_full_design", "charge_now", "charge_ampere",
		"charge_term_current", "charge_term_current", "constant_charge_current", "constant_charge_current",
		"constant_charge_current_max", "constant_charge_current_max", "constant_charge_voltage", "constant_charge_voltage",
		"constant_charge_voltage_max", "constant_charge_voltage_max", "precharge_current", "precharge_current",
		"input_current_limit", "input_current_limit", "power_now", "power_watt")
	group(tenth,
		"temp", "temp_celsius", "temp_alert_max", "temp_alert_max_celsius", "temp_alert_min", "temp_alert_min_celsius",
		"temp_ambient", "temp_ambient_celsius", "temp_ambient_max", "temp_ambient_max_celsius",
		"temp_ambient_min", "temp_ambient_min_celsius", "temp_max", "temp_max_celsius", "temp_min", "temp_min_celsius")
	info := gauge("node_power_supply_info", "What the power supply is and how it is; always 1.")

	exclude := e.pattern(&e.PowerSupplyExclude)
	d := &devices{dir: e.sys("class/power_supply"), guard: guard[samples]{limit: e.limit, panics: e.panics}}
	d.wanted = func(name string) bool { return !exclude.MatchString(name) }
	d.query = func(name string) samples {
		var s samples
		dir := d.dir + "/" + name
		s.addAttrs(dir, attrs, "power_supply", name)
		s.add(info, 1, append([]string{"power_supply", name}, texts(dir,
			"capacity_level", "capacity_level", "charge_type", "charge_type", "health", "health",
			"manufacturer", "manufacturer", "model_name", "model_name", "scope", "scope",
			"serial_number", "serial_number", "status", "status", "technology", "technology",
			"type", "type", "usb_type", "usb_type")...)...)
		return s
	}
	return d
}
