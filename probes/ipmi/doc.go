// Package ipmi is a probe that reads a machine's management controller (BMC): over the network by IPMI 2.0's RMCP+, or
// this machine's own through the kernel. It reads the sensors described by the sensor data records (SDR), the chassis, the
// inventory (FRU), the system event log (SEL) and, by DCMI, the power; it changes nothing.
//
// Sections, tables and figures in comments are those of the Intelligent Platform Management Interface Specification,
// second generation, v2.0, document revision 1.1.
package ipmi
