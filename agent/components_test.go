package agent

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/inputs"
	"hwsagent/agent/status"
)

// TestComponents: the newest hw_* samples become components, also with MetricsHub's names, and each knows since when it is in its
// state.
func TestComponents(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	sample := func(v float64, pairs ...string) inputs.Sample {
		return inputs.Sample{Labels: labels.FromStrings(append(pairs, "instance", "node-1")...), V: v, T: now.UnixMilli()}
	}
	var all []status.Component
	read := func(failed float64, at time.Time) {
		now = at
		all = componentsOf(slices.Values([]inputs.Sample{
			sample(1-failed, "__name__", "hw_status", "hw_id", "d1", "hw_name", "Disk 1", "hw_type", "physical_disk", "hw_state", "ok", "hw_parent", "c"),
			sample(failed, "__name__", "hw_status", "hw_id", "d1", "hw_name", "Disk 1", "hw_type", "physical_disk", "hw_state", "failed", "hw_parent", "c"),
			sample(1, "__name__", "hw_component_info", "hw_id", "d1", "hw_vendor", "SEAGATE", "hw_model", "ST16", "hw_serial_number", "Z1"),
			sample(41, "__name__", "hw_temperature_celsius", "id", "t1", "name", "Inlet", "hw_parent_id", "c"),
			sample(60, "__name__", "hw_temperature_limit_celsius", "id", "t1", "limit_type", "high.critical"),
			sample(50, "__name__", "hw_temperature_limit_celsius", "id", "t1", "limit_type", "high.degraded"),
			sample(5, "__name__", "hw_temperature_limit_celsius", "id", "t1", "limit_type", "low.critical"),
			sample(300, "__name__", "hw_host_power_watts", "hw_quality", "measured"),
			sample(1, "__name__", "node_load1"),
		}), all)
	}
	begin, later := now, now.Add(2*time.Minute)
	read(0, begin)
	read(0, begin.Add(time.Minute))
	read(1, later)
	want := []status.Component{
		{Device: "node-1", Watts: 300, Since: begin, First: true, Seen: later},
		{Device: "node-1", ID: "t1", Name: "Inlet", Parent: "c", Since: begin, First: true, Seen: later, Celsius: 41, Limit: 50},
		{Device: "node-1", ID: "d1", Name: "Disk 1", Type: "physical_disk", Vendor: "SEAGATE", Model: "ST16", Serial: "Z1", Parent: "c", State: "failed", Since: later, Seen: later},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStatesAreWatched: the state of a component has its time although the page was not open when it changed.
func TestStatesAreWatched(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	read := func(failed float64, now time.Time, wanted func(name string) bool) iter.Seq[inputs.Sample] {
		sample := func(v float64, pairs ...string) inputs.Sample {
			return inputs.Sample{Labels: labels.FromStrings(append(pairs, "instance", "node-1", "hw_id", "d1")...), V: v, T: now.UnixMilli()}
		}
		return slices.Values(slices.DeleteFunc([]inputs.Sample{
			sample(1-failed, "__name__", "hw_status", "hw_state", "ok"), sample(failed, "__name__", "hw_status", "hw_state", "failed"),
			sample(41, "__name__", "hw_temperature_celsius"),
		}, func(s inputs.Sample) bool { return !wanted(s.Labels.Get("__name__")) }))
	}
	later := now.Add(time.Minute)
	all := componentsOf(read(0, now, isHardware), nil)
	all = componentsOf(read(1, later, isStatus), all)
	if all[0].Celsius != 0 {
		t.Error("a series that says no state was read")
	}
	all = componentsOf(read(1, later.Add(time.Hour), isHardware), all)
	if len(all) != 1 || all[0].State != "failed" || !all[0].Since.Equal(later) || all[0].First {
		t.Errorf("%+v", all)
	}
}

// TestSamplesOfDevice: the samples of one device become its inventory, in either dialect; labels that are not of hardware are left out.
func TestSamplesOfDevice(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	sample := func(device string, v float64, pairs ...string) inputs.Sample {
		return inputs.Sample{Labels: labels.FromStrings(append(pairs, "instance", device, "job", "hw", "site", "plant")...), V: v, T: now.UnixMilli()}
	}
	newest := []inputs.Sample{
		sample("node-1", 1, "__name__", "hw_status", "hw_id", "t1", "hw_name", "Inlet", "hw_type", "temperature", "hw_state", "ok"),
		sample("node-1", 41, "__name__", "hw_temperature_celsius", "hw_id", "t1", "hw_name", "Inlet", "name", "external"),
		sample("node-1", 60, "__name__", "hw_temperature_limit_celsius", "hw_id", "t1", "hw_name", "Inlet", "hw_limit_type", "high.critical"),
		sample("node-1", 1, "__name__", "hw_component_info", "id", "d1", "name", "Disk 1", "hw_type", "physical_disk", "vendor", "SEAGATE", "hw_parent_id", "t1"),
		sample("node-1", 3, "__name__", "hw_errors_total", "id", "d1", "name", "Disk 1", "hw_error_type", "media"),
		sample("node-1", 300, "__name__", "hw_host_power_watts", "hw_quality", "measured"),
		sample("node-1", 1, "__name__", "sysName", "sysName", "core"),
		sample("node-1", 1, "__name__", "node_load1"),
		sample("node-2", 9, "__name__", "hw_temperature_celsius", "hw_id", "t2", "hw_name", "Inlet"),
	}
	inv := inventory.Inventory{Name: "node-1"}
	inv.Build(samplesOf("node-1", slices.Values(newest)))
	var text strings.Builder
	if err := inv.Write(&text); err != nil {
		t.Fatal(err)
	}
	want := `node-1 (): 2 components: 1 ok, 1 without a state
  device "core": no description
  recognised by sysObjectID (none) and the description as: no vendor that the library has, so only standard MIBs were read
  ok        temperature "Inlet" 41 °C, critical above 60 °C
    -         physical_disk "Disk 1" SEAGATE errors media 3
  the whole machine: power measured 300 W
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if seen := inv.Components[0].Seen; !seen.Equal(now) {
		t.Errorf("the disk was seen at %s", seen)
	}
}
