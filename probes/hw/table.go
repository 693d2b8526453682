package hw

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// Kind is a kind of component: the label hw_type.
type Kind uint8

// The kinds of hw.type of the conventions, and after them the project's own.
const (
	Battery Kind = iota
	CPU
	DiskController
	Enclosure
	Fan
	GPU
	LogicalDisk
	Memory
	Network
	PhysicalDisk
	PowerSupply
	TapeDrive
	Temperature
	Voltage

	CoolingDevice // a cooling control of the system: a fan's step, a throttle
	Current       // a sensor
	Humidity      // a sensor
	Intrusion     // a contact that detects an opened case
	PCIDevice
	PowerMeter // a sensor of electric power or energy outside of other components
	Module     // a card, a unit of a stack, or another part of a device with a state but without its own kind
	Frequency  // a sensor, for example of mains frequency

	EventLog      // a log of the hardware's events
	FirmwareImage // software that a component runs
	LeakDetector  // a sensor for leaking liquid
	Manager       // a management controller
	OtherDevice   // a part of a kind that is not listed here
	Outlet        // an outlet or circuit that distributes power
	Sensor        // a sensor of a quantity without its own kind; its unit is a label
	System        // one of the computers behind a management controller

	// Host is the whole machine, Site a place with machines. They are not components: their metrics have no hw_id.
	Host
	Site
)

var kinds = [...]string{
	"battery", "cpu", "disk_controller", "enclosure", "fan", "gpu", "logical_disk", "memory", "network",
	"physical_disk", "power_supply", "tape_drive", "temperature", "voltage",
	"cooling_device", "current", "humidity", "intrusion", "pci_device", "power_meter", "module", "frequency",
	"event_log", "firmware", "leak_detector", "manager", "other_device", "outlet", "sensor", "system", "host", "site",
}

// String returns the value of the label hw_type.
func (k Kind) String() string { return kinds[k] }

// KindOf returns the kind of that name.
func KindOf(name string) (Kind, bool) {
	i := slices.Index(kinds[:], name)
	return Kind(max(i, 0)), i >= 0
}

// Metric is a row of the table.
type Metric uint8

// The metrics. Their units are in the table.
const (
	Info Metric = iota
	StatusOf
	Errors
	Energy
	Power
	PowerLimit

	BatteryCharge
	BayLight
	BatteryChargeLimit
	BatteryTimeLeft
	BatteryTimeLimit
	BatteryCycles
	BatteryHealth
	CoolingRatio
	CoolingSpeed
	CPUSpeed
	CPUSpeedLimit
	CPUThrottles
	CurrentNow
	CurrentLimit
	FanSpeed
	FanSpeedLimit
	FanSpeedRatio
	GPUIO
	GPUMemoryLimit
	GPUMemoryUtilization
	GPUMemoryUsage
	GPUUtilization
	HostAmbient
	HostEnergy
	HostHeatingMargin
	HostPower
	HumidityNow
	HumidityLimit
	KernelErrors
	KernelLost
	LogicalDiskLimit
	LogicalDiskUsage
	LogicalDiskUtilization
	LogicalDiskMembers
	LogEntries
	LogNewest
	MemorySize
	NetworkBandwidthLimit
	NetworkBandwidthUtilization
	NetworkIO
	NetworkPackets
	NetworkUp
	DiskEndurance
	DiskSize
	DiskSMART
	OnBattery
	PowerSupplyLimit
	PowerSupplyUtilization
	PowerSupplyUsage
	SensorValue
	SensorLimit
	ServiceTime
	ServiceTimeLimit
	SiteCarbon
	SiteCost
	SitePUE
	TaskProgress
	TapeOperations
	TemperatureNow
	TemperatureLimit
	VoltageNow
	VoltageLimit
	VoltageNominal
	FrequencyNow
	OpticalPower
	OpticalPowerLimit
)

// instrument is OpenTelemetry's term for the form of a metric.
type instrument string

const (
	gauge   instrument = "gauge"
	upDown  instrument = "updowncounter" // a gauge in Prometheus
	counter instrument = "counter"
)

// row is one metric.
type row struct {
	convention string // its name in the conventions, or in their style if own
	own        bool   // not in the conventions
	instrument instrument
	unit       string // of the conventions, a UCUM code
	typed      bool   // it has the label hw_type
	attributes string // labels beside hw_id, hw_name, hw_parent and hw_type, with blanks between them
	kinds      []Kind // of components that may have it; nil: all
	help       string
}

