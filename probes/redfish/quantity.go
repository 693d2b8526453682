package redfish

import (
	"strings"

	"hwsagent/probes/hw"
)

// quantity is the quantity that a number measures.
type quantity uint8

const (
	other quantity = iota
	temperature
	voltage
	current
	power
	energy
	humidity
	fanSpeed // revolutions per minute
	fanRatio // fraction of the highest speed
	supply   // existence of a power supply
	numQuantity
)

// unit converts a number to a quantity: add shift, then multiply by scale.
type unit struct {
	of    quantity
	scale float64
	shift float64
	// name is the unit for people if the quantity has no metric of its own.
	name string
}

// percent reports whether the number is a percentage.
func (u unit) percent() bool { return u.scale == 0.01 || u.name == "%" }

func (u unit) value(v float64) float64 { return (v + u.shift) * u.scale }

// byUnits maps the units of ReadingUnits: codes of UCUM, as in the schema Sensor, and the words that services write
// instead.
var byUnits = map[string]unit{
	"cel": {of: temperature, scale: 1}, "c": {of: temperature, scale: 1}, "degc": {of: temperature, scale: 1}, "°c": {of: temperature, scale: 1}, "celsius": {of: temperature, scale: 1},
	"degrees c": {of: temperature, scale: 1}, "degf": {of: temperature, scale: 1 / 1.8, shift: -32}, "[degf]": {of: temperature, scale: 1 / 1.8, shift: -32}, "fahrenheit": {of: temperature, scale: 1 / 1.8, shift: -32},
	"k": {of: temperature, scale: 1, shift: -273.15},
	"v": {of: voltage, scale: 1}, "volts": {of: voltage, scale: 1}, "mv": {of: voltage, scale: 1e-3}, "kv": {of: voltage, scale: 1e3},
	"a": {of: current, scale: 1}, "amps": {of: current, scale: 1}, "ma": {of: current, scale: 1e-3},
	"w": {of: power, scale: 1}, "watts": {of: power, scale: 1}, "mw": {of: power, scale: 1e-3}, "kw": {of: power, scale: 1e3},
	"j": {of: energy, scale: 1}, "kw.h": {of: energy, scale: 3.6e6}, "kwh": {of: energy, scale: 3.6e6}, "w.h": {of: energy, scale: 3600}, "wh": {of: energy, scale: 3600},
	"rpm": {of: fanSpeed, scale: 1}, "{rev}/min": {of: fanSpeed, scale: 1},
}

// byType maps a ReadingType (schema Sensor) to its unit, if it implies one.
var byType = map[string]unit{
	"temperature": byUnits["cel"], "voltage": byUnits["v"], "current": byUnits["a"], "power": byUnits["w"], "energyjoules": byUnits["j"],
	"energykwh": byUnits["kw.h"], "energywh": byUnits["w.h"], "humidity": {of: humidity, scale: 0.01}, "rotational": byUnits["rpm"],
	"frequency": {scale: 1, name: "Hz"}, "pressure": {scale: 1, name: "Pa"}, "pressurepa": {scale: 1, name: "Pa"}, "pressurekpa": {scale: 1, name: "kPa"}, "liquidflowlpm": {scale: 1, name: "L/min"}, "heat": {scale: 1, name: "kW"},
	"airflow": {scale: 1, name: "[cft_i]/min"}, "airflowcmm": {scale: 1, name: "m3/min"}, "absolutehumidity": {scale: 1, name: "g/m3"},
}

// unitOf returns the unit of a sensor from its two properties, which some services omit or get wrong: the type decides
// the quantity, and the units its scale. If the units belong to another quantity than the type, the type's own unit
// counts for an energy (some services write kW for kWh); otherwise the quantity is unknown, and the number becomes a
// generic sensor with the given units.
func unitOf(o object) unit {
	typ, units := strings.ToLower(o.text("ReadingType")), o.text("ReadingUnits")
	byT, hasType := byType[typ]
	byU, hasUnits := byUnits[strings.ToLower(units)]
	if strings.HasPrefix(units, "M") { // mega, not milli
		hasUnits = false
	}
	switch {
	case hasType && byT.of == humidity:
		return byT
	case hasType && units == "":
		return byT
	case hasType && byT.of == other:
		return unit{scale: 1, name: units}
	case hasType && hasUnits && byT.of == byU.of:
		return byU
	case hasType && byT.of == energy:
		return byT
	case hasType:
		return unit{scale: 1, name: units}
	case typ == "percent" || units == "%" || strings.EqualFold(units, "percent"):
		if ofFan(o) {
			return unit{of: fanRatio, scale: 0.01}
		}
		return unit{scale: 1, name: "%"}
	case typ == "" && hasUnits:
		return byU
	}
	return unit{scale: 1, name: units}
}

