package redfish

import "hwsagent/probes/hw"

// role describes a resource by the link through which it was found: types in resources are missing or wrong more often
// than links.
type role struct {
	part bool    // it is a component of this kind
	kind hw.Kind //
	// attached resources give readings to the component that links to them.
	attached bool
	// seldom: changes in it also show in the health of its system or chassis, so it is read again once that changes, or
	// after a time. Others are read in each round.
	seldom bool
	leaf   bool // its links are not followed, not even to its members
	follow []follow
}

// follow is a link to follow, an array of links, or objects in place of links.
type follow struct {
	property string // a path of keys with dots
	role     string
	many     bool   // a collection, which may be requested with its members
	inline   bool   // an array of objects that are parts of this resource
	unless   string // do not follow if this property exists
	// fallback says when to follow the link: always, or after all others if these have not provided its data.
	fallback fallback
}

// fallback says when to read the older of two sources of the same data.
type fallback uint8

const (
	always      fallback = iota
	noThermal            // the newer schemas give no temperatures or no fans for the chassis
	noPower              // they give no power, voltages or supplies for the chassis
	noAdapters           // no network adapter was found
	noNewDrives          // no drive was found
)

const rootPath = "/redfish/v1"

func one(property, role string) follow  { return follow{property: property, role: role} }
func many(property, role string) follow { return follow{property: property, role: role, many: true} }
func inline(property, role, unless string) follow {
	return follow{property: property, role: role, inline: true, unless: unless}
}

