package convert

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// nodeSettings maps settings of node_exporter, as other agents call them, to keys of the probe host.
var nodeSettings = map[string]string{
	"procfs_path": "proc_path", "sysfs_path": "sys_path", "rootfs_path": "rootfs_path", "udev_data_path": "udev_path",
	"filesystem_fs_types_exclude": "fs_types_exclude", "filesystem_ignored_fs_types": "fs_types_exclude",
	"filesystem_mount_points_exclude": "mount_points_exclude", "filesystem_ignored_mount_points": "mount_points_exclude",
	"filesystem_mount_timeout": "read_timeout",
	"diskstats_device_exclude": "diskstats_exclude", "diskstats_ignored_devices": "diskstats_exclude",
	"netdev_device_exclude": "netdev_exclude", "netdev_device_blacklist": "netdev_exclude", "netdev_ignored_devices": "netdev_exclude",
	"netclass_ignored_devices": "netclass_exclude", "hwmon_chip_exclude": "hwmon_exclude", "powersupply_ignored_supplies": "power_supply_exclude",
	"netstat_fields": "netstat_fields", "vmstat_fields": "vmstat_fields",
	"systemd_unit_exclude": "systemd_exclude", "systemd_unit_blacklist": "systemd_exclude", "systemd_unit_include": "systemd_include", "systemd_unit_whitelist": "systemd_include",
}

// nodeCollectors returns the collectors of node_exporter that the probe host has.
func nodeCollectors() []string {
	return strings.Fields(`cpu meminfo loadavg stat filesystem diskstats netdev vmstat time timex uname os filefd entropy pressure sockstat netstat conntrack
		softnet schedstat arp udp_queues cpufreq netclass bonding hwmon thermal_zone powersupplyclass edac nvme rapl dmi mdadm infiniband watchdog
		xfs zfs nfs nfsd ipvs fibrechannel tapestats selinux kernel_hung btrfs bcachefs bcache dmmultipath processes tcpstat interrupts systemd`)
}

// hasHost reports whether there is a probe of this host.
func (c *converter) hasHost() bool {
	return slices.ContainsFunc(items(get(c.out, "probes")), func(p *yaml.Node) bool { return text(p, "type") == "host" })
}

// hostProbe returns the probe of this host, which it adds if there is none.
func (c *converter) hostProbe() *yaml.Node {
	for _, p := range items(get(c.out, "probes")) {
		if text(p, "type") == "host" {
			return p
		}
	}
	p := mapping()
	set(p, "name", str("host"))
	set(p, "type", str("host"))
	push(c.out, "probes", p)
	return p
}

// textfile adds a probe that reads the files of a directory.
func (c *converter) textfile(dir *yaml.Node) {
	p := mapping()
	set(p, "name", str("textfile"))
	set(p, "type", str("textfile"))
	set(p, "directory", str(dir.Value))
	c.take(dir)
	for _, other := range items(get(c.out, "probes")) {
		if text(other, "type") == "host" {
			for _, key := range []string{"interval", "timeout", "labels", "metric_relabel_configs"} {
				if v := get(other, key); v != nil {
					set(p, key, v)
				}
			}
		}
		if text(other, "name") == "textfile" {
			set(other, "directory", get(p, "directory"))
			return
		}
	}
	push(c.out, "probes", p)
}

// nodeKeys converts the settings of a node_exporter.
func (c *converter) nodeKeys(p, v *yaml.Node, where string) {
	var dir *yaml.Node
	pairs(v, func(key string, k, value *yaml.Node) {
		switch own := nodeSettings[key]; {
		case key == "textfile_directory":
			dir = value
		case own == "":
		case own == "systemd_exclude" || own == "systemd_include": // which node_exporter anchors at both ends
			c.take(value)
			set(p, own, str("^(?:"+value.Value+")$"))
		case value.Value == "" && !strings.HasSuffix(own, "_path"): // the agent's empty pattern is its default
			c.take(value)
			set(p, own, str("^$"))
		default:
			set(p, own, value)
		}
	})
	c.collectors(p, v, where)
	if dir != nil && dir.Value != "" {
		c.textfile(dir)
	}
}

// collectors converts the lists of collectors.
func (c *converter) collectors(p, v *yaml.Node, where string) {
	var all []string
	each := func(key string, f func(name string)) {
		for i, item := range items(get(v, key)) {
			switch name := item.Value; {
			case name == "textfile" && key != "disable_collectors":
				c.take(item) // is a probe of its own
				if get(v, "textfile_directory") == nil && get(v, "textfile") == nil {
					c.note(item, at(where+"."+key, i), "needs a directory: write a probe of type textfile")
				}
			case !slices.Contains(nodeCollectors(), name) && key == "disable_collectors":
				c.take(item) // there is none here
			case !slices.Contains(nodeCollectors(), name):
				c.note(item, at(where+"."+key, i), "the probe host has no collector %s", name)
			default:
				c.take(item)
				f(name)
			}
		}
	}
	exact := len(items(get(v, "set_collectors"))) > 0
	each("set_collectors", func(name string) { all = append(all, name) })
	each("enable_collectors", func(name string) {
		if !exact {
			name = "+" + name
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	})
	each("disable_collectors", func(name string) {
		all = slices.DeleteFunc(all, func(other string) bool { return strings.TrimPrefix(other, "+") == name })
		if !exact {
			all = append(all, "-"+name)
		}
	})
	if len(all) == 0 {
		return
	}
	own := list()
	for _, name := range all {
		own.Content = append(own.Content, str(name))
	}
	set(p, "collectors", flow(own))
	if exact {
		set(p, "hw", raw("true"))
	}
}
