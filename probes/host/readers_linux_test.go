package host

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/probes"
)

func diffValues(t *testing.T, want, got map[string]float64) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
}

// TestHwmonUnits has one chip with a file of every kind that has rules of its own.
func TestHwmonUnits(t *testing.T) {
	sys := t.TempDir()
	const dir = "class/hwmon/hwmon3/"
	files := make(map[string]string)
	want := make(map[string]float64)
	for _, f := range []struct {
		file, content, name, sensor string
		value                       float64
	}{
		{"in1_input", "12000", "in_volts", "in1", 12},
		{"in1_alarm", "1", "in_alarm", "in1", 1},
		{"in1_min_alarm", "1000", "in_min_alarm_volts", "in1", 1},
		{"cpu0_vid", "1250", "cpu_vid_volts", "cpu0", 1.25},
		{"fan1_input", "900", "fan_rpm", "fan1", 900},
		{"fan1_fault", "0", "fan_fault", "fan1", 0},
		{"fan1_div", "4", "fan_div", "fan1", 4},
		{"pwm1", "128", "pwm", "pwm1", 128},
		{"pwm1_input", "64", "pwm_input", "pwm1", 64},
		{"temp1_input", "-5500", "temp_celsius", "temp1", -5.5},
		{"temp1_type", "4", "temp_type", "temp1", 4},
		{"temp1_beep", "1", "temp_beep_enabled", "temp1", 1},
		{"curr1_input", "1500", "curr_amps", "curr1", 1.5},
		{"power1_average", "65000000", "power_average_watt", "power1", 65},
		{"power1_accuracy", "990000", "power_accuracy", "power1", 0.99},
		{"power1_average_interval", "1000", "power_average_interval_seconds", "power1", 1},
		{"energy1_input", "3600000000", "energy_joule_total", "energy1", 3600},
		{"humidity1_input", "450000", "humidity", "humidity1", 0.45},
		{"intrusion0_alarm", "1", "intrusion_alarm", "intrusion0", 1},
		{"beep_enable", "1", "beep_enabled", "beep_enable0", 1},
		{"update_interval", "2000", "update_interval_seconds", "update_interval0", 2},
		{"vrm", "90", "voltage_regulator_version", "vrm0", 90},
	} {
		files[dir+f.file] = f.content + "\n"
		want[fmt.Sprintf(`node_hwmon_%s{chip="hwmon3",sensor=%q}`, f.name, f.sensor)] = f.value
	}
	files[dir+"temp1_label"] = "CPU \xff\n"
	want[`node_hwmon_sensor_label{chip="hwmon3",label="CPU `+"\uFFFD"+`",sensor="temp1"}`] = 1
	files[dir+"in2_input"] = "N/A\n"           // rubbish
	files[dir+"power/runtime_status"] = "on\n" // in every device
	files[dir+"device/temp1_input"] = "1\n"    // the chip's own file wins
	write(t, sys, files)

	for round := range 2 {
		s := collect(t, mustNew(t, Config{SysPath: sys, Collectors: []string{"hwmon"}}))
		for key := range s.values {
			if strings.HasPrefix(key, "node_scrape") {
				delete(s.values, key)
			}
		}
		// With a device link the chip is named after it; the plain directory has no bus.
		got := make(map[string]float64)
		for key, v := range s.values {
			got[strings.Replace(key, `chip="hwmon3_device"`, `chip="hwmon3"`, 1)] = v
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("round %d (-want +got):\n%s", round, d)
		}
		if typ := s.types["node_hwmon_energy_joule_total"]; typ != "counter" {
			t.Errorf("energy is a %s", typ)
		}
	}
}

