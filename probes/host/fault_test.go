//go:build linux

package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sys/unix"

	"hwsagent/probes"
)

// write makes files below dir, with their directories.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHungChip has a sensor whose read does not return: a FIFO without a writer.
func TestHungChip(t *testing.T) {
	sys := t.TempDir()
	write(t, sys, map[string]string{
		"class/hwmon/hwmon0/name":        "dead\n",
		"class/hwmon/hwmon1/name":        "alive\n",
		"class/hwmon/hwmon1/temp1_input": "41000\n",
	})
	fifo := filepath.Join(sys, "class/hwmon/hwmon0/temp1_input")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{SysPath: sys, Collectors: []string{"hwmon", "loadavg"}, ReadTimeout: model.Duration(20 * time.Millisecond)}, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	round := func() (*scrape, error) {
		r := probes.NewRound(0)
		err := p.Collect(t.Context(), r)
		return ofRound(t, r), err
	}
	const alive, dead = `node_hwmon_temp_celsius{chip="alive",sensor="temp1"}`, `node_hwmon_temp_celsius{chip="dead",sensor="temp1"}`
	for i := range 3 {
		s, err := round()
		if err == nil || !errors.Is(err, probes.ErrPartial) || !strings.Contains(err.Error(), "hwmon: chip dead: no answer within 20ms") {
			t.Fatalf("round %d: the error is %v", i, err)
		}
		if s.values[alive] != 41 || s.values["node_load1"] < 0 {
			t.Errorf("round %d: the healthy chip gave %v", i, s.values[alive])
		}
		if _, there := s.values[dead]; there {
			t.Errorf("round %d: the hung chip gave a value", i)
		}
	}
	// The fault fired: a FIFO can be opened like this only while somebody waits at its
	// other end.
	fd, err := unix.Open(fifo, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatalf("the probe does not read the hung sensor: %v", err)
	}
	if err := os.Remove(fifo); err != nil {
		t.Fatal(err)
	}
	write(t, sys, map[string]string{"class/hwmon/hwmon0/temp1_input": "42000\n"})
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; {
		s, err := round()
		if err == nil && s.values[dead] == 42 {
			break
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("the chip is still skipped: %v", err)
		}
	}
}

// TestStuckMount has a mount whose server is gone and one that refuses.
func TestStuckMount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proc := t.TempDir()
		write(t, proc, map[string]string{"1/mountinfo": `21 1 8:1 / / rw - ext4 /dev/sda1 rw,errors=remount-ro
30 21 0:42 / /srv/dead rw shared:7 - nfs4 nas:/dead rw
31 21 0:43 / /srv/refuses ro,nosuid - nfs4 nas:/refuses rw
32 21 0:5 / /proc rw - proc proc rw
`})
		s, err := newSettings(Config{ProcPath: proc})
		if err != nil {
			t.Fatal(err)
		}
		f := newFilesystem(&environment{settings: s, now: time.Now}).(*filesystem)
		release := make(chan struct{})
		var hung atomic.Int32
		f.statfs = func(path string, buf *unix.Statfs_t) error {
			switch path {
			case "/srv/refuses":
				return unix.EIO
			case "/srv/dead":
				hung.Add(1)
				<-release
			}
			*buf = unix.Statfs_t{Bsize: 4096, Blocks: 100, Bfree: 40, Bavail: 30, Files: 10, Ffree: 7}
			return nil
		}
		const dead = `{device="nas:/dead",fstype="nfs4",mountpoint="/srv/dead"}`
		round := func(took time.Duration) (*scrape, error) {
			t.Helper()
			r := probes.NewRound(0)
			began := time.Now()
			err := f.read(t.Context(), r)
			if d := time.Since(began); d != took {
				t.Errorf("the round took %v, want %v", d, took)
			}
			return ofRound(t, r), err
		}
		for i := range 2 {
			took := 2 * time.Second // the first time; then it is skipped
			if i > 0 {
				took = 0
			}
			got, err := round(took)
			if err == nil || err.Error() != "/srv/dead: no answer within 2s" {
				t.Errorf("the error is %v", err)
			}
			want := map[string]float64{
				"node_filesystem_device_error" + dead: 1,
				"node_filesystem_readonly" + dead:     0,
				`node_filesystem_device_error{device="nas:/refuses",fstype="nfs4",mountpoint="/srv/refuses"}`: 1,
				`node_filesystem_readonly{device="nas:/refuses",fstype="nfs4",mountpoint="/srv/refuses"}`:     1,
				`node_filesystem_device_error{device="/dev/sda1",fstype="ext4",mountpoint="/"}`:               0,
				`node_filesystem_readonly{device="/dev/sda1",fstype="ext4",mountpoint="/"}`:                   0,
				`node_filesystem_size_bytes{device="/dev/sda1",fstype="ext4",mountpoint="/"}`:                 409600,
				`node_filesystem_free_bytes{device="/dev/sda1",fstype="ext4",mountpoint="/"}`:                 163840,
				`node_filesystem_avail_bytes{device="/dev/sda1",fstype="ext4",mountpoint="/"}`:                122880,
				`node_filesystem_files{device="/dev/sda1",fstype="ext4",mountpoint="/"}`:                      10,
				`node_filesystem_files_free{device="/dev/sda1",fstype="ext4",mountpoint="/"}`:                 7,
				`node_filesystem_mount_info{device="/dev/sda1",major="8",minor="1",mountpoint="/"}`:           1,
			}
			diffValues(t, want, got.values)
		}
		if n := hung.Load(); n != 1 {
			t.Errorf("the dead mount was asked %d times, want once", n)
		}
		close(release)
		synctest.Wait()
		got, err := round(0)
		if err != nil || got.values["node_filesystem_size_bytes"+dead] != 409600 {
			t.Errorf("after it came back: %v, %v", err, got.values["node_filesystem_size_bytes"+dead])
		}
	})
}

