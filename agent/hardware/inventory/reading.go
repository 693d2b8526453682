package inventory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hwsagent/agent/status"
	"hwsagent/internal/text"
	"hwsagent/probes/hw"
)

// Reading is one value of a component, or of a whole machine.
type Reading struct {
	Metric string // without the vocabulary's prefix
	Of     string // values of the labels that distinguish readings of one metric, apart from Limit
	Limit  string // the kind of limit, for example high.critical; empty: it is no limit
	Value  float64
	At     time.Time // zero: read just now
	key    string    // Metric with all labels that distinguish it
}

// Line is a value as people read it, with its limits.
type Line struct {
	Name   string // empty: the component's type says it
	Value  string
	Limits string // "degraded above 40 °C, critical above 50 °C"
	At     time.Time
	Level  string // error or warning beyond a limit, else empty
}

// String returns the line as words.
func (l Line) String() string {
	s := strings.TrimSpace(l.Name + " " + l.Value)
	if l.Limits != "" {
		s += ", " + l.Limits
	}
	return s
}

// Lines returns the readings for people, each limit beside its value. kind is the type of the component that they are of.
func Lines(kind string, readings []Reading) []Line {
	type place struct{ metric, of string }
	limits := map[place][]Reading{}
	for _, r := range readings {
		if r.Limit != "" {
			at := place{strings.Replace(r.Metric, "_limit", "", 1), r.Of}
			limits[at] = append(limits[at], r)
		}
	}
	var all []Line
	for _, r := range readings {
		if r.Limit != "" {
			continue
		}
		at := place{r.Metric, r.Of}
		l := Line{Name: r.name(kind), Value: Quantity(r.Metric, r.Of, r.Value), At: r.At, Level: level(r.Value, limits[at])}
		l.Limits = limitWords(limits[at])
		delete(limits, at)
		all = append(all, l)
	}
	for _, r := range readings { // limits without a value
		if at := (place{strings.Replace(r.Metric, "_limit", "", 1), r.Of}); r.Limit != "" && limits[at] != nil {
			all = append(all, Line{Name: strings.TrimSpace(r.name(kind) + " " + limitWord(r.Limit)), Value: Quantity(r.Metric, r.Of, r.Value), At: r.At})
		}
	}
	return all
}

// name returns what the reading is of, without the words that the component's type says already.
func (r Reading) name(kind string) string {
	name := r.Metric
	for _, end := range [...]string{"_total", "_celsius", "_watts", "_bytes_per_second", "_bytes", "_rpm", "_ratio", "_volts", "_amperes", "_seconds", "_joules", "_hertz"} {
		name = strings.TrimSuffix(name, end)
	}
	of := r.Of
	switch {
	case kind != "" && name == kind, kind == "sensor" && name == "sensor_value":
		name = ""
	case kind != "":
		name = strings.TrimPrefix(name, kind+"_")
	}
	if r.Metric == "sensor_value" { // its label is the unit, which stands behind the value
		of = ""
	}
	return strings.TrimSpace(strings.ReplaceAll(name, "_", " ") + " " + strings.ReplaceAll(of, "_", " "))
}

// limitWords returns the limits of one value, the upper ones last.
func limitWords(limits []Reading) string {
	slices.SortStableFunc(limits, func(a, b Reading) int {
		return cmp.Or(cmp.Compare(strings.Index(b.Limit, "low"), strings.Index(a.Limit, "low")), cmp.Compare(a.Value, b.Value))
	})
	var parts []string
	for _, l := range limits {
		side, what, ok := strings.Cut(l.Limit, ".")
		words := "at most"
		switch {
		case ok && side == "low":
			words = what + " below"
		case ok:
			words = what + " above"
		case side == "low":
			words = "at least"
		}
		parts = append(parts, words+" "+Quantity(l.Metric, l.Of, l.Value))
	}
	return strings.Join(parts, ", ")
}

func limitWord(limit string) string { return strings.ReplaceAll(limit, ".", " ") }

