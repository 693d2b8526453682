//go:build linux

package smart

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe" // #nosec G103 -- the size of a struct of the kernel

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// fakeNVMe answers as a controller with the figures of testdata/nvme.json.
func fakeNVMe(t *testing.T) nvmeAsker {
	t.Helper()
	who, health := make([]byte, identifySize), make([]byte, healthSize)
	copy(who[4:], "S4EXAMPLE01         EXAMPLE NVMe 1TB                        2B4QEXM7")
	binary.LittleEndian.PutUint16(who[266:], 82+273)
	binary.LittleEndian.PutUint16(who[268:], 85+273)
	binary.LittleEndian.PutUint64(who[280:], 1000204886016)
	binary.LittleEndian.PutUint16(health[1:], 39+273)
	health[3], health[4], health[5] = 100, 10, 7
	for at, v := range map[int]uint64{32: 2000, 48: 3000, 112: 12, 128: 100, 160: 1, 176: 4} {
		binary.LittleEndian.PutUint64(health[at:], v)
	}
	return func(_ string, commands ...*adminCommand) error {
		for _, c := range commands {
			switch {
			case c.opcode == identify && c.namespace == 0 && c.dword10 == 1 && len(c.data) == 4096:
				copy(c.data, who)
			case c.opcode == getLogPage && c.namespace == 0xffffffff && c.dword10 == 0x007f0002 && len(c.data) == 512:
				copy(c.data, health)
			default:
				return nvmeStatus(0x4002)
			}
		}
		return nil
	}
}

