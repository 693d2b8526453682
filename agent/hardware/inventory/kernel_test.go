package inventory

import (
	"strings"
	"testing"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// TestKernelOfMachine: errors in the kernel's log that are the whole machine's, and none lost, are shown.
func TestKernelOfMachine(t *testing.T) {
	r := probes.NewRound(0)
	of := hw.Report{Component: hw.Component{Kind: hw.Host}}
	of.Add(hw.KernelLost, 0)
	of.Add(hw.KernelErrors, 3, hw.LabelKernelEvent, "oom_kill", hw.LabelKernelCode, "global")
	of.AddTo(r)
	inv := Inventory{Name: "kernel", Type: "kernel"}
	inv.Add(r)
	var b strings.Builder
	if err := inv.Write(&b); err != nil {
		t.Fatal(err)
	}
	if want := "the whole machine:\n    kernel errors oom kill global 3\n    kernel lost messages 0\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%q is not in\n%s", want, b.String())
	}
}
