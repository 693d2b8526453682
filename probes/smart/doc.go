// Package smart is a probe that reads the self-monitoring data of disks, by smartctl of smartmontools: ATA, SAS and
// NVMe disks, and those behind RAID controllers.
//
// It can read NVMe disks without smartctl, by its own commands to the kernel.
//
// Its families have the names of smartctl_exporter, beside the hw_* of package hw. It does not wake sleeping
// disks. smartctl(8) documents smartctl's JSON, and its exit status, a mask of bits.
package smart
