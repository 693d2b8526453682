//go:build linux

package smart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/e2e/exportertest"
	"hwsagent/probes"
)

// renamed returns a capture as that of another device, for many captures are of /dev/sda; nil if the file is not one.
func renamed(t *testing.T, file, device string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v map[string]any
	if decoder.Decode(&v) != nil || at(v, "smartctl.exit_status") == nil {
		return nil
	}
	named, ok := v["device"].(map[string]any)
	if !ok {
		return nil
	}
	named["name"], named["info_name"] = device, device
	if text, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAgainstSmartctlExporter compares each series of smartctl_exporter with the probe's: of the captures of this package, and of those
// of CORPUS/smartctl_exporter/testdata.
func TestAgainstSmartctlExporter(t *testing.T) {
	program := os.Getenv("SMARTCTL_EXPORTER")
	if program == "" {
		t.Skip("needs smartctl_exporter in SMARTCTL_EXPORTER: run by hand or by make nightly, see internal/tools/README.md")
	}
	files := []string{"testdata/ata.json", "testdata/nvme.json", "testdata/sas.json"}
	more, err := filepath.Glob(filepath.Join(os.Getenv("CORPUS"), "smartctl_exporter/testdata/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, more...)
	dir, c := machine(t, nil)
	if err := os.Chmod(filepath.Join(dir, "smartctl"), 0o700); err != nil {
		t.Fatal(err)
	}
	var devices []string
	for _, file := range files {
		device, typ := fmt.Sprintf("/dev/c%d", len(devices)), ""
		if filepath.Base(file) == "sas.json" {
			typ = ";megaraid,1"
		}
		if text := renamed(t, file, device); text != nil {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(device)+".json"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			devices = append(devices, device+typ)
			c.Devices = append(c.Devices, Device{Device: device, Type: strings.TrimPrefix(typ, ";")})
		}
	}
	args := []string{"--smartctl.path=" + filepath.Join(dir, "smartctl"), "--smartctl.interval=1h"}
	for _, d := range devices {
		args = append(args, "--smartctl.device="+d)
	}
	address := exportertest.Start(t, time.Minute, program, args...)
	theirs := exportertest.Page(t, "http://"+address+"/metrics", func(labels []string) []string {
		for i := 1; i < len(labels); i += 2 {
			if labels[i] == "unknown" { // its word for some labels whose value is missing
				labels[i] = ""
			}
		}
		return labels
	})
	r := probes.NewRound(0)
	if err := newProbe(t, c).Collect(t.Context(), r); err != nil {
		t.Log(err)
	}
	ours := exportertest.Round(r)
	for key := range ours {
		_, there := theirs[key]
		// smartctl_device_status is the name that smartctl_exporter had before 0.10. Of a member of a RAID controller it has no SCSI counters.
		if !there && strings.HasPrefix(key, "smartctl_") && !strings.HasPrefix(key, "smartctl_device_status{") && !strings.Contains(key, `device="c2_megaraid_1"`) {
			t.Errorf("smartctl_exporter has no %s", key)
		}
	}
	maps.DeleteFunc(theirs, func(key string, _ float64) bool {
		name, _, _ := strings.Cut(key, "{")
		return !strings.HasPrefix(name, "smartctl_") || name == "smartctl_exporter_build_info" || name == "smartctl_version" // of the programs, not of the disk
	})
	compared := exportertest.Comparison{Exporter: "smartctl_exporter"}
	for _, name := range []string{"smartctl_device_block_size", "smartctl_device_capacity_blocks", "smartctl_device_capacity_bytes"} {
		compared.Differences = append(compared.Differences, exportertest.Difference{Series: name + "{", Ours: math.NaN(), Why: "what is absent in the JSON is absent"})
	}
	if n, least := compared.Compare(t, ours, theirs), 60+50*len(more); n < least {
		t.Errorf("%d series of %d disks were compared, want %d or more", n, len(devices), least)
	}
}
