package raid

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"hwsagent/probes/hw"
)

// The abbreviations of states are those of LSI's SAS-3 Integrated RAID Solution User Guide, appendix A.
var (
	ircuVolumes = map[string]hw.Status{"OKY": hw.OK, "ONL": hw.OK, "INIT": hw.OK, "DGD": hw.Degraded, "FLD": hw.Failed, "MIS": hw.Failed}
	ircuDisks   = map[string]hw.Status{
		"ONL": hw.OK, "HSP": hw.OK, "RDY": hw.OK, "AVL": hw.OK, "OPT": hw.OK, "SBY": hw.OK, "JBOD": hw.OK,
		"DGD": hw.Degraded, "RBLD": hw.Degraded, "OSY": hw.Degraded, "FLD": hw.Failed, "MIS": hw.Failed,
	}
	ircuState   = regexp.MustCompile(`\(([A-Z]+)\)\s*$`)
	ircuAdapter = regexp.MustCompile(`(?m)^\s*([0-9]{1,3})\s+(\S+)\s+[0-9a-fA-F]+h\s+[0-9a-fA-F]+h\s+((?:[0-9a-fA-F]+h?:){3}[0-9a-fA-F]+h?)`)
)

// readIRCU reads the list of adapters, and each adapter by two runs.
func readIRCU(ctx context.Context, run ask) ([]controller, error) {
	out, err := run(ctx, "list")
	if err != nil {
		return nil, err
	}
	adapters := ircuAdapter.FindAllStringSubmatch(string(out), maxControllers)
	if len(adapters) == 0 && !strings.Contains(string(out), "MPTLib2 Error 1") { // 1: there is no adapter
		return nil, refusal(string(out))
	}
	var all []controller
	var errs []error
	for _, a := range adapters {
		out, err := run(ctx, a[1], "display")
		if err != nil {
			errs = append(errs, fmt.Errorf("adapter %s: %w", a[1], err))
			continue
		}
		c := parseIRCU(string(out), a[1], pciAddress(strings.ReplaceAll(a[3], "h", ""), 16))
		if c == nil {
			errs = append(errs, fmt.Errorf("adapter %s: %w", a[1], refusal(string(out))))
			continue
		}
		if !strings.Contains(string(out), "Completed Successfully") {
			errs = append(errs, fmt.Errorf("adapter %s: the answer of display ends early: the last components may be missing", a[1]))
		}
		if len(c) > 1 && c[1].Kind == hw.LogicalDisk {
			if out, err = run(ctx, a[1], "status"); err != nil {
				errs = append(errs, fmt.Errorf("adapter %s: %w", a[1], err))
			}
			ircuTasks(c, string(out))
		}
		all = append(all, c)
	}
	return all, errors.Join(errs...)
}

// ircuHeading finds the sections of the text: a volume, a disk, another device.
func ircuHeading(line string) (kind, title string, ok bool) {
	low := strings.ToLower(strings.TrimSpace(line))
	switch {
	case low == "controller information":
		return "controller", "", true
	case strings.HasPrefix(low, "ir volume ") && !strings.Contains(low, "information"):
		return "volume", strings.TrimPrefix(low, "ir volume "), true
	case low == "device is a hard disk":
		return "disk", "", true
	case strings.HasPrefix(low, "device is a"), strings.HasSuffix(low, " information"), strings.HasPrefix(low, "initiator at id"):
		return "", "", true
	}
	return "", "", false
}

// parseIRCU reads the text of sas3ircu display; nil if it is not about a controller.
func parseIRCU(text, index, pci string) (c controller) {
	for _, s := range divide(text, " : ", ircuHeading) {
		if s.kind == "controller" && c == nil {
			n, _ := strconv.Atoi(index) // the list's pattern admits digits only
			own := part(hw.DiskController, controllerID("", pci, n), strings.TrimSpace(index+" "+s.say("Controller type")), "enclosure",
				hw.Vendor, "Broadcom", hw.Model, s.say("Controller type"), hw.Firmware, s.say("Firmware version"), hw.BIOS, s.say("BIOS version"), hw.Device, pci)
			c = append(c, own)
		}
		if c == nil {
			continue
		}
		switch s.kind {
		case "volume":
			c = append(c, ircuVolume(&s, c[0].ID))
		case "disk":
			c = append(c, ircuDisk(&s, c[0].ID))
		}
	}
	return c
}

// short returns the abbreviation of a state: OKY of Okay (OKY).
func short(text string) string {
	if m := ircuState.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

func ircuVolume(s *section, parent string) hw.Report {
	id := parent + "/volume:" + s.title
	v := part(hw.LogicalDisk, id, "volume "+s.title, parent)
	if wwid := s.say("Volume wwid"); wwid != "" {
		v.ID = parent + "/volume:" + wwid
	}
	v.Status = state(ircuVolumes, short(s.say("Status of volume")))
	if mebibytes, ok := number(s.say("Size (in MB)")); ok {
		v.Add(hw.LogicalDiskLimit, mebibytes*(1<<20), hw.LabelRAIDLevel, level(s.say("RAID level")))
	}
	return v
}

func ircuDisk(s *section, parent string) hw.Report {
	model, serial := s.say("Model Number"), s.say("Unit Serial No(VPD)", "Serial No")
	kind := s.say("Drive Type") // SAS_HDD
	place := s.say("Enclosure #") + ":" + s.say("Slot #")
	id := ""
	if guid := strings.ToLower(s.say("GUID")); len(guid) == 16 && guid[0] == '5' { // the name of the logical unit
		id = hw.DiskID(guid, model, serial)
	} else {
		id = hw.DiskID("", model, serial)
	}
	d := part(hw.PhysicalDisk, id, place, parent, hw.Vendor, s.say("Manufacturer"), hw.Model, model, hw.Serial, serial,
		hw.Firmware, s.say("Firmware Revision"), hw.DiskType, diskType(kind))
	if d.ID == "" {
		d.ID = parent + "/disk:" + place
	}
	d.Status = state(ircuDisks, short(s.say("State")))
	_, count, _ := strings.Cut(s.say("Size (in MB)/(in sectors)"), "/")
	if n, ok := number(count); ok && n > 0 {
		d.Add(hw.DiskSize, n*512)
	}
	return d
}

// ircuTasks adds the progress in the text of sas3ircu status.
func ircuTasks(c controller, text string) {
	for _, s := range divide(text, " : ", ircuHeading) {
		task := strings.ToLower(strings.ReplaceAll(s.say("Current operation"), " ", "_"))
		if s.kind != "volume" || task == "" || task == "none" {
			continue
		}
		if task == "synchronize" { // of a member that was replaced
			task = "rebuild"
		}
		for i := range c {
			if c[i].Kind == hw.LogicalDisk && c[i].Name == "volume "+s.title {
				progress(&c[i], task, s.say("Percentage complete"))
			}
		}
	}
}