// TestFailureCostsOneCollector breaks two files.
func TestFailureCostsOneCollector(t *testing.T) {
	c := fixtures(t)
	c.Collectors = hostOnly
	write(t, c.ProcPath, map[string]string{"loadavg": "rubbish\n"})
	if err := os.Remove(filepath.Join(c.ProcPath, "meminfo")); err != nil {
		t.Fatal(err)
	}
	p, err := New(c, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := probes.NewRound(0)
	err = p.Collect(t.Context(), r)
	if !errors.Is(err, probes.ErrPartial) {
		t.Errorf("the error is %v", err)
	}
	wantErr := "partly failed: meminfo: open " + c.ProcPath + "/meminfo: no such file or directory\n" +
		`loadavg: parse ` + c.ProcPath + `/loadavg: "rubbish" is not a load`
	if err == nil || err.Error() != wantErr {
		t.Errorf("the error is %v\nwant %s", err, wantErr)
	}
	s := ofRound(t, r)
	for key, want := range map[string]float64{
		`node_scrape_collector_success{collector="meminfo"}`: 0,
		`node_scrape_collector_success{collector="loadavg"}`: 0,
		`node_scrape_collector_success{collector="cpu"}`:     1,
		`node_cpu_seconds_total{cpu="0",mode="user"}`:        444.9,
		`node_edac_correctable_errors_total{controller="0"}`: 1,
	} {
		if got, ok := s.values[key]; !ok || got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

// TestAbsentHardwareIsSilent has an empty sysfs; and then an empty procfs too, which
// no machine has.
func TestAbsentHardwareIsSilent(t *testing.T) {
	c := fixtures(t)
	c.Collectors = hostOnly
	c.SysPath, c.UdevPath = t.TempDir(), t.TempDir()
	p, err := New(c, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := collect(t, p) // reports an error
	for key := range s.values {
		if strings.Contains(key, `"hwmon"`) || strings.Contains(key, "node_edac") {
			t.Errorf("there is %s", key)
		}
	}
	c.ProcPath, c.Collectors = t.TempDir(), nil
	if p, err = New(c, quiet(), nil); err != nil {
		t.Fatal(err)
	}
	err = p.Collect(t.Context(), probes.NewRound(0))
	var failed []string
	for line := range strings.SplitSeq(strings.TrimPrefix(err.Error(), "partly failed: "), "\n") {
		name, _, _ := strings.Cut(line, ":")
		failed = append(failed, name)
	}
	if got, want := strings.Join(failed, " "), "cpu meminfo loadavg stat filesystem diskstats netdev vmstat filefd netstat"; got != want {
		t.Errorf("failed without procfs: %s, want %s", got, want)
	}
}

// TestAttributeThatFails has a sensor that answers EIO.
func TestAttributeThatFails(t *testing.T) {
	sys := t.TempDir()
	write(t, sys, map[string]string{"class/hwmon/hwmon0/name": "chip\n", "class/hwmon/hwmon0/temp2_input": "41000\n"})
	bad := filepath.Join(sys, "class/hwmon/hwmon0/temp1_input")
	if err := os.Symlink("/proc/self/mem", bad); err != nil { // address 0 is not mapped
		t.Fatal(err)
	}
	if _, err := attribute(bad); !errors.Is(err, unix.EIO) {
		t.Fatalf("the fault did not fire: %v", err)
	}
	p, err := New(Config{SysPath: sys, Collectors: []string{"hwmon"}}, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := collect(t, p)
	delete(s.values, `node_scrape_collector_duration_seconds{collector="hwmon"}`)
	diffValues(t, map[string]float64{
		`node_hwmon_chip_names{chip="chip",chip_name="chip"}`: 1,
		`node_hwmon_temp_celsius{chip="chip",sensor="temp2"}`: 41,
		`node_scrape_collector_success{collector="hwmon"}`:    1,
	}, s.values)
}

func TestRoundThatIsOver(t *testing.T) {
	p, err := New(Config{Collectors: []string{"cpu", "loadavg"}}, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("out of time")
	cancel(why)
	r := probes.NewRound(0)
	err = p.Collect(ctx, r)
	if !errors.Is(err, why) || errors.Is(err, probes.ErrPartial) || err.Error() != "not read: cpu, loadavg: out of time" || len(r.Samples()) != 0 {
		t.Errorf("%d samples and %v", len(r.Samples()), err)
	}
}

// TestPanic has an mdstat on which procfs panics.
func TestPanic(t *testing.T) {
	c := Config{ProcPath: t.TempDir(), SysPath: t.TempDir(), Collectors: []string{"loadavg", "mdadm"}}
	write(t, c.ProcPath, map[string]string{"loadavg": "1 2 3 4/5 6\n", "mdstat": "Personalities : ]\n"})
	p := mustNew(t, c)
	r := probes.NewRound(0)
	err := p.Collect(t.Context(), r)
	if !errors.Is(err, probes.ErrPartial) || !strings.Contains(err.Error(), "mdadm: the work panicked: runtime error: slice bounds") {
		t.Errorf("the error is %v", err)
	}
	if s := ofRound(t, r); s.values["node_load5"] != 2 || s.values[`node_scrape_collector_success{collector="mdadm"}`] != 0 {
		t.Errorf("the round holds %v", s.values)
	}
}
