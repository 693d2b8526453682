// Package lab boots Debian's own kernel in a virtual machine with disks, sensors, management controllers and networks, runs
// the built agent in it, and compares its series with the output of other programs in the same machine. Then it unplugs,
// hangs and breaks devices, and shows that all other series keep their samples in each round.
//
// `go run ./internal/tools/torture -parts machine` runs it. It takes seven and a half to nine minutes on two idle cores
// without KVM. It needs no root, and these packages of Debian:
//
//	qemu-system-x86 linux-image-amd64 busybox-static kmod smartmontools nvme-cli ipmitool prometheus-node-exporter i2c-tools
//
// If one is missing, the lab is skipped and names it. The kernel image in /boot must be readable. KVM is used if a kernel
// boots with it; otherwise QEMU emulates the processor.
//
// # The machine
//
//   - QEMU's q35 with 2 processors and 1.5 GiB, and an initial file system that the test builds from this host's programs.
//     [hwsagent/e2e/lab/guest] is its first process.
//   - 2 NVMe, 2 SATA, 2 SCSI disks and 1 USB disk of 64 MiB, each with one unreadable sector.
//   - e1000e and virtio networks, and one more virtio device by which the test reaches the machine over loopback.
//   - QEMU's own management controller, and a second one from package bmcsim behind QEMU's ipmi-bmc-extern, with 60 sensors,
//     which can hang and lie.
//   - Two LM75 and one JC42 behind the kernel's i2c-stub, and the temperature sensors of the disks.
//
// The agent writes to the demo's recording receiver in the test.
//
// # Comparison
//
//   - node_exporter 1.5: every node_* series that it has, names, labels and values, in both directions.
//   - smartctl 7.3 and nvme-cli 2.3: identity, sizes, hours, temperatures, attributes, wear, health of each disk.
//   - The kernel's SMBIOS tables: the machine and its memory modules.
//   - ipmitool 1.8.19: sensors, event log, chassis, controller, inventory.
//
// A constant must be equal. A counter of the other program must lie between the agent's readings before and after it; a gauge
// that changes must be near. Each value is compared six times and must match once.
//
// # Events
//
// Each of 41 events happens twice, three at a time on different devices, in an order that HWSAGENT_SEED repeats: disks and
// network devices are unplugged and return, hang, fail reads or warn; a link goes down; a sensor leaves its bus or overheats;
// /dev/ipmi0 disappears; a controller is silent, late, wrong or reset. HWSAGENT_LAB_EVENTS is a regular expression that
// selects events; then nothing is compared.
//
// An event has happened when the agent's own series show it, and is over when they show its end. Every series that was present
// in each round before the first event must have a sample in each later round of its probe, except during an event of its own
// device. No round may fail or be late, and goroutines, open files and smartctl processes must not pile up.
//
// QEMU's devices are not real ones: its disks develop no bad sectors, and a controller never stops in the middle of a byte.
package lab
