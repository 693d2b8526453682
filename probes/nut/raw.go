package nut

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// prefix is the prefix of nut_exporter's names.
const prefix = "network_ups_tools_"

// known are the words of ups.status that are always given, as 1 or 0, like nut_exporter does.
var known = []string{"OL", "OB", "LB", "HB", "RB", "CHRG", "DISCHRG", "BYPASS", "CAL", "OFF", "OVER", "TRIM", "BOOST", "FSD", "SD", "ALARM"}

// families holds the families of variables under their own names, created on first use.
type families struct {
	byName             map[string]*probes.Family
	info, flags, alarm probes.Family
}

func newFamilies() *families {
	gauge := func(name, help string) probes.Family {
		return probes.Family{Name: prefix + name, Help: help, Type: model.MetricTypeGauge}
	}
	return &families{
		byName: make(map[string]*probes.Family),
		info:   gauge("device_info", "Identity of the device; always 1."),
		flags:  gauge("ups_status", "Words of ups.status: 1 if the device reports the word, 0 if not."),
		alarm:  gauge("ups_alarm_info", "Text of the device's alarm (ups.alarm); 1 while the alarm exists."),
	}
}

// maxNames bounds how many families are kept, whatever the names of a device's variables.
const maxNames = 2 * maxVars

// of returns the family of a variable, nil if there are too many.
func (f *families) of(name string) *probes.Family {
	if known := f.byName[name]; known != nil || len(f.byName) >= maxNames {
		return known
	}
	made := &probes.Family{Name: prefix + underscores(name), Help: "The variable " + strings.ToValidUTF8(name, "\uFFFD") + " of Network UPS Tools.", Type: model.MetricTypeGauge}
	f.byName[name] = made
	return made
}

// underscores turns a variable's name into a metric's: input.L1-N.voltage becomes input_L1_N_voltage.
func underscores(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// add adds a device's variables under their own names. If two names become the same, the first counts.
func (f *families) add(r *probes.Round, name string, vars []variable) {
	info := []string{"ups", name}
	met := make(map[string]bool, len(vars))
	for _, v := range vars {
		value, isNumber := number(v)
		text := strings.ToValidUTF8(strings.TrimSpace(v.value), "\uFFFD")
		switch key, ok := strings.CutPrefix(v.name, "device."); {
		case ok && slices.Contains([]string{"mfr", "model", "serial", "type", "description", "contact", "location", "part", "macaddr"}, key) && !met[v.name]:
			met[v.name] = true
			info = append(info, key, text)
		case v.name == "ups.status" && !met[v.name]:
			met[v.name] = true
			f.status(r, name, strings.Fields(text))
		case v.name == "ups.alarm" && !met[v.name] && text != "" && !isNumber:
			met[v.name] = true
			r.Add(&f.alarm, 1, "ups", name, "alarm", text)
		default:
			metric := underscores(v.name)
			if family := f.of(v.name); isNumber && family != nil && !met[metric] && !reserved(metric) {
				met[metric] = true
				r.Add(family, value, "ups", name)
			}
		}
	}
	r.Add(&f.info, 1, info...)
}

// reserved reports whether a family with this name has other labels.
func reserved(metric string) bool {
	return metric == "device_info" || metric == "ups_status" || metric == "ups_alarm_info"
}

func (f *families) status(r *probes.Round, name string, flags []string) {
	for _, flag := range known {
		v := 0.0
		if slices.Contains(flags, flag) {
			v = 1
		}
		r.Add(&f.flags, v, "ups", name, "flag", flag)
	}
	slices.Sort(flags)
	for _, flag := range slices.Compact(flags) {
		if !slices.Contains(known, flag) {
			r.Add(&f.flags, 1, "ups", name, "flag", flag)
		}
	}
}
