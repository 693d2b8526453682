package host

import (
	"hwsagent/probes"
)

// hwmonKind determines a family: for example temp and crit. value means that the sensor has a file without a property
// beside the one called input.
type hwmonKind struct {
	kind, property string
	value          bool
}

// hwmonFamily is a family with the conversion of its values to base units. Like node_exporter it multiplies for
// thousandths and divides for millionths, so that the values are equal to the last bit.
type hwmonFamily struct {
	*probes.Family
	mul, div float64
}

// add adds the samples of one sensor.
func (h *hwmon) add(r *probes.Round, chip string, s sensor) {
	labels := []string{"chip", chip, "sensor", s.name}
	label := s.find("label")
	if label != nil {
		r.Add(h.sensorLabel, 1, "chip", chip, "label", label.value, "sensor", s.name)
	}
	hasValue := s.find("") != nil
	for _, p := range s.properties {
		if p.name == "label" {
			continue
		}
		v, ok := numeral(p.value)
		if !ok {
			continue
		}
		l := labels
		if s.kind == "freq" && p.name == "input" {
			// The clock's name is its sensor; without one it cannot be identified.
			if label == nil {
				continue
			}
			l = []string{"chip", chip, "sensor", clean(label.value)}
		}
		k := hwmonKind{s.kind, p.name, hasValue}
		f, ok := h.families[k]
		if !ok {
			f = k.family()
			h.families[k] = f
		}
		r.Add(f.Family, v*f.mul/f.div, l...)
	}
}

// family returns the name and unit of a family. The names are node_exporter's, including alarms that carry a unit
// (temp1_crit_alarm), because only plain alarms have none.
func (k hwmonKind) family() hwmonFamily {
	one := func(name, help string) hwmonFamily { return hwmonFamily{gauge(name, help), 1, 1} }
	milli := func(name, help string) hwmonFamily { return hwmonFamily{gauge(name, help), 0.001, 1} }
	micro := func(name, help string) hwmonFamily { return hwmonFamily{gauge(name, help), 1, 1e6} }

	switch k.kind {
	case "beep_enable":
		return one("node_hwmon_beep_enabled", "Whether the chip may beep.")
	case "vrm":
		return one("node_hwmon_voltage_regulator_version", "Version of the voltage regulator's specification, times ten.")
	case "update_interval":
		return milli("node_hwmon_update_interval_seconds", "How often the chip measures.")
	}
	name := "node_hwmon_" + k.kind
	if k.property == "input" && k.value {
		name += "_input"
	} else if k.property != "input" && k.property != "" {
		name += "_" + clean(k.property)
	}
	what := "The file " + k.kind + "*"
	if k.property != "" {
		what += "_" + k.property
	}
	what += " of the chip"

	switch k.property {
	case "fault", "alarm":
		return one(name, what+": 1 if there is one.")
	case "beep":
		return one(name+"_enabled", what+": whether an alarm beeps.")
	}
	switch k.kind {
	case "in", "cpu":
		return milli(name+"_volts", what+", in volts.")
	case "temp":
		if k.property != "type" {
			return milli(name+"_celsius", what+", in degrees Celsius.")
		}
	case "curr":
		return milli(name+"_amps", what+", in amperes.")
	case "energy":
		return hwmonFamily{counter(name+"_joule_total", what+", in joules."), 1, 1e6}
	case "power":
		switch k.property {
		case "accuracy":
			return micro(name, what+", as a ratio.")
		case "average_interval", "average_interval_min", "average_interval_max":
			return milli(name+"_seconds", what+", in seconds.")
		}
		return micro(name+"_watt", what+", in watts.")
	case "humidity":
		return micro(name, what+", as a ratio.")
	case "fan":
		switch k.property {
		case "input", "min", "max", "target":
			return one(name+"_rpm", what+", in revolutions per minute.")
		}
	case "freq":
		if k.property == "input" {
			return micro(name+"_freq_mhz", what+", in megahertz.")
		}
	}
	return one(name, what+", as it is.")
}
