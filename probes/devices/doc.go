// Package devices has the common parts of probes of remote devices. It reads lists of devices from the configuration
// ([List]) and from files, again when these change ([Files]), shares a list between several agents ([Shard]), gives each
// device its secrets ([Device.Fill]), limits requests ([Paces]), and tracks devices that may be down ([Contact]). It opens
// no connection.
package devices