// level judges a value by its limits.
func level(v float64, limits []Reading) (level string) {
	for _, l := range limits {
		beyond := strings.HasPrefix(l.Limit, "high") && v >= l.Value || strings.HasPrefix(l.Limit, "low") && v <= l.Value
		switch {
		case beyond && strings.HasSuffix(l.Limit, "critical"):
			return status.SeverityError
		case beyond:
			level = status.SeverityWarning
		}
	}
	return level
}

// Quantity formats a value in people's units. The metric's name says its unit; of is that of a sensor without a kind of its own.
func Quantity(metric, of string, v float64) string {
	name := strings.TrimSuffix(metric, "_total")
	unit := name[strings.LastIndexByte(name, '_')+1:]
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return strconv.FormatFloat(v, 'g', -1, 64)
	case name == "network_up" || name == "power_supply_on_battery" || name == "bay_light":
		if v == 0 {
			return "no"
		}
		return "yes"
	case strings.HasPrefix(name, "physical_disk_smart"): // a raw value, although its unit is 1
		return number(v)
	case strings.HasSuffix(name, "_timestamp_seconds"):
		return time.Unix(int64(v), 0).UTC().Format("2006-01-02 15:04 MST")
	case strings.HasSuffix(name, "_bytes_per_second"):
		return scaled(8*v, 1000, "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s")
	case unit == "bytes" && strings.Contains(name, "memory_"): // sold in powers of two
		return scaled(v, 1024, "B", "KiB", "MiB", "GiB", "TiB")
	case strings.HasPrefix(name, "sensor_"):
		return strings.TrimSpace(short(v) + " " + of)
	}
	switch unit {
	case "celsius":
		return Celsius(v)
	case "watts":
		return Watts(v)
	case "bytes":
		return scaled(v, 1000, "B", "kB", "MB", "GB", "TB", "PB")
	case "ratio":
		return short(100*v) + " %"
	case "hertz":
		return scaled(v, 1000, "Hz", "kHz", "MHz", "GHz")
	case "joules":
		return scaled(v/3600, 1000, "Wh", "kWh", "MWh", "GWh")
	case "seconds":
		return status.Span(status.Seconds(v))
	case "rpm":
		return short(v) + " rpm"
	case "volts":
		return strconv.FormatFloat(v, 'g', 4, 64) + " V"
	case "amperes":
		return strconv.FormatFloat(v, 'g', 3, 64) + " A"
	case "dbm":
		return short(v) + " dBm"
	}
	return short(v)
}

// Celsius formats a temperature.
func Celsius(v float64) string { return short(v) + " °C" }

// Watts formats a power.
func Watts(v float64) string {
	if math.Abs(v) >= 10_000 {
		return fmt.Sprintf("%.1f kW", v/1000)
	}
	return short(v) + " W"
}

// scaled formats a value in the unit in which it has one to three digits before the point, each by step larger than the one before.
func scaled(v, step float64, units ...string) string {
	i := 0
	for ; i < len(units)-1 && math.Abs(v) >= 0.9995*step; i++ {
		v /= step
	}
	if math.Abs(v) >= 99.5 || i == 0 {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + " " + units[i]
}

// short formats a number with a digit behind the point at most, unless it is small.
func short(v float64) string {
	switch a := math.Abs(v); {
	case v >= 10_000 && v < 1e15:
		return status.Count(uint64(math.Round(v)))
	case a >= 1 || a == 0:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// values returns readings by their keys, as in JSON.
func values(readings []Reading) map[string]string {
	all := make(map[string]string, len(readings))
	for _, r := range readings {
		all[r.key] = number(r.Value)
	}
	return all
}

// newReading returns the reading of a sample.
func newReading(metric string, s Sample) Reading {
	r := Reading{Metric: metric, Value: s.Value, At: s.At, key: metric}
	for i := 0; i+1 < len(s.Labels); i += 2 {
		name, value := s.Labels[i], s.Labels[i+1]
		switch name {
		case hw.LabelID, hw.LabelName, hw.LabelParent, hw.LabelType, hw.Source, hw.Serial, hw.UUID:
			continue
		}
		if value == "" {
			continue
		}
		r.key += " " + value
		if name == hw.LabelLimitType {
			r.Limit = value
		} else {
			r.Of = strings.TrimSpace(r.Of + " " + text.OneLine(value))
		}
	}
	return r
}
