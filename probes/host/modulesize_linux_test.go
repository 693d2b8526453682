package host

import (
	"testing"

	"hwsagent/probes/hw"
)

// The firmware's modules stay where EDAC has none, also if the size of one is unknown.
func TestModulesOfUnknownSizeWithoutEDAC(t *testing.T) {
	var all []hw.Report
	for _, n := range []string{"A1", "A2", "B1"} {
		p := hw.Report{Component: hw.Component{ID: firmwareModule + n, Kind: hw.Memory, Name: n, Parent: enclosureID, Facts: []string{hw.Vendor, "v", hw.Model, "m", hw.Serial, "s" + n, hw.MemoryType, "DDR4"}}}
		if n != "B1" {
			p.Add(hw.MemorySize, 1<<34)
		}
		all = append(all, p)
	}
	if got := oneOfEach(all); len(got) != 3 {
		t.Errorf("%d modules of 3", len(got))
	}
}
