package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hwsagent/probes/hw"
)

// lun returns the disk as a logical disk if it is none that can be touched: a unit of storage behind a network, or a volume of a RAID
// controller. A unit has one report for each of its paths, which [joinPaths] makes one.
func lun(disk hw.Report, dir string) (hw.Report, bool) {
	target, err := os.Readlink(dir)
	if err != nil {
		return disk, false
	}
	if !filepath.IsAbs(target) {
		target = filepath.Dir(dir) + "/" + target
	}
	device, _, _ := strings.Cut(target, "/block/")
	remote := strings.Contains(device, "/rport-") || strings.Contains(device, "/session")
	if !remote && !raidVolume(device) {
		return disk, false
	}
	disk.Kind = hw.LogicalDisk
	for i := range disk.Readings {
		if disk.Readings[i].Metric == hw.DiskSize {
			disk.Readings[i].Metric = hw.LogicalDiskLimit
		}
	}
	if remote {
		active := boolean(disk.Status == hw.OK)
		disk.Add(hw.LogicalDiskMembers, active, hw.LabelMemberState, "active")
		disk.Add(hw.LogicalDiskMembers, 1-active, hw.LabelMemberState, "missing")
	}
	return disk, true
}

// raidVolume reports whether a SCSI device is a volume of its controller: drivers tell by an attribute or by the channel of the address (host,
// channel, target, unit). The channels of megaraid_sas are MEGASAS_MAX_PD_CHANNELS of drivers/scsi/megaraid/megaraid_sas.h, that of mpt3sas
// RAID_CHANNEL of mpt3sas_base.h, that of aacraid CONTAINER_CHANNEL of aacraid.h.
func raidVolume(device string) bool {
	host, rest, ok := strings.Cut(filepath.Base(device), ":")
	channel, _, _ := strings.Cut(rest, ":")
	before, _, found := strings.Cut(device, "/host"+host+"/")
	if !ok || !found {
		return false
	}
	switch text(before + "/host" + host + "/scsi_host/host" + host + "/proc_name") {
	case "hpsa", "smartpqi":
		level := text(device + "/raid_level")
		return level != "" && level != "N/A"
	case "megaraid_sas":
		return channel != "0" && channel != "1"
	case "mpt2sas", "mpt3sas", "mpi3mr":
		return channel == "1"
	case "aacraid":
		return channel == "0"
	case "3w-9xxx", "3w-sas", "3w-xxxx", "arcmsr", "hptiop", "ips", "stex":
		return true
	}
	return false
}

// isPath reports whether a report is that of a path. Arrays of md have members, too.
func isPath(p hw.Report) bool {
	return p.Kind == hw.LogicalDisk && !strings.HasPrefix(p.ID, "md:") && slices.ContainsFunc(p.Readings, func(r hw.Reading) bool { return r.Metric == hw.LogicalDiskMembers })
}

// joinPaths makes one report of those of a unit's paths: with the number of its paths by state, failed without any and degraded without some.
func joinPaths(all []hw.Report) []hw.Report {
	if !slices.ContainsFunc(all, isPath) {
		return all
	}
	first := map[string]int{}
	var out []hw.Report
	for _, p := range all {
		i, there := first[p.ID]
		paths := isPath(p)
		switch {
		case !paths:
			out = append(out, p)
		case !there:
			first[p.ID] = len(out)
			out = append(out, p)
		default:
			unit := &out[i]
			if unit.Status != p.Status && (unit.Status == hw.OK || p.Status == hw.OK) {
				unit.Status = hw.Degraded
			}
			for _, r := range p.Readings {
				if r.Metric != hw.LogicalDiskMembers && r.Metric != hw.Errors {
					continue
				}
				for k := range unit.Readings {
					if u := &unit.Readings[k]; u.Metric == r.Metric && slices.Equal(u.Attributes, r.Attributes) {
						u.Value += r.Value
					}
				}
			}
		}
	}
	return out
}
