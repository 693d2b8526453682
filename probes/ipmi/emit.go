package ipmi

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// Base units (table 43-15) with special handling.
const (
	unitCelsius    = 1
	unitFahrenheit = 2
	unitKelvin     = 3
	unitVolts      = 4
	unitAmps       = 5
	unitWatts      = 6
	unitRPM        = 18
)

// families are those of ipmi_exporter, and a few additions. The help texts are this project's.
type families map[string]*probes.Family

// ownFamilies are shared by all probes and read-only.
var ownFamilies = newFamilies()

func newFamilies() families {
	f := make(families)
	for _, row := range [...]struct {
		typ        model.MetricType
		name, help string
	}{
		{model.MetricTypeGauge, "up", "1 if this part of the BMC's data was read, 0 if not."},
		{model.MetricTypeGauge, "bmc_info", "Firmware and maker of the BMC; always 1."},
		{model.MetricTypeGauge, "temperature_celsius", "Temperature in degrees Celsius."},
		{model.MetricTypeGauge, "temperature_state", "State of a temperature sensor: 0 nominal, 1 warning, 2 critical."},
		{model.MetricTypeGauge, "fan_speed_rpm", "Speed of a fan in rotations per minute."},
		{model.MetricTypeGauge, "fan_speed_ratio", "Speed of a fan divided by its highest speed."},
		{model.MetricTypeGauge, "fan_speed_state", "State of a fan: 0 nominal, 1 warning, 2 critical."},
		{model.MetricTypeGauge, "voltage_volts", "Voltage in volts."},
		{model.MetricTypeGauge, "voltage_state", "State of a voltage sensor: 0 nominal, 1 warning, 2 critical."},
		{model.MetricTypeGauge, "current_amperes", "Electric current in amperes."},
		{model.MetricTypeGauge, "current_state", "State of a current sensor: 0 nominal, 1 warning, 2 critical."},
		{model.MetricTypeGauge, "power_watts", "Power in watts."},
		{model.MetricTypeGauge, "power_state", "State of a power sensor: 0 nominal, 1 warning, 2 critical."},
		{model.MetricTypeGauge, "sensor_value", "Value of a sensor of another kind, in its own unit."},
		{model.MetricTypeGauge, "sensor_state", "State of a sensor of another kind: 0 nominal, 1 warning, 2 critical."},
		{model.MetricTypeGauge, "chassis_power_state", "1 if the machine is switched on, 0 if not."},
		{model.MetricTypeGauge, "chassis_drive_fault_state", "1 if no drive has a fault, 0 if one has."},
		{model.MetricTypeGauge, "chassis_cooling_fault_state", "1 if the cooling has no fault, 0 if it has."},
		{model.MetricTypeGauge, "sel_logs_count", "Number of entries in the system event log."},
		{model.MetricTypeGauge, "sel_free_space_bytes", "Free space of the system event log in bytes."},
		{model.MetricTypeGauge, "sel_latest_timestamp_seconds", "Time of the newest entry that was read from the system event log, by the BMC's clock."},
		{model.MetricTypeCounter, "sel_new_entries_total", "Entries that were added to the system event log since the agent started, by type of sensor."},
		{model.MetricTypeGauge, "dcmi_power_consumption_watts", "Power that the machine consumes, as DCMI reports it."},
		{model.MetricTypeGauge, "sensors", "Number of sensors that the BMC's records describe."},
		{model.MetricTypeGauge, "records_unread", "Number of sensor data records that could not be read or parsed."},
	} {
		f[row.name] = &probes.Family{Name: "ipmi_" + row.name, Help: row.help, Type: row.typ}
	}
	return f
}

// family returns the ipmi_exporter names for a sensor's value and state; an empty value means none.
func (s *sensor) family() (value, state string) {
	switch known := s.analog && !s.combined; {
	case s.percent && s.kind == typeFan && s.analog:
		return "fan_speed_ratio", "fan_speed_state"
	case s.percent || !known && s.analog:
	case known && (s.unit == unitCelsius || s.unit == unitFahrenheit || s.unit == unitKelvin):
		return "temperature_celsius", "temperature_state"
	case known && s.unit == unitRPM:
		return "fan_speed_rpm", "fan_speed_state"
	case known && s.unit == unitVolts:
		return "voltage_volts", "voltage_state"
	case known && s.unit == unitAmps:
		return "current_amperes", "current_state"
	case known && s.unit == unitWatts:
		return "power_watts", "power_state"
	}
	return "sensor_value", "sensor_state"
}

// base converts a value into the base unit of its metric.
func (s *sensor) base(v float64) float64 {
	switch {
	case s.percent && s.kind == typeFan:
		return v / 100
	case s.percent || s.combined:
		return v
	case s.unit == unitFahrenheit:
		return (v - 32) * 5 / 9
	case s.unit == unitKelvin:
		return v - 273.15
	}
	return v
}

