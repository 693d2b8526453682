// Package library describes hardware that is read over SNMP: which objects of which MIBs a kind of device
// has, their quantities and units, and the meaning of their states. The descriptions are definitions, small
// YAML files that are embedded and that users extend with their own; docs/snmp-library.md explains them.
// The package does no I/O: it lists the objects to read, and makes hw reports of the values.
package library
