package raid

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"hwsagent/probes/hw"
)

// The states of controllers, volumes, disks and batteries, by the abbreviations that storcli explains below its tables.
// A state that is not listed is unknown.
var (
	controllerStates = map[string]hw.Status{
		"Optimal": hw.OK, "Needs Attention": hw.Degraded, "Need Attention": hw.Degraded, "NdAtn": hw.Degraded, "Degraded": hw.Degraded,
		"Failed": hw.Failed, "Critical": hw.Failed, "Safe Mode": hw.Failed, "Fault": hw.Failed,
	}
	volumeStates = map[string]hw.Status{
		"Optl": hw.OK, "Pdgd": hw.Degraded, "Dgrd": hw.Degraded, "Rec": hw.Degraded, "OfLn": hw.Failed, "Failed": hw.Failed,
	}
	diskStates = map[string]hw.Status{
		"Onln": hw.OK, "UGood": hw.OK, "GHS": hw.OK, "DHS": hw.OK, "JBOD": hw.OK, "EHS": hw.OK, "Conf": hw.OK, "Sntze": hw.OK,
		"Rbld": hw.Degraded, "Cpybck": hw.Degraded, "UGUnsp": hw.Degraded, "UGShld": hw.Degraded, "HSPShld": hw.Degraded, "CFShld": hw.Degraded,
		"Shld": hw.Degraded, "Offln": hw.Failed, "UBad": hw.Failed, "UBUnsp": hw.Failed, "Failed": hw.Failed, "Msng": hw.Failed, "Missing": hw.Failed,
	}
	batteryStates = map[string]hw.Status{
		"Optimal": hw.OK, "Learning": hw.OK, "Charging": hw.Degraded, "Degraded": hw.Degraded, "Dgd": hw.Degraded, "Degraded(Need Attention)": hw.Degraded,
		"Needs Attention": hw.Degraded, "NeedsReplacement": hw.Degraded | hw.PredictedFailure, "Failed": hw.Failed, "Missing": hw.Failed, "Absent": hw.Failed,
	}
)

// state returns the status of a word; unknown if it is not in the map.
func state(of map[string]hw.Status, word string) hw.Status {
	if st := of[word]; st != 0 {
		return st
	}
	return hw.Unknown
}

// controller converts the answers about one controller.
func (s *storcli) controller(a *answer) controller {
	basics, version, status, features := a.data.at("Basics"), a.data.at("Version"), a.data.at("Status"), a.data.at("HwCfg")
	pci := pciAddress(basics.say("PCI Address"), 16)
	id := controllerID(basics.say("Serial Number"), pci, a.index)
	own := part(hw.DiskController, id, strings.TrimSpace(fmt.Sprintf("/c%d %s", a.index, basics.say("Model"))), "enclosure",
		hw.Model, basics.say("Model"), hw.Serial, basics.say("Serial Number"), hw.Firmware, cmp.Or(version.say("Firmware Package Build"), version.say("Firmware Version")),
		hw.DriverName, version.say("Driver Name"), hw.Driver, version.say("Driver Version"), hw.Device, pci)
	own.Status = state(controllerStates, status.say("Controller Status"))
	const misspelt = "ROC temperature(Degree Celcius)" //nolint:misspell // older programs write it so
	addNumber(&own, hw.TemperatureNow, cmp.Or(features.say("ROC temperature(Degree Celsius)"), features.say(misspelt)))
	addNumber(&own, hw.Errors, status.say("Memory Correctable Errors"), "error_type", "memory_corrected")
	addNumber(&own, hw.Errors, status.say("Memory Uncorrectable Errors"), "error_type", "memory_uncorrected")
	for _, row := range s.patrols[a.index] {
		if row.say("Ctrl_Prop") == "PR Current State" {
			if m := percent.FindStringSubmatch(row.say("Value")); m != nil {
				progress(&own, "patrol_read", m[1])
			}
		}
	}
	all := controller{own}
	for _, kind := range [...]string{"BBU_Info", "Cachevault_Info"} {
		for i, row := range a.data.rows(kind) {
			b := part(hw.Battery, fmt.Sprintf("%s/battery:%d", id, i), cmp.Or(row.say("Model"), "battery"), id, hw.Model, row.say("Model"))
			b.Status = state(batteryStates, row.say("State"))
			addNumber(&b, hw.TemperatureNow, row.say("Temp"))
			all = append(all, b)
		}
	}
	for _, row := range a.data.rows("VD LIST") {
		all = append(all, s.volume(a.index, id, row))
	}
	for _, row := range a.data.rows("PD LIST") {
		all = append(all, s.disk(a.index, id, row))
	}
	return all
}

