package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/probes/hw"
)

// firmwareDIMM is a memory module of a firmware's table.
type firmwareDIMM struct {
	size                                 uint16 // as in the structure
	large                                uint32 // MiB, with size 0x7fff
	locator, bank, vendor, serial, model string
	kind                                 byte
}

// firmwareTable returns a table of SMBIOS structures with these modules, behind a structure of another type.
func firmwareTable(modules ...firmwareDIMM) []byte {
	b := []byte{0, 6, 0, 0, 1, 2}
	b = append(b, "Vendor\x00Version\x00\x00"...)
	for i, m := range modules {
		s := make([]byte, 0x28)
		s[0], s[1], s[2] = smbiosMemoryDevice, byte(len(s)), byte(i+1)
		binary.LittleEndian.PutUint16(s[memorySize:], m.size)
		binary.LittleEndian.PutUint32(s[memoryExtendedSize:], m.large)
		s[memoryKind] = m.kind
		var texts []string
		for at, text := range map[int]string{memoryLocator: m.locator, memoryBank: m.bank, memoryVendor: m.vendor, memorySerial: m.serial, memoryPart: m.model} {
			if text != "" {
				texts = append(texts, text)
				s[at] = byte(len(texts))
			}
		}
		b = append(b, s...)
		b = append(b, strings.Join(texts, "\x00")...)
		b = append(b, 0, 0)
	}
	return append(b, smbiosEnd, 4, 0xff, 0xfe, 0, 0)
}

