package host

import (
	"os"
	"path/filepath"
	"strings"

	"hwsagent/probes/hw"
)

// newHardwareDisks reads disks, their enclosures, software RAID and tape drives. It never wakes a sleeping disk.
func newHardwareDisks(e *environment) reader {
	p := newPlaces(e.SysPath)
	nvme := func(name string) bool { _, ok := unit(name, "nvme"); return ok }
	disk := func(name string) bool {
		return strings.HasPrefix(name, "sd") || strings.HasPrefix(name, "vd") || strings.HasPrefix(name, "xvd") || strings.HasPrefix(name, "mmcblk")
	}
	array := func(name string) bool { return strings.HasPrefix(name, "md") }
	tape := func(name string) bool { _, ok := unit(name, "st"); return ok }
	h := e.hardware(
		hardwareClass{e.sys("class/nvme"), nvme, p.nvmeDisk},
		hardwareClass{e.sys("block"), disk, p.blockDisk},
		hardwareClass{e.sys("block"), array, func(dir string) []hw.Report { return raidArray(dir, e.UdevPath) }},
		hardwareClass{e.sys("class/scsi_tape"), tape, p.tapeDrive},
		hardwareClass{e.sys("class/enclosure"), nil, p.enclosure},
	)
	h.join = joinPaths
	return h
}

// nvmeDisk reads a controller, which people call the disk. Controllers over a network are another machine's hardware.
func (p places) nvmeDisk(dir string) []hw.Report {
	name := filepath.Base(dir)
	if transport := text(dir + "/transport"); transport != "" && transport != "pcie" {
		return nil
	}
	disk := hw.Report{Component: hw.Component{Kind: hw.PhysicalDisk, ID: p.nvmeID(dir), Name: name, Parent: enclosureID, Facts: append(texts(dir,
		hw.Model, "model", hw.Serial, "serial", hw.Firmware, "firmware_rev"), hw.DiskType, "nvme", hw.Device, name)}}
	if disk.ID == "" {
		disk.ID = "disk:" + name
	}
	disk.Status = nvmeState(text(dir + "/state"))
	size := 0.0
	children, _ := list(dir) // on an error there are no namespaces
	for _, child := range children {
		if rest, ok := strings.CutPrefix(child, name); ok && isNamespace(rest) {
			if sectors, ok := number(dir + "/" + child + "/size"); ok {
				size += sectors * 512
			}
		}
	}
	if size > 0 {
		disk.Add(hw.DiskSize, size)
	}
	return []hw.Report{disk}
}

// nvmeState translates a state of drivers/nvme/host.
func nvmeState(word string) hw.Status {
	switch word {
	case "":
		return 0
	case "live":
		return hw.OK
	case "dead":
		return hw.Failed
	case "new", "resetting", "connecting", "deleting", "deleting (no IO)":
		return hw.Degraded
	}
	return hw.Unknown
}

// blockDisk reads a disk of SCSI or SATA, of virtio or Xen, or a memory card.
func (p places) blockDisk(dir string) []hw.Report {
	name, device := filepath.Base(dir), dir+"/device"
	if _, err := os.Stat(device); err != nil || strings.Contains(name, "boot") || strings.Contains(name, "rpmb") {
		return nil
	}
	facts := texts(device, hw.Vendor, "vendor", hw.Model, "model", hw.Firmware, "rev", hw.Serial, "serial")
	disk := hw.Report{Component: hw.Component{Kind: hw.PhysicalDisk, Name: name, Parent: enclosureID}}
	id := hw.DiskID(text(device+"/wwid"), text(device+"/model"), text(dir+"/serial"))
	switch {
	case strings.HasPrefix(name, "mmcblk"):
		id = hw.DiskID("", text(device+"/name"), text(device+"/serial"))
		facts = texts(device, hw.Model, "name", hw.Serial, "serial", hw.Firmware, "fwrev")
		addCard(&disk, device)
	case strings.HasPrefix(name, "sd"):
		addSCSI(&disk, device)
	default:
		facts = []string{hw.Serial, text(dir + "/serial")}
	}
	disk.Facts = append(facts, hw.Device, name)
	if disk.ID = orPlace(id, p.of(device)); disk.ID == "" {
		disk.ID = "disk:" + name
	}
	if kind := map[string]string{"0": "ssd", "1": "hdd"}[text(dir+"/queue/rotational")]; kind != "" && strings.HasPrefix(name, "sd") {
		disk.Facts = append(disk.Facts, hw.DiskType, kind)
	}
	if sectors, ok := number(dir + "/size"); ok && sectors > 0 {
		disk.Add(hw.DiskSize, sectors*512)
	}
	if strings.HasPrefix(name, "sd") {
		disk, _ = lun(disk, dir)
	}
	return []hw.Report{disk}
}