// percent matches the progress in the state of a patrol read: Active 25%.
var percent = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?) ?%`)

// volume converts a row of the list of virtual drives.
func (s *storcli) volume(index int, parent string, row node) hw.Report {
	place := cmp.Or(row.say("DG/VD"), row.say("VD"))
	_, number, _ := strings.Cut(place, "/")
	more := s.volumes[index].at("VD" + number + " Properties")
	id := parent + "/volume:" + place
	if naa := strings.ToLower(more.say("SCSI NAA Id")); naa != "" {
		id = hw.DiskID(naa, "", "")
	}
	v := part(hw.LogicalDisk, id, cmp.Or(row.say("Name"), "volume "+place), parent, hw.Device, strings.TrimPrefix(more.say("OS Drive Name"), "/dev/"))
	v.Status = state(volumeStates, row.say("State"))
	if bytes, ok := size(row.say("Size"), binary); ok {
		v.Add(hw.LogicalDiskLimit, bytes, hw.LabelRAIDLevel, level(row.say("TYPE")))
	}
	return v
}

// sectors matches a size in sectors: 279.396 GB [0x22ecb25c Sectors].
var sectors = regexp.MustCompile(`\[0x([0-9a-fA-F]{1,15}) Sectors\]`)

// disk converts a row of the list of physical drives.
func (s *storcli) disk(index int, parent string, row node) hw.Report {
	enclosure, slot, _ := strings.Cut(row.say("EID:Slt"), ":")
	enclosure, slot = strings.TrimSpace(enclosure), strings.TrimSpace(slot)
	path := fmt.Sprintf("/c%d/e%s/s%s", index, enclosure, slot)
	if enclosure == "" {
		path = fmt.Sprintf("/c%d/s%s", index, slot)
	}
	detail := s.disks[index].at("Drive " + path + " - Detailed Information")
	health, attributes := detail.at("Drive "+path+" State"), detail.at("Drive "+path+" Device attributes")
	model, serial := cmp.Or(attributes.say("Model Number"), row.say("Model")), attributes.say("SN")
	d := part(hw.PhysicalDisk, diskID(row.say("Intf"), attributes.say("WWN"), model, serial), path, parent,
		hw.Vendor, attributes.say("Manufacturer Id"), hw.Model, model, hw.Serial, serial, hw.Firmware, attributes.say("Firmware Revision"),
		hw.DiskType, diskType(row.say("Intf")+row.say("Med")))
	if d.ID == "" {
		d.ID = parent + "/disk:" + enclosure + ":" + slot
	}
	d.Status = state(diskStates, row.say("State"))
	if row.say("DG") == "F" { // of a foreign configuration: it is in no array of this controller
		d.Status = d.Status.Join(hw.Degraded)
	}
	if n, _ := number(health.say("Predictive Failure Count")); n > 0 || health.say("S.M.A.R.T alert flagged by drive") == "Yes" {
		d.Status = d.Status.Join(hw.PredictedFailure)
	}
	for _, count := range [...]struct{ key, kind string }{{"Media Error Count", "media"}, {"Other Error Count", "other"}, {"Predictive Failure Count", "predictive_failure"}} {
		addNumber(&d, hw.Errors, health.say(count.key), "error_type", count.kind)
	}
	if v, ok := number(health.say("Drive Temperature")); ok && v > 0 {
		d.Add(hw.TemperatureNow, v)
	}
	if bytes, ok := diskSize(attributes, row); ok {
		d.Add(hw.DiskSize, bytes)
	}
	for _, r := range s.rebuilds[index] {
		if r.say("Drive-ID") == path {
			progress(&d, "rebuild", r.say("Progress%"))
		}
	}
	return d
}

// diskSize returns the size of a disk by its sectors, else by its text, which is rounded.
func diskSize(attributes, row node) (float64, bool) {
	if m := sectors.FindStringSubmatch(attributes.say("Raw size")); m != nil {
		n, err := strconv.ParseUint(m[1], 16, 64)
		sector, known := sectorSizes[cmp.Or(attributes.say("Logical Sector Size"), row.say("SeSz"))]
		if err == nil && known {
			return float64(n) * sector, true
		}
	}
	return size(row.say("Size"), binary)
}

var sectorSizes = map[string]float64{"512B": 512, "512 B": 512, "4 KB": 4096, "4KB": 4096}
