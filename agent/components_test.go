package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

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
	read := func(failed float64) []status.Component {
		return componentsOf([]inputs.Sample{
			sample(1-failed, "__name__", "hw_status", "hw_id", "d1", "hw_name", "Disk 1", "hw_type", "physical_disk", "hw_state", "ok", "hw_parent", "c"),
			sample(failed, "__name__", "hw_status", "hw_id", "d1", "hw_name", "Disk 1", "hw_type", "physical_disk", "hw_state", "failed", "hw_parent", "c"),
			sample(1, "__name__", "hw_component_info", "hw_id", "d1", "hw_vendor", "SEAGATE", "hw_model", "ST16", "hw_serial_number", "Z1"),
			sample(41, "__name__", "hw_temperature_celsius", "id", "t1", "name", "Inlet", "hw_parent_id", "c"),
			sample(60, "__name__", "hw_temperature_limit_celsius", "id", "t1", "limit_type", "high.critical"),
			sample(50, "__name__", "hw_temperature_limit_celsius", "id", "t1", "limit_type", "high.degraded"),
			sample(5, "__name__", "hw_temperature_limit_celsius", "id", "t1", "limit_type", "low.critical"),
			sample(300, "__name__", "hw_host_power_watts", "hw_quality", "measured"),
			sample(1, "__name__", "node_load1"),
		})
	}
	var c components
	c.take(read(0), now)
	c.take(read(0), now.Add(time.Minute))
	later := now.Add(2 * time.Minute)
	c.take(read(1), later)
	want := []status.Component{
		{Device: "node-1", Watts: 300, Since: now, First: true, Seen: now},
		{Device: "node-1", ID: "t1", Name: "Inlet", Parent: "c", Since: now, First: true, Seen: now, Celsius: 41, Limit: 50},
		{Device: "node-1", ID: "d1", Name: "Disk 1", Type: "physical_disk", Vendor: "SEAGATE", Model: "ST16", Serial: "Z1", Parent: "c", State: "failed", Since: later, Seen: now},
	}
	if diff := cmp.Diff(want, c.all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
