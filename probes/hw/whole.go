package hw

import (
	"math"
	"strings"
	"time"
)

// SupplyEfficiency is the ratio of output power to input power that 80 PLUS requires of a Gold power supply at half
// load.
const SupplyEfficiency = 0.9

// The values of hw_quality.
const (
	Measured  = "measured"
	Estimated = "estimated"
)

// maxGap is the longest time that one power reading may stand for: the energy during a longer gap is unknown.
const maxGap = 10 * time.Minute

// Meter integrates the energy of a machine from its power. The zero Meter starts at 0. It is not safe for concurrent
// use.
type Meter struct {
	before time.Time
	joules float64
}

// Add adds watts over a time of at most ten minutes, and returns the joules so far. It ignores values that cannot be
// the power of a machine: a falling counter would be read as a reset.
func (m *Meter) Add(gap time.Duration, watts float64) float64 {
	if !(watts > 0) || math.IsInf(watts, 1) {
		return m.joules
	}
	m.joules += watts * min(max(gap, 0), maxGap).Seconds()
	return m.joules
}

// Whole adds readings of the whole machine that follow from its parts: if missing, the power from the power supplies
// and the energy from the power over time; also the ambient temperature and the heating margin.
func (m *Meter) Whole(now time.Time, machine Report, parts []Report) Report {
	gap := now.Sub(m.before)
	if m.before.IsZero() {
		gap = 0
	}
	m.before = now
	watts, quality := math.NaN(), Measured
	energy := false
	for _, r := range machine.Readings {
		switch r.Metric {
		case HostPower:
			watts = r.Value
		case HostEnergy:
			energy = true
		}
	}
	machine.Kind = Host
	if math.IsNaN(watts) {
		if watts, quality = SuppliedPower(parts); quality != "" {
			machine.Add(HostPower, watts, LabelQuality, quality)
		}
	}
	if !energy && !math.IsNaN(watts) {
		machine.Add(HostEnergy, m.Add(gap, watts), LabelQuality, quality)
	}
	if around, ok := ambient(parts); ok {
		machine.Add(HostAmbient, around)
	}
	if margin, ok := heatingMargin(parts); ok {
		machine.Add(HostHeatingMargin, margin)
	}
	return machine
}

// SuppliedPower returns the power of a machine: the sum of the input power of its power supplies. It is measured if each working one reports
// its input power. It is estimated if one reports only its output power, which is divided by [SupplyEfficiency], or if a working one
// reports neither. If none reports any power, the quality is "" and the power is not a number.
func SuppliedPower(parts []Report) (watts float64, quality string) {
	reporting := 0
	quality = Measured
	for i := range parts {
		p := &parts[i]
		if p.Kind != PowerSupply {
			continue
		}
		in, takes := p.reading(Power)
		out, gives := p.reading(PowerSupplyUsage)
		switch {
		case takes:
			watts += in
		case gives:
			watts += out / SupplyEfficiency
			quality = Estimated
		case p.Status&(Failed|Unknown) == 0 && p.Status != 0:
			quality = Estimated
		}
		if takes || gives {
			reporting++
		}
	}
	if reporting == 0 || watts <= 0 {
		return math.NaN(), ""
	}
	return watts, quality
}

// reading returns the value of the first reading of a metric.
func (p *Report) reading(m Metric) (float64, bool) {
	for _, r := range p.Readings {
		if r.Metric == m {
			return r.Value, true
		}
	}
	return 0, false
}

// ambient returns the lowest temperature of the sensors named as being in the incoming air.
func ambient(parts []Report) (lowest float64, ok bool) {
	for i := range parts {
		p := &parts[i]
		name := strings.ToLower(p.Name)
		if p.Kind != Temperature || !strings.Contains(name, "inlet") && !strings.Contains(name, "ambient") && !strings.Contains(name, "intake") {
			continue
		}
		if v, there := p.reading(TemperatureNow); there && (!ok || v < lowest) {
			lowest, ok = v, true
		}
	}
	return lowest, ok
}

// heatingMargin returns the least distance of a temperature from one of its upper limits; negative if a limit is
// exceeded.
func heatingMargin(parts []Report) (margin float64, ok bool) {
	for i := range parts {
		p := &parts[i]
		v, there := p.reading(TemperatureNow)
		if p.Kind != Temperature || !there {
			continue
		}
		for _, r := range p.Readings {
			if r.Metric != TemperatureLimit || len(r.Attributes) < 2 || !strings.HasPrefix(r.Attributes[len(r.Attributes)-1], "high.") {
				continue
			}
			if d := r.Value - v; !ok || d < margin {
				margin, ok = d, true
			}
		}
	}
	return margin, ok
}