// ofFan reports whether a sensor belongs to a fan.
func ofFan(o object) bool {
	return strings.EqualFold(o.text("PhysicalContext"), "Fan") || strings.Contains(strings.ToLower(o.first("Name", "Id")), "fan")
}

// byName maps suffixes of property names to units (Redfish Specification, DSP0266, "Property naming").
var byName = []struct {
	suffix string
	unit   unit
}{
	{"Celsius", byUnits["cel"]}, {"CurrentAmps", byUnits["a"]}, {"Amps", byUnits["a"]}, {"PowerWatts", byUnits["w"]}, {"Watts", byUnits["w"]}, {"EnergykWh", byUnits["kw.h"]}, {"kWh", byUnits["kw.h"]},
	{"EnergyJoules", byUnits["j"]}, {"Joules", byUnits["j"]}, {"HumidityPercent", byType["humidity"]}, {"FanSpeedPercent", unit{of: fanRatio, scale: 0.01}}, {"FanSpeedsPercent", unit{of: fanRatio, scale: 0.01}},
	{"Voltage", byUnits["v"]}, {"Voltages", byUnits["v"]}, {"Volts", byUnits["v"]},
	{"FrequencyHz", byType["frequency"]}, {"Hz", byType["frequency"]}, {"LitersPerMinute", byType["liquidflowlpm"]}, {"PressurekPa", byType["pressurekpa"]}, {"kPa", byType["pressurekpa"]}, {"kW", byType["heat"]},
	{"WattHours", unit{scale: 1, name: "W.h"}}, {"AmpHours", unit{scale: 1, name: "A.h"}}, {"CubicMetersPerMinute", byType["airflowcmm"]}, {"Percent", unit{scale: 1, name: "%"}},
}

// unitOfProperty returns the unit of an excerpt of a sensor, and the name of the property without the unit.
func unitOfProperty(property string) (unit, string, bool) {
	for i := range byName {
		if b := &byName[i]; strings.HasSuffix(property, b.suffix) {
			return b.unit, strings.TrimSuffix(property, b.suffix), true
		}
	}
	return unit{}, "", false
}

// alone is the kind of component, with its metrics, for a sensor of the quantity that belongs to no other component.
var alone = [numQuantity]struct {
	kind       hw.Kind
	now, limit hw.Metric
}{
	other:       {hw.Sensor, hw.SensorValue, hw.SensorLimit},
	temperature: {hw.Temperature, hw.TemperatureNow, hw.TemperatureLimit},
	voltage:     {hw.Voltage, hw.VoltageNow, hw.VoltageLimit},
	current:     {hw.Current, hw.CurrentNow, hw.CurrentLimit},
	power:       {hw.PowerMeter, hw.Power, hw.PowerLimit},
	energy:      {hw.PowerMeter, hw.Energy, 0},
	humidity:    {hw.Humidity, hw.HumidityNow, hw.HumidityLimit},
	fanSpeed:    {hw.Fan, hw.FanSpeed, hw.FanSpeedLimit},
	fanRatio:    {hw.Fan, hw.FanSpeedRatio, 0},
}

// tells adds the quantities that a resource of the newer schemas reports for its chassis: only those that every such
// resource reports, so that a summary does not hide the sensors of the older resources.
func tells(n *node, has map[quantity]bool) {
	switch n.name {
	case "fan":
		has[fanSpeed] = true
	case "supply":
		has[supply] = true
	case "sensor":
		if _, ok := n.object.number("Reading"); ok {
			q := unitOf(n.object).of
			switch q {
			case fanRatio:
				q = fanSpeed
			case power: // possibly that of a part
				q = other
			}
			has[q] = true
		}
	case "metrics":
		if len(n.object.list("TemperatureReadingsCelsius")) > 0 {
			has[temperature] = true
		}
		if _, ok := n.object.number("PowerWatts.Reading"); ok && n.parent.name == "chassis" {
			has[power] = true
		}
	}
}
