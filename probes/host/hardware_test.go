//go:build linux

package host

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"golang.org/x/sys/unix"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// usualHardware are the collectors of hw_* that read files alone; hw_optics asks the kernel that runs.
var usualHardware = slices.DeleteFunc(slices.Clone(hardwareNames), func(name string) bool { return name == "hw_optics" })

// hardwareOf reads hw_* alone of a tree and returns them as text.
func hardwareOf(t *testing.T, c Config) string {
	t.Helper()
	c.Collectors = usualHardware
	s := collect(t, mustNew(t, c))
	for key := range s.values {
		if !strings.HasPrefix(key, "hw_") {
			delete(s.values, key)
		}
	}
	return s.String()
}

// golden compares got with a file in testdata, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("%s reads differently (-want +got):\n%s", name, d)
	}
}

// TestHardwareGolden reads the fixtures of node_exporter.
func TestHardwareGolden(t *testing.T) {
	golden(t, "hardware.prom", hardwareOf(t, fixtures(t)))
}

// server unpacks testdata/machine.ttar after a change of its text and returns its configuration.
func server(t testing.TB, change func(string) string) Config {
	t.Helper()
	text, err := os.ReadFile("testdata/machine.ttar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "changed.ttar")
	if err := os.WriteFile(archive, []byte(change(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	unpack(t, archive, dir)
	return Config{ProcPath: filepath.Join(dir, "proc"), SysPath: filepath.Join(dir, "sys"), UdevPath: filepath.Join(dir, "udev", "data")}
}

func unchanged(s string) string { return s }

// TestHardwareServer reads a server that has everything.
func TestHardwareServer(t *testing.T) {
	golden(t, "machine.prom", hardwareOf(t, server(t, unchanged)))
}

// renumbered are the numbers and names that a kernel may give otherwise after a reboot or another order of drivers.
var renumbered = strings.NewReplacer(
	"hwmon0", "hwmon5", "hwmon1", "hwmon8", "hwmon2", "hwmon0", "hwmon3", "hwmon1", "hwmon4", "hwmon7", "hwmon5", "hwmon2", "hwmon7", "hwmon3", "hwmon8", "hwmon4",
	"nvme0", "nvme7", "sda", "sdq", "sdb", "sda", "i2c-3", "i2c-9", "/3-00", "/9-00", "ata1", "ata5", "ata2", "ata6",
	"host0", "host3", "target0:", "target3:", "/0:0:0:0", "/3:0:0:0", "host1", "host0", "target1:", "target0:", "/1:0:8:0", "/0:0:8:0", "/1:0:0:0", "/0:0:0:0",
	"thermal_zone0", "thermal_zone3", "cooling_device0", "cooling_device2", "cooling_device2", "cooling_device0",
	"eno1", "eth5", "eno2", "eth0", "md127", "md0", "9:127", "9:0", "/st0", "/st4", "host8", "host2", "mlx5_0", "ibp6s0", "mmcblk0", "mmcblk1",
	"drm/card0", "drm/card1", "drm/card1", "drm/card0", "hid-ups-1", "hid-ups-4", "usb1/1-3/1-3:1.0", "usb3/3-3/3-3:1.0", "0002.0001", "0002.0004",
)

// TestIDsSurvive numbers and names all devices anew: every series has the same ID and value, and no ID
// holds what the kernel counted.
func TestIDsSurvive(t *testing.T) {
	names := regexp.MustCompile(`(hw_name|hw_device)="[^"]*",?`)
	read := func(change func(string) string) map[string]string {
		series := make(map[string]string)
		for line := range strings.Lines(hardwareOf(t, server(t, change))) {
			key, value, _ := strings.Cut(names.ReplaceAllString(line, ""), "} ")
			series[key] = value
		}
		return series
	}
	before, after := read(unchanged), read(renumbered.Replace)
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("after numbering anew (-before +after):\n%s", d)
	}
	counted := regexp.MustCompile(`hw_(id|parent)="[^"]*(hwmon\d|sd[a-z]\b|nvme\d|i2c-\d|host\d|ata\d+/host|thermal_zone|eno\d|md127|st0|mlx5_0|mmcblk)`)
	for key := range before {
		if counted.MatchString(key) {
			t.Errorf("a name that the kernel counted is in %s", key)
		}
	}
	if len(before) < 300 {
		t.Errorf("only %d series were compared", len(before))
	}
}

// TestHardwareIsInTheTable holds each sample of the trees to the vocabulary: labels that the metric may have,
// one series once, each status whole, each parent there.
func TestHardwareIsInTheTable(t *testing.T) {
	for name, c := range map[string]Config{"server": server(t, unchanged), "fixtures": fixtures(t)} {
		c.Collectors = usualHardware
		r := probes.NewRound(0)
		if err := mustNew(t, c).Collect(t.Context(), r); err != nil {
			t.Error(err)
		}
		metrics := make(map[string]hw.Metric)
		for m := hw.Info; m <= hw.VoltageNominal; m++ {
			metrics[m.Family().Name] = m
		}
		kinds := make(map[string]hw.Kind)
		for k := hw.Battery; k <= hw.Host; k++ {
			kinds[k.String()] = k
		}
		ids, parents, states := map[string]bool{enclosureID: true, "": true}, map[string]string{}, map[string]int{}
		for _, s := range r.Samples() {
			m, ok := metrics[s.Family.Name]
			if !ok {
				continue
			}
			var rest []string
			labels := make(map[string]string)
			for i := 0; i < len(s.Labels); i += 2 {
				labels[s.Labels[i]] = s.Labels[i+1]
				switch s.Labels[i] {
				case "hw_id", "hw_name", "hw_parent", "hw_type":
				default:
					rest = append(rest, s.Labels[i:i+2]...)
				}
			}
			if m == hw.Info {
				ids[labels["hw_id"]] = true
				parents[labels["hw_id"]] = labels["hw_parent"]
			}
			if m == hw.StatusOf && s.Value == 1 {
				states[labels["hw_type"]+labels["hw_id"]]++
			}
			kind, typed := kinds[labels["hw_type"]]
			if typed && !m.Allows(kind, rest) || !typed && len(rest) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(kinds)), func(k hw.Kind) bool { return m.Allows(k, rest) }) {
				t.Errorf("%s: %s may not have %v", name, s.Family.Name, s.Labels)
			}
		}
		for id, parent := range parents {
			if !ids[parent] {
				t.Errorf("%s: %s is a part of %s, which is not there", name, id, parent)
			}
		}
		for id, n := range states {
			if n < 1 || n > 2 {
				t.Errorf("%s: %s is in %d states", name, id, n)
			}
		}
	}
}

// TestHungHardware has, one after the other, a file of each class whose read does not return: it costs the series of its
// device, and no other.
func TestHungHardware(t *testing.T) {
	for _, tc := range []struct{ file, lost string }{
		{"devices/pci0000:00/0000:00:1d.0/0000:01:00.0/nvme/nvme0/state", `hw_name="nvme0"`},
		{"devices/pci0000:00/0000:00:1d.0/0000:01:00.0/nvme/nvme0/hwmon0/temp1_input", `hw_name="nvme `},
		{"devices/pci0000:00/0000:00:17.0/ata2/host1/target1:0:0/1:0:0:0/state", `hw_name="sdb"`},
		{"devices/virtual/block/md127/md/array_state", `hw_name="md127"`},
		{"devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1/net/eno2/operstate", `hw_name="eno2"`},
		{"devices/pci0000:00/0000:05:00.0/host8/fc_host/host8/port_state", `hw_name="host8"`},
		{"devices/pci0000:00/0000:06:00.0/infiniband/mlx5_0/ports/1/state", `hw_name="mlx5_0/1"`},
		{"devices/virtual/thermal/thermal_zone0/temp", `hw_name="acpitz"`},
		{"devices/LNXSYSTM:00/LNXSYBUS:00/PNP0C0A:00/power_supply/BAT1/status", `hw_name="BAT1"`},
		{"devices/system/edac/mc/mc0/dimm1/dimm_ue_count", `edac:mc0`},
		{"devices/pci0000:00/0000:00:1d.0/aer_dev_fatal", `hw_name="0000:00:1d.0"`},
		{"devices/pci0000:00/0000:00:17.0/ata2/host1/target1:0:8/1:0:8:0/enclosure/1:0:8:0/Slot 02/status", `ses:0x500304801f3a0abf`},
		{"devices/pci0000:40/0000:40:01.1/0000:43:00.0/ras/umc_err_count", `hw_name="card0"`},
		{"devices/pci0000:00/0000:00:1f.4/i2c-3/3-0068/hwmon/hwmon14/power1_input", `hw_name="cffps2`},
	} {
		t.Run(filepath.Base(filepath.Dir(tc.file))+"_"+filepath.Base(tc.file), func(t *testing.T) {
			t.Parallel() // each waits for read_timeout, which is long enough for files that do not hang on a busy machine
			c := server(t, unchanged)
			c.Collectors, c.ReadTimeout = usualHardware, model.Duration(time.Minute)
			whole := collect(t, mustNew(t, c))
			c.ReadTimeout = model.Duration(3 * time.Second)
			file := filepath.Join(c.SysPath, tc.file)
			if err := errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)); err != nil {
				t.Fatal(err)
			}
			r := probes.NewRound(0)
			err := mustNew(t, c).Collect(t.Context(), r)
			if !errors.Is(err, probes.ErrPartial) || !strings.Contains(err.Error(), "no answer within 3s") {
				t.Errorf("the error is %v", err)
			}
			got := ofRound(t, r)
			lost := 0
			for key := range whole.values {
				_, there := got.values[key]
				switch {
				case !strings.HasPrefix(key, "hw_") || strings.HasPrefix(key, "hw_host_"):
				case strings.Contains(key, tc.lost):
					lost++
					if there {
						t.Errorf("%s came from a device that hangs", key)
					}
				case !there:
					t.Errorf("%s is lost, too", key)
				}
			}
			if lost == 0 {
				t.Error("nothing was lost: the fault did not fire")
			}
			// Whoever reads waits at the other end, and comes back when it ends.
			fd, err := unix.Open(file, unix.O_WRONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				t.Fatalf("the probe does not read the hung device: %v", err)
			}
			if err := errors.Join(os.Remove(file), unix.Close(fd)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHardwareEmptyAndAbsent empties every file, and then leaves only directories: nothing panics, and nothing is made up.
func TestHardwareEmptyAndAbsent(t *testing.T) {
	for _, content := range []string{"", "\n", "N/A\n", "ue: -1\nce: 1e999\n", "-9223372036854775808\n", "1e400\n", strings.Repeat("9", 400)} {
		c := server(t, unchanged)
		c.Collectors = usualHardware
		err := filepath.WalkDir(c.SysPath, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				err = os.WriteFile(path, []byte(content), 0o600)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		s := collect(t, mustNew(t, c))
		for key, v := range s.values {
			if v != v || v > 1e300 || v < -1e300 {
				t.Errorf("%q gives %s %v", content, key, v)
			}
			if content == "" && strings.Contains(key, "_limit_") {
				t.Errorf("%s was made up", key)
			}
		}
	}
	if s := collect(t, mustNew(t, Config{SysPath: t.TempDir(), ProcPath: t.TempDir(), Collectors: usualHardware})); len(s.values) != 0 {
		t.Errorf("an empty machine has %v", s.values)
	}
}

// FuzzHardware puts any bytes in the place of one file of the server.
func FuzzHardware(f *testing.F) {
	c := server(f, unchanged)
	c.Collectors = usualHardware
	var files []string
	content := make(map[string][]byte)
	err := filepath.WalkDir(c.SysPath, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files = append(files, path)
		content[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	slices.Sort(files)
	for i := 0; i < len(files); i += 7 {
		f.Add(uint16(i), content[files[i]])
	}
	f.Add(uint16(3), []byte("TOTAL_ERR_FATAL \x00"))
	p := mustNew(f, c)
	f.Fuzz(func(t *testing.T, which uint16, b []byte) {
		path := files[int(which)%len(files)]
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.WriteFile(path, content[path], 0o600); err != nil {
				t.Error(err)
			}
		}()
		r := probes.NewRound(0)
		if err := p.Collect(t.Context(), r); err != nil && strings.Contains(err.Error(), " panicked: ") {
			t.Errorf("%s: %v", path, err)
		}
		if n := len(r.Samples()); n > 5000 {
			t.Errorf("%s: %d samples", path, n)
		}
		for _, s := range r.Samples() {
			for _, l := range s.Labels {
				if !utf8.ValidString(l) {
					t.Fatalf("%s: %s has the label text %q", path, s.Family.Name, l)
				}
			}
		}
	})
}

// TestHardwareAllocations bounds what a round of the server costs.
func TestHardwareAllocations(t *testing.T) {
	c := server(t, unchanged)
	c.Collectors = usualHardware
	p := mustNew(t, c)
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
	t.Logf("%d samples, %v allocations", len(r.Samples()), allocs)
	limit := float64(10*len(r.Samples()) + 500)
	if underRace {
		limit = 13 * float64(len(r.Samples())) // the detector makes some, too
	}
	if allocs > limit {
		t.Errorf("a round of %d samples makes %v allocations, more than %v", len(r.Samples()), allocs, limit)
	}
}
