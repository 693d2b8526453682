package nut

import (
	"slices"
	"strings"

	"hwsagent/probes/hw"
)

// upsFlags and batteryFlags map the words of ups.status (RFC 9271, section 5.3, and docs/new-drivers.txt of Network UPS
// Tools) to states of the device and of its battery. Words in neither have no effect: OL, CHRG, DISCHRG, CAL, TEST, and
// BOOST and TRIM, which are normal operation.
var upsFlags = map[string]hw.Status{
	"OB": hw.Degraded, "BYPASS": hw.Degraded, "OVER": hw.Degraded, "ALARM": hw.Degraded,
	"FSD": hw.Degraded | hw.PredictedFailure, // about to be switched off
	"OFF": hw.Failed,                         // supplies no power
}

var batteryFlags = map[string]hw.Status{
	"LB": hw.Degraded, "HB": hw.Degraded, "RB": hw.Degraded | hw.PredictedFailure,
}

// states returns the states of a device and of its battery from ups.status.
func states(status string) (ups, battery hw.Status) {
	flags := strings.Fields(status)
	if len(flags) == 0 {
		return hw.Unknown, hw.Unknown
	}
	ups, battery = hw.OK, hw.OK
	for _, f := range flags {
		if f == "NOCOMM" || f == "WAIT" { // the driver has lost the device, or not found it yet
			return hw.Unknown, hw.Unknown
		}
		ups, battery = ups.Join(upsFlags[f]), battery.Join(batteryFlags[f])
		if f == "LB" && strings.Contains(" "+status+" ", " OB ") { // about to shut down
			ups = ups.Join(hw.PredictedFailure)
		}
	}
	return ups, battery
}

// rating returns the state for a driver's own rating of a value: good, warning-low, critical-high, …
func rating(word string) hw.Status {
	switch {
	case word == "good":
		return hw.OK
	case strings.HasPrefix(word, "warning"):
		return hw.Degraded
	case strings.HasPrefix(word, "critical"):
		return hw.Failed
	}
	return hw.Unknown
}

// components returns a device, its battery and its sensors in the vocabulary of package hw.
func components(name string, vars []variable) []hw.Report {
	text := make(map[string]string, len(vars))
	for _, v := range vars {
		text[v.name] = strings.TrimSpace(v.value)
	}
	first := func(names ...string) string {
		for _, n := range names {
			if text[n] != "" {
				return text[n]
			}
		}
		return ""
	}
	id := "ups:" + name
	upsState, batteryState := states(text["ups.status"])
	all := []hw.Report{{Status: upsState, Component: hw.Component{Kind: hw.PowerSupply, ID: id, Name: name, Facts: []string{
		hw.Vendor, first("device.mfr", "ups.mfr"), hw.Model, first("device.model", "ups.model"), hw.Serial, first("device.serial", "ups.serial"),
		hw.Firmware, first("ups.firmware"), hw.DriverName, text["driver.name"], hw.Driver, text["driver.version"]}}}}
	at := map[string]int{"": 0}
	component := func(place string, kind hw.Kind) *hw.Report {
		p := hw.Report{Component: hw.Component{Kind: kind, ID: id + "/" + place, Name: name + " " + place, Parent: id}}
		key := place
		switch place {
		case "": // the device itself
		case "battery":
			p.Kind, p.Status = hw.Battery, batteryState
			p.Facts = []string{hw.Chemistry, first("battery.chemistry", "battery.type")}
		default:
			key += "/" + kind.String()
			p.ID += "/" + kind.String()
		}
		if _, ok := at[key]; !ok {
			at[key] = len(all)
			all = append(all, p)
		}
		return &all[at[key]]
	}
	for _, v := range vars {
		addVariable(v, text, component)
	}
	if upsState != hw.Unknown {
		onBattery := 0.0
		if strings.Contains(" "+text["ups.status"]+" ", " OB ") {
			onBattery = 1
		}
		all[0].Add(hw.OnBattery, onBattery)
	}
	return all
}

// addVariable adds a variable's value to its component.
func addVariable(v variable, text map[string]string, component func(place string, kind hw.Kind) *hw.Report) {
	if stem, ok := strings.CutSuffix(v.name, ".status"); ok {
		if place, q, ok := meaning(stem); ok && place != "" && place != "battery" {
			c := component(place, q.kind)
			c.Status = c.Status.Join(rating(strings.TrimSpace(v.value)))
		}
		return
	}
	place, q, ok := meaning(v.name)
	value, isNumber := number(v)
	if limit := strings.HasSuffix(v.name, ".low") || strings.HasSuffix(v.name, ".high"); limit && text[v.name+".warning"] != "" {
		return // it has a more exact name
	}
	if !ok || !isNumber || text["ups.realpower"] != "" && v.name == "output.realpower" {
		return
	}
	if v.name == "output.realpower" { // another name for ups.realpower
		place, q = "", quantity{hw.PowerSupply, hw.PowerSupplyUsage, 1, nil}
	}
	c := component(place, q.kind)
	onLine := strings.Contains(" "+text["ups.status"]+" ", " OL ")
	switch {
	case has(c, &q):
	case q.metric.Sentinel(value), q.metric == hw.BatteryTimeLeft && value == 0 && onLine: // the device does not know it
		c.Refused = append(c.Refused, hw.Reading{Metric: q.metric, Value: value})
	default:
		c.Add(q.metric, scaled(value, q.scale), q.attributes...)
	}
}

// has reports whether the component already has this reading: the first of two equal variables counts.
func has(c *hw.Report, q *quantity) bool {
	return slices.ContainsFunc(c.Readings, func(r hw.Reading) bool {
		return r.Metric == q.metric && slices.Equal(r.Attributes, q.attributes)
	})
}

// scaled returns value × scale, such that a percentage keeps its digits.
func scaled(value, scale float64) float64 {
	if scale == 0.01 {
		return value / 100
	}
	return value * scale
}