// families are the families of the table's rows.
var families = familiesOf(table[:])

func familiesOf(rows []row) []probes.Family {
	all := make([]probes.Family, len(rows))
	for i := range rows {
		all[i] = rows[i].family()
	}
	return all
}

// family returns the Prometheus family of a row, by the rules with which OpenTelemetry's metrics are
// translated: https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/.
func (r *row) family() probes.Family {
	name, unit := strings.ReplaceAll(r.convention, ".", "_"), units[r.unit]
	if r.unit == "1" && r.instrument == gauge {
		unit = "ratio"
	}
	if unit != "" && !strings.HasSuffix(name, "_"+unit) {
		name += "_" + unit
	}
	typ := model.MetricTypeGauge
	if r.instrument == counter {
		name, typ = name+"_total", model.MetricTypeCounter
	}
	return probes.Family{Name: name, Help: r.help, Type: typ, Unit: unit}
}

// units maps UCUM's codes to Prometheus' words. A count, such as {error}, has no unit.
var units = map[string]string{
	"A": "amperes", "By": "bytes", "By/s": "bytes_per_second", "Cel": "celsius", "Hz": "hertz", "J": "joules",
	"rpm": "rpm", "s": "seconds", "V": "volts", "W": "watts",
}

// Family returns the metric's family, always the same one.
func (m Metric) Family() *probes.Family { return &families[m] }

// Allows reports whether a component of that kind may have a reading of the metric with these
// attributes: name, value, name, value, ….
func (m Metric) Allows(k Kind, attributes []string) bool {
	r := &table[m]
	for i := 0; i < len(attributes); i += 2 {
		if !slices.Contains(strings.Fields(r.attributes), attributes[i]) {
			return false
		}
	}
	return len(attributes)%2 == 0 && (r.kinds == nil || slices.Contains(r.kinds, k))
}

// machineLabels are the labels of every metric of the whole machine.
const machineLabels = Serial + " " + UUID + " " + Source

