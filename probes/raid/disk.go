package raid

import (
	"fmt"
	"strconv"
	"strings"

	"hwsagent/probes/hw"
)

// diskID returns the ID that the probes smart and host give to a disk: by the World Wide Name of its logical unit. name
// is the name that the controller prints. For a SATA disk that is the disk's own, if it is one that a maker of disks
// assigns (NAA 5), not one that a controller or an expander makes for a port. For a SAS disk it may be that of the
// device or of a port.
func diskID(interfaceType, name, model, serial string) string {
	name = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "0x")
	wwn, err := strconv.ParseUint(name, 16, 64)
	if err != nil || len(name) != 16 || wwn>>60 != 5 || strings.EqualFold(interfaceType, "NVMe") {
		return hw.DiskID("", model, serial)
	}
	if strings.EqualFold(interfaceType, "SAS") {
		wwn = unitName(wwn)
	}
	return hw.DiskID(fmt.Sprintf("%016x", wwn), model, serial)
}

// unitName returns the name of a SAS disk's logical unit from any of the disk's names. A maker assigns to a disk four
// numbers in a row: for the device, its two ports and its unit, each maker in an order of its own. smartctl prints the
// unit's ("Logical Unit id") and the ports' ("SAS address") of a disk. Public outputs show Seagate's unit as the last (a
// controller prints ...d0 for the unit ...d3), Toshiba's as the second, HGST's as the first (unit ...80, port ...81), and
// Samsung's as the first. That other makers' is the first, too, is an assumption.
func unitName(wwn uint64) uint64 {
	switch wwn >> 36 & 0xffffff { // the maker's IEEE identifier
	case 0x000c50:
		return wwn | 3
	case 0x000039:
		return wwn&^3 | 1
	}
	return wwn &^ 3
}

// byteUnits are the units of a size; programs that mean binary ones write GB, too.
var byteUnits = map[string]float64{"B": 0, "BYTES": 0, "KB": 1, "MB": 2, "GB": 3, "TB": 4, "PB": 5}

// size returns the bytes of a text such as 278.875 GB, whose units are powers of base.
func size(text string, base float64) (float64, bool) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return 0, false
	}
	power, known := byteUnits[strings.ToUpper(fields[1])]
	v, ok := number(fields[0])
	if !known || !ok || v < 0 {
		return 0, false
	}
	for ; power > 0; power-- {
		v *= base
	}
	return v, true
}

const (
	binary  = 1024
	decimal = 1000
)

// number returns the number with which a text begins, such as that of 27C, 47 C or 12%.
func number(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.' || text[end] == '-' && end == 0) {
		end++
	}
	v, err := strconv.ParseFloat(text[:end], 64)
	return v, err == nil
}

// addNumber adds a reading if the text begins with a number.
func addNumber(p *hw.Report, m hw.Metric, text string, attributes ...string) {
	if v, ok := number(text); ok {
		p.Add(m, v, attributes...)
	}
}

// progress adds how far work on a component has come.
func progress(p *hw.Report, task, text string) {
	if v, ok := number(text); ok && v >= 0 && v <= 100 {
		p.Add(hw.TaskProgress, v/100, hw.LabelTask, task)
	}
}

// controllerID returns the ID of a controller: its serial number, else its place on the bus, else its number.
func controllerID(serial, pci string, index int) string {
	switch serial = strings.TrimSpace(serial); {
	case serial != "" && !strings.EqualFold(serial, "unknown") && !strings.EqualFold(serial, "not available") && !strings.EqualFold(serial, "N/A"):
		return "raid:" + strings.Join(strings.Fields(serial), "_")
	case pci != "":
		return "raid:pci:" + pci
	}
	return "raid:" + strconv.Itoa(index)
}

// pciAddress returns the kernel's form, 0000:02:00.0, of an address whose four numbers are in hexadecimal: 00:02:00:00.
func pciAddress(text string, base int) string {
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(":./ h", r) })
	if len(fields) != 4 {
		return ""
	}
	var n [4]uint64
	for i, f := range fields {
		v, err := strconv.ParseUint(f, base, 16)
		if err != nil {
			return ""
		}
		n[i] = v
	}
	if n[1] > 0xff || n[2] > 0x1f || n[3] > 7 {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", n[0], n[1], n[2], n[3])
}

// level returns a RAID level as md writes it: raid1, raid5, raid10.
func level(text string) string {
	l := strings.ToLower(strings.Join(strings.Fields(text), ""))
	if l != "" && l[0] >= '0' && l[0] <= '9' {
		l = "raid" + l
	}
	if strings.HasPrefix(l, "raid1+0") {
		l = "raid10"
	}
	if cut := strings.IndexAny(l, "(,;"); cut > 0 {
		l = l[:cut]
	}
	return l
}

// diskType returns the kind of disk.
func diskType(medium string) string {
	switch m := strings.ToUpper(medium); {
	case strings.Contains(m, "NVME"):
		return "nvme"
	case strings.Contains(m, "SSD") || strings.Contains(m, "SOLID STATE"):
		return "ssd"
	case strings.Contains(m, "HDD") || strings.Contains(m, "HARD"):
		return "hdd"
	}
	return ""
}