func mustNew(t testing.TB, c Config) *Probe {
	t.Helper()
	p, err := New(c, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSplitSensorFile(t *testing.T) {
	for file, want := range map[string]string{
		"temp1_crit_alarm": "temp 1 crit_alarm", "pwm2": "pwm 2 ", "vrm": "vrm 0 ", "in10_input": "in 10 input",
		"uevent": "", "temp": "temp 0 ", "temp1x": "", "temp1_": "", "pwm1_auto_point1_pwm": "pwm 1 auto_point1_pwm",
		"": "", "1temp": "", "temp99999999999999999999_input": "",
	} {
		got := ""
		if kind, number, prop, ok := splitSensorFile(file); ok {
			got = fmt.Sprint(kind, " ", number, " ", prop)
		}
		if got != want {
			t.Errorf("%q splits into %q, want %q", file, got, want)
		}
	}
}

// TestCPUCounters lets the kernel's times go back a little, which must not show, and
// a lot, as a CPU does that was unplugged.
func TestCPUCounters(t *testing.T) {
	proc, sys := t.TempDir(), t.TempDir()
	p := mustNew(t, Config{ProcPath: proc, SysPath: sys, Collectors: []string{"cpu"}})
	for _, step := range []struct {
		name, stat           string
		user, idle, guestMax float64 // of CPU 0
		cpus                 int
	}{
		{"start", "cpu  1 1 1 1\ncpu0 1000 0 0 5000 10 0 0 0 7 0\ncpu1 1 1 1 1 1 1 1 1 1 1\nintr 5\n", 10, 50, 0.07, 2},
		{"idle back", "cpu0 1001 0 0 4900 10 0 0 0 7 0\ncpu1 1 1 1 1 1 1 1 1 1 1\n", 10.01, 50, 0.07, 2},
		{"unplugged", "cpu0 1002 0 0 5001 10 0 0 0 7 0\n", 10.02, 50.01, 0.07, 1},
		{"back from nothing", "cpu0 3 0 0 4 0 0 0 0 1 0\n", 0.03, 0.04, 0.01, 1},
		{"old kernel", "cpu0 4 0 0 5\n", 0.04, 0.05, 0.01, 1},
	} {
		write(t, proc, map[string]string{"stat": step.stat})
		s := collect(t, p)
		for key, want := range map[string]float64{
			`node_cpu_seconds_total{cpu="0",mode="user"}`:       step.user,
			`node_cpu_seconds_total{cpu="0",mode="idle"}`:       step.idle,
			`node_cpu_guest_seconds_total{cpu="0",mode="user"}`: step.guestMax,
		} {
			if got := s.values[key]; got != want {
				t.Errorf("%s: %s is %v, want %v", step.name, key, got, want)
			}
		}
		n := 0
		for key := range s.values {
			if strings.HasPrefix(key, "node_cpu_seconds_total") {
				n++
			}
		}
		if n != 8*step.cpus {
			t.Errorf("%s: %d series, want %d", step.name, n, 8*step.cpus)
		}
	}
}

func TestCPUList(t *testing.T) {
	for list, want := range map[string]string{"": "", "0": "0", "1,3-5,9": "1 3 4 5 9", "x,2": "2", "5-3": "", "0-99999999999": ""} {
		if got := strings.Join(cpuList(list), " "); got != want {
			t.Errorf("%q is %q, want %q", list, got, want)
		}
	}
}

func TestParseMount(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       mount
		bad        bool
	}{
		{"plain", "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw", mount{"/dev/sda1", "/", "ext4", "8", "1", false}, false},
		{"no optional fields", "21 1 8:1 / / ro - ext4 /dev/sda1 rw", mount{"/dev/sda1", "/", "ext4", "8", "1", true}, false},
		{"read-only below", "21 1 8:1 / / rw a b c - ext4 /dev/sda1 ro,foo", mount{"/dev/sda1", "/", "ext4", "8", "1", true}, false},
		{"after an error", "21 1 8:1 / / rw - ext4 /dev/sda1 rw,emergency_ro", mount{"/dev/sda1", "/", "ext4", "8", "1", true}, false},
		{"escapes", `21 1 0:40 / /a\040b\011c\134d rw - fuse.x x\043y rw`, mount{"x#y", "/a b\tc\\d", "fuse.x", "0", "40", false}, false},
		{"any bytes", "21 1 0:40 / /\xff rw - ext4 d rw", mount{"d", "/\xff", "ext4", "0", "40", false}, false},
		{"short", "21 1 0:40 / / rw", mount{}, true},
		{"rubbish", "", mount{}, true},
	} {
		got, ok := parseMount([]byte(c.line))
		if ok == c.bad || (ok && got != c.want) {
			t.Errorf("%s: %+v %v, want %+v", c.name, got, ok, c.want)
		}
	}
}

// TestRootFS has the host's root at another place, as in a container.
func TestRootFS(t *testing.T) {
	root, proc := t.TempDir(), t.TempDir()
	write(t, root, map[string]string{"data/x": "", "usr/lib/os-release": "# comment\nNAME='Ex \"OS\"'\nID=ex\nVERSION_ID=\"40.5.1\"\nPRETTY_NAME=\"a \\\"b\\\" \\$c\"\nSUPPORT_END=2030-01-02\n"})
	write(t, proc, map[string]string{"self/mountinfo": fmt.Sprintf("21 1 8:1 / %[1]s rw - ext4 /dev/a rw\n22 1 8:2 / %[1]s/data rw - ext4 /dev/b rw\n22 1 8:2 / %[1]s/data rw - ext4 /dev/b ro\n", root)})
	s := collect(t, mustNew(t, Config{ProcPath: proc, RootFSPath: root + "/", Collectors: []string{"filesystem", "os"}}))
	for _, key := range []string{
		`node_filesystem_size_bytes{device="/dev/a",fstype="ext4",mountpoint="/"}`,
		`node_filesystem_size_bytes{device="/dev/b",fstype="ext4",mountpoint="/data"}`,
	} {
		if s.values[key] <= 0 {
			t.Errorf("%s is %v", key, s.values[key])
		}
	}
	for key, want := range map[string]float64{
		`node_os_info{id="ex",name="Ex \"OS\"",pretty_name="a \"b\" $c",version_id="40.5.1"}`: 1,
		`node_os_version{id="ex",name="Ex \"OS\""}`:                                           40.5,
		"node_os_support_end_timestamp_seconds":                                               float64(time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC).Unix()),
	} {
		if got := s.values[key]; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

// TestExcludes gives every pattern something to leave out.
func TestExcludes(t *testing.T) {
	c := fixtures(t)
	c.Collectors = []string{"diskstats", "netdev", "netclass", "hwmon", "powersupplyclass", "vmstat", "netstat"}
	c.DiskstatsExclude, c.NetdevExclude, c.NetclassExclude = "^(sda|dm-.)$", "^eth0$", "^bond0$"
	c.HwmonExclude, c.PowerSupplyExclude = "^platform_coretemp_0$", "^AC$"
	c.VmstatFields, c.NetstatFields = "^nr_free_pages$", "^Tcp_InSegs$"
	s := collect(t, mustNew(t, c))
	for key := range s.values {
		name, _, _ := strings.Cut(key, "{")
		for _, banned := range []string{
			`node_disk_.*"sda"`, `_total.*"eth0"`, `"bond0"`, "platform_coretemp_0", `power_supply="AC"`, "node_vmstat_pgfault", "node_netstat_Tcp_OutSegs",
		} {
			prefix, part, ok := strings.Cut(banned, ".*")
			if !ok {
				prefix, part = "", banned
			}
			if strings.Contains(name, prefix) && strings.Contains(key, part) && !strings.Contains(name, "carrier") {
				t.Errorf("%s is there in spite of %s", key, banned)
			}
		}
	}
	for _, key := range []string{
		`node_disk_io_now{device="sdb"}`, `node_disk_io_now{device="dm-0"}`, `node_network_receive_bytes_total{device="lo"}`,
		`node_network_up{device="eth0"}`, `node_hwmon_temp_celsius{chip="platform_coretemp_1",sensor="temp1"}`,
		`node_power_supply_capacity{power_supply="BAT0"}`, "node_vmstat_nr_free_pages", "node_netstat_Tcp_InSegs",
	} {
		if _, ok := s.values[key]; ok == (key == `node_disk_io_now{device="dm-0"}`) {
			t.Errorf("%s: %v", key, ok)
		}
	}
}

func TestRoundsDoNotGrow(t *testing.T) {
	p := mustNew(t, Config{})
	r := probes.NewRound(0)
	if err := p.Collect(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	allocs := testing.AllocsPerRun(5, func() {
		r := probes.NewRound(0)
		if err := p.Collect(t.Context(), r); err != nil {
			t.Error(err)
		}
	})
	if limit := float64(5*len(r.Samples()) + 500); allocs > limit {
		t.Errorf("a round of %d samples makes %v allocations, more than %v", len(r.Samples()), allocs, limit)
	}
}
