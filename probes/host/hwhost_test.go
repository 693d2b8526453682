//go:build linux

package host

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// TestHostPower has the rounds of machines with different instruments, ten seconds apart.
func TestHostPower(t *testing.T) {
	nan := math.NaN()
	type round struct {
		meter, psys, battery, cpu float64 // watts, joules, watts, joules
		want                      string  // watts, joules, quality
	}
	for name, rounds := range map[string][]round{
		"a meter":    {{200, nan, nan, 5, "200 0 measured"}, {210, nan, nan, 905, "210 2100 measured"}, {nan, nan, nan, 1805, "100 3100 estimated"}},
		"a platform": {{nan, 1000, nan, nan, ""}, {nan, 1500, nan, nan, "50 500 measured"}, {nan, 100, nan, nan, ""}, {nan, 400, nan, nan, "30 800 measured"}},
		"a battery":  {{nan, nan, 12, nan, "12 0 measured"}, {nan, nan, 13, nan, "13 130 measured"}},
		"processors": {{nan, nan, nan, 1000, ""}, {nan, nan, nan, 1450, "50 500 estimated"}, {nan, nan, nan, 100, "50 1000 estimated"}, {nan, nan, nan, 190, "10 1100 estimated"}},
		"nothing":    {{nan, nan, nan, nan, ""}, {nan, nan, nan, nan, ""}},
		"idle":       {{nan, nan, nan, 0, ""}, {nan, nan, nan, 0, ""}},
		"no more":    {{nan, nan, nan, 0, ""}, {nan, nan, nan, 900, "100 1000 estimated"}, {nan, nan, nan, nan, ""}},
	} {
		now := time.Unix(1_700_000_000, 0)
		m := newMachine()
		h := newHardwareHost(&environment{settings: &settings{Config: Config{SysPath: t.TempDir()}}, now: func() time.Time { return now }, machine: m})
		for i, c := range rounds {
			m.begin()
			m.note(report(hw.Host, hw.HostPower, c.meter))
			m.note(report(hw.Host, hw.HostEnergy, c.psys))
			m.note(report(hw.Battery, hw.Power, -c.battery))
			if !math.IsNaN(c.cpu) {
				m.note(report(hw.CPU, hw.Energy, c.cpu))
			}
			r := probes.NewRound(0)
			err := h.read(t.Context(), r)
			var got []string
			for _, s := range r.Samples() {
				got = append(got, fmt.Sprintf("%.0f", s.Value))
				if s.Family.Name == "hw_host_energy_joules_total" {
					got = append(got, s.Labels[slices.Index(s.Labels, "hw_quality")+1])
				}
			}
			if text := strings.Join(got, " "); text != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%s, round %d: %q and %v, want %q", name, i, text, err, c.want)
			}
			now = now.Add(10 * time.Second)
		}
	}
}

func report(k hw.Kind, m hw.Metric, v float64) *hw.Report {
	p := &hw.Report{Component: hw.Component{Kind: k, ID: k.String()}}
	p.Add(m, v)
	return p
}

func TestHeatingMargin(t *testing.T) {
	m := newMachine()
	for _, c := range []struct{ now, low, high, want float64 }{
		{40, 0, 100, 60}, {70, 0, 80, 10}, {50, 60, 100, 10}, {90, 0, 85, -5}, {20, 0, 100, -5},
	} {
		p := report(hw.Temperature, hw.TemperatureNow, c.now)
		p.Add(hw.TemperatureLimit, c.low, lowCritical...)
		p.Add(hw.TemperatureLimit, c.high+10, highCritical...)
		p.Add(hw.TemperatureLimit, c.high, highDegraded...)
		m.note(p)
		if m.margin != c.want {
			t.Errorf("after %+v it is %v", c, m.margin)
		}
	}
	if m.begin(); !math.IsInf(m.margin, 1) {
		t.Errorf("a new round begins with %v", m.margin)
	}
}

// TestAlike has two components that cannot be told apart.
func TestAlike(t *testing.T) {
	m := newMachine()
	for range 2 { // rounds
		m.begin()
		r := probes.NewRound(0)
		for range 3 {
			m.add(r, report(hw.Fan, hw.FanSpeed, 900))
		}
		m.add(r, report(hw.Temperature, hw.TemperatureNow, 40))
		text := ofRound(t, r).String()
		for _, id := range []string{`hw_id="fan"`, `hw_id="fan#2"`, `hw_id="fan#3"`, `hw_id="temperature"`} {
			if !strings.Contains(text, id) {
				t.Errorf("%s is not in\n%s", id, text)
			}
		}
	}
}
