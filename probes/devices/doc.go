// Package devices has the common parts of probes of remote devices: lists of devices, from the configuration and from
// files that are read again when they change (List, Files), sharing a list between several agents (Shard), secrets per
// device (Device.Fill), limits of requests (Paces), and tracking of devices that may be down (Contact). It opens no
// connection.
package devices
