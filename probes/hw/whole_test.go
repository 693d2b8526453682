package hw

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// supply returns a power supply that takes in and gives out; NaN is not told.
func supply(st Status, in, out float64) Report {
	p := Report{Status: st, Component: Component{Kind: PowerSupply}}
	if !math.IsNaN(in) {
		p.Add(Power, in)
	}
	if !math.IsNaN(out) {
		p.Add(PowerSupplyUsage, out)
	}
	return p
}

func TestSuppliedPower(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		parts   []Report
		watts   float64
		quality string
	}{
		"none":                         {nil, nan, ""},
		"a part that is no supply":     {[]Report{*new(Report)}, nan, ""},
		"both take":                    {[]Report{supply(OK, 100, 90), supply(OK, 50, nan)}, 150, Measured},
		"one gives only":               {[]Report{supply(OK, 100, nan), supply(OK, nan, 90)}, 200, Estimated},
		"one is silent":                {[]Report{supply(OK, 100, nan), supply(OK, nan, nan)}, 100, Estimated},
		"one without a state is":       {[]Report{supply(OK, 100, nan), supply(0, nan, nan)}, 100, Measured},
		"one failed":                   {[]Report{supply(OK, 100, nan), supply(Failed, nan, nan)}, 100, Measured},
		"one is unknown":               {[]Report{supply(OK, 100, nan), supply(Unknown, nan, nan)}, 100, Measured},
		"all are silent":               {[]Report{supply(OK, nan, nan)}, nan, ""},
		"the machine is off, or a lie": {[]Report{supply(OK, 0, nan)}, nan, ""},
	} {
		watts, quality := SuppliedPower(c.parts)
		if quality != c.quality || fmt.Sprintf("%.3f", watts) != fmt.Sprintf("%.3f", c.watts) {
			t.Errorf("%s: %v %q, want %v %q", name, watts, quality, c.watts, c.quality)
		}
	}
}

// TestWhole has what a source says of the machine itself, alone and in the place of what its parts give.
func TestWhole(t *testing.T) {
	hot := func(name string, now float64, limit ...float64) Report {
		p := Report{Component: Component{Kind: Temperature, Name: name}}
		p.Add(TemperatureNow, now)
		for i, l := range limit {
			p.Add(TemperatureLimit, l, "hw_limit_type", []string{"high.degraded", "high.critical", "low.critical"}[i])
		}
		return p
	}
	parts := []Report{supply(OK, 90, nan), hot("Inlet Temp", 24, 40), hot("Ambient", 22), hot("CPU1", 70, 85, 95, 0)}
	const rest = "hw_host_ambient_temperature_celsius 22\nhw_host_heating_margin_celsius 15\n"
	start := time.Unix(1_700_000_000, 0)
	var own, counted, none Report
	own.Add(HostPower, 120, "hw_quality", Measured)
	counted.Add(HostPower, 120, "hw_quality", Measured)
	counted.Add(HostEnergy, 5000, "hw_quality", Measured)
	for _, c := range []struct {
		name    string
		machine Report
		parts   []Report
		want    string
	}{
		{"supplies", none, parts, "hw_host_power_watts hw_quality=\"measured\" 90\nhw_host_energy_joules_total hw_quality=\"measured\" 900\n" + rest},
		{"an instrument", own, parts, "hw_host_power_watts hw_quality=\"measured\" 120\nhw_host_energy_joules_total hw_quality=\"measured\" 1200\n" + rest},
		{"a counter", counted, parts, "hw_host_power_watts hw_quality=\"measured\" 120\nhw_host_energy_joules_total hw_quality=\"measured\" 5000\n" + rest},
		{"nothing", none, nil, ""},
	} {
		var m Meter
		m.Whole(start, c.machine, c.parts)
		if got := text(m.Whole(start.Add(10*time.Second), c.machine, c.parts)); got != c.want {
			t.Errorf("%s gives\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// nan is not a number.
var nan = math.NaN()

func TestMeter(t *testing.T) {
	var m Meter
	for i, c := range []struct {
		gap   time.Duration
		watts float64
		want  float64
	}{
		{0, 100, 0}, {time.Minute, 100, 6000}, {-time.Hour, 100, 6000}, {time.Second, 50, 6050}, {time.Hour, 1, 6650},
	} {
		if got := m.Add(c.gap, c.watts); got != c.want {
			t.Errorf("call %d counts %v, want %v", i, got, c.want)
		}
	}
}

// TestKnown has what sources write in the place of a serial number or a UUID, and the forms of one.
func TestKnown(t *testing.T) {
	for _, c := range []struct{ label, value, want string }{
		{Serial, " CN7792\n", "CN7792"}, {Serial, "to be filled by o.e.m.", ""}, {Serial, "0000000", ""}, {Serial, "Default string ", ""}, {Serial, "0", ""}, {Serial, "", ""},
		{Serial, "00A1", "00A1"}, {Serial, "NABC", "NABC"},
		{UUID, "4C4C4544-0031-4410-8052-B4C04F304A32", "4c4c4544-0031-4410-8052-b4c04f304a32"}, {UUID, "00000000-0000-0000-0000-000000000000", ""},
		{UUID, "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", ""}, {UUID, "03000200-0400-0500-0006-000700080009", ""},
		{UUID, "GPU-304A277d-3545-63b8-3a36-dfde3c992989", "GPU-304A277d-3545-63b8-3a36-dfde3c992989"}, {UUID, " AB-12 ", "ab-12"},
		{Model, "None", "None"}, {Vendor, " x ", " x "},
	} {
		if got := known(c.label, c.value); got != c.want {
			t.Errorf("%s %q is %q, want %q", c.label, c.value, got, c.want)
		}
	}
}

// TestMachinesIdentity: each metric of the whole machine has serial number and UUID, and the type of the probe, and no other fact.
func TestMachinesIdentity(t *testing.T) {
	p := Report{Component: Component{Kind: Host, Facts: []string{Vendor, "Example", Serial, "S1", UUID, "AB-1"}}}
	p.Add(HostPower, 1, "hw_quality", Measured)
	if got := text(p); got != "hw_host_power_watts hw_serial_number=\"S1\" hw_uuid=\"ab-1\" hw_quality=\"measured\" 1\n" {
		t.Errorf("it gives %s", got)
	}
	for _, m := range []Metric{HostPower, HostEnergy, HostAmbient, HostHeatingMargin, Info} {
		if !m.Allows(map[bool]Kind{true: Host, false: Fan}[m != Info], []string{Serial, "", UUID, "", Source, ""}) {
			t.Errorf("%s may not have the labels", m.Family().Name)
		}
	}
}
