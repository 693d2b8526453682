package library

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/probes/hw"
)

// tree has a variable for each line: OID, blank, number, text in quotes, or the word octets and hexadecimal digits.
func tree(t *testing.T, lines string) *Tree {
	t.Helper()
	var vars []Variable
	for line := range strings.Lines(lines) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		o, err := ParseOID(name)
		if err != nil {
			t.Fatal(err)
		}
		v := Variable{OID: o}
		if digits, ok := strings.CutPrefix(value, "octets "); ok {
			if v.Octets, err = hex.DecodeString(digits); err != nil {
				t.Fatal(err)
			}
		} else if _, err := fmt.Sscanf(value, "%g", &v.Number); err == nil {
			v.Numeric = true
		} else {
			v.Text = strings.Trim(value, `"`)
		}
		vars = append(vars, v)
	}
	return NewTree(vars)
}

// evaluated is what a definition makes of the variables, a line for each component.
func evaluated(t *testing.T, values, lines string) string {
	t.Helper()
	d, err := Parse("f.yaml", []byte(values))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range (&Device{definitions: []*Definition{d}}).Evaluate(tree(t, lines)).Reports {
		fmt.Fprintf(&b, "%s %q %q<%q %s", p.Kind, p.ID, p.Name, p.Parent, p.Status)
		for _, r := range p.Readings {
			fmt.Fprintf(&b, " %s%v=%v", r.Metric.Family().Name, r.Attributes, r.Value)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestEvaluate(t *testing.T) {
	const e = "1.3.6.1.4.1.1.2.1."
	for _, c := range []struct{ name, values, lines, want string }{
		{"a scale that is divided by, an offset, a limit, a place", `  - {object: o, column: 3, metric: temperature, scale: 0.1, offset: 1, at: inlet}
  - {object: p, column: 4, metric: temperature, limit: high.critical}`, e + "3.1 235\n" + e + "4.1 80",
			`module "d/Module 1" "Module 1"<""  hw_temperature_celsius[hw_sensor_location inlet]=24.5 hw_temperature_limit_celsius[hw_limit_type high.critical]=80`},
		{"numbers in texts", `  - {object: o, column: 3, metric: voltage}`, e + `3.1 "+12.5 V"` + "\n" + e + `3.2 "N/A"` + "\n" + e + `3.3 "1.2.3"` + "\n" + e + `3.4 "-3"`,
			`module "d/Module 1" "Module 1"<""  hw_voltage_volts[]=12.5` + "\n" + `module "d/Module 4" "Module 4"<""  hw_voltage_volts[]=-3`},
		{"values that say nothing", `  - {object: o, column: 3, metric: voltage, not: [-1, x(7)], least: -5, most: 100}`,
			e + "3.1 -1\n" + e + "3.2 7\n" + e + "3.3 101\n" + e + "3.4 -6\n" + e + "3.5 5", `module "d/Module 5" "Module 5"<""  hw_voltage_volts[]=5`},
		{"states: the worse counts, texts without case, others", `  - {object: o, column: 3, states: {up(1): ok, down(2): failed, Bad: failed, gone(3): none}}
  - {object: p, column: 4, states: {a(1): degraded}, other: ok}`,
			e + "3.1 1\n" + e + "4.1 1\n" + e + `3.2 "bad"` + "\n" + e + "3.3 9\n" + e + "4.4 8\n" + e + "3.5 3",
			`module "d/Module 1" "Module 1"<"" degraded` + "\n" + `module "d/Module 2" "Module 2"<"" failed` + "\n" + `module "d/Module 3" "Module 3"<"" unknown` + "\n" + `module "d/Module 4" "Module 4"<"" ok`},
		{"bits: the worst that is set, ok without any, no component without octets", `  - {object: o, column: 3, bits: {low(2): degraded, jammed(5): failed, duplex(6): none, late(14): degraded}}`,
			e + "3.1 octets 00\n" + e + "3.2 octets 20\n" + e + "3.3 octets 24\n" + e + "3.4 octets 0202\n" + e + "3.5 octets 02\n" + e + "3.6 octets 000004\n" + e + "3.7 4\n" + e + "3.8 octets ",
			`module "d/Module 1" "Module 1"<"" ok` + "\n" + `module "d/Module 2" "Module 2"<"" degraded` + "\n" + `module "d/Module 3" "Module 3"<"" failed` + "\n" + `module "d/Module 4" "Module 4"<"" degraded` + "\n" +
				`module "d/Module 5" "Module 5"<"" ok` + "\n" + `module "d/Module 6" "Module 6"<"" ok`},
		{"a sensor is a component of its own", `  - {object: o, column: 3, states: {up(1): ok}}
  - {object: p, column: 4, metric: fan_speed, sensor: "fan {2}"}`, e + "3.1 1\n" + e + "4.1 900\n" + e + `2.1 "left"`,
			`module "d/Module 1" "Module 1"<"" ok` + "\n" + `fan "d/Module 1 fan left" "Module 1 fan left"<"d/Module 1"  hw_fan_speed_rpm[]=900`},
		{"metric, scale and precision by row", `  - object: o
    column: 3
    metric_by: {column: 4, is: {v(1): voltage, c(2): temperature}}
    scale_by: {column: 5, is: {milli(1): 1e-3, one(2): 1}}
    precision_by: 6`, e + "3.1 12345\n" + e + "4.1 1\n" + e + "5.1 1\n" + e + "6.1 1\n" + e + "3.2 235\n" + e + "4.2 2\n" + e + "5.2 2\n" + e + "6.2 1\n" + e + "3.3 1\n" + e + "4.3 9\n" + e + "5.3 1",
			`voltage "d/Voltage 1" "Voltage 1"<""  hw_voltage_volts[]=1.2345` + "\n" + `temperature "d/Temperature 2" "Temperature 2"<""  hw_temperature_celsius[]=23.5`},
		{"rows by a condition", `  - {object: o, column: 3, metric: power, only: {4: [yes(1)]}}
  - {object: p, column: 5, metric: voltage, unless: {4: [yes(1)]}}`, e + "3.1 1\n" + e + "4.1 1\n" + e + "5.1 2\n" + e + "3.2 3\n" + e + "5.2 4",
			`module "d/Module 1" "Module 1"<""  hw_power_watts[]=1` + "\n" + `module "d/Module 2" "Module 2"<""  hw_voltage_volts[]=4`},
		{"conversions, and a wrapped number", `  - {object: o, column: 3, metric: temperature, from: fahrenheit}
  - {object: p, column: 4, metric: optical, scale: 0.0001, from: milliwatts}
  - {object: q, column: 5, metric: voltage, signed: true}`, e + "3.1 212\n" + e + "4.1 10000\n" + e + "4.2 0\n" + e + "5.1 4294967291",
			`module "d/Module 1" "Module 1"<""  hw_temperature_celsius[]=100 hw_optical_power_dbm[]=0 hw_voltage_volts[]=-5`},
		{"rows by tests on a column, on the index and on another table", `  - {object: o, column: 3, metric: power, only: [{4: {least: 2}}, {4: {most: 9}}], unless: {4: {above: 5, below: 8}}}
  - {object: p, column: 5, metric: power, only: {"#": [2]}}
  - {object: q, column: 6, metric: power, only: {"1.3.6.1.4.1.1.9.1[]": {matches: "^No"}}, unless: {7: {exists: true}}}`,
			"1.3.6.1.4.1.1.9.1 \"north\"\n" + e + "3.1 1\n" + e + "4.1 1\n" + e + "3.2 2\n" + e + "4.2 2\n" + e + "3.3 3\n" + e + "4.3 6\n" + e + "3.4 4\n" + e + `4.4 "9 W"` + "\n" + e + "3.5 5\n" + e +
				"5.1 1\n" + e + "5.2 5\n" + e + "6.3 1\n" + e + "7.3 1\n" + e + "6.5 2",
			`module "d/Module 2" "Module 2"<""  hw_power_watts[]=2` + "\n" + `module "d/Module 4" "Module 4"<""  hw_power_watts[]=4` + "\n" + `module "d/Module 5" "Module 5"<""  hw_power_watts[]=2`},
		{"a condition on what the device lacks", `  - {object: o, column: 3, metric: power, only: {4: {exists: false}}}
  - {object: p, column: 5, metric: power, only: {4: {matches: "."}}}`, e + "3.1 1\n" + e + "3.2 2\n" + e + "4.2 1\n" + e + "5.1 3",
			`module "d/Module 1" "Module 1"<""  hw_power_watts[]=1`},
		{"texts in Fahrenheit", `  - {object: o, column: 3, metric: temperature}
  - {object: p, column: 4, metric: voltage}`, e + `3.1 "212 F"` + "\n" + e + `3.2 "21.5 C"` + "\n" + e + `4.3 "3 F"`,
			`module "d/Module 1" "Module 1"<""  hw_temperature_celsius[]=100` + "\n" + `module "d/Module 2" "Module 2"<""  hw_temperature_celsius[]=21.5` + "\n" + `module "d/Module 3" "Module 3"<""  hw_voltage_volts[]=3`},
	} {
		got := evaluated(t, head+c.values, c.lines)
		if d := cmp.Diff(c.want+"\n", got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestGroupsOfOneComponent(t *testing.T) {
	text := strings.Replace(head, "  kind: module\n", "  kind: battery\n  name: B\n  scalar: true\n", 1) + `  - {object: o, column: 1, states: {1: ok}}
- table: u
  entry: 1.3.6.1.4.1.1.2.2
  kind: battery
  name: B
  scalar: true
  values: [{object: p, column: 1, metric: charge, scale: 0.01}, {object: q, column: 2, states: {1: degraded}}]
`
	got := evaluated(t, text, "1.3.6.1.4.1.1.2.1.1.0 1\n1.3.6.1.4.1.1.2.2.1.0 87\n1.3.6.1.4.1.1.2.2.2.0 1")
	if want := `battery "d/B" "B"<"" degraded hw_battery_charge_ratio[]=0.87` + "\n"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

func TestIDs(t *testing.T) {
	values := strings.Replace(head, "  kind: module\n", "  kind: module\n  name: 'S {2}'\n", 1) + "  - {object: o, column: 3, metric: power}"
	const e = "1.3.6.1.4.1.1.2.1."
	got := evaluated(t, values, e+`2.1 "a"`+"\n"+e+`2.2 "a"`+"\n"+e+`2.3 "b"`+"\n"+e+"3.1 1\n"+e+"3.2 1\n"+e+"3.3 1")
	want := `module "d/S a 1" "S a 1"<""  hw_power_watts[]=1` + "\n" + `module "d/S a 2" "S a 2"<""  hw_power_watts[]=1` + "\n" + `module "d/S b" "S b"<""  hw_power_watts[]=1` + "\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestRefused: placeholders and impossible values are no readings but named; a wrapped number is the negative one; a limit that is not set
// is left out.
func TestRefused(t *testing.T) {
	d, err := Parse("f.yaml", []byte(strings.Replace(head, "kind: module", "kind: fan", 1)+`  - {object: o, column: 3, metric: temperature}
  - {object: p, column: 4, metric: voltage, scale: 0.1}
  - {object: q, column: 5, metric: fan_speed}
  - {object: r, column: 6, metric: temperature, limit: high.critical}`))
	if err != nil {
		t.Fatal(err)
	}
	const e = "1.3.6.1.4.1.1.2.1."
	for lines, want := range map[string]string{
		e + "3.1 4294967168": "hw_temperature_celsius 4294967168 refused", e + "3.1 -866597556": "hw_temperature_celsius -866597556 refused",
		e + "3.1 4294967291": "hw_temperature_celsius -5", e + "3.1 65531": "hw_temperature_celsius -5", e + "3.1 -128": "hw_temperature_celsius -128 refused",
		e + "4.1 65535": "hw_voltage_volts 6553.5 refused", e + "4.1 -32768": "hw_voltage_volts -3276.8 refused", e + "4.1 2312": "hw_voltage_volts 231.2",
		e + "5.1 32767": "hw_fan_speed_rpm 32767 refused", e + "5.1 42": "hw_fan_speed_rpm 42 refused", e + "5.1 0": "hw_fan_speed_rpm 0",
		e + "3.1 20\n" + e + "6.1 65535": "hw_temperature_celsius 20",
	} {
		got := []string{}
		result := (&Device{definitions: []*Definition{d}}).Evaluate(tree(t, lines))
		for _, p := range result.Reports {
			for _, r := range p.Readings {
				got = append(got, fmt.Sprintf("%s %.10g", r.Metric.Family().Name, r.Value))
			}
			for _, r := range p.Refused {
				got = append(got, fmt.Sprintf("%s %.10g refused", r.Metric.Family().Name, r.Value))
			}
			if len(result.Findings) != len(p.Readings) {
				t.Errorf("%s: %d findings", lines, len(result.Findings))
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s is %v, want %s", lines, got, want)
		}
	}
}

// TestOneComponentOfTwoTables: rows of one kind, name and index are one component, whatever state is in the name; the first table's reading
// counts.
func TestOneComponentOfTwoTables(t *testing.T) {
	text := strings.Replace(head, "  kind: module\n", "  kind: temperature\n  name: '{2}'\n", 1) + `  - {object: o, column: 3, metric: temperature}
  - {object: s, column: 4, states: {1: ok, 2: failed}}
- table: u
  entry: 1.3.6.1.4.1.1.2.2
  kind: temperature
  name: "{2}"
  values: [{object: p, column: 1, metric: temperature, scale: 0.001}, {object: q, column: 3, metric: temperature, limit: high.critical}]
`
	const first, second = "1.3.6.1.4.1.1.2.1.", "1.3.6.1.4.1.1.2.2."
	for _, c := range []struct{ in, state string }{{"Switch 1 - Inlet, GREEN", "ok"}, {"Switch 1 - Inlet, RED", "failed"}} {
		number := map[string]string{"ok": "1", "failed": "2"}[c.state]
		got := evaluated(t, text, first+`2.7 "`+c.in+`"`+"\n"+first+"3.7 25\n"+first+"4.7 "+number+"\n"+second+`2.7 "Switch 1 - Inlet"`+"\n"+second+"1.7 25\n"+second+"3.7 56")
		want := `temperature "d/Switch 1 - Inlet" "Switch 1 - Inlet"<"" ` + c.state + " hw_temperature_celsius[]=25 hw_temperature_limit_celsius[hw_limit_type high.critical]=56\n"
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// TestKinds: of a row by a column, of a part without a kind of its own by its name, of a state's own component by its name.
func TestKinds(t *testing.T) {
	const e = "1.3.6.1.4.1.1.2.1."
	named := strings.Replace(head, "  kind: module\n", "  kind: module\n  name: '{2}'\n", 1)
	got := evaluated(t, named+"  - {object: o, column: 3, states: {1: ok}}\n  - {object: p, column: 4, states: {1: ok}, sensor: 'PSU 2'}",
		e+`2.1 "Fan Tray 1"`+"\n"+e+"3.1 1\n"+e+`2.2 "Power supply fan"`+"\n"+e+"3.2 1\n"+e+`2.3 "Slot"`+"\n"+e+"3.3 1\n"+e+"4.3 1")
	want := `fan "d/Fan Tray 1" "Fan Tray 1"<"" ok` + "\n" + `module "d/Power supply fan" "Power supply fan"<"" ok` + "\n" + `module "d/Slot" "Slot"<"" ok` + "\n" +
		`power_supply "d/Slot PSU 2" "Slot PSU 2"<"d/Slot" ok` + "\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	byColumn := strings.Replace(head, "  kind: module\n", "  kind_by: {column: 6, is: {fan(12): fan, power(6): power_supply}}\n", 1)
	got = evaluated(t, byColumn+"  - {object: o, column: 3, states: {1: ok}}", e+"3.1 1\n"+e+"6.1 12\n"+e+"3.2 1\n"+e+"6.2 6\n"+e+"3.3 1\n"+e+"6.3 1")
	want = `fan "d/Fan 1" "Fan 1"<"" ok` + "\n" + `power_supply "d/Power supply 2" "Power supply 2"<"" ok` + "\n" + `module "d/Module 3" "Module 3"<"" ok` + "\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestUnlessAll: rows that meet all conditions are left out.
func TestUnlessAll(t *testing.T) {
	const e = "1.3.6.1.4.1.1.2.1."
	got := evaluated(t, head+"  - {object: o, column: 3, metric: voltage, unless_all: {4: [1], 5: {matches: x}}}",
		e+"3.1 230\n"+e+"4.1 1\n"+e+`5.1 "x"`+"\n"+e+"3.2 230\n"+e+"4.2 1\n"+e+`5.2 "y"`+"\n"+e+"3.3 231")
	if want := `module "d/Module 2" "Module 2"<""  hw_voltage_volts[]=230` + "\n" + `module "d/Module 3" "Module 3"<""  hw_voltage_volts[]=231` + "\n"; got != want {
		t.Errorf("%s", got)
	}
	if _, err := Parse("f.yaml", []byte(head+"  - {object: o, column: 3, metric: voltage, unless_all: {4: [1]}}")); err == nil || !strings.Contains(err.Error(), "two or more") {
		t.Errorf("%v", err)
	}
}

// TestNamelessRows: rows to which the device gives no name are called by kind and index, and those of two tables stay two components.
func TestNamelessRows(t *testing.T) {
	const fans = "\n- table: %s\n  entry: 1.3.6.1.4.1.1.2.%d\n  kind: power_supply\n  name: '{2}'\n  values: [{object: p, column: 1, metric: load}]"
	first := strings.Replace(head, "  kind: module\n", "  kind: power_supply\n  name: '{2}'\n", 1) + "  - {object: o, column: 3, metric: load}" + fmt.Sprintf(fans, "u", 2)
	second := "definition: e\nmib: M\ndetect: [{always: true}]\ntables:" + fmt.Sprintf(fans, "v", 3)
	const e = "1.3.6.1.4.1.1.2."
	all := loaded(t, first, second).Recognise(Identity{ObjectID: "1.3.6.1.4.1.1"}).Evaluate(tree(t, e+"1.3.4 1\n"+e+"2.1.4 1\n"+e+"3.1.4 1\n"+e+`3.2.5 "Fan tray 5"`+"\n"+e+"3.1.5 1")).Reports
	var got []string
	for _, r := range all {
		got = append(got, r.Kind.String()+" "+r.ID+" = "+r.Name)
	}
	want := []string{"power_supply d/Power supply 4 = Power supply 4", "power_supply d/Power supply 4#4 = Power supply 4", "power_supply e/Power supply 4 = Power supply 4", "fan e/Fan tray 5 = Fan tray 5"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestComponentOfTwoDefinitions: one kind and name in two definitions is one component, with the first one's reading.
func TestComponentOfTwoDefinitions(t *testing.T) {
	second := "definition: e\nmib: M\ndetect: [{always: true}]\ntables:\n- table: u\n  entry: 1.3.6.1.4.1.1.2.2\n  kind: fan\n  name: '{2}'\n  values: [{object: p, column: 1, metric: fan_speed}]"
	first := strings.Replace(head, "  kind: module\n", "  kind: fan\n  name: '{2}'\n", 1) + "  - {object: o, column: 3, metric: fan_speed}\n  - {object: s, column: 4, states: {1: ok}}"
	const e, f = "1.3.6.1.4.1.1.2.1.", "1.3.6.1.4.1.1.2.2."
	all := loaded(t, first, second).Recognise(Identity{ObjectID: "1.3.6.1.4.1.1"}).Evaluate(tree(t, e+`2.1 "fan1"`+"\n"+e+"3.1 5000\n"+e+"4.1 1\n"+f+`2.9 "fan1"`+"\n"+f+"1.9 5010\n"+f+`2.8 "fan2"`+"\n"+f+"1.8 600")).Reports
	if len(all) != 2 || all[0].ID != "d/fan1" || len(all[0].Readings) != 1 || all[0].Readings[0].Value != 5000 || all[1].ID != "e/fan2" {
		t.Errorf("%+v", all)
	}
}

// TestWithoutState: a state is cut off a name, and a word that belongs to the name is not.
func TestWithoutState(t *testing.T) {
	for name, want := range map[string]string{
		"SW#1, Sensor#1, GREEN": "SW#1, Sensor#1", "Sw1, PS1 Normal, RPS NotExist": "Sw1, PS1, RPS", "Power Supply B, Not Present": "Power Supply B",
		"Sw1, PSB Faulty": "Sw1, PSB", "Fan 1 is normal": "Fan 1", "Temp: OK": "Temp", "System Board PS1 PG Fail": "System Board PS1 PG Fail",
		"Power Good": "Power Good", "Normal": "Normal", ", OK": ", OK", "LED red": "LED red", "Redundancy, Greenfield": "Redundancy, Greenfield",
	} {
		if got := withoutState(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestTemplate(t *testing.T) {
	tb := &table{entry: OID{1, 3, 6, 1, 4, 1, 1, 2, 1}}
	r := row{tree: tree(t, "1.3.6.1.4.1.1.2.1.2.5.65 \" a  b \"\n1.3.6.1.4.1.1.2.1.4.5.65 9\n1.3.6.1.2.1.2.2.1.2.9 \"eth\"\n1.3.6.1.2.1.2.2.1.3.5 \"five\"\n1.3.6.1.2.1.2.2.1.4.65 \"last\""), table: tb, index: OID{5, 65}}
	for text, want := range map[string]string{
		"plain": "plain", "{2}": "a b", "x {3} y": "x y", "{3|2}": "a b", "{#}": "5.65", "{#1}/{#2}": "5/65", "{#7}": "", "{#text}": "5.65",
		"{1.3.6.1.2.1.2.2.1.2@4}": "eth", "{1.3.6.1.2.1.2.2.1.3[1]}": "five", "{1.3.6.1.2.1.2.2.1.4[2:]}": "last", "{1.3.6.1.2.1.2.2.1.2@2}": "",
		"{1.3.6.1.2.1.2.2.1.4[2:2]}": "last", "{1.3.6.1.2.1.2.2.1.2.9[]}": "eth", "{2[1:2]}": "a b", "{2[1:9]}": "a b",
	} {
		m, err := parseTemplate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := m.render(r); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
	if got := indexText(OID{2, 65, 66}); got != "AB" {
		t.Errorf("an index with its length is %q", got)
	}
}

func TestRecognise(t *testing.T) {
	l := &Library{byName: map[string]*Definition{}}
	for _, text := range []string{
		"definition: a\nvendor: A\ndetect: [{sysObjectID: 1.3.6.1.4.1.1, family: general}, {sysObjectID: 1.3.6.1.4.1.1, sysDescr: 'special', family: special}, {sysObjectID: [1.3.6.1.4.1.1.7], family: seven}]",
		"definition: b\nvendor: B\ndetect: [{present: 1.3.6.1.4.1.2, family: b}]\nincludes: [c]",
		"definition: c\nincludes: [b]",
		"definition: s\ndetect: [{always: true}]",
		"definition: z\ndetect: [{sysObjectID: 1.3.6.1.4.1.3}]\nreplaces: s",
	} {
		d, err := Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		l.definitions, l.byName[d.Name] = append(l.definitions, d), d
	}
	for _, c := range []struct {
		id     Identity
		family string
		has    string
	}{
		{Identity{ObjectID: "1.3.6.1.4.1.1.3", Descr: "x"}, "general", "a s"},
		{Identity{ObjectID: ".1.3.6.1.4.1.1.3", Descr: "a Special one"}, "special", "a s"},
		{Identity{ObjectID: "1.3.6.1.4.1.1.7.9", Descr: "special"}, "seven", "a s"},
		{Identity{ObjectID: "1.3.6.1.4.1.11"}, "", "s"},
		{Identity{ObjectID: "rubbish", Present: map[string]string{"1.3.6.1.4.1.2": "x"}}, "b", "c b s"},
		{Identity{ObjectID: "1.3.6.1.4.1.1", Present: map[string]string{"1.3.6.1.4.1.2": "x"}}, "general", "a c b s"},
		{Identity{ObjectID: "1.3.6.1.4.1.3.1"}, "", "z"},
	} {
		dev := l.Recognise(c.id)
		var names []string
		for _, d := range dev.definitions {
			names = append(names, d.Name)
		}
		if dev.Family != c.family || strings.Join(names, " ") != c.has {
			t.Errorf("%+v is %q with %v, want %q with %s", c.id, dev.Family, names, c.family, c.has)
		}
	}
}

// loaded is a library of these definitions only.
func loaded(t *testing.T, texts ...string) *Library {
	t.Helper()
	l := &Library{byName: map[string]*Definition{}}
	for _, text := range texts {
		d, err := Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		l.definitions, l.byName[d.Name] = append(l.definitions, d), d
	}
	return l
}

// TestRecogniseByMore: patterns, values of objects, conditions that must not hold, and the order of filling definitions.
func TestRecogniseByMore(t *testing.T) {
	l := loaded(t,
		"definition: a\nfills: true\nvendor: A\ndetect: [{sysObjectID: 1.3.6.1.4.1.1, family: a, unless: [{sysDescr: not this}, {present: 1.3.6.1.4.1.5, value: '^off'}]}]",
		"definition: b\nfills: true\none_of: g\nrank: 2\nvendor: B\ndetect: [{sysObjectID: 1.3.6.1.4.1.2.3, family: b}]",
		"definition: c\nfills: true\none_of: g\nrank: 1\nvendor: C\ndetect: [{sysObjectID: 1.3.6.1.4.1.2, family: c}, {sysObjectID_pattern: '^1\\.3\\.6\\.1\\.4\\.1\\.[67]$', family: p}]",
		"definition: d\nfills: true\none_of: h\nvendor: D\ndetect: [{sysObjectID: 1.3.6.1.4.1.2, family: short}]",
		"definition: e\nfills: true\none_of: h\nvendor: E\ndetect: [{sysObjectID: 1.3.6.1.4.1.2.3, family: long}]",
		"definition: f\nvendor: F\ndetect: [{present: 1.3.6.1.4.1.5, value: 'on$'}]",
		"definition: n\nfills: true\nvendor: N\ndetect: [{sysObjectID_pattern: '^$', family: none}]",
	)
	on, off := map[string]string{"1.3.6.1.4.1.5": "switched on"}, map[string]string{"1.3.6.1.4.1.5": "OFF"}
	for _, c := range []struct {
		id                  Identity
		vendor, family, has string
	}{
		{Identity{ObjectID: "1.3.6.1.4.1.1.1"}, "A", "a", "a"},
		{Identity{ObjectID: "1.3.6.1.4.1.1.1", Descr: "Not this"}, "", "", ""},
		{Identity{ObjectID: "1.3.6.1.4.1.1.1", Present: off}, "", "", ""},
		{Identity{ObjectID: "1.3.6.1.4.1.1.1", Present: on}, "F", "a", "f a"},
		{Identity{ObjectID: "1.3.6.1.4.1.2.3"}, "E", "long", "e c"},
		{Identity{ObjectID: "1.3.6.1.4.1.2.4"}, "D", "short", "d c"},
		{Identity{ObjectID: ".1.3.6.1.4.1.7"}, "C", "p", "c"},
		{Identity{ObjectID: "1.3.6.1.4.1.7.1"}, "", "", ""},
		{Identity{}, "N", "none", "n"},
	} {
		dev := l.Recognise(c.id)
		var names []string
		for _, d := range dev.definitions {
			names = append(names, d.Name)
		}
		if dev.Vendor != c.vendor || dev.Family != c.family || strings.Join(names, " ") != c.has {
			t.Errorf("%+v is %q %q with %v, want %q %q with %s", c.id, dev.Vendor, dev.Family, names, c.vendor, c.family, c.has)
		}
	}
	// What nothing depends on is not asked: of a device of A, whether it is off; of any, whether it is on.
	l = loaded(t, "definition: a\ndetect: [{sysObjectID: 1.3.6.1.4.1.1, unless: [{sysDescr: x, present: 1.3.6.1.4.1.5}, {present: 1.3.6.1.4.1.6}]}]",
		"definition: b\ndetect: [{present: 1.3.6.1.4.1.7}, {sysDescr: x, present: 1.3.6.1.4.1.8, value: v}]")
	for _, c := range []struct{ objectID, descr, want string }{
		{"1.3.6.1.4.1.1.1", "x", "[1.3.6.1.4.1.5 1.3.6.1.4.1.6 1.3.6.1.4.1.7 1.3.6.1.4.1.8]"}, {"1.3.6.1.4.1.1.1", "y", "[1.3.6.1.4.1.6 1.3.6.1.4.1.7]"},
		{"1.3.6.1.4.1.2", "y", "[1.3.6.1.4.1.7]"}, {"", "", "[1.3.6.1.4.1.7]"},
	} {
		if got := fmt.Sprint(l.Questions(Identity{ObjectID: c.objectID, Descr: c.descr})); got != c.want {
			t.Errorf("%q %q asks %s, want %s", c.objectID, c.descr, got, c.want)
		}
	}
}

// TestFills: a filling definition skips objects that another one has read, with their limits, row by row.
func TestFills(t *testing.T) {
	const fill = `definition: g
fills: true
mib: M-MIB
detect: [{always: true}]
tables:
- table: u
  entry: 1.3.6.1.4.1.1.2.1
  kind: temperature
  name: "filled {#}"
  facts: {model: "{9}"}
  values:
  - {object: o, column: 3, metric: temperature}
  - {object: l, column: 5, metric: temperature, limit: high.critical}
  - {object: s, column: 4, states: {1: ok}}
`
	l := loaded(t, fill, head+"  - {object: o, column: 3, metric: temperature, scale: 0.1, unless: {6: [1]}}\n")
	dev := l.Recognise(Identity{ObjectID: "1.3.6.1.4.1.1"})
	const e = "1.3.6.1.4.1.1.2.1."
	var got []string
	for _, p := range dev.Evaluate(tree(t, e+"3.1 250\n"+e+"5.1 900\n"+e+"9.1 \"m\"\n"+e+"3.2 26\n"+e+"5.2 90\n"+e+"6.2 1\n"+e+"3.3 270\n"+e+"4.3 1\n"+e+"5.3 90")).Reports {
		got = append(got, fmt.Sprintf("%s %s %v", p.ID, p.Status, p.Readings))
	}
	want := fmt.Sprintf("d/Module 1  %v|d/Module 3  %v|g/filled 2  %v|g/filled 3 ok []",
		[]hw.Reading{{Metric: hw.TemperatureNow, Value: 25}}, []hw.Reading{{Metric: hw.TemperatureNow, Value: 27}},
		[]hw.Reading{{Metric: hw.TemperatureNow, Value: 26}, {Metric: hw.TemperatureLimit, Value: 90, Attributes: []string{"hw_limit_type", "high.critical"}}})
	if d := cmp.Diff(strings.Split(want, "|"), got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestTheLastOfEqualEntries: a special case with the weight of the general one counts.
func TestTheLastOfEqualEntries(t *testing.T) {
	l := loaded(t, "definition: a\nvendor: A\ndetect: [{sysObjectID: 1.3.6.1.4.1.1, sysDescr: Software, family: os}, {sysObjectID: 1.3.6.1.4.1.1, sysDescr: 'Software.*XE', family: osxe}]")
	for descr, want := range map[string]string{"Software 1": "os", "Software XE 1": "osxe"} {
		if got := l.Recognise(Identity{ObjectID: "1.3.6.1.4.1.1.1", Descr: descr}).Family; got != want {
			t.Errorf("%q is %q, want %q", descr, got, want)
		}
	}
}

// TestSharedColumns: each table has all of its columns, whatever another one reads.
func TestSharedColumns(t *testing.T) {
	text := strings.Replace(head, "  kind: module\n", "  kind: module\n  name: '{1.3.6.1.2.1.47.1.1.1.1.7}'\n", 1) + "  - {object: o, column: 3, metric: power}\n" +
		"- table: u\n  entry: 1.3.6.1.4.1.1.2.2\n  name: '{1.3.6.1.2.1.47.1.1.1.1.7}'\n  values: [{object: p, column: 1, metric: power}]\n"
	tables := loaded(t, text).Recognise(Identity{ObjectID: "1.3.6.1.4.1.1"}).Tables()
	if got := fmt.Sprint(tables); got != "[{[] [1.3.6.1.4.1.1.2.1.3 1.3.6.1.2.1.47.1.1.1.1.7] 1} {[] [1.3.6.1.4.1.1.2.2.1 1.3.6.1.2.1.47.1.1.1.1.7] 1}]" {
		t.Errorf("read are %s", got)
	}
}

// TestSingleObjectsBesideRows are asked for by their own names.
func TestSingleObjectsBesideRows(t *testing.T) {
	l := loaded(t, strings.Replace(head, "  kind: module\n", "  kind: module\n  name: '{1.3.6.1.2.1.1.5.0[]} {2}'\n", 1)+"  - {object: o, column: 3, metric: power}")
	tables := l.Recognise(Identity{ObjectID: "1.3.6.1.4.1.1"}).Tables()
	if got := fmt.Sprint(tables); got != "[{[1.3.6.1.2.1.1.5.0] [1.3.6.1.4.1.1.2.1.3 1.3.6.1.4.1.1.2.1.2] 1}]" {
		t.Errorf("read are %s", got)
	}
}

// TestWordsFitTheVocabulary: each word's sensor may have its reading, and its limit.
func TestWordsFitTheVocabulary(t *testing.T) {
	for word, q := range quantities {
		if !q.metric.Allows(q.kind, nil) || q.limit != hw.Info && !q.limit.Allows(q.kind, []string{"hw_limit_type", limits[0]}) {
			t.Errorf("%s does not fit", word)
		}
	}
	if v := conversions["kelvin"](273.15); math.Abs(v) > 1e-9 {
		t.Errorf("0 °C is %v", v)
	}
}
