package snmp

import (
	"maps"
	"slices"
)

// builtin are the built-in modules. Their OIDs, types and enumerations are those of the RFCs
// named at each table.
var builtin = map[string]module{
	"system":         systemModule,
	"if_mib":         ifModule,
	"host_resources": hostModule,
	"entity_sensor":  entityModule,
	"ucd_lmsensors":  lmSensorsModule,
}

// Modules returns the names of the built-in modules, sorted.
func Modules() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(builtin)), hardwareModule)))
}

// column is one line of a table's description.
type column struct {
	arc  string
	name string
	typ  metricType
	help string
}

// table makes the metrics of a table's columns, which share indexes and lookups.
func table(entry string, indexes []index, lookups []lookup, columns ...column) []metric {
	ms := make([]metric, len(columns))
	for i, c := range columns {
		ms[i] = metric{name: c.name, oid: entry + "." + c.arc, typ: c.typ, help: c.help, indexes: indexes, lookups: lookups}
	}
	return ms
}

// withEnum sets the enumeration of the metric of that name.
func withEnum(ms []metric, name string, enum map[int]string) []metric {
	for i := range ms {
		if ms[i].name == name {
			ms[i].enumValues = enum
		}
	}
	return ms
}

// systemModule is the group system of SNMPv2-MIB (RFC 3418), without the table of
// supported MIB modules.
var systemModule = module{
	get: []string{
		"1.3.6.1.2.1.1.1.0", "1.3.6.1.2.1.1.2.0", sysUpTime, "1.3.6.1.2.1.1.4.0",
		"1.3.6.1.2.1.1.5.0", "1.3.6.1.2.1.1.6.0", "1.3.6.1.2.1.1.7.0",
	},
	metrics: table("1.3.6.1.2.1.1", nil, nil,
		column{"1", "sysDescr", typeDisplayString, "What the device is: hardware, operating system, versions."},
		column{"2", "sysObjectID", typeOctetString, "The vendor's identifier for this kind of device."},
		column{"3", "sysUpTime", typeGauge, "Hundredths of a second since the SNMP agent started."},
		column{"4", "sysContact", typeDisplayString, "The contact person for the device."},
		column{"5", "sysName", typeDisplayString, "The device's name, often its host name."},
		column{"6", "sysLocation", typeDisplayString, "The location of the device."},
		column{"7", "sysServices", typeGauge, "The network layers that the device serves, as a sum of powers of two."},
	),
}