var table = [...]row{
	Info:       {"hw.component.info", true, upDown, "1", true, strings.Join([]string{Vendor, Model, Serial, UUID, Firmware, Driver, BIOS, Chemistry, EnclosureType, MemoryType, PhysicalAddress, DiskType, DriverName, Device, Source}, " "), nil, "Identity of the component: vendor, model, serial number and versions; always 1."},
	StatusOf:   {"hw.status", false, upDown, "1", true, "hw_state", nil, "State of the component: 1 for each state that it is in, 0 for the others."},
	Errors:     {"hw.errors", false, counter, "{error}", true, "error_type network_io_direction", nil, "Errors that the component has counted, usually since it was started."},
	Energy:     {"hw.energy", false, counter, "J", true, "", nil, "Energy that the component has consumed."},
	Power:      {"hw.power", false, gauge, "W", true, "", nil, "Power that the component consumes."},
	PowerLimit: {"hw.power.limit", true, gauge, "W", true, "hw_limit_type", nil, "Limit of the component's power."},

	BayLight:                    {"hw.bay.light", true, upDown, "1", false, "hw_light", []Kind{Module}, "1 if the light of the bay is on, 0 if not."},
	BatteryCharge:               {"hw.battery.charge", false, gauge, "1", false, "", []Kind{Battery}, "Remaining charge of the battery, from 0 to 1."},
	BatteryChargeLimit:          {"hw.battery.charge.limit", false, gauge, "1", false, "hw_limit_type", []Kind{Battery}, "Limit of the battery's charge."},
	BatteryTimeLeft:             {"hw.battery.time_left", false, gauge, "s", false, "hw_state hw_battery_state", []Kind{Battery}, "Time until the battery is empty (while discharging) or full (while charging)."},
	BatteryTimeLimit:            {"hw.battery.time_left.limit", true, gauge, "s", false, "hw_limit_type", []Kind{Battery}, "Limit of the time until the battery is empty."},
	BatteryCycles:               {"hw.battery.cycles", true, counter, "{cycle}", false, "", []Kind{Battery}, "Charge and discharge cycles of the battery."},
	BatteryHealth:               {"hw.battery.health", true, gauge, "1", false, "", []Kind{Battery}, "Full capacity of the battery divided by its design capacity."},
	CoolingRatio:                {"hw.cooling_device.level", true, gauge, "1", false, "", []Kind{CoolingDevice}, "Present cooling level divided by the highest level."},
	CoolingSpeed:                {"hw.cooling_device.speed", true, gauge, "rpm", false, "", []Kind{CoolingDevice}, "Speed of the pump."},
	CPUSpeed:                    {"hw.cpu.speed", false, gauge, "Hz", false, "", []Kind{CPU}, "Clock frequency of the processor."},
	CPUSpeedLimit:               {"hw.cpu.speed.limit", false, gauge, "Hz", false, "hw_limit_type", []Kind{CPU}, "Limit of the processor's clock frequency."},
	CPUThrottles:                {"hw.cpu.throttles", true, counter, "{event}", false, "hw_throttle_scope", []Kind{CPU}, "Times that the processor reduced its clock because of its temperature."},
	CurrentNow:                  {"hw.current", true, gauge, "A", false, "hw_sensor_location", nil, "Electric current."},
	CurrentLimit:                {"hw.current.limit", true, gauge, "A", false, "hw_sensor_location hw_limit_type", nil, "Limit of the electric current."},
	FanSpeed:                    {"hw.fan.speed", false, gauge, "rpm", false, "hw_sensor_location", []Kind{Fan}, "Speed of the fan."},
	FanSpeedLimit:               {"hw.fan.speed.limit", false, gauge, "rpm", false, "hw_sensor_location hw_limit_type", []Kind{Fan}, "Limit of the fan's speed."},
	FanSpeedRatio:               {"hw.fan.speed_ratio", false, gauge, "1", false, "hw_sensor_location", []Kind{Fan}, "Speed of the fan divided by its highest speed."},
	GPUIO:                       {"hw.gpu.io", false, counter, "By", false, "network_io_direction", []Kind{GPU}, "Bytes that the GPU has received and sent."},
	GPUMemoryLimit:              {"hw.gpu.memory.limit", false, upDown, "By", false, "", []Kind{GPU}, "Size of the GPU's memory."},
	GPUMemoryUtilization:        {"hw.gpu.memory.utilization", false, gauge, "1", false, "", []Kind{GPU}, "Share of the GPU's memory that is in use, from 0 to 1."},
	GPUMemoryUsage:              {"hw.gpu.memory.usage", false, upDown, "By", false, "", []Kind{GPU}, "Memory of the GPU that is in use."},
	GPUUtilization:              {"hw.gpu.utilization", false, gauge, "1", false, "hw_gpu_task", []Kind{GPU}, "Share of time in which the GPU was busy, from 0 to 1."},
	HostAmbient:                 {"hw.host.ambient_temperature", false, gauge, "Cel", false, machineLabels, []Kind{Host}, "Temperature of the air around the machine."},
	HostEnergy:                  {"hw.host.energy", false, counter, "J", false, "hw_quality " + machineLabels, []Kind{Host}, "Energy that the whole machine has consumed."},
	HostHeatingMargin:           {"hw.host.heating_margin", false, gauge, "Cel", false, machineLabels, []Kind{Host}, "Smallest distance between a temperature and its limit; negative if a limit is exceeded."},
	HostPower:                   {"hw.host.power", false, gauge, "W", false, "hw_quality " + machineLabels, []Kind{Host}, "Power that the whole machine consumes."},
	HumidityNow:                 {"hw.humidity", true, gauge, "1", false, "hw_sensor_location", []Kind{Humidity}, "Relative humidity, from 0 to 1."},
	HumidityLimit:               {"hw.humidity.limit", true, gauge, "1", false, "hw_sensor_location hw_limit_type", []Kind{Humidity}, "Limit of the relative humidity."},
	KernelErrors:                {"hw.kernel.errors", true, counter, "{error}", true, "hw_kernel_event hw_kernel_code", nil, "Errors in the kernel's log, by kind of event; the code is the Xid of a GPU, a severity or a kind of failure."},
	KernelLost:                  {"hw.kernel.lost_messages", true, counter, "{message}", false, machineLabels, []Kind{Host}, "Messages of the kernel that were overwritten before they were read."},
	LogicalDiskLimit:            {"hw.logical_disk.limit", false, upDown, "By", false, "hw_logical_disk_raid_level", []Kind{LogicalDisk}, "Size of the logical disk."},
	LogicalDiskUsage:            {"hw.logical_disk.usage", false, upDown, "By", false, "hw_logical_disk_raid_level hw_logical_disk_state", []Kind{LogicalDisk}, "Space of the logical disk that is used or free."},
	LogicalDiskUtilization:      {"hw.logical_disk.utilization", false, gauge, "1", false, "hw_logical_disk_raid_level hw_logical_disk_state", []Kind{LogicalDisk}, "Share of the logical disk that is used or free, from 0 to 1."},
	LogicalDiskMembers:          {"hw.logical_disk.members", true, upDown, "{disk}", false, "hw_member_state", []Kind{LogicalDisk}, "Number of disks or paths of the logical disk, by state."},
	LogEntries:                  {"hw.log.entries", true, upDown, "{entry}", false, "", []Kind{EventLog}, "Number of entries in the log."},
	LogNewest:                   {"hw.log.newest_entry.timestamp", true, gauge, "s", false, "hw_severity", []Kind{EventLog}, "Time of the newest entry with this severity, in seconds since 1970."},
	MemorySize:                  {"hw.memory.size", false, upDown, "By", false, "", []Kind{Memory}, "Size of the memory module."},
	NetworkBandwidthLimit:       {"hw.network.bandwidth.limit", false, upDown, "By/s", false, "", []Kind{Network}, "Speed of the network link."},
	NetworkBandwidthUtilization: {"hw.network.bandwidth.utilization", false, gauge, "1", false, "", []Kind{Network}, "Share of the link's speed that is in use, from 0 to 1."},
	NetworkIO:                   {"hw.network.io", false, counter, "By", false, "network_io_direction", []Kind{Network}, "Bytes received and transmitted."},
	NetworkPackets:              {"hw.network.packets", false, counter, "{packet}", false, "network_io_direction", []Kind{Network}, "Packets received and transmitted."},
	NetworkUp:                   {"hw.network.up", false, upDown, "1", false, "", []Kind{Network}, "1 if the port has a link, 0 if not."},
	DiskEndurance:               {"hw.physical_disk.endurance_utilization", false, gauge, "1", false, "hw_physical_disk_state", []Kind{PhysicalDisk}, "Share of the disk's endurance that remains, from 0 to 1."},
	DiskSize:                    {"hw.physical_disk.size", false, upDown, "By", false, "", []Kind{PhysicalDisk}, "Size of the disk."},
	DiskSMART:                   {"hw.physical_disk.smart", false, gauge, "1", false, "hw_physical_disk_smart_attribute", []Kind{PhysicalDisk}, "Raw value of the SMART attribute."},
	OnBattery:                   {"hw.power_supply.on_battery", true, upDown, "1", false, "", []Kind{PowerSupply}, "1 while the supply takes its power from a battery, 0 if not."},
	PowerSupplyLimit:            {"hw.power_supply.limit", false, upDown, "W", false, "hw_limit_type", []Kind{PowerSupply}, "Power that the power supply can deliver."},
	PowerSupplyUtilization:      {"hw.power_supply.utilization", false, gauge, "1", false, "", []Kind{PowerSupply}, "Share of the power supply's capacity that is in use, from 0 to 1."},
	PowerSupplyUsage:            {"hw.power_supply.usage", false, upDown, "W", false, "", []Kind{PowerSupply}, "Power that the power supply delivers."},
	SensorValue:                 {"hw.sensor.value", true, gauge, "", false, "hw_sensor_unit hw_sensor_location", []Kind{Sensor}, "Reading of the sensor, in the unit that the label hw_sensor_unit names."},
	SensorLimit:                 {"hw.sensor.limit", true, gauge, "", false, "hw_sensor_unit hw_sensor_location hw_limit_type", []Kind{Sensor}, "Limit of the sensor's reading, in the unit that the label hw_sensor_unit names."},
	ServiceTime:                 {"hw.service_time", true, gauge, "s", false, "", nil, "Operating time since the component was installed or last serviced."},
	ServiceTimeLimit:            {"hw.service_time.limit", true, gauge, "s", false, "hw_limit_type", nil, "Operating time after which the component must be serviced."},
	SiteCarbon:                  {"hw.site.carbon_intensity", true, upDown, "{g/kW.h}", false, "site", []Kind{Site}, "Carbon dioxide emissions of the site's electricity, in grams per kilowatt-hour."},
	SiteCost:                    {"hw.site.electricity_cost", true, upDown, "{currency/kW.h}", false, "site currency", []Kind{Site}, "Price of the site's electricity per kilowatt-hour."},
	SitePUE:                     {"hw.site.pue", true, upDown, "1", false, "site", []Kind{Site}, "Power usage effectiveness: power of the whole site divided by the power of its machines."},
	TaskProgress:                {"hw.task.progress", true, gauge, "1", true, "hw_task", []Kind{DiskController, LogicalDisk, PhysicalDisk}, "How far a task on the component has come, from 0 to 1: rebuild, patrol_read, initialization and so on. Absent while none runs."},
	TapeOperations:              {"hw.tape_drive.operations", false, counter, "{operation}", false, "hw_tape_drive_operation_type", []Kind{TapeDrive}, "Operations of the tape drive."},
	TemperatureNow:              {"hw.temperature", false, gauge, "Cel", false, "hw_sensor_location", nil, "Temperature."},
	TemperatureLimit:            {"hw.temperature.limit", false, gauge, "Cel", false, "hw_sensor_location hw_limit_type", nil, "Limit of the temperature."},
	VoltageNow:                  {"hw.voltage", false, gauge, "V", false, "hw_sensor_location", nil, "Voltage."},
	VoltageLimit:                {"hw.voltage.limit", false, gauge, "V", false, "hw_sensor_location hw_limit_type", nil, "Limit of the voltage."},
	VoltageNominal:              {"hw.voltage.nominal", false, gauge, "V", false, "hw_sensor_location", nil, "Nominal voltage."},
	FrequencyNow:                {"hw.frequency", true, gauge, "Hz", false, "hw_sensor_location", nil, "Frequency, for example of an alternating current."},
	OpticalPower:                {"hw.optical_power.dbm", true, gauge, "{dBm}", false, "hw_sensor_location", nil, "Optical power in decibels relative to one milliwatt."},
	OpticalPowerLimit:           {"hw.optical_power_limit.dbm", true, gauge, "{dBm}", false, "hw_sensor_location hw_limit_type", nil, "Limit of the optical power in decibels relative to one milliwatt."},
}

