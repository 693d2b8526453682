// Package smart is a probe that reads what disks say of themselves, by smartctl of smartmontools: ATA, SAS and
// NVMe disks, and those behind RAID controllers.
//
// NVMe disks can be read without it, by commands that the probe itself gives to the kernel.
//
// Its families have the names of smartctl_exporter, beside the hw_* of package hw. A disk that sleeps is not
// woken. smartctl's JSON is documented in smartctl(8), as is its exit status, a mask of bits.
package smart