// addSCSI adds the kernel's data about a SCSI device: its state and, in hexadecimal, the number of commands that ended
// with an error (drivers/scsi/scsi_sysfs.c). Such a command may be one that the disk does not support, so the count
// does not affect the status.
func addSCSI(p *hw.Report, device string) {
	switch state := text(device + "/state"); state {
	case "":
	case "running":
		p.Status = hw.OK
	case "offline", "transport-offline":
		p.Status = hw.Failed
	default: // created, quiesce, blocked, created-blocked, cancel, deleted
		p.Status = hw.Degraded
	}
	for _, count := range [...]struct{ file, kind string }{{"ioerr_cnt", "io"}, {"iotmo_cnt", "timeout"}} {
		if v, ok := number(device + "/" + count.file); ok {
			p.Add(hw.Errors, v, "error_type", count.kind)
		}
	}
}

// addCard adds the wear of an eMMC (the kernel's Documentation/driver-api/mmc/mmc-dev-attrs.rst, by EXT_CSD of JEDEC's
// standard eMMC 5.0): life_time has two numbers, 0x01 for up to 10 % used and so on, of which the worse counts;
// pre_eol_info is 0x01 normal, 0x02 warning, 0x03 urgent.
func addCard(p *hw.Report, device string) {
	used := 0.0
	for field := range strings.FieldsSeq(text(device + "/life_time")) {
		if v, ok := numeral(field); ok && v >= 1 && v <= 11 {
			used = max(used, v/10)
		}
	}
	if used > 0 {
		p.Add(hw.DiskEndurance, max(0, 1-used), hw.LabelDiskState, "remaining")
	}
	switch text(device + "/pre_eol_info") {
	case "0x01":
		p.Status = hw.OK
	case "0x02", "0x03":
		p.Status = hw.OK | hw.PredictedFailure
	}
}

// raidArray reads an array of md (the kernel's Documentation/admin-guide/md.rst).
func raidArray(dir, udev string) []hw.Report {
	name := filepath.Base(dir)
	level, err := attribute(dir + "/md/level")
	if err != nil || level == "" || level == "container" { // containers hold arrays, not disks
		return nil
	}
	u := udevProperties(udev + "/b" + text(dir+"/dev"))
	array := hw.Report{Component: hw.Component{Kind: hw.LogicalDisk, ID: "md:" + name, Name: name, Parent: enclosureID, Facts: []string{hw.UUID, u["MD_UUID"], hw.Device, name}}}
	if uuid := u["MD_UUID"]; uuid != "" {
		array.ID = "md:" + uuid
	}
	if sectors, ok := number(dir + "/size"); ok && sectors > 0 {
		array.Add(hw.LogicalDiskLimit, sectors*512, hw.LabelRAIDLevel, level)
	}
	disks, _, _ := strings.Cut(text(dir+"/md/raid_disks"), " ") // in a reshape it reads "11 (10)"
	all, _ := numeral(disks)
	missing, redundant := number(dir + "/md/degraded")
	array.Status = arrayStatus(text(dir+"/md/array_state"), level, all, missing)
	if redundant {
		array.Add(hw.LogicalDiskMembers, missing, hw.LabelMemberState, "missing")
		array.Add(hw.LogicalDiskMembers, max(0, all-missing), hw.LabelMemberState, "active")
	}
	return []hw.Report{array}
}

// arrayStatus returns the status of an array with missing disks.
func arrayStatus(state, level string, disks, missing float64) hw.Status {
	switch state {
	case "inactive", "clear", "broken":
		return hw.Failed
	case "":
		return hw.Unknown
	}
	spare := 0.0 // number of disks that it can lose
	switch level {
	case "raid1", "raid10":
		spare = disks - 1 // for raid10, which depends on their positions, the kernel reports a broken array
	case "raid4", "raid5":
		spare = 1
	case "raid6":
		spare = 2
	}
	switch {
	case missing == 0:
		return hw.OK
	case missing > spare:
		return hw.Failed
	}
	return hw.Degraded
}

// tapeDrive reads a tape drive.
func (p places) tapeDrive(dir string) []hw.Report {
	device := dir + "/device"
	drive := hw.Report{Component: hw.Component{Kind: hw.TapeDrive, Name: filepath.Base(dir), Parent: enclosureID, Facts: append(
		texts(device, hw.Vendor, "vendor", hw.Model, "model", hw.Firmware, "rev"), hw.Device, filepath.Base(dir))}}
	if drive.ID = p.scsiID(device); drive.ID == "" {
		drive.ID = "tape:" + drive.Name
	}
	addSCSI(&drive, device)
	return []hw.Report{drive}
}
