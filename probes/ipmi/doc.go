// Package ipmi is a probe that reads a machine's management controller (BMC): over the network by IPMI 2.0's RMCP+, or
// this machine's own through the kernel. It reads the sensors described by the sensor data records (SDR), the chassis, the
// inventory (FRU), the system event log (SEL) and, by DCMI, the power; it changes nothing.
//
// Each round has one session, closed at its end. The session and the records are the package's own code: bougou/go-ipmi
// v0.9.1 parses datagrams without checking their lengths, in a goroutine that no guard covers, and stops at the first
// record that it does not know. Only its package for the kernel's ioctls is used. A refused login is not repeated for
// five minutes, because controllers lock accounts.
//
// Sections, tables and figures in comments are those of the Intelligent Platform Management Interface Specification,
// second generation, v2.0, document revision 1.1.
package ipmi
