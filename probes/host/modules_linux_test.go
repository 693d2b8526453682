package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hwsagent/probes/hw"
)

const gibibyte = 1 << 30

// edacModule is a memory module as a driver of EDAC reports it.
type edacModule struct {
	label string
	gib   float64
}

// edacReports returns the reports of a controller with these modules. Each module has the number of its place as corrected errors.
func edacReports(modules ...edacModule) []hw.Report {
	all := []hw.Report{{Component: hw.Component{Kind: hw.Memory, ID: "edac:mc0", Name: "controller", Parent: enclosureID}, Status: hw.OK}}
	for i, m := range modules {
		p := hw.Report{Component: hw.Component{Kind: hw.Memory, ID: "edac:mc0/" + m.label, Name: m.label, Parent: "edac:mc0"}, Status: hw.OK}
		p.Add(hw.MemorySize, m.gib*gibibyte)
		p.Add(hw.Errors, float64(i), "error_type", "corrected")
		all = append(all, p)
	}
	return all
}

// slots returns a table of firmware, in an order that is not that of the positions, with an empty slot. The serial number of a module is its bank
// and locator.
func slots(gib float64, places ...string) []hw.Report {
	all := []firmwareDIMM{{locator: "P1-DIMMZ9", bank: "P0_Node0_Channel9_Dimm9", serial: "NO DIMM"}}
	for _, place := range slices.Backward(places) {
		bank, locator, _ := strings.Cut(place, "|")
		all = append(all, firmwareDIMM{size: memoryLarge, large: uint32(gib * 1024), bank: bank, locator: locator, serial: place})
	}
	return memoryModules(firmwareTable(all...))
}

// joinedText returns the components with a size, with their serial numbers, and the sum of the sizes in GiB.
func joinedText(all []hw.Report) (text string, sum float64) {
	var parts []string
	for i := range all {
		p := &all[i]
		if sizeOf(p) == 0 {
			continue
		}
		sum += sizeOf(p) / gibibyte
		serial := ""
		for k := 0; k+1 < len(p.Facts); k += 2 {
			if p.Facts[k] == hw.Serial {
				serial = p.Facts[k+1]
			}
		}
		parts = append(parts, p.Name+"="+serial)
	}
	slices.Sort(parts)
	return strings.Join(parts, " "), sum
}

