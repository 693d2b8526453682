package host

// newThermal reads thermal zones and cooling devices.
func newThermal(e *environment) reader {
	temp := gauge("node_thermal_zone_temp", "Temperature of the zone, in degrees Celsius.")
	cooling := []attr{
		{"cur_state", gauge("node_cooling_device_cur_state", "How much the device cools now."), 0},
		{"max_state", gauge("node_cooling_device_max_state", "How much the device can cool."), 0},
	}
	d := &devices{dir: e.sys("class/thermal"), guard: guard[samples]{limit: e.limit, panics: e.panics}}
	d.query = func(name string) samples {
		var s samples
		dir := d.dir + "/" + name
		if zone, ok := unit(name, "thermal_zone"); ok {
			if v, ok := number(dir + "/temp"); ok {
				s.add(temp, v/1000, "type", text(dir+"/type"), "zone", zone)
			}
		} else if device, ok := unit(name, "cooling_device"); ok {
			s.addAttrs(dir, cooling, "name", device, "type", text(dir+"/type"))
		}
		return s
	}
	return d
}

// newWatchdog reads the watchdogs.
func newWatchdog(e *environment) reader {
	value := func(file, name, help string) attr { return attr{file, gauge("node_watchdog_"+name, help), 0} }
	attrs := []attr{
		value("access_cs0", "access_cs0", "Whether the watchdog boots from the other flash."),
		value("bootstatus", "bootstatus", "The watchdog's status at boot."),
		value("fw_version", "fw_version", "Version of the watchdog's firmware."),
		value("nowayout", "nowayout", "Whether the watchdog cannot be stopped."),
		value("pretimeout", "pretimeout_seconds", "How long before the timeout the watchdog warns."),
		value("timeleft", "timeleft_seconds", "Time until the watchdog resets the machine."),
		value("timeout", "timeout_seconds", "Time after which the watchdog resets the machine."),
	}
	info := gauge("node_watchdog_info", "What the watchdog is; always 1.")
	d := &devices{dir: e.sys("class/watchdog"), guard: guard[samples]{limit: e.limit, panics: e.panics}}
	d.query = func(name string) samples {
		var s samples
		dir := d.dir + "/" + name
		s.addAttrs(dir, attrs, "name", name)
		s.add(info, 1, append([]string{"name", name}, texts(dir, "identity", "identity", "options", "options",
			"pretimeout_governor", "pretimeout_governor", "state", "state", "status", "status")...)...)
		return s
	}
	return d
}
