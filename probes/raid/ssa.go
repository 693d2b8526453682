package raid

import (
	"context"
	"fmt"
	"strings"

	"hwsagent/probes/hw"
)

// The words for states are those of the HPE Smart Storage Administrator User Guide and of the driver hpsa.
var (
	ssaVolumes = []prefixState{
		{"ok", hw.OK}, {"interim recovery", hw.Degraded}, {"recovering", hw.Degraded}, {"ready for rebuild", hw.Degraded}, {"waiting for rebuild", hw.Degraded},
		{"waiting to rebuild", hw.Degraded}, {"rebuilding", hw.Degraded}, {"transforming", hw.OK}, {"expanding", hw.OK}, {"queued for expansion", hw.OK}, {"waiting for transform", hw.OK},
		{"failed", hw.Failed}, {"disabled", hw.Failed}, {"wrong physical", hw.Failed}, {"physical drive not properly", hw.Failed}, {"overheated", hw.Failed},
	}
	ssaDisks = []prefixState{
		{"ok", hw.OK}, {"predictive failure", hw.OK | hw.PredictedFailure}, {"rebuilding", hw.Degraded}, {"erase", hw.OK}, {"sanitize", hw.OK},
		{"queued for rebuild", hw.Degraded}, {"failed", hw.Failed}, {"offline", hw.Failed}, {"missing", hw.Failed},
	}
	ssaParts = []prefixState{
		{"ok", hw.OK}, {"charging", hw.Degraded}, {"recharging", hw.Degraded}, {"temporarily disabled", hw.Degraded}, {"permanently disabled", hw.Failed},
		{"not configured", hw.OK}, {"failed", hw.Failed}, {"not ready", hw.Degraded},
	}
)

// readSSA reads the controllers of HPE by one run.
func readSSA(ctx context.Context, run ask) ([]controller, error) {
	out, err := run(ctx, "ctrl", "all", "show", "config", "detail")
	if err != nil {
		return nil, err
	}
	all := parseSSA(string(out))
	if len(all) == 0 && len(strings.TrimSpace(string(out))) > 0 && !strings.Contains(string(out), "No controllers detected") {
		return nil, refusal(string(out))
	}
	return all, nil
}

// ssaHeading finds the sections of ssacli's text: a controller's heading is not indented.
func ssaHeading(line string) (kind, title string, ok bool) {
	low := strings.TrimSpace(line)
	switch {
	case low == "":
		return "", "", false
	case line[0] != ' ' && strings.Contains(line, " in Slot "):
		return "controller", line, true
	case strings.HasPrefix(low, "Logical Drive: "):
		return "volume", strings.TrimPrefix(low, "Logical Drive: "), true
	case strings.HasPrefix(low, "physicaldrive ") && !strings.Contains(low, "("): // with its data in brackets it is a line of a mirror's list
		return "disk", strings.TrimPrefix(low, "physicaldrive "), true
	}
	for _, other := range [...]string{"Array: ", "Port Name: ", "SEP (", "Internal Drive Cage", "External Drive", "Expander ", "Enclosure SEP", "Unassigned", "Mirror Group", "Parity Group", "Drive Cage"} {
		if strings.HasPrefix(low, other) {
			return "", "", true
		}
	}
	return "", "", false
}

// parseSSA reads the text of ssacli ctrl all show config detail.
func parseSSA(text string) (all []controller) {
	sections := divide(text, ": ", ssaHeading)
	for i := range sections {
		s := &sections[i]
		if s.kind == "controller" {
			all = append(all, ssaController(s, len(all)))
			continue
		}
		if len(all) == 0 {
			continue
		}
		c := &all[len(all)-1]
		switch s.kind {
		case "volume":
			*c = append(*c, ssaVolume(s, (*c)[0].ID))
		case "disk":
			*c = append(*c, ssaDisk(s, (*c)[0].ID))
		}
	}
	return all
}

