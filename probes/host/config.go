package host

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Config selects where the machine is read from, and which parts. The zero Config is the running machine with
// node_exporter's defaults: an empty field means its default, so a pattern that must match nothing is written ^$.
type Config struct {
	ProcPath   string `yaml:"proc_path"`   // mount of procfs; default /proc
	SysPath    string `yaml:"sys_path"`    // mount of sysfs; default /sys
	RootFSPath string `yaml:"rootfs_path"` // directory of the mount points; default /
	UdevPath   string `yaml:"udev_path"`   // udev's database; default /run/udev/data
	DBusSocket string `yaml:"dbus_socket"` // the system's message bus; default /run/dbus/system_bus_socket

	// Collectors are the collectors to run. A minus before a name removes it from the usual ones, a plus adds it:
	// `[-netclass, +processes]`; default all except processes, tcpstat, interrupts, systemd and hw_optics
	Collectors []string `yaml:"collectors"`

	// HW is whether hw_* is sent beside node_*: false for none, true for all but hw_optics, whatever collectors says;
	// default by collectors
	HW *bool `yaml:"hw"`

	// ReadTimeout is how long a mount point, a sensor chip or another device may take
	// to answer in one round before it counts as stuck; default 2s
	ReadTimeout model.Duration `yaml:"read_timeout"`

	// Regular expressions (RE2, not anchored) of names to leave out; `^$` matches none.

	MountPointsExclude string `yaml:"mount_points_exclude"` // mount points, a regular expression; default as in node_exporter
	FSTypesExclude     string `yaml:"fs_types_exclude"`     // types of file systems; default as in node_exporter
	DiskstatsExclude   string `yaml:"diskstats_exclude"`    // block devices; default `ram`, `loop`, `fd` and partitions
	NetdevExclude      string `yaml:"netdev_exclude"`       // network devices, in node_network_*_total; default ^$
	NetclassExclude    string `yaml:"netclass_exclude"`     // network devices, in the other node_network_*; default ^$
	HwmonExclude       string `yaml:"hwmon_exclude"`        // sensor chips, by the label chip; default ^$
	PowerSupplyExclude string `yaml:"power_supply_exclude"` // power supplies; default ^$

	SystemdExclude string `yaml:"systemd_exclude"` // units of systemd to leave out; default devices, mounts, scopes, slices and automounts

	// Regular expressions of names to include.

	SystemdInclude string `yaml:"systemd_include"` // units of systemd to include, minus those of systemd_exclude; default `.`
	VmstatFields   string `yaml:"vmstat_fields"`   // fields of /proc/vmstat to include; default as in node_exporter
	NetstatFields  string `yaml:"netstat_fields"`  // counters of protocols to include, as PROTOCOL_FIELD; default as in node_exporter
}

// The defaults of the keys mount_points_exclude and fs_types_exclude.
const (
	MountPointsExclude = `^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)`
	FSTypesExclude     = `^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|erofs|sysfs|tracefs)$`
)

// collectorNames are all collectors, in the order in which they run: the most commonly used first.
var collectorNames = []string{
	"cpu", "meminfo", "loadavg", "stat", "filesystem", "diskstats", "netdev",
	"vmstat", "time", "timex", "uname", "os", "filefd", "entropy", "pressure", "sockstat",
	"netstat", "conntrack", "softnet", "schedstat", "arp", "udp_queues",
	"cpufreq", "netclass", "bonding", "hwmon", "thermal_zone", "powersupplyclass", "edac",
	"nvme", "rapl", "dmi", "mdadm", "infiniband", "watchdog",
	"xfs", "zfs", "nfs", "nfsd", "ipvs", "fibrechannel", "tapestats", "selinux", "kernel_hung",
	"btrfs", "bcachefs", "bcache", "dmmultipath",
	"processes", "tcpstat", "interrupts", "systemd",
}

// askedFor are the collectors that run only if the configuration names them: their cost grows with the load of a
// machine, and node_exporter leaves them off, too; or, like hw_optics, they need a capability of their own.
var askedFor = []string{"processes", "tcpstat", "interrupts", "systemd", "hw_optics"}

// hardwareNames are the collectors of hw_*, in the order in which they run, after the others. The last one adds up the
// findings of those before.
var hardwareNames = []string{
	"hw_sensors", "hw_thermal", "hw_power", "hw_cpu", "hw_memory", "hw_disks", "hw_network", "hw_optics", "hw_pci", "hw_gpus", "hw_host",
}

// settings are a Config with defaults filled in and patterns compiled.
type settings struct {
	Config
	limit    time.Duration              // ReadTimeout
	enabled  []string                   // of collectorNames and hardwareNames, in that order
	patterns map[*string]*regexp.Regexp // by the field of the embedded Config
}

