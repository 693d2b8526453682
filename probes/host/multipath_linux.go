package host

import (
	"path/filepath"
	"strings"
)

// sectorBytes is the unit of a block device's size (the kernel's Documentation/ABI/stable/sysfs-block).
const sectorBytes = 512

// newMultipath reads the maps of multipathd: devices of the device mapper whose UUID begins with mpath-, and the
// kernel's state of each path. The state of a path that disappears meanwhile, or whose driver has no states, is
// unknown; it counts neither as active nor as failed, and does not affect other paths.
func newMultipath(e *environment) reader {
	info := gauge("node_dmmultipath_device_info", "Always 1; the labels describe the device.")
	active := gauge("node_dmmultipath_device_active", "1 while the device takes requests, 0 while it is suspended.")
	size := gauge("node_dmmultipath_device_size_bytes", "Size of the device.")
	paths := gauge("node_dmmultipath_device_paths", "Paths of the device.")
	good := gauge("node_dmmultipath_device_paths_active", "Paths that the kernel uses: running (SCSI) or live (NVMe).")
	failed := gauge("node_dmmultipath_device_paths_failed", "Paths in any other state.")
	state := gauge("node_dmmultipath_path_state", "Always 1; the label state is the kernel's state of the path.")
	return newOnce(e, func() (samples, error) {
		block := filepath.Join(e.SysPath, "block")
		all, err := list(block)
		if err != nil {
			return nil, err
		}
		var s samples
		for _, d := range all {
			dir := filepath.Join(block, d)
			uuid, name := text(dir+"/dm/uuid"), text(dir+"/dm/name")
			if !strings.HasPrefix(uuid, "mpath-") || name == "" {
				continue
			}
			used, lost := 0, 0
			slaves, _ := list(dir + "/slaves") // a map may have none
			for _, p := range slaves {
				is := text(filepath.Join(block, p, "device", "state"))
				switch is {
				case "running", "live":
					used++
				case "":
					is = "unknown"
				default:
					lost++
				}
				s.add(state, 1, "device", name, "path", p, "state", is)
			}
			labels := []string{"device", name, "sysfs_name", d}
			s.add(info, 1, append([]string{"uuid", uuid}, labels...)...)
			if suspended, ok := number(dir + "/dm/suspended"); ok {
				s.add(active, boolean(suspended == 0), labels...)
			}
			if sectors, ok := number(dir + "/size"); ok {
				s.add(size, sectors*sectorBytes, labels...)
			}
			s.add(paths, float64(len(slaves)), labels...)
			s.add(good, float64(used), labels...)
			s.add(failed, float64(lost), labels...)
		}
		if len(s) == 0 {
			return nil, errAbsent
		}
		return s, nil
	})
}
