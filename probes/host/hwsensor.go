package host

import (
	"strconv"

	"hwsagent/probes/hw"
)

// The code below turns hwmon's values into components, without I/O. Names, units and meanings are those of the kernel's
// Documentation/hwmon/sysfs-interface.rst.

// enclosureID is the ID of the machine's case; each machine has one.
const enclosureID = "enclosure"

// sensor is one sensor of a chip, such as temp1, with the values of its files.
type sensor struct {
	kind       string // temp, in, fan, …
	name       string // kind and number
	properties []property
}

// origin is the component that a chip belongs to.
type origin struct {
	id     string // stable name of the chip
	parent string // ID of the component that contains the sensors
	// elsewhere means that another collector reports this chip's values, so that each reading appears once.
	elsewhere bool
	// gpu means that hw_gpus reports the chip's power and energy, as those of the GPU.
	gpu bool
}

// property is one file of a sensor: for temp1_max the name is max, for pwm1 "".
type property struct{ name, value string }

func (s *sensor) find(name string) *property {
	for i := range s.properties {
		if s.properties[i].name == name {
			return &s.properties[i]
		}
	}
	return nil
}

// number returns the value of a property, divided.
func (s *sensor) number(name string, div float64) (float64, bool) {
	p := s.find(name)
	if p == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(p.value, 64)
	return v / div, err == nil
}

// set reports whether a property exists, and whether it is 1.
func (s *sensor) set(name string) (there, on bool) {
	v, ok := s.number(name, 1)
	return ok, ok && v == 1
}

// sensorKind describes one kind of sensor.
type sensorKind struct {
	hw.Kind
	now, limit hw.Metric
	div        float64
	values     [2]string // the files that may have the value; the first existing one counts
	// lowest and highest are the plausible limits. Drivers return the contents of registers, set or not.
	lowest, highest float64
	limits          []sensorLimit
}

// sensorLimit is a file with a limit, and the state beyond it.
type sensorLimit struct {
	property   string
	attributes []string
	high       bool
	beyond     hw.Status
}

// Attributes of limits, shared by all readings.
var (
	lowCritical  = []string{hw.LabelLimitType, "low.critical"}
	lowDegraded  = []string{hw.LabelLimitType, "low.degraded"}
	highDegraded = []string{hw.LabelLimitType, "high.degraded"}
	highCritical = []string{hw.LabelLimitType, "high.critical"}
	limitMax     = []string{hw.LabelLimitType, "max"}
)

var (
	fourLimits = []sensorLimit{
		{"lcrit", lowCritical, false, hw.Failed}, {"min", lowDegraded, false, hw.Degraded},
		{"max", highDegraded, true, hw.Degraded}, {"crit", highCritical, true, hw.Failed},
	}
	fanLimits   = []sensorLimit{{"min", lowDegraded, false, hw.Degraded}, {"max", limitMax, true, 0}}
	powerLimits = []sensorLimit{{"cap", limitMax, true, 0}, {"max", highDegraded, true, hw.Degraded}, {"crit", highCritical, true, hw.Failed}}
)

// sensorKinds maps the prefixes of file names to kinds. Humidity is in thousandths of a percent.
var sensorKinds = map[string]*sensorKind{
	"temp":      {hw.Temperature, hw.TemperatureNow, hw.TemperatureLimit, 1e3, [2]string{"input", "average"}, -100, 1000, fourLimits},
	"fan":       {hw.Fan, hw.FanSpeed, hw.FanSpeedLimit, 1, [2]string{"input", ""}, 1, 1e6, fanLimits},
	"in":        {hw.Voltage, hw.VoltageNow, hw.VoltageLimit, 1e3, [2]string{"input", "average"}, -1e4, 1e4, fourLimits},
	"curr":      {hw.Current, hw.CurrentNow, hw.CurrentLimit, 1e3, [2]string{"input", "average"}, -1e5, 1e5, fourLimits},
	"power":     {hw.PowerMeter, hw.Power, hw.PowerLimit, 1e6, [2]string{"average", "input"}, 0.001, 1e6, powerLimits},
	"energy":    {hw.PowerMeter, hw.Energy, 0, 1e6, [2]string{"input", ""}, 0, 0, nil},
	"humidity":  {hw.Humidity, hw.HumidityNow, hw.HumidityLimit, 1e5, [2]string{"input", ""}, 0, 1, fourLimits},
	"intrusion": {hw.Intrusion, 0, 0, 1, [2]string{}, 0, 0, nil},
}

