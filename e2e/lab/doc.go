// Package lab boots Debian's own kernel in a virtual machine with disks, sensors, a management controller and networks, runs
// the built agent in it, and compares its series with the output of node_exporter, smartctl, nvme and ipmitool in the same
// machine. Then it unplugs, hangs and breaks devices, and shows that all other series keep their samples in each round.
//
// `go run ./internal/tools/torture -parts machine` runs it. It is skipped by name where QEMU, the kernel or a program is
// missing. docs/lab.md describes the machine.
//
// The machine is QEMU's q35 with an initial file system that the test builds from this host's programs; [hwsagent/e2e/lab/guest]
// is its first process. The test reaches it over a network that QEMU itself terminates on this host's loopback, so it does
// not need root. The agent writes to the demo's recording receiver in the test.
package lab
