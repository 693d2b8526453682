package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// places names the places of devices such that a reboot, another order of drivers or a renaming does not change them.
type places struct{ devices string } // sysfs' directory devices, with a slash at the end

func newPlaces(sys string) places { return places{sys + "/devices/"} }

// real returns the path below devices of an entry of a class, or with /device appended, of the device that it belongs
// to; "" if it is elsewhere or missing. The kernel's links lead to a device's directory without further links.
func (p places) real(dir string) string {
	entry, ofDevice := strings.CutSuffix(dir, "/device")
	path := follow(entry)
	if ofDevice {
		path = follow(path + "/device")
	}
	rel, ok := strings.CutPrefix(path, p.devices)
	if !ok {
		return ""
	}
	return rel
}

// follow returns the target of a link, path itself if it is a directory, "" if it does not exist.
func follow(path string) string {
	to, err := os.Readlink(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return path
	case !filepath.IsAbs(to):
		return filepath.Join(filepath.Dir(path), to)
	}
	return to
}

// of returns the stable name of a device's place, such as pci:0000:00:1f.4/i2c:smbus_i801/0050; "" if dir is not a
// device.
func (p places) of(dir string) string {
	return stablePlace(p.real(dir), func(path string) string { return text(p.devices + path) })
}

// stablePlace returns a stable name for a path below sysfs' devices: it begins at the last PCI function and removes or
// replaces each number that the kernel counts up. attribute reads a file below devices.
func stablePlace(rel string, attribute func(path string) string) string {
	if rel == "" {
		return ""
	}
	elements := strings.Split(rel, "/")
	var out []string
	for i, e := range elements {
		path := strings.Join(elements[:i+1], "/")
		if isPCIAddress(e) {
			out = append(out[:0], "pci:"+e)
			continue
		}
		if name := stableElement(e, path, attribute); name != "" {
			out = append(out, name)
		}
	}
	return strings.Join(out, "/")
}

// stableElement returns the stable part of one directory in a device's path; "" if there is none.
func stableElement(e, path string, attribute func(path string) string) string {
	switch e {
	case "platform", "virtual", "system", "LNXSYSTM:00", "LNXSYBUS:00", "hwmon", "net", "block", "nvme", "thermal", "host":
		return ""
	}
	for _, prefix := range [...]string{"hwmon", "usb", "host", "target", "nvme", "virtio", "pci"} {
		rest, ok := strings.CutPrefix(e, prefix)
		switch {
		case !ok || rest == "" || strings.Trim(rest, "0123456789:") != "" && prefix != "pci":
		case prefix == "nvme" || prefix == "virtio":
			return prefix
		default:
			return ""
		}
	}
	if _, ok := unit(e, "i2c-"); ok { // replace the number by the adapter's name; its chips have number and address
		if name := clean(attribute(path + "/name")); name != "" {
			return "i2c:" + name
		}
		return "i2c"
	}
	if _, ok := unit(e, "ata"); ok {
		return "ata" + attribute(path+"/ata_port/"+e+"/port_no")
	}
	if _, ok := unit(e, "thermal_zone"); ok {
		return "thermal:" + attribute(path+"/type")
	}
	if _, ok := unit(e, "phy"); ok {
		return "phy"
	}
	// 4-0050 is a chip on I²C bus 4, 1-3.2 a device at port 3.2 of USB bus 1, 1-3.2:1.0 its interface.
	if bus, port, ok := strings.Cut(e, "-"); ok && digits(bus) && port != "" && strings.Trim(port, "0123456789abcdef.:") == "" {
		return port
	}
	// 6:0:1:0 is host, channel, target and unit of SCSI.
	if host, rest, ok := strings.Cut(e, ":"); ok && digits(host) && strings.Count(rest, ":") == 2 && strings.Trim(rest, "0123456789:") == "" {
		return rest
	}
	// 0003:1B1C:0C10.0001 is bus, vendor, product and a counter of HID devices.
	if id, count, ok := strings.Cut(e, "."); ok && strings.Count(id, ":") == 2 && len(count) == 4 {
		return id
	}
	return e
}

// isPCIAddress reports whether s is domain, bus, device and function: 0000:3b:00.1.
func isPCIAddress(s string) bool {
	domain, rest, ok := strings.Cut(s, ":")
	bus, rest, more := strings.Cut(rest, ":")
	device, function, last := strings.Cut(rest, ".")
	return ok && more && last && len(domain) >= 4 && len(bus) == 2 && len(device) == 2 && len(function) == 1 &&
		strings.Trim(domain+bus+device+function, "0123456789abcdef") == ""
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
