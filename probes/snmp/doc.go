// Package snmp reads devices over SNMP v1, v2c and v3 and turns tables into metrics.
//
// A [Probe] keeps one connection to one device. Each round it first asks for
// sysUpTime, which tells a dead device from a slow walk by one packet, and then reads
// its modules one after the other. A module is a table of our own, or one of a file in
// the format of snmp_exporter's snmp.yml. It says which
// subtrees to walk and what each object becomes: the model has the words of
// snmp_exporter's snmp.yml (walk, get, metrics, indexes, lookups, enum_values), so
// names and labels are the ones that its dashboards use. On top of that the modules
// for sensors give every reading in base units under the names of the OpenTelemetry
// hardware conventions (hw_temperature_celsius and so on).
//
// A module that fails costs only its own series.
package snmp
