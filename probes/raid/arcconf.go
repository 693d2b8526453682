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

// The words for states are those of Microchip's ARCCONF Command Line Utility User Guide.
var (
	arcParts = []prefixState{
		{"optimal", hw.OK}, {"ok", hw.OK}, {"normal", hw.OK}, {"ready", hw.OK}, {"charging", hw.Degraded}, {"degraded", hw.Degraded}, {"warning", hw.Degraded},
		{"not ready", hw.Degraded}, {"failed", hw.Failed}, {"fault", hw.Failed}, {"not optimal", hw.Degraded}, {"invalid", hw.Failed}, {"missing", hw.Failed}, {"not installed", 0}, {"not present", 0},
	}
	arcVolumes = []prefixState{
		{"optimal", hw.OK}, {"ok", hw.OK}, {"degraded", hw.Degraded}, {"suboptimal", hw.Degraded}, {"sub-optimal", hw.Degraded}, {"interim recovery", hw.Degraded}, {"rebuilding", hw.Degraded},
		{"impacted", hw.Degraded}, {"failed", hw.Failed}, {"offline", hw.Failed}, {"inaccessible", hw.Failed},
	}
	arcDisks = []prefixState{
		{"online", hw.OK}, {"ready", hw.OK}, {"hot spare", hw.OK}, {"hot-spare", hw.OK}, {"dedicated hot", hw.OK}, {"global hot", hw.OK}, {"raw", hw.OK}, {"jbod", hw.OK}, {"optimal", hw.OK},
		{"rebuilding", hw.Degraded}, {"predictive", hw.OK | hw.PredictedFailure}, {"failed", hw.Failed}, {"missing", hw.Failed}, {"offline", hw.Failed},
	}
)

// maxControllers bounds how many controllers a program is asked for.
const maxControllers = 16

var arcFound = regexp.MustCompile(`(?m)^\s*Controllers found:\s*([0-9]{1,3})\s*$`)

// readArcconf reads each controller by two runs. arcconf counts controllers from 1, and says how many there are whatever
// was asked.
func readArcconf(ctx context.Context, run ask) ([]controller, error) {
	var all []controller
	var errs []error
	for i, n := 1, 1; i <= min(n, maxControllers); i++ {
		out, err := run(ctx, "getconfig", strconv.Itoa(i))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m := arcFound.FindSubmatch(out)
		if m == nil {
			errs = append(errs, fmt.Errorf("controller %d: %w", i, refusal(string(out))))
			continue
		}
		if n, err = strconv.Atoi(string(m[1])); err != nil || n == 0 {
			break
		}
		c, ended := parseArcconf(string(out), i), strings.Contains(string(out), "ommand completed successfully")
		if c == nil {
			errs = append(errs, fmt.Errorf("controller %d: %w", i, refusal(string(out))))
			continue
		}
		if out, err = run(ctx, "getstatus", strconv.Itoa(i)); err != nil {
			errs = append(errs, err)
		} else {
			arcTasks(c, string(out))
		}
		if !ended {
			errs = append(errs, fmt.Errorf("controller %d: the answer of getconfig ends early: the last components may be missing", i))
		}
		all = append(all, c)
	}
	return all, errors.Join(errs...)
}

var (
	arcVolume = regexp.MustCompile(`(?i)^Logical device number ([0-9]+)`)
	arcDevice = regexp.MustCompile(`^\s+(?:Channel #[0-9]+:|Device #([0-9]+))`)
)

// arcHeading finds the sections of arcconf's text. "Device is a Hard drive" is a line below a device's number.
func arcHeading(line string) (kind, title string, ok bool) {
	text := strings.TrimSpace(line)
	switch low := strings.ToLower(text); {
	case low == "controller information":
		return "controller", "", true
	case low == "controller version information":
		return "version", "", true
	case strings.HasSuffix(low, "information") && !strings.Contains(low, ":") && (strings.Contains(low, "battery") || strings.Contains(low, "backup unit")):
		return "battery", "", true
	case strings.HasSuffix(low, "information") && !strings.Contains(low, " : "):
		return "", "", true
	}
	if m := arcVolume.FindStringSubmatch(text); m != nil {
		return "volume", m[1], true
	}
	if m := arcDevice.FindStringSubmatch(line); m != nil && m[1] != "" && !strings.Contains(line, " : ") {
		return "disk", m[1], true
	}
	return "", "", false
}

