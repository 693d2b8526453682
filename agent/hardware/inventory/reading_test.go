package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/agent/status"
)

// Values have the units and the precision in which people read them.
func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		metric, of string
		v          float64
		want       string
	}{
		{"temperature_celsius", "", 41.0625, "41.1 °C"},
		{"temperature_celsius", "", -5, "-5 °C"},
		{"host_power_watts", "measured", 212.5, "212.5 W"},
		{"host_power_watts", "", 45_660, "45.7 kW"},
		{"energy_joules_total", "", 9e9, "2.5 MWh"},
		{"memory_size_bytes", "", 32 << 30, "32 GiB"},
		{"physical_disk_size_bytes", "", 274877906944, "275 GB"},
		{"network_io_bytes_total", "receive", 9.00050074e8, "900 MB"},
		{"network_io_bytes_total", "receive", 999_600, "1 MB"},
		{"network_io_bytes_total", "receive", 12, "12 B"},
		{"network_bandwidth_limit_bytes_per_second", "", 1.25e9, "10 Gbit/s"},
		{"fan_speed_rpm", "", 4200, "4200 rpm"},
		{"fan_speed_rpm", "", 16300, "16\u202f300 rpm"},
		{"battery_charge_ratio", "", 0.87, "87 %"},
		{"cpu_speed_hertz", "", 2.4e9, "2.4 GHz"},
		{"voltage_volts", "", 12.096, "12.1 V"},
		{"voltage_volts", "", 230.04, "230 V"},
		{"current_amperes", "", 0.25, "0.25 A"},
		{"battery_time_left_seconds", "", 1500, "25 min"},
		{"log_newest_entry_timestamp_seconds", "", 1.8e9, "2027-01-15 08:00 UTC"},
		{"optical_power_dbm", "", -2.34, "-2.3 dBm"},
		{"network_up", "", 1, "yes"},
		{"power_supply_on_battery", "", 0, "no"},
		{"physical_disk_smart_ratio", "5", 12, "12"},
		{"sensor_value", "l/min", 3.25, "3.2 l/min"},
		{"errors_total", "", 3, "3"},
	} {
		if got := Quantity(c.metric, c.of, c.v); got != c.want {
			t.Errorf("%s %v is %q, want %q", c.metric, c.v, got, c.want)
		}
	}
}

// Limits stand beside the value that they limit, also where a component has several sensors; a value beyond one has its level.
func TestLines(t *testing.T) {
	sample := func(metric string, v float64, labels ...string) Reading {
		return newReading(metric, Sample{Labels: labels, Value: v})
	}
	got := Lines("power_supply", []Reading{
		sample("power_supply_usage_watts", 412),
		sample("power_supply_limit_watts", 1400, "hw_limit_type", "max"),
		sample("temperature_celsius", 61, "hw_sensor_location", "outlet"),
		sample("temperature_limit_celsius", 70, "hw_sensor_location", "outlet", "hw_limit_type", "high.critical"),
		sample("temperature_limit_celsius", 60, "hw_sensor_location", "outlet", "hw_limit_type", "high.degraded"),
		sample("temperature_celsius", 20, "hw_sensor_location", "inlet"),
		sample("voltage_volts", 10, "hw_name", "not shown"),
		sample("voltage_limit_volts", 11, "hw_limit_type", "low.critical"),
		sample("voltage_limit_volts", 13, "hw_limit_type", "high.critical"),
	})
	want := []Line{
		{Name: "usage", Value: "412 W"},
		{Name: "temperature outlet", Value: "61 °C", Limits: "degraded above 60 °C, critical above 70 °C", Level: status.SeverityWarning},
		{Name: "temperature inlet", Value: "20 °C"},
		{Name: "voltage", Value: "10 V", Limits: "critical below 11 V, critical above 13 V", Level: status.SeverityError},
		{Name: "limit max", Value: "1400 W"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