// The values of hw_labels.
const (
	// SemanticConventions are OpenTelemetry's names, as in the table.
	SemanticConventions = "semconv"
	// MetricsHub are MetricsHub's names of metrics and labels, as far as it has them.
	MetricsHub = "metricshub"
)

// hubNames are MetricsHub's differing metric names, in the form of the conventions, with their units.
var hubNames = map[Metric]struct{ name, unit string }{
	MemorySize:            {"hw.memory.limit", "By"},
	NetworkBandwidthLimit: {"hw.network.bandwidth.limit", "By"},
	SensorValue:           {"hw.other_device.value", ""},
	SensorLimit:           {"hw.other_device.value.limit", ""},
}

// hubEnclosure are MetricsHub's names for the power and energy of an enclosure.
var hubEnclosure = map[Metric]string{Energy: "hw.enclosure.energy", Power: "hw.enclosure.power"}

// hubLabels are MetricsHub's names of labels: they lack the word hw, except for kind and parent.
var hubLabels = map[string]string{
	"hw_id": "id", "hw_name": "name", "hw_parent": "hw_parent_id", "hw_state": "state", "hw_limit_type": "limit_type", "error_type": "hw_error_type", "network_io_direction": "direction",
	"hw_sensor_location": "sensor_location", "hw_gpu_task": "task", "hw_task": "task", "hw_light": "light", "hw_kernel_event": "kernel_event", "hw_kernel_code": "kernel_code", "hw_physical_disk_state": "state", "hw_logical_disk_state": "state", "hw_logical_disk_raid_level": "raid_level",
	"hw_tape_drive_operation_type": "type", "hw_quality": "quality", "hw_battery_state": "state", "hw_physical_disk_smart_attribute": "smart_attribute",
	Vendor: "vendor", Model: "model", Serial: "serial_number", Firmware: "firmware_version", Driver: "driver_version", BIOS: "bios_version", PhysicalAddress: "physical_address",
}