func ssaController(s *section, index int) controller {
	model, _, _ := strings.Cut(s.title, " in Slot ")
	pci := s.say("PCI Address (Domain:Bus:Device.Function)")
	id := controllerID(s.say("Serial Number"), pci, index)
	own := part(hw.DiskController, id, s.title, "enclosure", hw.Vendor, "HPE", hw.Model, model, hw.Serial, s.say("Serial Number"), hw.Firmware, s.say("Firmware Version"),
		hw.DriverName, s.say("Driver Name"), hw.Driver, s.say("Driver Version"), hw.Device, pci)
	own.Status = stateBegin(s.say("Controller Status"), ssaParts)
	if cache := s.say("Cache Status"); cache != "" && stateBegin(cache, ssaParts)&(hw.Degraded|hw.Failed) != 0 {
		own.Status = own.Status.Join(hw.Degraded)
	}
	addNumber(&own, hw.TemperatureNow, s.say("Controller Temperature (C)"), hw.LabelLocation, "controller")
	addNumber(&own, hw.TemperatureNow, s.say("Cache Module Temperature (C)"), hw.LabelLocation, "cache")
	all := controller{own}
	if word := s.say("Battery/Capacitor Status"); word != "" {
		b := part(hw.Battery, id+"/battery:0", "battery", id)
		b.Status = stateBegin(word, ssaParts)
		addNumber(&b, hw.TemperatureNow, s.say("Capacitor Temperature (C)", "Battery Temperature (C)"))
		all = append(all, b)
	}
	return all
}

func ssaVolume(s *section, parent string) hw.Report {
	id := parent + "/volume:" + s.title
	if unique := s.say("Unique Identifier"); unique != "" { // the NAA identifier of the SCSI device
		id = hw.DiskID(unique, "", "")
	}
	v := part(hw.LogicalDisk, id, "volume "+s.title, parent, hw.Device, strings.TrimPrefix(s.say("Disk Name"), "/dev/"))
	word := s.say("Status")
	v.Status = stateBegin(word, ssaVolumes)
	if bytes, ok := size(s.say("Size"), binary); ok {
		v.Add(hw.LogicalDiskLimit, bytes, hw.LabelRAIDLevel, level(s.say("Fault Tolerance", "RAID Level")))
	}
	if m := percent.FindStringSubmatch(word); m != nil { // Recovering, 25% complete
		task := "rebuild"
		if stateBegin(word, ssaVolumes) == hw.OK {
			task = "transform"
		}
		progress(&v, task, m[1])
	}
	progress(&v, "initialization", s.say("Parity Initialization Progress"))
	return v
}

func ssaDisk(s *section, parent string) hw.Report {
	model, serial := s.say("Model"), s.say("Serial Number")
	vendor := ""
	if fields := strings.Fields(model); len(fields) > 1 { // the SCSI vendor is in front of the model
		vendor, model = fields[0], strings.Join(fields[1:], " ")
	}
	kind := s.say("Interface Type")
	medium := kind
	if speed, ok := number(s.say("Rotational Speed")); ok && speed > 0 {
		medium += " HDD"
	} else if strings.Contains(kind, "Solid State") {
		kind = strings.Fields(kind)[len(strings.Fields(kind))-1] // Solid State SAS
	}
	wwid := s.say("WWID")
	if !strings.EqualFold(kind, "SAS") { // the name of a SATA disk is one that the controller or an expander makes for its port
		wwid = ""
	}
	d := part(hw.PhysicalDisk, diskID(kind, wwid, model, serial), s.title, parent, hw.Vendor, vendor, hw.Model, model, hw.Serial, serial,
		hw.Firmware, s.say("Firmware Revision"), hw.DiskType, diskType(medium), hw.Device, strings.TrimPrefix(s.say("Disk Name"), "/dev/"))
	if d.ID == "" {
		d.ID = fmt.Sprintf("%s/disk:%s", parent, s.title)
	}
	d.Status = stateBegin(s.say("Status"), ssaDisks)
	if v, ok := number(s.say("Current Temperature (C)")); ok && v > 0 {
		d.Add(hw.TemperatureNow, v)
	}
	if bytes, ok := size(s.say("Size"), decimal); ok {
		d.Add(hw.DiskSize, bytes)
	}
	if left, ok := number(s.say("Usage remaining")); ok && left >= 0 && left <= 100 {
		d.Add(hw.DiskEndurance, left/100, hw.LabelDiskState, "remaining")
	}
	return d
}
