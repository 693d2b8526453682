// Package devices has what every probe of remote devices needs: lists of them, from the
// configuration and from files that are read again when they change (List, Files), the share
// of one of several agents (Shard), secrets per device (Device.Fill), a limit of requests
// (Paces), and what is known of a device that may be down (Contact). It opens no connection.
package devices