// native adds a reading under ipmi_exporter's names.
func (f families) native(r *probes.Round, one *reading) {
	value, named := one.family()
	labels := []string{"id", strconv.Itoa(int(one.record)), "name", one.name}
	if value == "sensor_value" {
		labels = append(labels, "type", kindName(one.kind))
	}
	if one.valued {
		r.Add(f[value], one.base(one.value), labels...)
	}
	if v, known := state(one.status()); known {
		r.Add(f[named], v, labels...)
	}
}

// kindNames are the sensor types (table 42-3).
var kindNames = [...]string{
	"Reserved", "Temperature", "Voltage", "Current", "Fan", "Physical Security", "Platform Security Violation Attempt", "Processor", "Power Supply", "Power Unit",
	"Cooling Device", "Other Units Based Sensor", "Memory", "Drive Slot", "POST Memory Resize", "System Firmware Progress", "Event Logging Disabled", "Watchdog 1", "System Event",
	"Critical Interrupt", "Button/Switch", "Module/Board", "Microcontroller/Coprocessor", "Add In Card", "Chassis", "Chip Set", "Other FRU", "Cable/Interconnect", "Terminator",
	"System Boot Initiated", "Boot Error", "OS Boot", "OS Critical Stop", "Slot/Connector", "System ACPI Power State", "Watchdog 2", "Platform Alert", "Entity Presence",
	"Monitor ASIC/IC", "LAN", "Management Subsystem Health", "Battery", "Session Audit", "Version Change", "FRU State",
}

func kindName(kind byte) string {
	if int(kind) < len(kindNames) {
		return kindNames[kind]
	}
	return fmt.Sprintf("OEM %02Xh", kind)
}

// entities are the names of common parts that sensors belong to (table 43-13).
var entities = map[byte]string{
	3: "processor", 4: "disk", 7: "board", 8: "memory_module", 10: "power_supply", 11: "add_in_card", 15: "drive_backplane", 19: "power_unit", 20: "power_module", 21: "power_distribution",
	23: "chassis", 26: "disk_bay", 29: "fan", 30: "cooling_unit", 32: "memory", 40: "battery", 55: "air_inlet", 64: "air_inlet",
}

// parent returns the ID of the part that a sensor belongs to.
func (s *sensor) parent() string {
	name := entities[s.entity]
	if name == "" {
		name = fmt.Sprintf("entity%d", s.entity)
	}
	return fmt.Sprintf("ipmi:%s.%d", name, s.instance&0x7f)
}

// component converts a reading to a report of package hw; false if it has no equivalent there.
func (r *reading) component() (hw.Report, bool) {
	kind, metric, limits, ok := r.kindOf()
	if !ok {
		return hw.Report{}, false
	}
	p := hw.Report{Status: r.status(), Component: hw.Component{
		// The number is the sensor's own, stable as long as the firmware is.
		Kind: kind, ID: fmt.Sprintf("ipmi:%02x.%d.%02x", r.owner, r.lun, r.number), Name: r.name, Parent: r.parent(),
	}}
	if !r.there && !r.analog {
		p.Status = hw.Unknown
	}
	if r.valued && metric != hw.Info {
		p.Add(metric, r.base(r.value))
	}
	for i, l := range r.limits {
		if l.set && limits != hw.Info && !strings.HasSuffix(limitTypes[i], "nonrecoverable") {
			p.Add(limits, r.base(l.value), hw.LabelLimitType, limitTypes[i])
		}
	}
	return p, true
}

// kindOf returns the kind of component of a sensor, and the metrics of its value and limits; Info means none.
func (r *reading) kindOf() (kind hw.Kind, value, limit hw.Metric, ok bool) {
	if r.analog {
		switch family, _ := r.family(); family {
		case "temperature_celsius":
			return hw.Temperature, hw.TemperatureNow, hw.TemperatureLimit, true
		case "fan_speed_rpm":
			return hw.Fan, hw.FanSpeed, hw.FanSpeedLimit, true
		case "fan_speed_ratio":
			return hw.Fan, hw.FanSpeedRatio, hw.Info, true
		case "voltage_volts":
			return hw.Voltage, hw.VoltageNow, hw.VoltageLimit, true
		case "current_amperes":
			return hw.Current, hw.CurrentNow, hw.CurrentLimit, true
		case "power_watts":
			return hw.PowerMeter, hw.Power, hw.PowerLimit, true
		}
		return 0, 0, 0, false
	}
	kind, ok = map[byte]hw.Kind{
		typeTemperature: hw.Temperature, typeVoltage: hw.Voltage, typeCurrent: hw.Current, typeFan: hw.Fan, typeIntrusion: hw.Intrusion, typeProcessor: hw.CPU,
		typePowerSupply: hw.PowerSupply, typePowerUnit: hw.PowerSupply, typeCooling: hw.CoolingDevice, typeMemory: hw.Memory, typeDriveSlot: hw.PhysicalDisk, typeBattery: hw.Battery,
	}[r.kind]
	return kind, hw.Info, hw.Info, ok
}
