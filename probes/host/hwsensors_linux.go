package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// hardwareSensors collects the hw_* of the sensor chips.
type hardwareSensors struct {
	chips   *sensorChips
	machine *machine
}

func newHardwareSensors(e *environment) reader {
	p := newPlaces(e.SysPath)
	e.chips.origin = p.chipOrigin
	return &hardwareSensors{chips: e.chips, machine: e.machine}
}

func (h *hardwareSensors) read(ctx context.Context, r *probes.Round) error {
	chips, err := h.chips.get(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range chips {
		if c.err != nil {
			errs = append(errs, fmt.Errorf("chip %s: %w", c.label, c.err))
		}
		if c.origin.elsewhere {
			continue
		}
		for _, p := range chipReports(c.name, c.origin, c.sensors) {
			h.machine.add(r, &p)
		}
	}
	return errors.Join(errs...)
}

// chipOrigin finds the component behind a directory of class/hwmon.
func (p places) chipOrigin(dir string) origin {
	device := dir + "/device"
	rel := p.real(device)
	base := filepath.Base(rel)
	name := text(dir + "/name")
	switch {
	case strings.Contains(rel, "/power_supply/"), strings.HasPrefix(base, "thermal_zone"):
		return origin{elsewhere: true}
	case rel == "":
		return origin{id: "hwmon:" + name, parent: enclosureID}
	case strings.HasPrefix(base, "coretemp."):
		id := "cpu:" + strings.TrimPrefix(base, "coretemp.")
		return origin{id: "coretemp:" + strings.TrimPrefix(base, "coretemp."), parent: id}
	case strings.Contains(rel, "/nvme/nvme"):
		if id := p.nvmeID(device); id != "" {
			return origin{id: id, parent: id}
		}
	case isSCSIAddress(base):
		if id := p.scsiID(device); id != "" {
			return origin{id: id, parent: id}
		}
	}
	at := origin{id: p.of(device), parent: enclosureID}
	if driver := p.gpuDriver(rel); driver != "" {
		at.parent, at.gpu = gpuID(rel), name == driver
	}
	if nics, err := list(device + "/net"); err == nil {
		at.parent = p.netID(p.devices + rel + "/net/" + nics[0])
	}
	// Several chips may be on one device; their drivers distinguish them.
	if name := clean(name); name != "" {
		at.id += "/" + name
	}
	return at
}

// nvmeID and scsiID return the IDs of the disks with these device directories.
func (p places) nvmeID(dir string) string {
	return orPlace(hw.DiskID("", text(dir+"/model"), text(dir+"/serial")), p.of(dir))
}

func (p places) scsiID(dir string) string {
	return orPlace(hw.DiskID(text(dir+"/wwid"), "", ""), p.of(dir))
}

// orPlace returns id, or else the place as an ID.
func orPlace(id, place string) string {
	if id != "" || place == "" {
		return id
	}
	return "at:" + place
}

// isSCSIAddress reports whether s is host, channel, target and unit: 6:0:1:0.
func isSCSIAddress(s string) bool {
	return strings.Count(s, ":") == 3 && strings.Trim(s, "0123456789:") == ""
}