// roles is the table of resources to read, by the schemas of DSP8010 version 2025.2 and, below Oem, by documentation of
// vendors.
var roles = map[string]*role{
	"root": {seldom: true, follow: []follow{many("Chassis", "chassis"), many("Systems", "system"), many("Managers", "manager"), many("Storage", "storage"),
		one("PowerEquipment", "powerEquipment"), one("ThermalEquipment", "thermalEquipment"), one("UpdateService", "update")}},

	"chassis": {part: true, kind: hw.Enclosure, follow: []follow{many("Sensors", "sensor"), one("EnvironmentMetrics", "metrics"),
		one("ThermalSubsystem", "thermalSubsystem"), one("PowerSubsystem", "powerSubsystem"), many("NetworkAdapters", "adapter"),
		many("Drives", "drive"), one("Links.Drives", "drive"), many("LeakDetectors", "leakDetector"), many("Memory", "memory"), many("Processors", "processor"), many("LogServices", "log"),
		{property: "Thermal", role: "thermal", fallback: noThermal}, {property: "Power", role: "power", fallback: noPower}}},
	"sensor":  {},
	"metrics": {attached: true},

	"thermalSubsystem": {follow: []follow{many("Fans", "fan"), many("Pumps", "pump"), many("Heaters", "device"), one("ThermalMetrics", "metrics"),
		one("LeakDetection", "leakDetection"), many("CoolantConnectors", "device"), many("Filters", "device"), inline("FanRedundancy", "redundancy", ""), inline("CoolantConnectorRedundancy", "redundancy", "")}},
	"powerSubsystem": {follow: []follow{many("PowerSupplies", "supply"), many("Batteries", "battery"), inline("PowerSupplyRedundancy", "redundancy", "")}},
	"fan":            {part: true, kind: hw.Fan, follow: []follow{one("EnvironmentMetrics", "metrics")}},
	"pump":           {part: true, kind: hw.CoolingDevice, follow: []follow{many("Filters", "device"), one("EnvironmentMetrics", "metrics")}},
	"device":         {part: true, kind: hw.OtherDevice, follow: []follow{many("Filters", "device"), one("Metrics", "metrics"), one("EnvironmentMetrics", "metrics")}},
	"leakDetection":  {attached: true, follow: []follow{many("LeakDetectors", "leakDetector"), inline("LeakDetectorGroups", "leakGroup", "")}},
	"leakGroup":      {attached: true},
	"leakDetector":   {part: true, kind: hw.LeakDetector},
	"redundancy":     {part: true, kind: hw.OtherDevice},
	"supply":         {part: true, kind: hw.PowerSupply, follow: []follow{one("Metrics", "metrics"), one("EnvironmentMetrics", "metrics")}},
	"battery":        {part: true, kind: hw.Battery, follow: []follow{one("Metrics", "metrics"), one("EnvironmentMetrics", "metrics")}},

	"thermal":        {follow: []follow{inline("Temperatures", "oldTemperature", ""), inline("Fans", "oldFan", ""), inline("Redundancy", "redundancy", "")}},
	"oldTemperature": {part: true, kind: hw.Temperature},
	"oldFan":         {part: true, kind: hw.Fan},
	"power": {follow: []follow{inline("PowerControl", "oldPower", ""), inline("Voltages", "oldVoltage", ""), inline("PowerSupplies", "oldSupply", ""),
		inline("Redundancy", "redundancy", "")}},
	"oldPower":   {part: true, kind: hw.PowerMeter},
	"oldVoltage": {part: true, kind: hw.Voltage},
	"oldSupply":  {part: true, kind: hw.PowerSupply},

	"system": {part: true, kind: hw.System, follow: []follow{many("Processors", "processor"), many("Memory", "memory"), many("Storage", "storage"),
		{property: "SimpleStorage", role: "simpleStorage", many: true, fallback: noNewDrives},
		one("Oem.Hpe.Links.SmartStorage", "smartStorage"), one("Oem.Hp.Links.SmartStorage", "smartStorage"),
		{property: "EthernetInterfaces", role: "ethernet", many: true, fallback: noAdapters}, many("LogServices", "log")}},
	"processor": {part: true, kind: hw.CPU, seldom: true, follow: []follow{one("Metrics", "metrics"), one("EnvironmentMetrics", "metrics"), many("Ports", "processorPort")}},
	"memory":    {part: true, kind: hw.Memory, seldom: true, follow: []follow{one("Metrics", "metrics"), one("EnvironmentMetrics", "metrics")}},
	"storage": {part: true, kind: hw.DiskController, follow: []follow{one("Drives", "drive"), many("Volumes", "volume"), many("Controllers", "controller"),
		inline("StorageControllers", "controller", "Controllers"), one("EnvironmentMetrics", "metrics")}},
	"controller":    {part: true, kind: hw.DiskController, seldom: true, follow: []follow{one("Metrics", "metrics"), one("EnvironmentMetrics", "metrics")}},
	"drive":         {part: true, kind: hw.PhysicalDisk, seldom: true, follow: []follow{one("Metrics", "metrics"), one("EnvironmentMetrics", "metrics")}},
	"volume":        {part: true, kind: hw.LogicalDisk, seldom: true},
	"simpleStorage": {part: true, kind: hw.DiskController, seldom: true, follow: []follow{inline("Devices", "drive", "")}},
	"smartStorage":  {seldom: true, follow: []follow{many("Links.ArrayControllers", "smartController"), many("links.ArrayControllers", "smartController")}},
	"smartController": {part: true, kind: hw.DiskController, seldom: true, follow: []follow{many("Links.PhysicalDrives", "drive"), many("links.PhysicalDrives", "drive"),
		many("Links.LogicalDrives", "volume"), many("links.LogicalDrives", "volume")}},

	"adapter": {part: true, kind: hw.Network, seldom: true, follow: []follow{many("Ports", "port"), {property: "NetworkPorts", role: "port", many: true, unless: "Ports"}, one("EnvironmentMetrics", "metrics")}},
	"port":    {part: true, kind: hw.Network, follow: []follow{one("Metrics", "metrics"), one("EnvironmentMetrics", "metrics")}},
	// A processor's ports (NVLink, PCIe) are many, and their faults show in the health of the system.
	"processorPort": {part: true, kind: hw.Network, seldom: true},
	"ethernet":      {part: true, kind: hw.Network, seldom: true},

	"manager":  {part: true, kind: hw.Manager, seldom: true, follow: []follow{many("LogServices", "log"), many("DedicatedNetworkPorts", "port")}},
	"log":      {part: true, kind: hw.EventLog, seldom: true, follow: []follow{one("Entries", "entries")}},
	"entries":  {attached: true, seldom: true, leaf: true},
	"update":   {seldom: true, follow: []follow{many("FirmwareInventory", "firmware"), many("SoftwareInventory", "firmware")}},
	"firmware": {part: true, kind: hw.FirmwareImage, seldom: true, leaf: true},

	"powerEquipment": {seldom: true, follow: []follow{many("RackPDUs", "distribution"), many("FloorPDUs", "distribution"), many("TransferSwitches", "distribution"),
		many("PowerShelves", "distribution"), many("ElectricalBuses", "distribution"), many("Switchgear", "distribution")}},
	"distribution": {part: true, kind: hw.OtherDevice, follow: []follow{one("Metrics", "metrics"), many("Sensors", "sensor"), many("Mains", "outlet"), many("Branches", "outlet"),
		many("Feeders", "outlet"), many("Subfeeds", "outlet"), many("Outlets", "outlet"), many("OutletGroups", "outlet"), many("PowerSupplies", "supply"),
		inline("PowerDistributionRedundancy", "redundancy", ""), inline("PowerSupplyRedundancy", "redundancy", "")}},
	"outlet": {part: true, kind: hw.Outlet},
	"thermalEquipment": {seldom: true, follow: []follow{many("CDUs", "coolingUnit"), many("HeatExchangers", "coolingUnit"), many("ImmersionUnits", "coolingUnit"), many("RPUs", "coolingUnit"),
		many("CoolingLoops", "coolingLoop"), inline("CoolingLoopRedundancy", "redundancy", "")}},
	"coolingLoop": {part: true, kind: hw.OtherDevice, follow: []follow{many("PrimaryCoolantConnectors", "device"), many("SecondaryCoolantConnectors", "device")}},
	"coolingUnit": {part: true, kind: hw.OtherDevice, follow: []follow{many("Pumps", "pump"), many("Filters", "device"), many("Reservoirs", "device"),
		many("PrimaryCoolantConnectors", "device"), many("SecondaryCoolantConnectors", "device"), one("LeakDetection", "leakDetection"), one("EnvironmentMetrics", "metrics"),
		inline("PumpRedundancy", "redundancy", ""), inline("CoolantConnectorRedundancy", "redundancy", ""), inline("FilterRedundancy", "redundancy", ""), inline("CoolingUnitRedundancy", "redundancy", "")}},
}
