// Package bmcsim simulates management controllers (BMCs) that speak IPMI 2.0 over the network: RMCP+ with the cipher suites 17
// and 3, a sensor data record (SDR) repository, sensors with limits and with states, inventories (FRU), an event log (SEL), the
// chassis, and power by DCMI. Hundreds run in one process, each at its own address, and each may misbehave by a [Fault]. A [Line]
// is one inside a virtual machine, which that machine's kernel reaches like any controller.
//
// It knows nothing of the agent: it was written from the specification, and ipmitool reads it in a test. Sections, tables and
// figures in comments are those of the Intelligent Platform Management Interface Specification, second generation, v2.0,
// document revision 1.1; those with FRU of the Platform Management FRU Information Storage Definition, v1.0, revision 1.3.
package bmcsim