// TestPositions: modules whose driver and firmware have different names for the same position are joined. The names are those of real machines.
func TestPositions(t *testing.T) {
	for _, c := range []struct {
		machine  string
		labels   []string // of EDAC
		firmware []string // bank|locator, in the same order
	}{
		{"Skylake, 2 sockets, 2 controllers of 3 channels",
			[]string{"CPU_SrcID#0_MC#0_Chan#0_DIMM#0", "CPU_SrcID#0_MC#0_Chan#2_DIMM#0", "CPU_SrcID#0_MC#1_Chan#0_DIMM#0", "CPU_SrcID#1_MC#0_Chan#0_DIMM#0", "CPU_SrcID#1_MC#1_Chan#1_DIMM#0"},
			[]string{"P0_Node0_Channel0_Dimm0|P1-DIMMA1", "P0_Node0_Channel2_Dimm0|P1-DIMMC1", "P0_Node1_Channel0_Dimm0|P1-DIMMD1", "P1_Node0_Channel0_Dimm0|P2-DIMMA1", "P1_Node1_Channel1_Dimm0|P2-DIMME1"}},
		{"Sapphire Rapids: 4 controllers of 2 channels, 2 nodes of 4",
			[]string{"CPU_SrcID#0_MC#0_Chan#0_DIMM#0", "CPU_SrcID#0_MC#0_Chan#1_DIMM#0", "CPU_SrcID#0_MC#2_Chan#0_DIMM#0", "CPU_SrcID#0_MC#3_Chan#1_DIMM#0"},
			[]string{"P0_Node0_Channel0_Dimm0|P1-DIMMA1", "P0_Node0_Channel1_Dimm0|P1-DIMMB1", "P0_Node1_Channel0_Dimm0|P1-DIMME1", "P0_Node1_Channel3_Dimm0|P1-DIMMH1"}},
		{"Ice Lake: channels of the whole socket, whose node has its number",
			[]string{"CPU_SrcID#0_MC#0_Chan#0_DIMM#0", "CPU_SrcID#1_MC#0_Chan#0_DIMM#0", "CPU_SrcID#1_MC#3_Chan#1_DIMM#0"},
			[]string{"P0_Node0_Channel0_Dimm0|P1-DIMMA1", "P1_Node1_Channel0_Dimm0|P2-DIMMA1", "P1_Node1_Channel7_Dimm0|P2-DIMMH1"}},
		{"Broadwell with two home agents",
			[]string{"CPU_SrcID#0_Ha#0_Chan#0_DIMM#0", "CPU_SrcID#0_Ha#0_Chan#0_DIMM#1", "CPU_SrcID#0_Ha#1_Chan#1_DIMM#0"},
			[]string{"P0_Node0_Channel0_Dimm0|P1-DIMMA1", "P0_Node0_Channel0_Dimm1|P1-DIMMA2", "P0_Node0_Channel3_Dimm0|P1-DIMMD1"}},
		{"Haswell, blanks in the bank", []string{"CPU_SrcID#0_Ha#0_Chan#0_DIMM#0", "CPU_SrcID#1_Ha#0_Chan#3_DIMM#0"}, []string{"NODE 0 CHANNEL 0 DIMM 0|DIMM_A1", "NODE 1 CHANNEL 3 DIMM 0|DIMM_H1"}},
		{"Nehalem", []string{"CPU#0Channel#0_DIMM#0", "CPU#0Channel#2_DIMM#0", "CPU#1Channel#1_DIMM#1"}, []string{"_Node0_Channel0_Dimm0|DIMM000", "_Node0_Channel2_Dimm0|DIMM020", "_Node1_Channel1_Dimm1|DIMM111"}},
		{"a client with two controllers", []string{"MC#0_Chan#0_DIMM#0", "MC#1_Chan#0_DIMM#0"}, []string{"BANK 0|Controller0-ChannelA-DIMM0", "BANK 1|Controller1-ChannelA-DIMM0"}},
		{"a client with one controller", []string{"MC#0_Chan#0_DIMM#0", "MC#0_Chan#1_DIMM#0"}, []string{"BANK 0|ChannelA-DIMM0", "BANK 2|ChannelB-DIMM0"}},
	} {
		t.Run(c.machine, func(t *testing.T) {
			var modules []edacModule
			var want []string
			for i, label := range c.labels {
				modules = append(modules, edacModule{label, 16})
				want = append(want, label+"="+c.firmware[i])
			}
			slices.Sort(want)
			got, sum := joinedText(oneOfEach(append(edacReports(modules...), slots(16, c.firmware...)...)))
			if got != strings.Join(want, " ") || sum != float64(16*len(modules)) {
				t.Errorf("got %s\nwant %s; %v GiB", got, strings.Join(want, " "), sum)
			}
		})
	}
}

