//go:build linux

package smart

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/probes"
)

// beside reads sda, about which smartctl misbehaves, and nvme0, which is well, and returns the error about sda. The series of nvme0 must be
// there, those of sda must not.
func beside(t *testing.T, p *Probe) error {
	t.Helper()
	got, err := round(t, p)
	if !errors.Is(err, probes.ErrPartial) || !strings.Contains(fmt.Sprint(err), "/dev/sda: ") || strings.Contains(got, `device="sda"`) || !strings.Contains(got, `device="nvme0"`) {
		t.Errorf("%v\n%.500s", err, got)
	}
	return err
}

func twoDisks(t *testing.T) (dir string, p *Probe) {
	t.Helper()
	dir, c := machine(t, whole)
	c.Devices = []Device{{Device: "/dev/sda"}, {Device: "/dev/nvme0"}}
	return dir, newProbe(t, c)
}

// TestFlood: a smartctl that prints 100 MB is stopped, and costs its disk only.
func TestFlood(t *testing.T) {
	dir, p := twoDisks(t)
	if err := os.WriteFile(filepath.Join(dir, "sda.flood"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := beside(t, p); !strings.Contains(err.Error(), "it prints more than max_output") {
		t.Error(err)
	}
}

// TestHalf: half an answer, wherever it is cut, costs its disk only.
func TestHalf(t *testing.T) {
	dir, p := twoDisks(t)
	text, err := os.ReadFile("testdata/ata.json")
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.TrimSpace(string(text)))
	for n := range 10 {
		if err := os.WriteFile(filepath.Join(dir, "sda.json"), text[:(len(text)-1)*n/9], 0o600); err != nil {
			t.Fatal(err)
		}
		_ = beside(t, p)
	}
}

// TestLies: values of other types are left out and the rest is read; numbers that no disk has are not sent; an attribute that is there a
// thousand times counts once.
func TestLies(t *testing.T) {
	dir, p := twoDisks(t)
	attribute := `{"id":5,"name":"Reallocated_Sector_Ct","value":1e300,"raw":{"value":-7}}`
	text := `{"smartctl":{"exit_status":0},"device":{"name":"/dev/sda","info_name":"/dev/sda","type":7},"model_name":["x"],"serial_number":"S1","user_capacity":{"bytes":"many"},
		"temperature":{"current":65535,"drive_trip":{"a":1}},"power_on_time":"long","smart_status":{"passed":"perhaps"},"interface_speed":[1],"nvme_smart_health_information_log":"no",
		"ata_smart_attributes":{"table":[` + strings.Repeat(attribute+",", 1000) + attribute + `]}}`
	if err := os.WriteFile(filepath.Join(dir, "sda.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := round(t, p)
	if n := strings.Count(got, `smartctl_device_attribute{`); err != nil || n != 4 || strings.Count(got, `hw_serial_number="S1"`) != 1 {
		t.Errorf("%d values of attributes: %v\n%.1000s", n, err, got)
	}
	for line := range strings.Lines(got) {
		if strings.Contains(line, `hw_id="serial:S1"`) && (strings.HasPrefix(line, "hw_temperature_celsius{") || strings.HasPrefix(line, "hw_physical_disk_size_bytes{")) {
			t.Errorf("a lie was sent: %s", line)
		}
	}
}

// TestDisappears: smartctl is removed while the probe runs, as an update does, and comes back.
func TestDisappears(t *testing.T) {
	dir, p := twoDisks(t)
	program, away := filepath.Join(dir, "smartctl"), filepath.Join(dir, "away")
	p.config.Command = []string{program}
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	before, err := round(t, p)
	if err != nil || before == "" {
		t.Fatal(err)
	}
	if err := os.Rename(program, away); err != nil {
		t.Fatal(err)
	}
	if got, err := round(t, p); !errors.Is(err, os.ErrNotExist) || strings.Contains(got, "hw_") {
		t.Errorf("without it: %v\n%.300s", err, got)
	}
	if err := os.Rename(away, program); err != nil {
		t.Fatal(err)
	}
	if got, err := round(t, p); err != nil || got != before {
		t.Errorf("after it came back: %v", err)
	}
}
