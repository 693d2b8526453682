// Package lab boots Debian's own kernel in a virtual machine with disks, sensors, a management controller and networks, runs
// the built agent in it, and compares its series with what node_exporter, smartctl, nvme and ipmitool say in that same
// machine. Then it unplugs, hangs and breaks devices and shows that each other series keeps its samples in each round.
//
// `make lab` runs it, and `make torture` as the part "machine". It is skipped by name where QEMU, the kernel or a program is
// missing. docs/lab.md describes the machine.
//
// The machine is QEMU's q35 with an initial file system that the test makes of this host's programs; [hwsagent/e2e/lab/guest]
// is its first process. The test reaches it over a network that QEMU itself ends on this host's loopback, so that it needs
// no right of root. The agent writes to the demo's recording receiver in the test.
package lab