// TestPositionsInDoubt: where a position may be wrong, no module gets another's serial number. The firmware's modules have the sizes then, and
// EDAC's the errors, so that each module counts once.
func TestPositionsInDoubt(t *testing.T) {
	two := []edacModule{{"CPU_SrcID#0_MC#0_Chan#0_DIMM#0", 16}, {"CPU_SrcID#0_MC#1_Chan#0_DIMM#0", 16}}
	for _, c := range []struct {
		name     string
		edac     []edacModule
		gib      float64
		firmware []string
	}{
		{"the firmware has left out a failed module", two, 16, []string{"P0_Node0_Channel0_Dimm0|A1"}},
		{"the driver lacks a module", two[:1], 16, []string{"P0_Node0_Channel0_Dimm0|A1", "P0_Node0_Channel3_Dimm0|D1"}},
		{"another socket", two, 16, []string{"P0_Node0_Channel0_Dimm0|A1", "P1_Node1_Channel0_Dimm0|D1"}},
		{"another slot", two, 16, []string{"P0_Node0_Channel0_Dimm0|A1", "P0_Node0_Channel3_Dimm1|D2"}},
		{"another size", two, 32, []string{"P0_Node0_Channel0_Dimm0|A1", "P0_Node0_Channel3_Dimm0|D1"}},
		{"a position twice in the firmware", two, 16, []string{"P0_Node0_Channel0_Dimm0|A1", "P0_Node0_Channel0_Dimm0|D1"}},
		{"a position twice in the driver", []edacModule{two[0], two[0]}, 16, []string{"P0_Node0_Channel0_Dimm0|A1", "P0_Node0_Channel3_Dimm0|D1"}},
		{"a locator without a position", two, 16, []string{"|A1", "|A4"}},
		{"ranks, two of a module", []edacModule{{"mc#0csrow#0channel#0", 8}, {"mc#0csrow#1channel#0", 8}, {"mc#0csrow#0channel#1", 8}, {"mc#0csrow#1channel#1", 8}}, 16, []string{"P0 CHANNEL A|DIMM 0", "P0 CHANNEL B|DIMM 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := oneOfEach(append(edacReports(c.edac...), slots(c.gib, c.firmware...)...))
			got, sum := joinedText(all)
			if sum != c.gib*float64(len(c.firmware)) || strings.Contains(got, "#") {
				t.Errorf("%v GiB: %s", sum, got)
			}
			for i := range c.firmware {
				if !strings.Contains(got, "="+c.firmware[i]) {
					t.Errorf("%s is not in %s", c.firmware[i], got)
				}
			}
			errors := 0
			for _, p := range all {
				for _, r := range p.Readings {
					if r.Metric == hw.Errors {
						errors++
					}
				}
			}
			if errors != len(c.edac) {
				t.Errorf("%d modules report errors, want %d", errors, len(c.edac))
			}
		})
	}
}

// TestSizesUnknownToTheFirmware: then those of EDAC count.
func TestSizesUnknownToTheFirmware(t *testing.T) {
	firmware := memoryModules(firmwareTable(firmwareDIMM{size: 16384, locator: "A1"}, firmwareDIMM{size: memoryUnknownSize, locator: "A2"}))
	all := oneOfEach(append(edacReports(edacModule{"mc#0memory#0", 16}, edacModule{"mc#0memory#1", 16}), firmware...))
	if got, sum := joinedText(all); sum != 32 || got != "mc#0memory#0= mc#0memory#1=" {
		t.Errorf("%v GiB: %s", sum, got)
	}
}

// FuzzPositions: whatever the labels are, each serial number is on one component, and no size counts twice.
func FuzzPositions(f *testing.F) {
	f.Add("CPU_SrcID#0_MC#0_Chan#0_DIMM#0 CPU_SrcID#0_MC#0_Chan#1_DIMM#0", "P0_Node0_Channel0_Dimm0 P0_Node0_Channel1_Dimm0")
	f.Add("MC#0_Chan#0_DIMM#0", "Controller0-ChannelA-DIMM0")
	f.Add("A1 B1", "A1 B1 B1")
	f.Fuzz(func(t *testing.T, labels, locators string) {
		var modules []edacModule
		for _, label := range strings.Fields(labels) {
			modules = append(modules, edacModule{label, 1})
		}
		var table []firmwareDIMM
		for i, locator := range strings.Fields(locators) {
			table = append(table, firmwareDIMM{size: 1024, locator: strings.ReplaceAll(locator, "\x00", ""), serial: fmt.Sprint("S", i)})
		}
		if len(table) > 100 || len(modules) > 100 { // the numbers of texts have one byte
			return
		}
		firmware := memoryModules(firmwareTable(table...))
		serials := make(map[string]int)
		sum := 0.0
		for _, p := range oneOfEach(append(edacReports(modules...), firmware...)) {
			sum += sizeOf(&p) / gibibyte
			for i := 0; i+1 < len(p.Facts); i += 2 {
				if p.Facts[i] == hw.Serial && p.Facts[i+1] != "" {
					serials[p.Facts[i+1]]++
				}
			}
		}
		for serial, n := range serials {
			if n > 1 {
				t.Errorf("%s is on %d components", serial, n)
			}
		}
		if most := max(len(modules), len(firmware)); sum > float64(most) {
			t.Errorf("%v GiB of %d modules of the driver and %d of the firmware", sum, len(modules), len(firmware))
		}
	})
}
