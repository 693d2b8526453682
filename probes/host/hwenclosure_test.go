//go:build linux

package host

import (
	"os"
	"path/filepath"
	"testing"

	"hwsagent/probes/hw"
)

// TestEnclosure: a bay with a disk names it, its lights are readings, a fault light degrades it, and an empty bay is not there.
func TestEnclosure(t *testing.T) {
	sys := t.TempDir()
	dir := filepath.Join(sys, "class/enclosure/0:0:24:0")
	for file, content := range map[string]string{
		"id": "0x500304801f3a0abf", "device/vendor": "SMC", "device/model": "SC846N4", "device/rev": "2.0",
		"Slot 01/type": "array device", "Slot 01/status": "OK", "Slot 01/fault": "0", "Slot 01/locate": "1", "Slot 01/device/model": "ST4000NM0035", "Slot 01/device/block/sdb/size": "1",
		"Slot 02/type": "array device", "Slot 02/status": "OK", "Slot 02/fault": "1", "Slot 02/locate": "0",
		"Slot 03/type": "array device", "Slot 03/status": "not installed", "Slot 03/fault": "0",
		"Slot 04/type": "array device", "Slot 04/status": "critical",
		"Temp/type": "temperature sensor", "Temp/status": "OK", "power/control": "auto",
	} {
		at := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all := newPlaces(sys).enclosure(dir)
	if len(all) != 4 || all[0].Kind != hw.Enclosure || all[0].ID != "ses:0x500304801f3a0abf" {
		t.Fatalf("%+v", all)
	}
	for i, want := range []struct {
		name   string
		status hw.Status
		lights []float64
	}{{"Slot 01", hw.OK, []float64{0, 1}}, {"Slot 02", hw.Degraded, []float64{1, 0}}, {"Slot 04", hw.Failed, nil}} {
		bay := all[i+1]
		if bay.Name != want.name || bay.Status != want.status || len(bay.Readings) != len(want.lights) || bay.Parent != all[0].ID {
			t.Errorf("%+v, want %+v", bay, want)
			continue
		}
		for n, v := range want.lights {
			if bay.Readings[n].Value != v {
				t.Errorf("%s: %+v, want %v", bay.Name, bay.Readings, want.lights)
			}
		}
	}
	if facts := all[1].Facts; len(facts) < 2 || facts[1] != "sdb" {
		t.Errorf("the bay does not name its disk: %q", facts)
	}
}