// chipReports returns the reports of a chip's sensors, and of the power supply that the chip is a part of.
func chipReports(chip string, at origin, sensors []sensor) (all []hw.Report) {
	supply := isSupply(chip, sensors)
	if supply {
		at.parent = at.id
	}
	for _, s := range sensors {
		power := s.kind == "power" || s.kind == "energy"
		if power && (at.gpu || supply) {
			continue
		}
		if p, ok := sensorReport(chip, at, s); ok {
			all = append(all, p)
		}
	}
	if supply {
		all = append(all, supplyReport(chip, at.id, sensors))
	}
	return all
}

// sensorReport returns the report of one sensor of a chip; false for a sensor with neither a value nor a state. The
// power meter of the whole machine (the driver acpi_power_meter) reports for [hw.Host].
func sensorReport(chip string, at origin, s sensor) (hw.Report, bool) {
	k := sensorKinds[s.kind]
	if k == nil {
		return hw.Report{}, false
	}
	p := hw.Report{Component: hw.Component{Kind: k.Kind, ID: at.id + "/" + s.name, Name: s.name, Parent: at.parent}}
	if label := s.find("label"); label != nil && label.value != "" {
		p.Name = label.value
	}
	if chip != "" {
		p.Name = chip + " " + p.Name
	}
	if s.kind == "intrusion" {
		there, on := s.set("alarm")
		p.Status = hw.OK
		if on {
			p.Status = hw.Failed
		}
		return p, there
	}
	value, has := s.number(k.values[0], k.div)
	if !has && k.values[1] != "" {
		value, has = s.number(k.values[1], k.div)
	}
	_, fault := s.set("fault")
	if fault && s.kind != "fan" {
		has = false // the value of an open or shorted sensor is meaningless
	}
	if chip == "power_meter" && s.kind == "power" {
		p.Kind = hw.Host
		p.Add(hw.HostPower, value)
		return p, has
	}
	if has {
		p.Add(k.now, value)
	}
	limits := s.limits(k)
	for _, l := range limits {
		p.Add(k.limit, l.value, l.attributes...)
	}
	p.Status = s.status(k, value, has, limits)
	return p, has || p.Status != 0
}

// knownLimit is a limit that is configured.
type knownLimit struct {
	sensorLimit
	value float64
}

// limits returns the sensor's plausible limits.
func (s *sensor) limits(k *sensorKind) []knownLimit {
	var out []knownLimit
	low, hasLow := s.number("min", k.div)
	high, hasHigh := s.number("max", k.div)
	unset := hasLow && hasHigh && low >= high // such as 0 and 0
	for _, l := range k.limits {
		v, ok := s.number(l.property, k.div)
		if l.property == "crit" && !ok {
			v, ok = s.number("emergency", k.div)
		}
		if !ok || v < k.lowest || v > k.highest || unset && (l.property == "min" || l.property == "max") {
			continue
		}
		if l.high && v <= 0 { // an unset register
			continue
		}
		out = append(out, knownLimit{l, v})
	}
	return out
}

// status returns the sensor's status: from its driver's alarms, and for limits without an alarm by comparison.
func (s *sensor) status(k *sensorKind, value float64, has bool, limits []knownLimit) hw.Status {
	st := hw.Status(0)
	there, fault := s.set("fault")
	switch {
	case fault && s.kind == "fan":
		return hw.Failed
	case fault:
		return hw.Unknown
	case there:
		st = hw.OK
	}
	general, alarm := s.set("alarm")
	if general {
		st = st.Join(hw.OK)
	}
	if alarm {
		st = st.Join(hw.Degraded)
	}
	for _, a := range [...]struct {
		property string
		beyond   hw.Status
	}{{"lcrit_alarm", hw.Failed}, {"min_alarm", hw.Degraded}, {"max_alarm", hw.Degraded}, {"crit_alarm", hw.Failed}, {"emergency_alarm", hw.Failed}} {
		if there, on := s.set(a.property); on {
			st = st.Join(a.beyond)
		} else if there {
			st = st.Join(hw.OK)
		}
	}
	for _, l := range limits {
		if own, _ := s.set(l.property + "_alarm"); own || general || l.beyond == 0 || !has {
			continue
		}
		st = st.Join(hw.OK)
		if l.high && value > l.value || !l.high && value < l.value {
			st = st.Join(l.beyond)
		}
	}
	switch {
	case !has && (st == hw.OK || st == 0 && len(limits) > 0):
		return hw.Unknown
	case s.kind == "fan" && st.Is(hw.Degraded) && value == 0:
		return hw.Failed // it should turn but does not
	}
	return st
}