// parseArcconf reads the text of arcconf getconfig; nil if it is not about a controller.
func parseArcconf(text string, index int) (c controller) {
	for _, s := range divide(arcDeviceKind(text), " : ", arcHeading) {
		switch {
		case s.kind == "controller" && c == nil:
			c = append(c, arcController(&s, index))
		case c == nil:
		case s.kind == "version":
			c[0].Facts = append(c[0].Facts, hw.Firmware, s.say("Firmware"), hw.Driver, s.say("Driver"))
		case s.kind == "battery":
			b := part(hw.Battery, c[0].ID+"/battery:0", "battery", c[0].ID)
			if b.Status = stateBegin(s.say("Overall Backup Unit Status", "Status"), arcParts); b.Status == 0 || b.Status == hw.Unknown && len(s.fields) == 0 {
				continue
			}
			addNumber(&b, hw.TemperatureNow, s.say("Current Temperature"))
			if charge, ok := number(s.say("Capacity remaining", "Current Capacity")); ok && charge <= 100 {
				b.Add(hw.BatteryCharge, charge/100)
			}
			c = append(c, b)
		case s.kind == "volume":
			c = append(c, arcVolumeOf(&s, c[0].ID))
		case s.kind == "disk" && (s.fields["Device is a"] == "Hard drive" || s.fields["Device is a"] == ""):
			if s.say("State") != "" {
				c = append(c, arcDisk(&s, c[0].ID))
			}
		}
	}
	return c
}

// arcDeviceKind writes the line about a device's kind like the others.
func arcDeviceKind(text string) string {
	return strings.ReplaceAll(text, "Device is a ", "Device is a : ")
}

func arcController(s *section, index int) hw.Report {
	pci := pciAddress(s.say("PCI Address (Domain:Bus:Device:Function)"), 16)
	serial := s.say("Controller Serial Number")
	own := part(hw.DiskController, controllerID(serial, pci, index), s.say("Controller Model"), "enclosure",
		hw.Vendor, "Microchip", hw.Model, s.say("Controller Model"), hw.Serial, serial, hw.Device, pci)
	own.Status = stateBegin(s.say("Controller Status"), arcParts)
	addNumber(&own, hw.TemperatureNow, s.say("Temperature"))
	return own
}

func arcVolumeOf(s *section, parent string) hw.Report {
	v := part(hw.LogicalDisk, parent+"/volume:"+s.title, s.say("Logical Device name"), parent, hw.Device, strings.TrimPrefix(s.say("Disk Name"), "/dev/"))
	if v.Name == "" {
		v.Name = "volume " + s.title
	}
	v.Status = stateBegin(s.say("Status of Logical Device", "Status of logical device"), arcVolumes)
	if bytes, ok := size(s.say("Size"), binary); ok {
		v.Add(hw.LogicalDiskLimit, bytes, hw.LabelRAIDLevel, level(s.say("RAID level")))
	}
	return v
}

func arcDisk(s *section, parent string) hw.Report {
	model, serial := s.say("Model"), s.say("Serial number")
	kind, _, _ := strings.Cut(s.say("Transfer Speed"), " ") // SAS 6.0 Gb/s
	medium := "HDD"
	if s.say("SSD") == "Yes" {
		medium = "SSD"
	}
	d := part(hw.PhysicalDisk, diskID(kind, s.say("World-wide name", "World-Wide Name"), model, serial), "device "+s.title, parent,
		hw.Vendor, s.say("Vendor"), hw.Model, model, hw.Serial, serial, hw.Firmware, s.say("Firmware"), hw.DiskType, medium)
	if d.ID == "" {
		d.ID = parent + "/disk:" + s.title
	}
	d.Facts[len(d.Facts)-1] = strings.ToLower(medium)
	d.Status = stateBegin(s.say("State"), arcDisks)
	warned, _ := number(s.say("S.M.A.R.T. warnings"))
	counted, _ := number(s.say("SMART Warning Count"))
	if warned > 0 || counted > 0 || s.say("S.M.A.R.T.") == "Yes" {
		d.Status = d.Status.Join(hw.PredictedFailure)
	}
	if v, ok := number(s.say("Temperature", "Current Temperature")); ok && v > 0 {
		d.Add(hw.TemperatureNow, v)
	}
	if bytes, ok := size(s.say("Total Size", "Size"), binary); ok {
		d.Add(hw.DiskSize, bytes)
	}
	for _, count := range [...]struct{ key, kind string }{
		{"Medium Error Count", "media"}, {"Hardware Error Count", "hardware"}, {"Parity Error Count", "parity"}, {"Link Failure Count", "link_failure"}, {"Aborted Command Count", "aborted"},
	} {
		addNumber(&d, hw.Errors, s.say(count.key), "error_type", count.kind)
	}
	return d
}

// arcTasks adds the progress of the tasks in the text of arcconf getstatus.
func arcTasks(c controller, text string) {
	sections := divide(text, " : ", func(line string) (kind, title string, ok bool) {
		return "task", "", strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "logical device task")
	})
	for i := range sections {
		s := &sections[i]
		for n := range c {
			if c[n].Kind == hw.LogicalDisk && c[n].ID == c[0].ID+"/volume:"+s.say("Logical device", "Logical Device") {
				task := strings.ReplaceAll(strings.ToLower(s.say("Current operation")), " ", "_")
				progress(&c[n], strings.ReplaceAll(task, "-", "_"), s.say("Percentage complete"))
			}
		}
	}
}
