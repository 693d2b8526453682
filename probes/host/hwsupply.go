package host

import (
	"strings"

	"hwsagent/probes/hw"
)

// supplyChips are the names of power supplies among the chips of the kernel's PMBus drivers (Documentation/hwmon/acbel-fsg032.rst,
// bel-pfe.rst, bpa-rs600.rst, crps.rst, dps920ab.rst, fsp-3y.rst, hac300s.rst, ibm-cffps.rst, inspur-ipsps1.rst, and the table of IDs in
// drivers/hwmon/pmbus/pmbus.c). Most other chips of these drivers regulate the voltage of a processor.
const supplyChips = " acbel_fsg032 pfe1100 pfe3000 bpa-rs600 bpd-rs600 intel_crps185 dps460 dps650ab dps800 dps920ab ym2151e yh5151e hac300s cffps1 cffps2 ipsps1 "

// mains is the voltage, in volts, from which an input is that of a power supply, whatever its chip is called: a chip that was made known by
// hand is called pmbus.
const mains = 90

// isSupply reports whether a chip is in a power supply: by its name, or by the voltage of its input or one of its limits, which stay when the
// supply loses its input.
func isSupply(chip string, sensors []sensor) bool {
	if chip != "" && strings.Contains(supplyChips, " "+chip+" ") {
		return true
	}
	for i := range sensors {
		if s := &sensors[i]; s.kind == "in" && s.labelled("vin") {
			for _, name := range [...]string{"input", "lcrit", "min", "max", "crit", "rated_max"} {
				if v, ok := s.number(name, 1e3); ok && v >= mains {
					return true
				}
			}
		}
	}
	return false
}

// labelled reports whether a sensor's label is the word or, as with pout1, the word and a number. The phases of an output, such as pout1.2,
// are a part of its value.
func (s *sensor) labelled(word string) bool {
	label := s.find("label")
	if label == nil {
		return false
	}
	rest, ok := strings.CutPrefix(label.value, word)
	return ok && strings.Trim(rest, "0123456789") == ""
}

// supplyReport returns the supply that a chip is in, with the power that it takes (pin) and gives (pout; the labels are those of
// Documentation/hwmon/pmbus.rst). A supply that lost its input is degraded: the machine still runs. Another critical alarm is a failure.
func supplyReport(chip, id string, sensors []sensor) hw.Report {
	p := hw.Report{Component: hw.Component{Kind: hw.PowerSupply, ID: id, Name: chip, Parent: enclosureID, Facts: []string{hw.DriverName, chip}}}
	in, out, rated := -1.0, -1.0, -1.0
	for i := range sensors {
		s := &sensors[i]
		k := sensorKinds[s.kind]
		if k == nil {
			continue
		}
		v, ok := s.number("input", k.div)
		st := s.status(k, v, ok, s.limits(k))
		input := s.labelled("vin") || s.labelled("iin") || s.labelled("pin")
		if st.Is(hw.Failed) && input {
			st = hw.Degraded
		}
		if st != hw.Unknown { // of a sensor, not of the supply
			p.Status = p.Status.Join(st)
		}
		switch most, known := s.number("rated_max", k.div); {
		case !ok || s.kind != "power":
		case input:
			in = max(in, 0) + v
		case s.labelled("pout"):
			out = max(out, 0) + v
			if known {
				rated = max(rated, 0) + most
			}
		}
	}
	if in >= 0 {
		p.Add(hw.Power, in)
	}
	if out >= 0 {
		p.Add(hw.PowerSupplyUsage, out)
	}
	if rated > 0 {
		p.Add(hw.PowerSupplyLimit, rated, limitMax...)
		p.Add(hw.PowerSupplyUtilization, out/rated)
	}
	return p
}
