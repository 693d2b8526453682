package host

import (
	"testing"

	"hwsagent/probes/hw"
)

func voltage(label string, properties ...property) sensor {
	return sensor{kind: "in", name: "in1", properties: append(properties, property{"label", label})}
}

func watt(label string, properties ...property) sensor {
	return sensor{kind: "power", name: "power1", properties: append(properties, property{"label", label})}
}

// TestIsSupply: a chip is one by its name or by the voltage of its input, also when that is lost; a regulator of a processor is not.
func TestIsSupply(t *testing.T) {
	for _, c := range []struct {
		chip    string
		sensors []sensor
		want    bool
	}{
		{"cffps2", nil, true},
		{"pmbus", []sensor{voltage("vin", property{"input", "228000"})}, true},
		{"pmbus", []sensor{voltage("vin", property{"input", "0"}, property{"crit", "264000"})}, true},
		{"mp2975", []sensor{voltage("vin", property{"input", "12000"}, property{"crit", "15000"})}, false},
		{"cffps", nil, false}, {"", nil, false}, {" ", nil, false},
		{"pmbus", []sensor{voltage("vout1", property{"input", "228000"})}, false},
		{"pmbus", []sensor{{kind: "in", name: "in1", properties: []property{{"input", "228000"}}}}, false},
	} {
		if got := isSupply(c.chip, c.sensors); got != c.want {
			t.Errorf("%q with %+v is %t", c.chip, c.sensors, got)
		}
	}
}

// TestSupply: outputs are added, phases are not; the state is the worst of its alarms, but a lost input only degrades.
func TestSupply(t *testing.T) {
	p := supplyReport("x", "id", []sensor{
		voltage("vin", property{"input", "230000"}, property{"lcrit_alarm", "0"}),
		watt("pin", property{"input", "300000000"}),
		watt("pout1", property{"input", "100000000"}, property{"rated_max", "400000000"}),
		watt("pout2", property{"input", "150000000"}, property{"rated_max", "100000000"}),
		watt("pout1.0", property{"input", "50000000"}),
	})
	want := map[hw.Metric]float64{hw.Power: 300, hw.PowerSupplyUsage: 250, hw.PowerSupplyLimit: 500, hw.PowerSupplyUtilization: 0.5}
	if p.Status != hw.OK || p.Kind != hw.PowerSupply || len(p.Readings) != len(want) {
		t.Errorf("%+v", p)
	}
	for _, r := range p.Readings {
		if r.Value != want[r.Metric] {
			t.Errorf("%s is %v, want %v", r.Metric.Family().Name, r.Value, want[r.Metric])
		}
	}
	for _, c := range []struct {
		sensor sensor
		want   hw.Status
	}{
		{voltage("vin", property{"lcrit_alarm", "1"}), hw.Degraded},
		{watt("pin", property{"alarm", "1"}), hw.Degraded},
		{voltage("vout1", property{"crit_alarm", "1"}), hw.Failed},
		{sensor{kind: "fan", name: "fan1", properties: []property{{"fault", "1"}}}, hw.Failed},
		{sensor{kind: "temp", name: "temp1", properties: []property{{"fault", "1"}}}, 0},
		{voltage("vout1", property{"input", "12000"}), 0},
	} {
		if p := supplyReport("x", "id", []sensor{c.sensor}); p.Status != c.want {
			t.Errorf("%+v gives %v, want %v", c.sensor, p.Status, c.want)
		}
	}
}