// nvmeMachine is a machine with the controllers of these names and no smartctl.
func nvmeMachine(t *testing.T, c Config, ask nvmeAsker, names ...string) *Probe {
	t.Helper()
	c.NVMe = nvmeIoctl
	p := newProbe(t, c)
	p.class, p.askNVMe = t.TempDir(), ask
	for _, name := range names {
		if err := os.Mkdir(filepath.Join(p.class, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestNVMeAsSmartctl: without smartctl a controller has the same series as by smartctl, but the exit status.
func TestNVMeAsSmartctl(t *testing.T) {
	_, c := machine(t, map[string]string{"nvme0": "nvme.json"})
	c.Devices = []Device{{Device: "/dev/nvme0"}}
	want, err := round(t, newProbe(t, c))
	if err != nil {
		t.Fatal(err)
	}
	// Of the size of a namespace and its blocks a controller says nothing.
	var lines []string
	for line := range strings.Lines(want) {
		if !strings.Contains(line, "exit_status") && !strings.Contains(line, "_capacity_b") && !strings.Contains(line, "_block_size") || strings.Contains(line, "nvme_capacity") {
			lines = append(lines, line)
		}
	}
	want = strings.Join(lines, "")
	for _, devices := range [][]Device{{{Device: "/dev/nvme0"}}, {{Device: "/dev/nvme0n1", Type: "nvme"}}} {
		got, err := round(t, nvmeMachine(t, Config{Devices: devices}, fakeNVMe(t)))
		if d := cmp.Diff(want, got); err != nil || d != "" || strings.Count(got, "\n") < 20 {
			t.Errorf("%v: %v\n%s", devices, err, d)
		}
	}
}

// TestNVMeWithoutSmartctl: without smartctl, the controllers that the kernel lists are read; other entries of the list are not.
func TestNVMeWithoutSmartctl(t *testing.T) {
	if _, err := os.Stat("/usr/sbin/smartctl"); err == nil {
		t.Log("smartctl is installed here: its scan adds what this machine has")
	}
	var mu sync.Mutex
	var asked []string
	ask := fakeNVMe(t)
	p := nvmeMachine(t, Config{Exclude: "nvme3$"}, func(name string, c ...*adminCommand) error {
		mu.Lock()
		asked = append(asked, name)
		mu.Unlock()
		return ask(name, c...)
	}, "nvme0", "nvme3", "nvme-subsys0", "nvme12")
	own, others, err := p.own(nil)
	if len(own) != 3 || len(others) != 0 || err != nil {
		t.Errorf("%v, %v, %v", own, others, err)
	}
	own, _, err = p.devices(t.Context())
	if len(own) != 2 || own[1].Device != "/dev/nvme12" || err != nil {
		t.Errorf("%v, %v", own, err)
	}
	r := probes.NewRound(0)
	if err := p.Collect(t.Context(), r); errors.Is(err, fs.ErrNotExist) || len(asked) != 2 {
		t.Errorf("asked %v: %v", asked, err)
	}
}

// TestNVMeRefused: a refusal affects only its own disk, and names the remedy; one by the controller has its status.
func TestNVMeRefused(t *testing.T) {
	ask := fakeNVMe(t)
	for refusal, want := range map[error]string{fs.ErrPermission: "CAP_SYS_ADMIN", nvmeStatus(0x4281): "type 2, status 0x81"} {
		p := nvmeMachine(t, Config{Devices: []Device{{Device: "/dev/nvme0"}, {Device: "/dev/nvme1"}}}, func(name string, c ...*adminCommand) error {
			if name == "nvme1" {
				return refusal
			}
			return ask(name, c...)
		})
		got, err := round(t, p)
		if !errors.Is(err, probes.ErrPartial) || !strings.Contains(err.Error(), "/dev/nvme1") || !strings.Contains(err.Error(), want) || !strings.Contains(got, `smartctl_device_media_errors{device="nvme0"} 1`) {
			t.Errorf("%v\n%s", err, got)
		}
	}
}

// TestNVMeHangs: a command that does not come back costs its own disk, and no second one is begun.
func TestNVMeHangs(t *testing.T) {
	ask, let, begun := fakeNVMe(t), make(chan struct{}), 0
	back := make(chan struct{})
	p := nvmeMachine(t, Config{ReadTimeout: model.Duration(20 * time.Millisecond), Devices: []Device{{Device: "/dev/nvme0"}, {Device: "/dev/nvme1"}}}, func(name string, c ...*adminCommand) error {
		if name == "nvme1" {
			begun++
			<-let
			defer close(back)
		}
		return ask(name, c...)
	})
	for _, want := range []string{"does not answer", "has not ended"} {
		got, err := round(t, p)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(got, `device="nvme0"`) || strings.Contains(got, `device="nvme1"`) {
			t.Errorf("%v\n%s", err, got)
		}
	}
	close(let)
	<-back
	if begun != 1 {
		t.Errorf("%d commands were begun, want 1", begun)
	}
}

// TestNVMeStates: critical warnings of the log become states.
func TestNVMeStates(t *testing.T) {
	for bits, want := range map[byte]string{0: "ok", 1: "ok+predicted_failure", 1 << 3: "failed", 1 << 1: "degraded"} {
		who, health := make([]byte, identifySize), make([]byte, healthSize)
		health[0] = bits
		c, err := parseNVMe("nvme0", who, health)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.status().String(); got != want {
			t.Errorf("warning %#x is %s, want %s", bits, got, want)
		}
		if *c.Status.Passed != (bits == 0) || c.Temperature["current"] != nil {
			t.Errorf("warning %#x: %+v %v", bits, c.Status, c.Temperature)
		}
	}
}

// TestNVMeStruct: the struct has the kernel's size, and with it the number of the ioctl, which nvme_ioctl.h gives as 0xC0484E41.
func TestNVMeStruct(t *testing.T) {
	if size := unsafe.Sizeof(nvmePassthru{}); size != 72 || adminIoctl != 0xC0484E41 {
		t.Errorf("%d bytes, ioctl %#x", size, adminIoctl)
	}
}

// TestNVMeNotOne: a file that is no controller is refused by the kernel, and one that is not there is missing.
func TestNVMeNotOne(t *testing.T) {
	dir := t.TempDir()
	if _, err := openNVMe(dir, "nvme0"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "nvme0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := openNVMe(dir, "nvme0")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := (&adminCommand{opcode: identify, data: make([]byte, identifySize)}).send(f); err == nil {
		t.Error("a plain file takes NVMe commands")
	}
}

func FuzzNVMe(f *testing.F) {
	f.Add([]byte("S4EXAMPLE01"), []byte{1, 0x38, 1})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if _, err := parseNVMe("nvme0", a, b); err == nil && (len(a) < identifySize || len(b) < healthSize) {
			t.Error("short answers are taken")
		}
		who, health := make([]byte, identifySize), make([]byte, healthSize)
		copy(who, a)
		copy(health, b)
		c, err := parseNVMe("nvme0", who, health)
		if err != nil {
			t.Fatal(err)
		}
		r := probes.NewRound(0)
		newProbe(t, Config{}).add(r, Device{Device: "/dev/nvme0"}, answer{capture: c, own: true}, map[string]bool{})
		for _, s := range r.Samples() {
			for _, l := range s.Labels {
				if strings.ToValidUTF8(l, "") != l {
					t.Errorf("%q is not UTF-8", l)
				}
			}
		}
	})
}
