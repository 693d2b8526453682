package inventory

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"hwsagent/internal/text"
)

// Device is a device's self-description over SNMP (the group system of RFC 3418), and how the library of hardware classifies it.
type Device struct {
	Name        string `json:"name,omitempty"`        // sysName
	Description string `json:"description,omitempty"` // sysDescr
	ObjectID    string `json:"object_id,omitempty"`   // sysObjectID
	Vendor      string `json:"vendor,omitempty"`      // "" where only standards apply
	Family      string `json:"family,omitempty"`      // "" where only the vendor is known
}

// deviceOf returns the device that the samples describe, or nil.
func deviceOf(samples []Sample) *Device {
	var d Device
	for _, s := range samples {
		for i := 0; i+1 < len(s.Labels); i += 2 {
			value := s.Labels[i+1]
			switch s.Name + " " + s.Labels[i] {
			case "sysName sysName":
				d.Name = value
			case "sysDescr sysDescr":
				d.Description = value
			case "sysObjectID sysObjectID":
				d.ObjectID = value
			case "snmp_device_info vendor":
				d.Vendor = value
			case "snmp_device_info family":
				d.Family = value
			}
		}
	}
	if d == (Device{}) {
		return nil
	}
	return &d
}

// writeDevice prints the device's description and, if it has no components, how to find out more about it.
func (inv *Inventory) writeDevice(b *strings.Builder) {
	d := inv.Device
	if d == nil {
		return
	}
	fmt.Fprintf(b, "  device %s: %s\n", strconv.Quote(d.Name), cmp.Or(text.OneLine(d.Description), "no description"))
	known := "no vendor that the library has, so only standard MIBs were read"
	switch {
	case d.Family != "":
		known = d.Vendor + ", family " + d.Family
	case d.Vendor != "":
		known = d.Vendor + ", of no family that the library has"
	}
	fmt.Fprintf(b, "  recognised by sysObjectID %s and the description as: %s\n", cmp.Or(text.OneLine(d.ObjectID), "(none)"), text.OneLine(known))
	if len(inv.Components) > 0 || inv.Problem != "" {
		return
	}
	b.WriteString("  It has none of the objects that the library reads from such a device. These commands show its objects:\n")
	file := inv.Name
	if inv.Target != "" {
		file = "device.snmprec"
		fmt.Fprintf(b, "    hwsagent record PROBE %s    (PROBE as for this command; writes all of the device's answers)\n", file)
	}
	fmt.Fprintf(b, "    hwsagent snmp test %s    (lists the objects that no module reads)\n", text.OneLine(file))
	b.WriteString("  hwsagent snmp import converts definitions of LibreNMS and others, which know more devices; or write one: docs/snmp-library.md\n")
}
