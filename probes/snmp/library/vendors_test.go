package library

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vendors are made-up devices, written from the MIBs, and what the built-in definitions say of them: kind, name, state, readings.
var vendors = []struct {
	name, objectID, vars, want string
}{
	{"an environmental monitor of APC in Fahrenheit, whose second probe was never discovered", "1.3.6.1.4.1.318.1.3.8.4", `
1.3.6.1.4.1.318.1.1.10.3.12.11.0 2
1.3.6.1.4.1.318.1.1.10.3.13.1.1.2.1 "front"
1.3.6.1.4.1.318.1.1.10.3.13.1.1.2.2 "Err"
1.3.6.1.4.1.318.1.1.10.3.13.1.1.3.1 68
1.3.6.1.4.1.318.1.1.10.3.13.1.1.3.2 80
1.3.6.1.4.1.318.1.1.10.3.13.1.1.6.1 30
1.3.6.1.4.1.318.1.1.10.3.13.1.1.6.2 29
1.3.6.1.4.1.318.1.1.10.3.13.1.1.10.1 2
1.3.6.1.4.1.318.1.1.10.3.13.1.1.10.2 1
1.3.6.1.4.1.318.1.1.10.3.13.1.1.12.1 95`, `
temperature front ok hw_temperature_celsius=20 hw_temperature_limit_celsius[high.critical]=35
humidity front  hw_humidity_ratio=0.3`},
	{"a UPS of APC: the objects with a decimal place count", "1.3.6.1.4.1.318.1.3.2", `
1.3.6.1.4.1.318.1.1.1.2.1.1.0 2
1.3.6.1.4.1.318.1.1.1.2.2.1.0 97
1.3.6.1.4.1.318.1.1.1.2.3.1.0 974
1.3.6.1.4.1.318.1.1.1.4.1.1.0 3
1.3.6.1.4.1.318.1.1.1.4.2.3.0 21
1.3.6.1.4.1.318.1.1.1.4.3.3.0 214`, `
battery Battery ok hw_battery_charge_ratio=0.974
power_supply Output degraded hw_power_supply_on_battery=1 hw_power_supply_utilization_ratio=0.214`},
	{"a UPS that sends tenths of volts in UPS-MIB", "1.3.6.1.4.1.2254.2.4", `
1.3.6.1.2.1.33.1.2.1.0 2
1.3.6.1.2.1.33.1.3.3.1.3.1 2363
1.3.6.1.2.1.33.1.4.4.1.2.1 230`, `
battery Battery ok
power_supply Input 1  hw_voltage_volts=236.3
power_supply Output 1  hw_voltage_volts=230`},
	{"a disk array with FCMGMT-MIB, whose readings stand in texts", "1.3.6.1.4.1.11.2.51", `
1.3.6.1.3.94.1.8.1.3.1.1 "Ctlr A"
1.3.6.1.3.94.1.8.1.4.1.1 3
1.3.6.1.3.94.1.8.1.6.1.1 "Ctlr A: 34 C 93.2F"
1.3.6.1.3.94.1.8.1.7.1.1 8
1.3.6.1.3.94.1.8.1.8.1.1 3
1.3.6.1.3.94.1.8.1.3.1.2 "PSU 1"
1.3.6.1.3.94.1.8.1.4.1.2 5
1.3.6.1.3.94.1.8.1.6.1.2 "PSU 1: failed"
1.3.6.1.3.94.1.8.1.7.1.2 5
1.3.6.1.3.94.1.8.1.8.1.2 2`, `
temperature Ctlr A ok hw_temperature_celsius=34
power_supply PSU 1 failed`},
	{"Rittal's CMC-III: the unit and the factor stand beside each variable", "1.3.6.1.4.1.2606.7", `
1.3.6.1.4.1.2606.7.4.2.2.1.3.1.2 "Temperature.Value"
1.3.6.1.4.1.2606.7.4.2.2.1.4.1.2 2
1.3.6.1.4.1.2606.7.4.2.2.1.5.1.2 "degree C"
1.3.6.1.4.1.2606.7.4.2.2.1.7.1.2 -100
1.3.6.1.4.1.2606.7.4.2.2.1.11.1.2 2350
1.3.6.1.4.1.2606.7.4.2.2.1.3.1.3 "CAN1.Current"
1.3.6.1.4.1.2606.7.4.2.2.1.4.1.3 2
1.3.6.1.4.1.2606.7.4.2.2.1.5.1.3 "mA"
1.3.6.1.4.1.2606.7.4.2.2.1.7.1.3 0
1.3.6.1.4.1.2606.7.4.2.2.1.11.1.3 140
1.3.6.1.4.1.2606.7.4.2.2.1.3.1.4 "Temperature.Status"
1.3.6.1.4.1.2606.7.4.2.2.1.4.1.4 7
1.3.6.1.4.1.2606.7.4.2.2.1.11.1.4 6`, `
temperature Temperature.Value  hw_temperature_celsius=23.5
current CAN1.Current  hw_current_amperes=0.14
module Temperature.Status degraded`},
	{"a Supermicro whose battery sensor is discrete, and one in volts", "1.3.6.1.4.1.21317", `
1.3.6.1.4.1.21317.1.3.1.2.1 "4.000"
1.3.6.1.4.1.21317.1.3.1.6.1 "0.000"
1.3.6.1.4.1.21317.1.3.1.9.1 "0.000"
1.3.6.1.4.1.21317.1.3.1.13.1 "VBAT"
1.3.6.1.4.1.21317.1.3.1.2.2 "3.100"
1.3.6.1.4.1.21317.1.3.1.6.2 "2.500"
1.3.6.1.4.1.21317.1.3.1.9.2 "3.600"
1.3.6.1.4.1.21317.1.3.1.13.2 "VBAT"`, `
voltage VBAT  hw_voltage_volts=3.1 hw_voltage_limit_volts[high.critical]=3.6 hw_voltage_limit_volts[low.critical]=2.5
battery VBAT ok`},
	{"a router without a redundant peer", "1.3.6.1.4.1.9.1.1", `
1.3.6.1.4.1.9.9.176.1.1.2.0 14
1.3.6.1.4.1.9.9.176.1.1.4.0 2`, `
module Redundancy unit ok`},
	{"a UPS of Tripp Lite on its battery", "1.3.6.1.4.1.850.1", `
1.3.6.1.4.1.850.1.1.3.1.3.1.1.1.1.1 3
1.3.6.1.4.1.850.1.1.3.1.3.1.1.1.3.1 7
1.3.6.1.4.1.850.1.1.3.1.3.1.1.1.4.1 40
1.3.6.1.4.1.850.1.1.3.1.3.1.2.1.1.1 240
1.3.6.1.4.1.850.1.1.3.1.3.3.1.1.1.1 5
1.3.6.1.4.1.850.1.1.3.1.3.3.1.1.3.1 600
1.3.6.1.4.1.850.1.1.3.1.3.5.1.1.4.1.1 1`, `
battery Battery 1 degraded hw_battery_time_left_seconds=420 hw_battery_charge_ratio=0.4 hw_voltage_volts=24
power_supply Output 1 degraded hw_power_supply_on_battery=1 hw_frequency_hertz=60
outlet Outlet 1.1 unknown`},
	{"a UPS with XPPC-MIB, without an environment sensor", "1.3.6.1.4.1.935.1.1.1", `
1.3.6.1.4.1.935.1.1.1.2.1.1.0 2
1.3.6.1.4.1.935.1.1.1.2.2.1.0 100
1.3.6.1.4.1.935.1.1.1.2.2.4.0 9999
1.3.6.1.4.1.935.1.1.1.3.2.1.0 2360
1.3.6.1.4.1.935.1.1.1.4.1.1.0 2
1.3.6.1.4.1.935.1.1.1.4.2.3.0 16
1.3.6.1.4.1.935.1.1.1.9.1.3.0 0`, `
battery Battery ok hw_battery_charge_ratio=1
power_supply Input  hw_voltage_volts=236
power_supply Output ok hw_power_supply_on_battery=0 hw_power_supply_utilization_ratio=0.16`},
	{"a small business switch of Cisco without a redundant supply", "1.3.6.1.4.1.9.6.1.1", `
1.3.6.1.4.1.9.6.1.101.53.15.1.2.1 1
1.3.6.1.4.1.9.6.1.101.53.15.1.3.1 5
1.3.6.1.4.1.9.6.1.101.53.15.1.4.1 3
1.3.6.1.4.1.9.6.1.101.53.15.1.10.1 47
1.3.6.1.4.1.9.6.1.101.53.15.1.18.1 4200`, `
power_supply Unit 1 main power supply ok
fan Unit 1 fan 1 failed hw_fan_speed_rpm=4200
temperature Unit 1 board  hw_temperature_celsius=47`},
	{"a BMC of Supermicro, whose sensors have no unit", "1.3.6.1.4.1.21317", `
1.3.6.1.4.1.21317.1.3.1.2.1 "32.000"
1.3.6.1.4.1.21317.1.3.1.9.1 "100.000"
1.3.6.1.4.1.21317.1.3.1.13.1 "CPU Temp"
1.3.6.1.4.1.21317.1.3.1.2.2 "1100.000"
1.3.6.1.4.1.21317.1.3.1.13.2 "FAN1"
1.3.6.1.4.1.21317.1.3.1.2.3 "12.063"
1.3.6.1.4.1.21317.1.3.1.13.3 "12V"
1.3.6.1.4.1.21317.1.3.1.2.4 "4.000"
1.3.6.1.4.1.21317.1.3.1.13.4 "Chassis Intru"`, `
temperature CPU Temp  hw_temperature_celsius=32 hw_temperature_limit_celsius[high.critical]=100
fan FAN1  hw_fan_speed_rpm=1100
voltage 12V  hw_voltage_volts=12.063`},
}

// TestVendors evaluates the made-up devices.
func TestVendors(t *testing.T) {
	known, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vendors {
		vars := tree(t, strings.TrimSpace(v.vars))
		id := Identity{ObjectID: v.objectID, Present: map[string]string{}}
		for _, q := range known.Questions(id) {
			if x := vars.below(q); len(x) > 0 {
				id.Present[q.String()] = x[0].text()
			}
		}
		var got strings.Builder
		for _, r := range known.Recognise(id).Evaluate(vars).Reports {
			fmt.Fprintf(&got, "\n%s %s %s", r.Kind, r.Name, r.Status)
			for _, x := range r.Readings {
				limit := ""
				for i := 0; i < len(x.Attributes); i += 2 {
					limit += "[" + x.Attributes[i+1] + "]"
				}
				fmt.Fprintf(&got, " %s%s=%.6g", x.Metric.Family().Name, limit, x.Value)
			}
		}
		if diff := cmp.Diff(v.want, got.String()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", v.name, diff)
		}
	}
}
