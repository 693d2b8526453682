// Package snmp reads devices over SNMP v1, v2c and v3 and turns tables into metrics.
//
// A [Probe] keeps one connection to one device. Each round it first asks for sysUpTime, so that
// one packet distinguishes a dead device from a slow walk, and then reads its modules one after
// the other. A module is a table of this package, or comes from a file in the format of
// snmp_exporter's snmp.yml. It lists the subtrees to walk and the metric for each object. The
// model uses the vocabulary of snmp.yml (walk, get, metrics, indexes, lookups, enum_values), so
// names and labels are those that snmp_exporter's dashboards use. In addition, the modules for
// sensors give every reading in base units under the names of the OpenTelemetry hardware
// conventions (hw_temperature_celsius and so on).
//
// A failing module loses only its own series.
package snmp