func modulesText(all []hw.Report) string {
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "%s %q %q", p.ID, p.Name, p.Facts)
		for _, r := range p.Readings {
			fmt.Fprintf(&b, " %s %v %v", r.Metric.Family().Name, r.Attributes, r.Value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestMemoryModules(t *testing.T) {
	got := modulesText(memoryModules(firmwareTable(
		firmwareDIMM{size: 8192, locator: "DIMM A1", bank: "BANK 0", vendor: "Contoso ", serial: "01234567", model: "M393-1", kind: 0x1a},
		firmwareDIMM{locator: "DIMM A2", bank: "BANK 1", vendor: "NO DIMM"},
		firmwareDIMM{size: memoryLarge, large: 131072, locator: "DIMM B1", vendor: "Unknown", serial: "Not Specified", kind: 0x22},
		firmwareDIMM{size: 0x8000 | 512, locator: "SIMM"},
		firmwareDIMM{size: memoryUnknownSize},
	)))
	want := `dimm:BANK_0_DIMM_A1 "DIMM A1" ["hw_vendor" "Contoso" "hw_model" "M393-1" "hw_serial_number" "01234567" "hw_memory_type" "DDR4"] hw_memory_size_bytes [] 8.589934592e+09
dimm:DIMM_B1 "DIMM B1" ["hw_vendor" "" "hw_model" "" "hw_serial_number" "" "hw_memory_type" "DDR5"] hw_memory_size_bytes [] 1.37438953472e+11
dimm:SIMM "SIMM" ["hw_vendor" "" "hw_model" "" "hw_serial_number" "" "hw_memory_type" ""] hw_memory_size_bytes [] 524288
dimm:unnamed "" ["hw_vendor" "" "hw_model" "" "hw_serial_number" "" "hw_memory_type" ""]
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestModulesCountOnce: modules that a driver of EDAC and the firmware label alike are one component each.
func TestModulesCountOnce(t *testing.T) {
	firmware := memoryModules(firmwareTable(
		firmwareDIMM{size: 1024, locator: "CPU1_DIMM_A1", bank: "P0 Node0", serial: "S1"},
		firmwareDIMM{size: 1024, locator: "B1", serial: "S2"},
		firmwareDIMM{size: 1024, locator: "C1", serial: "S3"}, firmwareDIMM{size: 1024, locator: "C1", serial: "S4"}))
	edac := func(id, label string) hw.Report {
		return hw.Report{Component: hw.Component{Kind: hw.Memory, ID: id, Name: label, Parent: "edac:mc0", Facts: []string{hw.MemoryType, "DDR4"}}}
	}
	controller := hw.Report{Component: hw.Component{Kind: hw.Memory, ID: "edac:mc0", Name: "ghes", Parent: enclosureID}}
	for _, c := range []struct {
		name string
		edac []hw.Report
		want string
	}{
		{"no EDAC", nil, "dimm:P0_Node0_CPU1_DIMM_A1 S1, dimm:B1 S2, dimm:C1 S3, dimm:C1 S4"},
		{"a controller without modules", []hw.Report{controller}, "edac:mc0 , dimm:P0_Node0_CPU1_DIMM_A1 S1, dimm:B1 S2, dimm:C1 S3, dimm:C1 S4"},
		{"labels of the firmware", []hw.Report{controller, edac("1", "P0 Node0 CPU1_DIMM_A1"), edac("2", "b1"), edac("3", "C1"), edac("4", "C1")}, "edac:mc0 , 1 S1, 2 S2, 3 , 4 , dimm:C1 S3, dimm:C1 S4"},
		{"labels of the driver", []hw.Report{controller, edac("1", "mc#0memory#0")}, "edac:mc0 , 1 , dimm:P0_Node0_CPU1_DIMM_A1 S1, dimm:B1 S2, dimm:C1 S3, dimm:C1 S4"},
	} {
		var got []string
		for _, p := range oneOfEach(append(append([]hw.Report{}, c.edac...), firmware...)) {
			serial := ""
			for i := 0; i+1 < len(p.Facts); i += 2 {
				if p.Facts[i] == hw.Serial {
					serial = p.Facts[i+1]
				}
			}
			got = append(got, p.ID+" "+serial)
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("%s: got %s, want %s", c.name, g, c.want)
		}
	}
}

// TestFirmwareModules reads a firmware's table through the probe, beside a machine whose EDAC has modules, and on one without EDAC.
func TestFirmwareModules(t *testing.T) {
	for _, edac := range []bool{true, false} {
		c := server(t, strings.NewReplacer("CPU_SrcID#0_MC#0_Chan#0_DIMM#0", "DIMM_A1").Replace) // as a driver with the firmware's labels
		dir := filepath.Join(c.SysPath, "firmware/dmi/tables")
		modules := firmwareTable(firmwareDIMM{size: 8192, locator: "DIMM_A1", vendor: "Contoso", serial: "S1"}, firmwareDIMM{size: 8192, locator: "X9", serial: "S2"})
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "DMI"), modules, 0o400)); err != nil {
			t.Fatal(err)
		}
		if !edac {
			if err := os.RemoveAll(filepath.Join(c.SysPath, "devices/system/edac")); err != nil {
				t.Fatal(err)
			}
		}
		c.Collectors = []string{"hw_memory"}
		got := collect(t, mustNew(t, c))
		serials, sizes := 0, 0
		for key, v := range got.values {
			if strings.HasPrefix(key, "hw_component_info") && strings.Contains(key, `hw_serial_number="S`) {
				serials++
			}
			if strings.HasPrefix(key, "hw_memory_size_bytes") && !math.IsNaN(v) {
				sizes++
			}
		}
		if serials != 2 || sizes != 2 { // EDAC has two modules, too: one of them is DIMM_A1
			t.Errorf("EDAC %t: %d serial numbers, %d sizes:\n%v", edac, serials, sizes, got.values)
		}
	}
}

// FuzzMemoryModules: whatever the table has, nothing panics, and each module is a memory module with an ID.
func FuzzMemoryModules(f *testing.F) {
	f.Add(firmwareTable(firmwareDIMM{size: 8192, locator: "A", bank: "B", vendor: "C", serial: "D", model: "E"}, firmwareDIMM{size: memoryLarge, large: 5}))
	f.Add([]byte{smbiosMemoryDevice, 0x13, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, p := range memoryModules(b) {
			if p.Kind != hw.Memory || !strings.HasPrefix(p.ID, firmwareModule) || len(p.Facts) < identityFacts {
				t.Errorf("%+v", p)
			}
			for _, r := range p.Readings {
				if r.Value < 0 {
					t.Errorf("%+v", r)
				}
			}
		}
	})
}
