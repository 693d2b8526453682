package host

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/prometheus/procfs/blockdevice"
)

// newMultipath reads the maps of multipathd: devices of the device mapper whose UUID begins with mpath-, and the
// kernel's state of each path.
func newMultipath(e *environment) reader {
	info := gauge("node_dmmultipath_device_info", "Always 1; the labels describe the device.")
	active := gauge("node_dmmultipath_device_active", "1 while the device takes requests, 0 while it is suspended.")
	size := gauge("node_dmmultipath_device_size_bytes", "Size of the device.")
	paths := gauge("node_dmmultipath_device_paths", "Paths of the device.")
	good := gauge("node_dmmultipath_device_paths_active", "Paths that the kernel uses: running (SCSI) or live (NVMe).")
	failed := gauge("node_dmmultipath_device_paths_failed", "Paths in any other state.")
	state := gauge("node_dmmultipath_path_state", "Always 1; the label state is the kernel's state of the path.")
	return newOnce(e, func() (samples, error) {
		sys, err := blockdevice.NewFS(e.ProcPath, e.SysPath)
		if err != nil {
			return nil, fmt.Errorf("open procfs and sysfs: %w", err)
		}
		all, err := sys.DMMultipathDevices()
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(all) == 0 {
			return nil, errAbsent
		}
		if err != nil {
			return nil, fmt.Errorf("read multipath devices: %w", err)
		}
		var s samples
		for _, d := range all {
			labels := []string{"device", d.Name, "sysfs_name", d.SysfsName}
			s.add(info, 1, append([]string{"uuid", d.UUID}, labels...)...)
			takes, used := 1.0, 0
			if d.Suspended {
				takes = 0
			}
			for _, p := range d.Paths {
				if p.State == "running" || p.State == "live" {
					used++
				}
				s.add(state, 1, "device", d.Name, "path", p.Device, "state", p.State)
			}
			s.add(active, takes, labels...)
			s.add(size, float64(d.SizeBytes), labels...)
			s.add(paths, float64(len(d.Paths)), labels...)
			s.add(good, float64(used), labels...)
			s.add(failed, float64(len(d.Paths)-used), labels...)
		}
		return s, nil
	})
}
