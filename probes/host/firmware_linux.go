package host

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"hwsagent/probes"
)

// dmi reads the firmware's description of the machine. It does not change before the next boot, so it is read once;
// only root can read the serial numbers.
type dmi struct {
	dir    string
	info   *probes.Family
	labels []string // nil until the first successful read
}

func newDMI(e *environment) reader {
	return &dmi{dir: e.sys("class/dmi/id"), info: gauge("node_dmi_info", "What the firmware says of the machine; always 1.")}
}

func (d *dmi) read(_ context.Context, r *probes.Round) error {
	if d.labels == nil {
		for _, name := range [...]string{
			"bios_date", "bios_release", "bios_vendor", "bios_version",
			"board_asset_tag", "board_name", "board_serial", "board_vendor", "board_version",
			"chassis_asset_tag", "chassis_serial", "chassis_vendor", "chassis_version",
			"product_family", "product_name", "product_serial", "product_sku", "product_uuid", "product_version",
			"sys_vendor",
		} {
			if v, err := attribute(d.dir + "/" + name); err == nil {
				d.labels = append(d.labels, strings.Replace(name, "sys_", "system_", 1), v)
			}
		}
	}
	if d.labels == nil {
		return errAbsent
	}
	r.Add(d.info, 1, d.labels...)
	return nil
}

// rapl reads the energy counters of CPU packages and their parts (the kernel's
// Documentation/power/powercap/powercap.rst). Since 2020 only root can read them.
type rapl struct {
	dir      string
	families familyCache
}

func newRAPL(e *environment) reader {
	return &rapl{dir: e.sys("class/powercap"), families: familyCache{make: func(zone string) *probes.Family {
		return counter("node_rapl_"+zone+"_joules_total", "Energy used by the RAPL zone "+zone+"; it wraps at the zone's own limit.")
	}}}
}

func (p *rapl) read(_ context.Context, r *probes.Round) error {
	names, err := list(p.dir)
	if errors.Is(err, fs.ErrPermission) {
		return errAbsent
	}
	if err != nil {
		return err
	}
	found := false
	used := make(map[string]int) // next index for zones with the same name
	for _, name := range names {
		path := p.dir + "/" + name
		zone, err := attribute(path + "/name")
		if err != nil {
			continue // a control type, not a zone
		}
		index := used[zone]
		if base, digits, ok := strings.Cut(zone, "-"); ok { // package-1
			if n, err := strconv.Atoi(digits); err == nil {
				zone, index = base, n
			}
		}
		used[zone] = index + 1
		if v, ok := number(path + "/energy_uj"); ok {
			r.Add(p.families.of([]byte(zone)), v/1e6, "index", strconv.Itoa(index), "path", path)
			found = true
		}
	}
	if !found {
		return errAbsent
	}
	return nil
}
