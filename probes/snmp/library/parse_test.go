package library

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// head begins a definition with one table, whose values follow.
const head = `definition: d
vendor: V
mib: M-MIB
detect: [{sysObjectID: 1.3.6.1.4.1.1}]
tables:
- table: t
  entry: 1.3.6.1.4.1.1.2.1
  kind: module
  values:
`

func TestParseSaysWhereAndWhat(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `f.yaml: .*no documents`}, {"- a", `f.yaml:1: a definition must be a mapping`},
		{"definition: D", `f.yaml:1: definition: must be a name of small letters`},
		{"definition: d\nfoo: 1", `f.yaml:2: a definition has no key "foo"; there are definition, detect`},
		{"definition: d\ndefinition: e", `f.yaml:2: a definition has the key "definition" twice`},
		{"definition: d\ndetect: [{family: x}]", `f.yaml:2: an entry of detect needs`},
		{"definition: d\ndetect: [{sysDescr: '('}]", `f.yaml:2: sysDescr is not a regular expression`},
		{"definition: d\ndetect: [{sysObjectID: 1.x}]", `f.yaml:2: "1.x" is not an OID`},
		{"definition: d\ntables: [{table: t, entry: 1.3.6.1.4.1.1}]", `f.yaml:2: a table needs the name that its MIB gives it`},
		{"definition: d\nmib: M\ntables: [{table: t, entry: 1.3.6.1.4.1.1}]", `f.yaml:3: a table needs 1 to 200 values`},
		{"a: &x 1\n<<: *x", `no merge keys`},
		{"definition: [", `f.yaml:`},
		{head + "  - {object: o}", `f.yaml:10: a value needs object:, its name in the MIB, and column:`},
		{head + "  - {object: o, column: x, metric: power}", `f.yaml:10: a column is its number`},
		{head + "  - {object: o, column: 1}", `f.yaml:10: o: write one of metric, metric_by, states and bits`},
		{head + "  - {object: o, column: 1, metric: heat}", `f.yaml:10: "heat" is not a metric; there are charge, current`},
		{head + "  - {object: o, column: 1, metric: fan_speed}", `f.yaml:6: o: a component of the kind module has no such metric`},
		{head + "  - {object: o, column: 1, metric: energy, limit: high.critical}", `a component of the kind module has no such metric`},
		{head + "  - {object: o, column: 1, metric: power, scale: 0}", `scale must not be 0`},
		{head + "  - {object: o, column: 1, metric: power, scale: big}", `"big" is not a number`},
		{head + "  - {object: o, column: 1, states: {up(1): fine}}", `f.yaml:10: "fine" is no state; there are none, degraded`},
		{head + "  - {object: o, column: 1, states: {up(1): ok, 1: failed}}", `states has the value "1" twice`},
		{head + "  - {object: o, column: 1, bits: {jammed: failed}}", `f.yaml:10: a bit is name\(number\), with a number from 0 to 63`},
		{head + "  - {object: o, column: 1, bits: {jammed(64): failed}}", `f.yaml:10: a bit is name\(number\), with a number from 0 to 63`},
		{head + "  - {object: o, column: 1, metric: power, sensor: '{x}'}", `f.yaml:10: "{x}": "x" is not an OID`},
		{head + "  - {object: o, column: 1, metric: power, sensor: '{1'}", `a { has no }`},
		{head + "  - {object: o, column: 1, metric_by: {column: 2}}", `column and is are missing`},
		{"definition: d\nrank: 1", `one_of and rank are for definitions with fills: true`},
		{"definition: d\ndetect: [{sysDescr: x, value: y}]", `f.yaml:2: value needs present: the OID of the object`},
		{"definition: d\ndetect: [{sysObjectID_pattern: '('}]", `f.yaml:2: sysObjectID_pattern is not a regular expression`},
		{"definition: d\ndetect: [{sysDescr: x, unless: [{always: true}]}]", `f.yaml:2: an entry of detect has no key "always"`},
		{head + "  - {object: o, column: 1, metric: power, only: {1: {about: 3}}}", `f.yaml:10: a condition has no key "about"; there are above, below, exists`},
		{head + "  - {object: o, column: 1, metric: power, only: {1: {}}}", `f.yaml:10: a condition needs a test`},
		{head + "  - {object: o, column: 1, metric: power, only: {x: [1]}}", `f.yaml:10: a condition is on a column or another part of the row`},
		{head + "  - {object: o, column: 1, metric: power, only: [[1]]}", `f.yaml:10: only and unless are a mapping, or a list of mappings`},
		{head + "  - {object: o, column: 1, metric: power, sensor: '{1[2:1]}'}", `brackets hold a place in the index`},
	} {
		_, err := Parse("f.yaml", []byte(c.text))
		if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%q gives %v, want %s", c.text, err, c.want)
		}
	}
	if d, err := Parse("f.yaml", []byte(head+"  - {object: o, column: 1, metric: power}")); err != nil || d.Name != "d" || len(d.tables) != 1 {
		t.Errorf("a right definition gives %+v, %v", d, err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	put("a.yaml", "definition: cisco\nvendor: Mine\ndetect: [{sysObjectID: 1.3.6.1.4.1.9, family: mine}]\nincludes: [entity_sensor]\n")
	put("notes.txt", "no definition")
	l, err := Load(dir)
	if err != nil || len(l.Definitions()) != len(own.Definitions()) {
		t.Fatalf("with one in place of another there are %v, %v", len(l.Definitions()), err)
	}
	if d := l.Recognise(Identity{ObjectID: ".1.3.6.1.4.1.9.1.1"}); d.Vendor != "Mine" || d.Family != "mine" {
		t.Errorf("the user's definition does not count: %+v", d)
	}
	put("b.yaml", "definition: cisco\n")
	put("c.yaml", "definition: c\nincludes: [nowhere]\n")
	for _, want := range []string{`b.yaml:1: .*a.yaml has a definition cisco, too`} {
		if _, err = Load(dir); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	put("b.yaml", "definition: b\n")
	if _, err = Load(dir); err == nil || !strings.Contains(err.Error(), "c.yaml:1: includes nowhere, which no file defines") {
		t.Errorf("an include that leads nowhere gives %v", err)
	}
	if _, err = Load(filepath.Join(dir, "missing")); err == nil {
		t.Error("a directory that is not there is no error")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(head + "  - {object: o, column: 1, metric: power, sensor: '{2|#1} {1.3.6.1.2.1.2.2.1.2[1:]@4}', at: in, not: [-1], only: {3: [a(1)]}}")
	f.Add(head + "  - {object: o, column: 1, metric_by: {column: 2, is: {1: power}}, scale_by: {column: 3, is: {1: 1e-3}}, precision_by: 4}")
	f.Add("fills: true\none_of: g\n" + head + "  - {object: o, column: 1, metric: power, only: [{'#2': {least: 1, matches: x}}], unless: {'1.3.6.1.2.1.1.5.0[]': {exists: true}}, sensor: '{1[1:2]}'}")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse("f.yaml", []byte(text))
		if err != nil {
			return
		}
		dev := &Device{definitions: []*Definition{d}}
		dev.Tables()
		var vars []Variable
		for _, x := range d.tables {
			for i, c := range x.columns {
				vars = append(vars, Variable{OID: c.join(uint32(i), 1), Numeric: i%2 == 0, Number: float64(i), Text: "1 V"}, Variable{OID: c.join(1), Numeric: true, Number: 1})
			}
		}
		dev.Evaluate(NewTree(vars))
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := Load(); err != nil {
			b.Fatal(err)
		}
	}
}
