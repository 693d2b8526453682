package snmp

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"hwsagent/probes"
	"hwsagent/probes/hw"
	"hwsagent/probes/snmp/library"
)

// identities is what the oracle finds in the samples themselves, whatever the results of others say: impossible values, names with
// a state, names that say nothing, readings that are there twice, and series that are.
type identities struct {
	values, components, judgedKinds int
	impossible                      []string
	namesWithState                  []string
	nameless                        []string
	twice                           []string
	otherKind                       []string
	sameSeries                      []string
}

// possible are the values that hardware can have, chosen apart from the bounds of package hw: in the unit of the metric.
var possible = map[string]func(float64) bool{
	"hw_temperature_celsius":            between(-60, 150),
	"hw_voltage_volts":                  between(-1000, 1000),
	"hw_current_amperes":                between(-5000, 5000),
	"hw_power_watts":                    between(-1e5, 5e6),
	"hw_power_supply_usage_watts":       between(-1e5, 5e6),
	"hw_fan_speed_rpm":                  func(v float64) bool { return v == 0 || v >= 100 && v <= 60000 },
	"hw_fan_speed_ratio":                between(0, 1.5),
	"hw_humidity_ratio":                 between(0, 1),
	"hw_frequency_hertz":                between(0, 1000),
	"hw_optical_power_dbm":              between(-60, 30),
	"hw_battery_charge_ratio":           between(0, 1.05),
	"hw_battery_time_left_seconds":      between(0, 90*86400),
	"hw_power_supply_utilization_ratio": between(0, 2),
	"hw_physical_disk_size_bytes":       between(0, 1e15),
}

// impossibleResult reports whether the results have a value of a class that hardware cannot have: it is no truth to be measured with.
func impossibleResult(class string, v float64) bool {
	c := classes[class]
	for _, m := range c.metrics {
		if holds := possible[m.Family().Name]; holds != nil && holds(v/c.factor) {
			return false
		}
	}
	return len(c.metrics) > 0
}

func between(least, most float64) func(float64) bool {
	return func(v float64) bool { return v >= least && v <= most }
}

// stateAtEnd is a state at the end of a name, as some agents write it. "PG Fail" is the name of a signal.
var stateAtEnd = regexp.MustCompile(`(?i)([,:;]\s*|\bis\s+)\(?(green|yellow|red|normal|warning|critical|shutdown|not ?(present|exist|functioning)|faulty|failed|fail|good|bad|okay|ok)\)?\s*$|` +
	`\s(normal|faulty|not ?(present|exist|functioning)|green|yellow)\b`)

// nothingSaid is a name made of the table's own and the row's number, without anything that the device says.
var nothingSaid = regexp.MustCompile(`^[a-z]+[A-Za-z0-9]*(Table|Entry) [0-9.]+$`)

// identity judges the samples of one device.
func (s *score) identity(device string, samples []probes.Sample) {
	series, readings := map[string]bool{}, map[string]bool{}
	for _, x := range samples {
		labels := map[string]string{}
		for i := 0; i+1 < len(x.Labels); i += 2 {
			labels[x.Labels[i]] = x.Labels[i+1]
		}
		where := fmt.Sprintf("%s %s %q", device, x.Family.Name, labels["hw_name"])
		key := x.Family.Name + fmt.Sprint(labels)
		if series[key] {
			s.sameSeries = append(s.sameSeries, where)
		}
		series[key] = true
		if x.Family == hw.Info.Family() {
			s.component(device, labels)
		}
		holds, analog := possible[x.Family.Name]
		if !analog {
			continue
		}
		s.values++
		if !holds(x.Value) {
			s.impossible = append(s.impossible, fmt.Sprintf("%s %v", where, x.Value))
		}
		reading := x.Family.Name + " " + labels["hw_sensor_location"] + " " + strings.Join(strings.Fields(strings.ToLower(labels["hw_name"])), " ")
		if readings[reading] {
			s.twice = append(s.twice, where)
		}
		readings[reading] = true
	}
}

// component judges what a component is called.
func (s *score) component(device string, labels map[string]string) {
	s.components++
	where := fmt.Sprintf("%s %s %q %q", device, labels["hw_type"], labels["hw_name"], labels["hw_id"])
	id, _, _ := strings.Cut(labels["hw_id"], "#")
	switch {
	case stateAtEnd.MatchString(labels["hw_name"]), stateAtEnd.MatchString(id):
		s.namesWithState = append(s.namesWithState, where)
	case nothingSaid.MatchString(labels["hw_name"]):
		s.nameless = append(s.nameless, where)
	}
}

// kindWords are words of descriptions that tell what a component is, with the kinds that it may have here.
var kindWords = []struct {
	word  *regexp.Regexp
	kinds []hw.Kind
}{
	{regexp.MustCompile(`(?i)\bfan( ?tray)?s?[ -]?[0-9]*\b`), []hw.Kind{hw.Fan, hw.CoolingDevice}},
	{regexp.MustCompile(`(?i)(\bpsu|power ?supply)[ -]?[0-9]*\b`), []hw.Kind{hw.PowerSupply}},
	{regexp.MustCompile(`(?i)\bbattery\b`), []hw.Kind{hw.Battery}},
	{regexp.MustCompile(`(?i)\b(disk|hdd|ssd)\b`), []hw.Kind{hw.PhysicalDisk, hw.LogicalDisk}},
}

// withinPart is a description of a sensor within a part, or of a lamp for it.
var withinPart = regexp.MustCompile(`(?i)sensor|temp|^(led|voltage|current)\b|rtc`)

// kind judges the kind of a component whose state others describe by one of the words.
func (s *score) kind(device string, x sensorResult, found []library.Finding) {
	if x.Class != "state" || withinPart.MatchString(x.Descr) {
		return
	}
	var kinds []hw.Kind
	for _, w := range kindWords {
		if w.word.MatchString(x.Descr) {
			if kinds != nil {
				return // a fan of a power supply
			}
			kinds = w.kinds
		}
	}
	if kinds == nil {
		return
	}
	s.judgedKinds++
	for _, f := range found {
		for _, k := range kinds {
			if f.Kind == k {
				return
			}
		}
	}
	s.otherKind = append(s.otherKind, fmt.Sprintf("%s %s %q is a %s", device, found[0].Object, x.Descr, found[0].Kind))
}

func (s *score) printIdentities() {
	fmt.Printf("%d values, of which %d are impossible and %d are there twice; of %d components %d have a state in their name, %d the table's name; %d of %d kinds differ; %d series are there twice\n",
		s.values, len(s.impossible), len(s.twice), s.components, len(s.namesWithState), len(s.nameless), len(s.otherKind), s.judgedKinds, len(s.sameSeries))
}

func (s *score) judgeIdentities(t *testing.T, least func(what string, n, of int, want float64)) {
	for what, all := range map[string][]string{"impossible values": s.impossible, "names with a state": s.namesWithState, "series that are there twice": s.sameSeries} {
		if len(all) > 0 {
			t.Errorf("%d %s: %s …", len(all), what, all[0])
		}
	}
	least("readings that are there once", s.values-len(s.twice), s.values, 1-mostTwice)
	least("kinds right", s.judgedKinds-len(s.otherKind), s.judgedKinds, 1-mostOtherKinds)
}
