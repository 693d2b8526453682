package ipmi

import (
	"fmt"
	"math"
	"strings"
	"time"

	"hwsagent/probes/hw"
)

// whole reports the machine as a whole in this round: its power comes from DCMI, or else from the sensors of the power supplies.
func (p *Probe) whole(now time.Time) hw.Report {
	machine := hw.Report{Component: hw.Component{Kind: hw.Host}}
	if p.machine != nil {
		machine.Facts = append(machine.Facts, hw.Serial, p.machine.serial)
	}
	machine.Facts = append(machine.Facts, hw.UUID, p.uuid)
	if !math.IsNaN(p.watts) {
		machine.Add(hw.HostPower, p.watts, hw.LabelQuality, hw.Measured)
	}
	parts := supplies(p.sensed)
	for i := range p.sensed {
		if p.sensed[i].Kind != hw.PowerSupply {
			parts = append(parts, p.sensed[i])
		}
	}
	return p.meter.Whole(now, machine, parts)
}

// supplies makes one report for each power supply that has sensors: its status, its input power and its output power. A power sensor
// whose name has the word out measures output, as in PSU2_POUT and PSU1 Power Out; any other, as PS1 Input Power, measures input.
func supplies(sensed []hw.Report) []hw.Report {
	var all []hw.Report
	index := map[string]int{}
	for i := range sensed {
		s := &sensed[i]
		if s.Kind != hw.PowerMeter && s.Kind != hw.PowerSupply || !strings.HasPrefix(s.Parent, "ipmi:power_supply.") {
			continue
		}
		n, there := index[s.Parent]
		if !there {
			n = len(all)
			index[s.Parent] = n
			all = append(all, hw.Report{Component: hw.Component{Kind: hw.PowerSupply, ID: s.Parent}})
		}
		if s.Kind == hw.PowerSupply {
			all[n].Status = all[n].Status.Join(s.Status)
			continue
		}
		metric := hw.Power
		if strings.Contains(strings.ToLower(s.Name), "out") {
			metric = hw.PowerSupplyUsage
		}
		if len(s.Readings) > 0 && s.Readings[0].Metric == hw.Power {
			all[n].Add(metric, s.Readings[0].Value)
		}
	}
	return all
}

// parseUUID parses a UUID in the byte order of SMBIOS (DSP0134, section 7.2.1), of IPMI (all bytes reversed, section 20.8) or of
// RFC 9562: the first order in which version and variant are valid; "" if there is none.
func parseUUID(b []byte) string {
	if len(b) < 16 {
		return ""
	}
	for _, order := range [...][16]int{
		{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15},
		{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	} {
		var u [16]byte
		for i, from := range order {
			u[i] = b[from]
		}
		if version := u[6] >> 4; version >= 1 && version <= 8 && u[8]&0xc0 == 0x80 {
			return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
		}
	}
	return ""
}
