package host

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"
)

func TestConfigMistakesAreAllNamed(t *testing.T) {
	_, err := New(Config{
		DiskstatsExclude: "(", NetstatFields: "[", ReadTimeout: -1, Collectors: []string{"cpu", "gpu"},
	}, slog.New(slog.DiscardHandler), nil)
	if err == nil {
		t.Fatal("no mistake was found")
	}
	for _, want := range []string{"diskstats_exclude: error parsing regexp", "netstat_fields: error parsing regexp", "read_timeout: -1ns is negative", `collectors: there is no collector "gpu"; there are cpu, `} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

func TestChoose(t *testing.T) {
	all := strings.TrimSuffix(strings.Join(collectorNames, " "), " processes tcpstat interrupts systemd")
	hardware := strings.Replace(strings.Join(hardwareNames, " "), "hw_optics ", "", 1)
	yes, no := true, false
	for _, c := range []struct {
		list string
		hw   *bool
		want string
	}{
		{"", nil, all + " " + hardware},
		{"", &yes, all + " " + hardware},
		{"", &no, all},
		{"cpu", nil, "cpu"},
		{"cpu", &yes, "cpu " + hardware},
		{"cpu hw_disks", nil, "cpu hw_disks"},
		{"cpu hw_disks", &no, "cpu"},
		{"-hw_disks", &yes, all + " " + hardware},
		{strings.Join(hardwareNames, " "), nil, strings.Join(hardwareNames, " ")},
		{"cpu hw_optics", &yes, "cpu " + strings.Join(hardwareNames, " ")},
		{"+hw_optics", nil, all + " " + strings.Join(hardwareNames, " ")},
	} {
		if got, err := choose(strings.Fields(c.list), c.hw); err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%q gives %v, %v", c.list, got, err)
		}
	}
	usual := all
	all += " " + hardware
	for _, c := range []struct{ list, want, err string }{
		{"", all, ""},
		{"hwmon cpu", "cpu hwmon", ""},
		{"-hwmon -cpu", strings.Replace(strings.TrimPrefix(all, "cpu "), "hwmon ", "", 1), ""},
		{"+interrupts", usual + " interrupts " + hardware, ""},
		{"-cpu +processes", strings.TrimPrefix(usual, "cpu ") + " processes " + hardware, ""},
		{"tcpstat cpu", "cpu tcpstat", ""},
		{"+cpu", all, ""},
		{"+-cpu", "", `there is no collector "-cpu"`},
		{"-hwmon cpu", "", "either all names have a minus"},
		{"CPU", "", `there is no collector "CPU"`},
	} {
		got, err := choose(strings.Fields(c.list), nil)
		if strings.Join(got, " ") != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q gives %v, %v", c.list, got, err)
		}
	}
}

func TestConfigFromYAML(t *testing.T) {
	var c Config
	err := yaml.Unmarshal([]byte(`
proc_path: /host/proc
sys_path: /host/sys
rootfs_path: /host
udev_path: /host/run/udev/data
collectors: [-netclass, -arp]
hw: false
read_timeout: 1m
mount_points_exclude: ^/a
fs_types_exclude: ^b
diskstats_exclude: ^c
netdev_exclude: ^d
netclass_exclude: ^e
hwmon_exclude: ^f
power_supply_exclude: ^g
vmstat_fields: ^h
netstat_fields: ^i
`), &c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSettings(c)
	if err != nil {
		t.Fatal(err)
	}
	if s.ProcPath != "/host/proc" || s.SysPath != "/host/sys" || s.RootFSPath != "/host" || s.UdevPath != "/host/run/udev/data" ||
		s.limit != time.Minute || c.ReadTimeout != model.Duration(time.Minute) || len(s.enabled) != len(collectorNames)-4-2 {
		t.Errorf("read %+v", s)
	}
	for field, want := range map[*string]string{
		&s.MountPointsExclude: "^/a", &s.FSTypesExclude: "^b", &s.DiskstatsExclude: "^c", &s.NetdevExclude: "^d", &s.NetclassExclude: "^e",
		&s.HwmonExclude: "^f", &s.PowerSupplyExclude: "^g", &s.VmstatFields: "^h", &s.NetstatFields: "^i",
	} {
		if got := s.pattern(field).String(); got != want {
			t.Errorf("a pattern is %q, want %q", got, want)
		}
	}
}
