package hw

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"go.uber.org/goleak"

	"hwsagent/internal/tools/reference"
	"hwsagent/probes"
)

var update = flag.Bool("update", false, "write docs/reference/hardware.md anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConventions holds the table and the conventions' own list together, both ways.
func TestConventions(t *testing.T) {
	f, err := os.Open("testdata/conventions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	theirs := map[string]string{}
	for in := bufio.NewScanner(f); in.Scan(); {
		if name, rest, ok := strings.Cut(in.Text(), " "); ok && name != "#" {
			theirs[name] = rest
		}
	}
	if len(theirs) != 42 {
		t.Errorf("the conventions have %d metrics, want 42", len(theirs))
	}
	for i := range table {
		r := &table[i]
		want, there := theirs[r.convention]
		switch got := string(r.instrument) + " " + r.unit; {
		case there == r.own:
			t.Errorf("%s: own is %t", r.convention, r.own)
		case there && got != want:
			t.Errorf("%s is a %s, want %s", r.convention, got, want)
		}
		delete(theirs, r.convention)
	}
	for name := range theirs {
		t.Errorf("%s is missing", name)
	}
}

// TestNames compares the names with those that OpenTelemetry's translator makes.
func TestNames(t *testing.T) {
	namer := otlptranslator.MetricNamer{WithMetricSuffixes: true}
	types := map[instrument]otlptranslator.MetricType{
		gauge: otlptranslator.MetricTypeGauge, upDown: otlptranslator.MetricTypeNonMonotonicCounter, counter: otlptranslator.MetricTypeMonotonicCounter,
	}
	seen := map[string]bool{}
	for i := range table {
		r, f := &table[i], Metric(i).Family()
		// Amperes are the project's word; the translator's list has the same.
		want, err := namer.Build(otlptranslator.Metric{Name: r.convention, Unit: r.unit, Type: types[r.instrument]})
		if err != nil || f.Name != want {
			t.Errorf("%s is %q, want %q, %v", r.convention, f.Name, want, err)
		}
		if seen[f.Name] || f.Help == "" || !strings.HasSuffix(f.Help, ".") {
			t.Errorf("%+v is there already, or has no help", *f)
		}
		seen[f.Name] = true
		if got := f.Type == model.MetricTypeCounter; got != strings.HasSuffix(f.Name, "_total") {
			t.Errorf("%s is a %s", f.Name, f.Type)
		}
		if f.Unit != "" && !strings.HasSuffix(strings.TrimSuffix(f.Name, "_total"), "_"+f.Unit) {
			t.Errorf("%s has the unit %s", f.Name, f.Unit)
		}
	}
	if int(OpticalPowerLimit)+1 != len(table) || int(Site)+1 != len(kinds) {
		t.Error("a constant and its table differ in length")
	}
}

// TestJoin tries every two sets of states.
func TestJoin(t *testing.T) {
	for _, c := range []struct{ a, b, want Status }{
		{0, 0, 0}, {OK, 0, OK}, {OK, Unknown, OK}, {Unknown, 0, Unknown}, {OK, Degraded, Degraded}, {Failed, Degraded, Failed},
		{OK, PredictedFailure, OK | PredictedFailure}, {PredictedFailure | OK, Failed, Failed | PredictedFailure},
		{NeedsCleaning, Unknown, NeedsCleaning},
	} {
		if got := c.a.Join(c.b); got != c.want {
			t.Errorf("%q and %q are %q, want %q", c.a, c.b, got, c.want)
		}
	}
	const all = 1 << len(states)
	for a := Status(0); a < all; a++ {
		for b := Status(0); b < all; b++ {
			j := a.Join(b)
			if j != b.Join(a) || j.Join(a) != j || (j == 0) != (a|b == 0) {
				t.Fatalf("%q and %q are %q", a, b, j)
			}
			if worst := j & health; worst&(worst-1) != 0 || j.Is(Unknown) && j != Unknown {
				t.Fatalf("%q and %q are both, %q", a, b, j)
			}
		}
	}
}

// text returns what a report adds, a line for each sample.
func text(p Report) string {
	r := probes.NewRound(0)
	p.AddTo(r)
	var b strings.Builder
	for _, s := range r.Samples() {
		b.WriteString(s.Family.Name)
		for i := 0; i < len(s.Labels); i += 2 {
			if s.Labels[i+1] != "" {
				fmt.Fprintf(&b, " %s=%q", s.Labels[i], s.Labels[i+1])
			}
		}
		fmt.Fprintf(&b, " %v\n", s.Value)
	}
	return b.String()
}

func TestAddTo(t *testing.T) {
	high := []string{"hw_limit_type", "high.critical"}
	cpu := Report{Component: Component{Kind: Temperature, ID: "coretemp/temp1", Name: "Package id 0", Parent: "cpu:0", Facts: []string{Model, "", Device, "temp1"}}}
	cpu.Add(TemperatureNow, 41)
	cpu.Add(TemperatureLimit, 100, high...)
	cpu.Add(TemperatureLimit, math.NaN(), "hw_limit_type", "low.critical")
	cpu.Add(TemperatureLimit, math.Inf(1), "hw_limit_type", "low.degraded")
	const base = ` hw_id="coretemp/temp1" hw_name="Package id 0" hw_parent="cpu:0"`
	quiet := "hw_component_info" + base + ` hw_type="temperature" hw_device="temp1" 1` + "\n"
	values := "hw_temperature_celsius" + base + " 41\n" + "hw_temperature_limit_celsius" + base + ` hw_limit_type="high.critical" 100` + "\n"
	if d := cmp.Diff(quiet+values, text(cpu)); d != "" {
		t.Errorf("without a status (-want +got):\n%s", d)
	}
	cpu.Status = Degraded
	want := quiet
	for _, s := range []struct {
		name string
		v    int
	}{{"ok", 0}, {"degraded", 1}, {"failed", 0}, {"unknown", 0}} {
		want += fmt.Sprintf("hw_status%s hw_type=\"temperature\" hw_state=%q %d\n", base, s.name, s.v)
	}
	if d := cmp.Diff(want+values, text(cpu)); d != "" {
		t.Errorf("with a status (-want +got):\n%s", d)
	}
	machine := Report{Component: Component{Kind: Host}}
	machine.Add(HostPower, 212.5, "hw_quality", "estimated")
	if got := text(machine); got != "hw_host_power_watts hw_quality=\"estimated\" 212.5\n" {
		t.Errorf("the machine gives %s", got)
	}
}

// TestStatesOfKinds: hw_status has a series for each state that a kind can have, and no other; a state that the kind cannot have is still seen.
func TestStatesOfKinds(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		status Status
		want   string
	}{
		{Temperature, OK, "ok=1 degraded=0 failed=0 unknown=0"},
		{Voltage, OK | PredictedFailure, "ok=0 degraded=1 failed=0 unknown=0"},
		{PowerMeter, Failed | NeedsCleaning, "ok=0 degraded=0 failed=1 unknown=0"},
		{Sensor, PredictedFailure, "ok=0 degraded=1 failed=0 unknown=0"},
		{Fan, OK | PredictedFailure, "ok=1 degraded=0 failed=0 predicted_failure=1 unknown=0"},
		{PhysicalDisk, OK | NeedsCleaning, "ok=0 degraded=1 failed=0 predicted_failure=0 unknown=0"},
		{PhysicalDisk, Failed | PredictedFailure | NeedsCleaning, "ok=0 degraded=0 failed=1 predicted_failure=1 unknown=0"},
		{TapeDrive, Degraded | NeedsCleaning, "ok=0 degraded=1 failed=0 predicted_failure=0 needs_cleaning=1 unknown=0"},
		{OtherDevice, Unknown, "ok=0 degraded=0 failed=0 predicted_failure=0 needs_cleaning=0 unknown=1"},
	} {
		r := probes.NewRound(0)
		p := Report{Component: Component{Kind: c.kind, ID: "x"}, Status: c.status}
		p.AddTo(r)
		var got []string
		for _, s := range r.Samples() {
			if s.Family == StatusOf.Family() {
				got = append(got, fmt.Sprintf("%s=%v", s.Labels[len(s.Labels)-1], s.Value))
			}
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s that is %s: got %s, want %s", c.kind, c.status, g, c.want)
		}
	}
	for k := Battery; k < Host; k++ {
		for s := Status(1); s < 1<<len(states); s++ {
			if in := s.within(k); in == 0 || in&^k.states() != 0 || in.Is(Failed) != s.Is(Failed) {
				t.Fatalf("%s that is %s is %s", k, s, in)
			}
		}
	}
}

// TestAddToAllocatesNothing once the round has grown.
func TestAddToAllocatesNothing(t *testing.T) {
	p := Report{Component: Component{Kind: PhysicalDisk, ID: "wwn:1", Name: "sda", Facts: []string{
		Vendor, "a", Model, "b", Serial, "c", UUID, "d", Firmware, "e", Driver, "f", BIOS, "g", PhysicalAddress, "h", DiskType, "i", Device, "j"}}, Status: OK}
	p.Add(DiskSize, 1e12)
	p.Add(Errors, 2, "error_type", "io", "network_io_direction", "")
	r := probes.NewRound(0)
	p.AddTo(r)
	n := len(r.Samples())
	// A round's memory grows by copying: a few of 1,000 calls do so, none of them elsewhere.
	if allocs := testing.AllocsPerRun(1000, func() { p.AddTo(r) }); allocs > 0.2 {
		t.Errorf("a report of %d samples makes %v allocations", n, allocs)
	}
}

func TestAllows(t *testing.T) {
	for _, c := range []struct {
		m          Metric
		k          Kind
		attributes string
		want       bool
	}{
		{FanSpeed, Fan, "", true}, {FanSpeed, CPU, "", false}, {Errors, PCIDevice, "error_type x", true}, {Errors, PCIDevice, "hw_limit_type x", false},
		{Errors, PCIDevice, "error_type", false}, {HostPower, Host, "hw_quality measured", true}, {TemperatureNow, Battery, "", true},
	} {
		if got := c.m.Allows(c.k, strings.Fields(c.attributes)); got != c.want {
			t.Errorf("%s of %s with %q: %t", c.m.Family().Name, c.k, c.attributes, got)
		}
	}
}

func TestDiskID(t *testing.T) {
	for _, c := range []struct{ wwn, model, serial, want string }{
		{"naa.5000c500a1b2c3d4", "ST4000", "Z1", "wwn:5000c500a1b2c3d4"},
		{"0x5000C500A1B2C3D4\n", "", "", "wwn:5000c500a1b2c3d4"},
		{"eui.0025385b91b1f2f0", "", "", "wwn:eui.0025385b91b1f2f0"},
		{"", "Samsung SSD 980 ", " S64D  1", "serial:Samsung_SSD_980:S64D_1"},
		{"0000000000000000", "m", "s", "serial:m:s"},
		{"t10.ATA     QEMU HARDDISK   QM00001", "", "", "t10:ata_qemu_harddisk_qm00001"},
		{"t10.ATA x", "m", "s", "serial:m:s"},
		{"", "m", " ", ""}, {"0x0", "", "", ""},
	} {
		if got := DiskID(c.wwn, c.model, c.serial); got != c.want {
			t.Errorf("%+v is %q", c, got)
		}
	}
}

func FuzzDiskID(f *testing.F) {
	f.Add("naa.5000c500a1b2c3d4", "model", "serial")
	f.Fuzz(func(t *testing.T, wwn, model, serial string) {
		id := DiskID(wwn, model, serial)
		if strings.ContainsAny(id, "\n\t") && !strings.ContainsAny(wwn, "\n\t") {
			t.Errorf("%q", id)
		}
	})
}

// page returns the vocabulary as docs/reference/hardware.md has it.
func page() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels beside `hw_id`, `hw_name`, `hw_parent` | of | meaning | convention |\n|---|---|---|---|---|---|\n")
	for i := range table {
		r, f := &table[i], Metric(i).Family()
		var labels []string
		if r.typed {
			labels = append(labels, "`hw_type`")
		}
		for _, a := range strings.Fields(r.attributes) {
			labels = append(labels, "`"+a+"`")
		}
		of := make([]string, len(r.kinds))
		for i, k := range r.kinds {
			of[i] = k.String()
		}
		if r.kinds == nil {
			of = []string{"any"}
		}
		origin := "`" + r.convention + "`, " + r.unit
		if r.own {
			origin = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", f.Name, f.Type, strings.Join(labels, ", "), strings.Join(of, ", "), strings.TrimSuffix(f.Help, "."), origin)
	}
	return b.String()
}

// TestReference holds the table of docs/reference/hardware.md to the one in table.go, and docs/hardware.md to the words.
func TestReference(t *testing.T) {
	reference.Section(t, "../../docs/reference/hardware.md", "vocabulary", page(), *update)
	text, err := os.ReadFile("../../docs/hardware.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if k != "host" && k != "site" && !strings.Contains(string(text), "`"+k+"`") {
			t.Errorf("the kind %s is not explained", k)
		}
	}
	for _, s := range states {
		if !strings.Contains(string(text), "`"+s+"`") {
			t.Errorf("the state %s is not explained", s)
		}
	}
	if !strings.Contains(string(text), Conventions) || !strings.Contains(string(text), ConventionsSource) {
		t.Error("the version of the conventions is not named with its source")
	}
}
