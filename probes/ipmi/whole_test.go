package ipmi

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"hwsagent/probes/hw"
)

func TestParseUUID(t *testing.T) {
	const rfc = "4c4c454400314f08" + "8052b4c04f304a32"
	const want = "4c4c4544-0031-4f08-8052-b4c04f304a32"
	plain, err := hex.DecodeString(rfc)
	if err != nil {
		t.Fatal(err)
	}
	smbios := slices.Clone(plain)
	slices.Reverse(smbios[:4])
	slices.Reverse(smbios[4:6])
	slices.Reverse(smbios[6:8])
	backwards := slices.Clone(plain)
	slices.Reverse(backwards)
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"SMBIOS": {smbios, want}, "IPMI": {backwards, want}, "RFC": {plain, want}, "more bytes": {append(slices.Clone(smbios), 1), want},
		"short": {plain[:15], ""}, "none": {nil, ""}, "zeroes": {make([]byte, 16), ""}, "not set": {slices.Repeat([]byte{0xff}, 16), ""},
	} {
		if got := parseUUID(c.b); got != c.want {
			t.Errorf("%s is %q, want %q", name, got, c.want)
		}
	}
}

// TestWhole has BMCs with DCMI, with sensors of their power supplies, and with neither.
func TestWhole(t *testing.T) {
	meter := func(name, parent string, watts float64) hw.Report {
		p := hw.Report{Component: hw.Component{Kind: hw.PowerMeter, ID: name, Name: name, Parent: parent}}
		p.Add(hw.Power, watts)
		return p
	}
	state := func(parent string, st hw.Status) hw.Report {
		return hw.Report{Status: st, Component: hw.Component{Kind: hw.PowerSupply, Parent: parent}}
	}
	const one, two = "ipmi:power_supply.1", "ipmi:power_supply.2"
	for name, c := range map[string]struct {
		dcmi   float64
		sensed []hw.Report
		want   string
	}{
		"DCMI":            {200, []hw.Report{meter("PS1 Input Power", one, 90)}, "200 measured"},
		"inputs":          {math.NaN(), []hw.Report{meter("PS1 Input Power", one, 90), meter("PS1 Output Power", one, 80), meter("PSU2_PIN", two, 60)}, "150 measured"},
		"an output":       {math.NaN(), []hw.Report{meter("PS1 Input Power", one, 90), meter("PSU2_POUT", two, 90)}, "190 estimated"},
		"of a processor":  {math.NaN(), []hw.Report{meter("CPU1 Power", "ipmi:processor.1", 90)}, ""},
		"no sensor reads": {math.NaN(), []hw.Report{{Component: hw.Component{Kind: hw.PowerMeter, Parent: one}}}, ""},
		"states beside":   {math.NaN(), []hw.Report{meter("PS1 Power", one, 90), state(one, hw.OK), state("ipmi:power_unit.1", hw.OK)}, "90 measured"},
		"one is silent":   {math.NaN(), []hw.Report{meter("PS1 Power", one, 90), state(two, hw.OK)}, "90 estimated"},
		"one failed":      {math.NaN(), []hw.Report{meter("PS1 Power", one, 90), state(two, hw.Failed)}, "90 measured"},
		"nothing":         {math.NaN(), nil, ""},
	} {
		p := &Probe{watts: c.dcmi, sensed: c.sensed, uuid: "u", machine: &product{serial: "s"}}
		got := p.whole(time.Unix(1_700_000_000, 0))
		said := ""
		for _, r := range got.Readings {
			if r.Metric == hw.HostPower {
				said = strings.TrimSpace(fmt.Sprint(r.Value, " ", r.Attributes[1]))
			}
		}
		if said != c.want || !slices.Equal(got.Facts, []string{hw.Serial, "s", hw.UUID, "u"}) {
			t.Errorf("%s gives %q of %q, want %q", name, said, got.Facts, c.want)
		}
	}
}
