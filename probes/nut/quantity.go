package nut

import (
	"regexp"
	"strconv"
	"strings"

	"hwsagent/probes/hw"
)

// quantity describes the measured quantity, as named by the last words of a variable's name; its first words name the
// place.
type quantity struct {
	kind       hw.Kind // kind of the component, unless the place is the device or its battery
	metric     hw.Metric
	scale      float64
	attributes []string
}

var (
	lowCritical  = []string{hw.LabelLimitType, "low.critical"}
	lowDegraded  = []string{hw.LabelLimitType, "low.degraded"}
	highDegraded = []string{hw.LabelLimitType, "high.degraded"}
	highCritical = []string{hw.LabelLimitType, "high.critical"}
	highest      = []string{hw.LabelLimitType, "max"}
	discharging  = []string{hw.LabelBatteryState, "discharging"}
)

// quantities are valid at any place.
var quantities = map[string]quantity{
	"voltage":               {hw.Voltage, hw.VoltageNow, 1, nil},
	"voltage.nominal":       {hw.Voltage, hw.VoltageNominal, 1, nil},
	"voltage.low.critical":  {hw.Voltage, hw.VoltageLimit, 1, lowCritical},
	"voltage.low.warning":   {hw.Voltage, hw.VoltageLimit, 1, lowDegraded},
	"voltage.high.warning":  {hw.Voltage, hw.VoltageLimit, 1, highDegraded},
	"voltage.high.critical": {hw.Voltage, hw.VoltageLimit, 1, highCritical},

	"current":               {hw.Current, hw.CurrentNow, 1, nil},
	"current.nominal":       {hw.Current, hw.CurrentLimit, 1, highest},
	"current.low.critical":  {hw.Current, hw.CurrentLimit, 1, lowCritical},
	"current.low.warning":   {hw.Current, hw.CurrentLimit, 1, lowDegraded},
	"current.high.warning":  {hw.Current, hw.CurrentLimit, 1, highDegraded},
	"current.high.critical": {hw.Current, hw.CurrentLimit, 1, highCritical},

	"realpower": {hw.PowerMeter, hw.Power, 1, nil},
	"frequency": {hw.Frequency, hw.FrequencyNow, 1, nil},

	"temperature":               {hw.Temperature, hw.TemperatureNow, 1, nil},
	"temperature.low":           {hw.Temperature, hw.TemperatureLimit, 1, lowDegraded},
	"temperature.high":          {hw.Temperature, hw.TemperatureLimit, 1, highDegraded},
	"temperature.low.warning":   {hw.Temperature, hw.TemperatureLimit, 1, lowDegraded},
	"temperature.low.critical":  {hw.Temperature, hw.TemperatureLimit, 1, lowCritical},
	"temperature.high.warning":  {hw.Temperature, hw.TemperatureLimit, 1, highDegraded},
	"temperature.high.critical": {hw.Temperature, hw.TemperatureLimit, 1, highCritical},

	"humidity":               {hw.Humidity, hw.HumidityNow, 0.01, nil},
	"humidity.low":           {hw.Humidity, hw.HumidityLimit, 0.01, lowDegraded},
	"humidity.high":          {hw.Humidity, hw.HumidityLimit, 0.01, highDegraded},
	"humidity.low.warning":   {hw.Humidity, hw.HumidityLimit, 0.01, lowDegraded},
	"humidity.low.critical":  {hw.Humidity, hw.HumidityLimit, 0.01, lowCritical},
	"humidity.high.warning":  {hw.Humidity, hw.HumidityLimit, 0.01, highDegraded},
	"humidity.high.critical": {hw.Humidity, hw.HumidityLimit, 0.01, highCritical},
}

// special are variables outside of quantities: those of the device, its battery and its input.
var special = map[string]struct {
	place string
	quantity
}{
	"battery.charge":         {"battery", quantity{hw.Battery, hw.BatteryCharge, 0.01, nil}},
	"battery.charge.low":     {"battery", quantity{hw.Battery, hw.BatteryChargeLimit, 0.01, lowCritical}},
	"battery.charge.warning": {"battery", quantity{hw.Battery, hw.BatteryChargeLimit, 0.01, lowDegraded}},
	"battery.runtime":        {"battery", quantity{hw.Battery, hw.BatteryTimeLeft, 1, discharging}},
	"battery.runtime.low":    {"battery", quantity{hw.Battery, hw.BatteryTimeLimit, 1, lowCritical}},
	"ups.load":               {"", quantity{hw.PowerSupply, hw.PowerSupplyUtilization, 0.01, nil}},
	"ups.realpower":          {"", quantity{hw.PowerSupply, hw.PowerSupplyUsage, 1, nil}},
	"ups.realpower.nominal":  {"", quantity{hw.PowerSupply, hw.PowerSupplyLimit, 1, highest}},
	// Beyond these limits the device switches to its battery (docs/nut-names.txt).
	"input.transfer.low":  {"input", quantity{hw.Voltage, hw.VoltageLimit, 1, lowDegraded}},
	"input.transfer.high": {"input", quantity{hw.Voltage, hw.VoltageLimit, 1, highDegraded}},
}

// places matches the places with quantities: a number, a bypass, a group of outlets or a phase may follow.
var places = regexp.MustCompile(`^(battery|ups|(ambient|input|output|outlet)(\.bypass|\.group)?(\.[0-9]{1,4})?(\.L[1-3](-(N|L[1-3]))?)?)$`)

// meaning translates a variable's name into the vocabulary of package hw.
func meaning(name string) (place string, q quantity, ok bool) {
	if s, there := special[name]; there {
		return s.place, s.quantity, true
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		if q, ok = quantities[name[i+1:]]; ok && places.MatchString(name[:i]) {
			return strings.TrimPrefix(name[:i], "ups"), q, true
		}
	}
	return "", quantity{}, false
}

// decimal matches a number as drivers write it. Versions, dates and hexadecimal identifiers do not match.
var decimal = regexp.MustCompile(`^[+-]?[0-9]{1,15}(\.[0-9]{1,12})?$`)

// texts matches the last words of variables that are text, even if it looks like a number.
var texts = regexp.MustCompile(`^driver\.(parameter|flag|name|version)|\.(serial|mfr|model|firmware|vendorid|productid|id|part|date|time|name|desc|description|vendor|product|macaddr|type|chemistry|version|contact|location)(\.|$)`)

// number returns the numeric value of a variable, with 1 and 0 for on and off.
func number(v variable) (float64, bool) {
	if texts.MatchString(v.name) {
		return 0, false
	}
	switch text := strings.ToLower(strings.TrimSpace(v.value)); text {
	case "on", "yes", "true", "enabled", "active", "activated":
		return 1, true
	case "off", "no", "false", "disabled", "inactive", "deactivated":
		return 0, true
	default:
		if !decimal.MatchString(text) {
			return 0, false
		}
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	}
}