// pattern returns the compiled pattern of a field of Config.
func (s *settings) pattern(field *string) *regexp.Regexp { return s.patterns[field] }

// newSettings checks the whole Config and reports every mistake in it.
func newSettings(c Config) (*settings, error) {
	s := &settings{Config: c, patterns: make(map[*string]*regexp.Regexp)}
	var errs []error
	for _, f := range []struct {
		value        *string
		key, standby string
		pattern      bool
	}{
		{&s.ProcPath, "proc_path", "/proc", false},
		{&s.SysPath, "sys_path", "/sys", false},
		{&s.RootFSPath, "rootfs_path", "/", false},
		{&s.UdevPath, "udev_path", "/run/udev/data", false},
		{&s.DBusSocket, "dbus_socket", "/run/dbus/system_bus_socket", false},
		{&s.MountPointsExclude, "mount_points_exclude", MountPointsExclude, true},
		{&s.FSTypesExclude, "fs_types_exclude", FSTypesExclude, true},
		{&s.DiskstatsExclude, "diskstats_exclude", `^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$`, true},
		{&s.NetdevExclude, "netdev_exclude", `^$`, true},
		{&s.NetclassExclude, "netclass_exclude", `^$`, true},
		{&s.HwmonExclude, "hwmon_exclude", `^$`, true},
		{&s.PowerSupplyExclude, "power_supply_exclude", `^$`, true},
		{&s.SystemdExclude, "systemd_exclude", `\.(automount|device|mount|scope|slice)$`, true},
		{&s.SystemdInclude, "systemd_include", `.`, true},
		{&s.VmstatFields, "vmstat_fields", `^(oom_kill|pgpg|pswp|pg.*fault).*`, true},
		{&s.NetstatFields, "netstat_fields", `^(.*_(InErrors|InErrs)|Ip_Forwarding|Ip(6|Ext)_(InOctets|OutOctets)|Icmp6?_(InMsgs|OutMsgs)|TcpExt_(Listen.*|Syncookies.*|TCPSynRetrans|TCPTimeouts|TCPOFOQueue|TCPRcvQDrop)|Tcp_(ActiveOpens|InSegs|OutSegs|OutRsts|PassiveOpens|RetransSegs|CurrEstab)|Udp6?_(InDatagrams|OutDatagrams|NoPorts|RcvbufErrors|SndbufErrors))$`, true},
	} {
		if *f.value == "" {
			*f.value = f.standby
		}
		if !f.pattern {
			continue
		}
		re, err := regexp.Compile(*f.value)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.key, err))
			continue
		}
		s.patterns[f.value] = re
	}
	switch s.limit = time.Duration(c.ReadTimeout); {
	case s.limit < 0:
		errs = append(errs, fmt.Errorf("read_timeout: %v is negative", s.limit))
	case s.limit == 0:
		s.limit = 2 * time.Second
	}
	var err error
	if s.enabled, err = choose(c.Collectors, c.HW); err != nil {
		errs = append(errs, fmt.Errorf("collectors: %w", err))
	}
	return s, errors.Join(errs...)
}

// Validate reports every mistake at once, joined, each beginning with its key.
func (c *Config) Validate() error {
	_, err := newSettings(*c)
	return err
}

// choose turns the configured list and hw into the collectors to run.
func choose(list []string, hw *bool) ([]string, error) {
	all := slices.Concat(collectorNames, hardwareNames)
	chosen := make(map[string]bool)
	changes := 0 // names with a sign
	for _, name := range all {
		chosen[name] = !slices.Contains(askedFor, name)
	}
	for _, item := range list {
		name := strings.TrimLeft(item, "+-")
		if len(item)-len(name) > 1 || !slices.Contains(all, name) {
			return nil, fmt.Errorf("there is no collector %q; there are %s", strings.TrimPrefix(strings.TrimPrefix(item, "-"), "+"), strings.Join(all, ", "))
		}
		if name == item {
			continue
		}
		changes++
		chosen[name] = item[0] == '+'
	}
	switch {
	case changes > 0 && changes < len(list):
		return nil, errors.New("either all names have a minus or a plus (the usual collectors without or with these) or none has (these only)")
	case changes == 0 && len(list) > 0:
		clear(chosen)
		for _, name := range list {
			chosen[name] = true
		}
	}
	var run []string
	for i, name := range all {
		if i >= len(collectorNames) && hw != nil {
			chosen[name] = *hw && (chosen[name] || !slices.Contains(askedFor, name))
		}
		if chosen[name] {
			run = append(run, name)
		}
	}
	return run, nil
}
