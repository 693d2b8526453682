package host

import (
	"path/filepath"
	"strings"

	"hwsagent/probes/hw"
)

// newHardwareThermal reads thermal zones and cooling devices (the kernel's
// Documentation/driver-api/thermal/sysfs-api.rst).
func newHardwareThermal(e *environment) reader {
	p := newPlaces(e.SysPath)
	return e.hardware(hardwareClass{dir: e.sys("class/thermal"), query: func(dir string) []hw.Report {
		if _, ok := unit(filepath.Base(dir), "thermal_zone"); ok {
			return p.thermalZone(dir)
		}
		return coolingDevice(dir)
	}})
}

func (p places) thermalZone(dir string) []hw.Report {
	name := text(dir + "/type")
	zone := hw.Report{Component: hw.Component{Kind: hw.Temperature, ID: "thermal:" + name, Name: name, Parent: enclosureID}}
	if at := p.of(dir + "/device"); at != "" { // a zone of ACPI
		zone.ID = "at:" + at
	}
	now, ok := number(dir + "/temp")
	now /= 1000
	if ok {
		zone.Add(hw.TemperatureNow, now)
	}
	for _, trip := range [...]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"} {
		attributes, beyond := highCritical, hw.Failed
		switch text(dir + "/trip_point_" + trip + "_type") {
		case "critical":
		case "hot":
			attributes, beyond = highDegraded, hw.Degraded
		default: // the points at which cooling begins are not limits
			continue
		}
		limit, set := number(dir + "/trip_point_" + trip + "_temp")
		limit /= 1000
		if !set || limit <= 0 || limit > 1000 {
			continue
		}
		zone.Add(hw.TemperatureLimit, limit, attributes...)
		st := hw.OK
		if !ok {
			st = hw.Unknown
		} else if now > limit {
			st = beyond
		}
		zone.Status = zone.Status.Join(st)
	}
	if len(zone.Readings) == 0 {
		return nil
	}
	return []hw.Report{zone}
}

// coolingDevice reads one device. It leaves out those of ACPI's processors: there is one per CPU, and
// hw_cpu_throttles_total covers their effect.
func coolingDevice(dir string) []hw.Report {
	name := text(dir + "/type")
	most, ok := number(dir + "/max_state")
	now, known := number(dir + "/cur_state")
	if !ok || !known || most <= 0 || now < 0 || name == "Processor" { // -1: unknown
		return nil
	}
	device := hw.Report{Component: hw.Component{Kind: hw.CoolingDevice, ID: "cooling:" + name, Name: name, Parent: enclosureID}}
	device.Add(hw.CoolingRatio, now/most)
	return []hw.Report{device}
}

// newHardwarePower reads batteries and power supplies (the kernel's
// Documentation/ABI/testing/sysfs-class-power).
func newHardwarePower(e *environment) reader {
	p, exclude := newPlaces(e.SysPath), e.pattern(&e.PowerSupplyExclude)
	return e.hardware(hardwareClass{
		dir:    e.sys("class/power_supply"),
		wanted: func(name string) bool { return !exclude.MatchString(name) },
		query:  p.powerSupply,
	})
}

func (p places) powerSupply(dir string) []hw.Report {
	name := filepath.Base(dir)
	supply := hw.Report{Component: hw.Component{Kind: hw.PowerSupply, ID: "supply:" + name, Name: name, Parent: enclosureID, Facts: texts(dir,
		hw.Vendor, "manufacturer", hw.Model, "model_name", hw.Serial, "serial_number", hw.Chemistry, "technology")}}
	if serial := text(dir + "/serial_number"); strings.Trim(serial, " 0") != "" {
		supply.ID = hw.DiskID("", text(dir+"/model_name"), serial)
	} else if at := p.of(dir + "/device"); at != "" {
		supply.ID = "at:" + at
	}
	if text(dir+"/present") == "0" {
		return nil
	}
	supply.Status = supplyHealth(text(dir + "/health"))
	switch text(dir + "/type") {
	case "Battery", "UPS":
		supply.Kind = hw.Battery
		addBattery(&supply, dir)
	default:
		if online, ok := number(dir + "/online"); ok && supply.Status == 0 {
			supply.Status = hw.Unknown // an unplugged supply is not faulty
			if online > 0 {
				supply.Status = hw.OK
			}
		}
	}
	if v, ok := number(dir + "/voltage_now"); ok {
		supply.Add(hw.VoltageNow, v/1e6)
	}
	if v, ok := number(dir + "/temp"); ok {
		supply.Add(hw.TemperatureNow, v/10)
	}
	return []hw.Report{supply}
}

// supplyHealth translates a driver's word.
func supplyHealth(word string) hw.Status {
	switch word {
	case "":
		return 0
	case "Good":
		return hw.OK
	case "Unknown":
		return hw.Unknown
	case "Dead", "Unspecified failure", "Safety timer expire", "No battery", "Blown fuse", "Cell imbalance":
		return hw.Failed
	case "Calibration required", "Cool", "Warm":
		return hw.OK
	}
	return hw.Degraded // Overheat, Over voltage, Over current, Cold, Hot, Watchdog timer expire, …
}

func addBattery(b *hw.Report, dir string) {
	state := text(dir + "/status")
	if v, ok := number(dir + "/capacity"); ok {
		b.Add(hw.BatteryCharge, v/100)
	}
	if v, ok := number(dir + "/capacity_alert_min"); ok && v > 0 {
		b.Add(hw.BatteryChargeLimit, v/100, hw.LabelLimitType, "degraded")
	}
	if v, ok := number(dir + "/time_to_empty_now"); ok && state == "Discharging" {
		b.Add(hw.BatteryTimeLeft, v, hw.LabelBatteryState, "discharging")
	}
	if v, ok := number(dir + "/time_to_full_now"); ok && state == "Charging" {
		b.Add(hw.BatteryTimeLeft, v, hw.LabelBatteryState, "charging")
	}
	if v, ok := number(dir + "/cycle_count"); ok && v > 0 { // 0: not counted
		b.Add(hw.BatteryCycles, v)
	}
	for _, kind := range [...]string{"energy", "charge"} {
		full, ok := number(dir + "/" + kind + "_full")
		design, known := number(dir + "/" + kind + "_full_design")
		if ok && known && design > 0 {
			b.Add(hw.BatteryHealth, full/design)
			break
		}
	}
	if text(dir+"/scope") == "Device" { // belongs to a mouse, not to this machine
		return
	}
	if v, ok := number(dir + "/power_now"); ok {
		if state == "Discharging" && v > 0 { // some drivers use a sign, others do not
			v = -v
		}
		b.Add(hw.Power, v/1e6)
	}
}
