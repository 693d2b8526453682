// Package library knows hardware that is read over SNMP: which objects of which MIBs a kind of device
// has, what they measure, in which unit, and what their states mean. The knowledge is in definitions,
// small YAML files that are embedded and that users extend with their own; docs/snmp-library.md explains
// them. The package does no I/O: it says what to read, and makes hw reports of what was read.
package library
