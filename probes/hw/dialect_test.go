package hw

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hwsagent/internal/tools/reference"
	"hwsagent/probes"
)

// TestMetricsHub has a sample of each form in MetricsHub's names.
func TestMetricsHub(t *testing.T) {
	box := Report{Status: Degraded, Component: Component{Kind: Enclosure, ID: "i", Name: "n", Parent: "p", Facts: []string{Serial, "S1", UUID, "u1"}}}
	box.Add(Power, 90)
	fan := Report{Component: Component{Kind: Fan, ID: "f", Name: "n"}}
	fan.Add(FanSpeedLimit, 500, "hw_limit_type", "low.critical")
	fan.Add(Power, 3)
	memory := Report{Component: Component{Kind: Memory, ID: "m", Name: "n"}}
	memory.Add(MemorySize, 1024)
	port := Report{Component: Component{Kind: Network, ID: "e", Name: "n"}}
	port.Add(NetworkIO, 7, "network_io_direction", "receive")
	port.Add(NetworkBandwidthLimit, 125)
	whole := Report{Component: Component{Kind: Host}}
	whole.Add(HostPower, 5, "hw_quality", Estimated)
	other := probes.Family{Name: "node_x"}
	r := probes.NewRound(0)
	for _, p := range []*Report{&box, &fan, &memory, &port, &whole} {
		p.AddTo(r)
	}
	r.Add(&other, 1, "hw_id", "stays")
	var lines []string
	d := NewDialect(MetricsHub)
	for i := range r.Samples() {
		s := &r.Samples()[i]
		d.Translate(s)
		line := s.Family.Name
		for j := 0; j < len(s.Labels); j += 2 {
			if s.Labels[j+1] != "" {
				line += fmt.Sprintf(" %s=%s", s.Labels[j], s.Labels[j+1])
			}
		}
		lines = append(lines, fmt.Sprint(line, " ", s.Value))
	}
	for _, want := range []string{
		"hw_component_info id=i name=n hw_parent_id=p hw_type=enclosure serial_number=S1 hw_uuid=u1 1",
		"hw_status id=i name=n hw_parent_id=p hw_type=enclosure state=degraded 1", "hw_enclosure_power_watts id=i name=n hw_parent_id=p hw_type=enclosure 90",
		"hw_fan_speed_limit_rpm id=f name=n limit_type=low.critical 500", "hw_power_watts id=f name=n hw_type=fan 3", "hw_memory_limit_bytes id=m name=n 1024",
		"hw_network_io_bytes_total id=e name=n direction=receive 7", "hw_network_bandwidth_limit_bytes id=e name=n 125", "hw_host_power_watts quality=estimated 5", "node_x hw_id=stays 1",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("%s is not in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// TestDialectsAreOneToOne: in MetricsHub's names no two metrics are one, and no metric has a label twice.
func TestDialectsAreOneToOne(t *testing.T) {
	d := NewDialect(MetricsHub)
	seen := map[string]string{}
	for i := range table {
		own := Metric(i).Family()
		for _, f := range []*probes.Family{d.families[own], d.enclosure[own]} {
			if f == nil {
				continue
			}
			if other, twice := seen[f.Name]; twice {
				t.Errorf("%s and %s are both %s", own.Name, other, f.Name)
			}
			seen[f.Name] = own.Name
			if f.Type != own.Type || f.Help != own.Help {
				t.Errorf("%s is another metric than %s", f.Name, own.Name)
			}
		}
		names := map[string]bool{}
		for _, label := range append(strings.Fields(table[i].attributes), "hw_id", "hw_name", "hw_parent", "hw_type") {
			if name := d.labels[label]; name != "" {
				label = name
			}
			if Metric(i) == BatteryTimeLeft && label == "state" {
				continue // hw_state beside hw_battery_state is of the conventions; no probe gives it
			}
			if names[label] {
				t.Errorf("%s has %s twice", own.Name, label)
			}
			names[label] = true
		}
	}
	for label := range hubLabels {
		known := slices.Contains([]string{"hw_id", "hw_name", "hw_parent"}, label)
		for i := range table {
			known = known || slices.Contains(strings.Fields(table[i].attributes), label)
		}
		if !known {
			t.Errorf("no metric has the label %s", label)
		}
	}
}

// TestConventionsNeedNoDialect: without one every sample stays as it is.
func TestConventionsNeedNoDialect(t *testing.T) {
	for _, word := range []string{"", SemanticConventions} {
		s := probes.Sample{Family: FanSpeed.Family(), Labels: []string{"hw_id", "x"}}
		NewDialect(word).Translate(&s)
		if s.Family != FanSpeed.Family() || s.Labels[0] != "hw_id" {
			t.Errorf("%q: %+v", word, s)
		}
	}
}

// hubPage is MetricsHub's dialect as docs/reference/hardware.md has it.
func hubPage() string {
	var b strings.Builder
	b.WriteString("| here | with `hw_labels: metricshub` |\n|---|---|\n")
	d := NewDialect(MetricsHub)
	for i := range table {
		own := Metric(i).Family()
		if f := d.families[own]; f != own {
			fmt.Fprintf(&b, "| `%s` | `%s` |\n", own.Name, f.Name)
		}
		if f := d.enclosure[own]; f != nil {
			fmt.Fprintf(&b, "| `%s{hw_type=\"enclosure\"}` | `%s` |\n", own.Name, f.Name)
		}
	}
	for _, label := range slices.Sorted(maps.Keys(hubLabels)) {
		fmt.Fprintf(&b, "| label `%s` | `%s` |\n", label, hubLabels[label])
	}
	return b.String()
}

// TestReferenceDialect holds the table of MetricsHub's names to the one in table.go.
func TestReferenceDialect(t *testing.T) {
	reference.Section(t, "../../docs/reference/hardware.md", "dialect", hubPage(), *update)
}

func TestTranslateAllocatesNothing(t *testing.T) {
	d := NewDialect(MetricsHub)
	labels := []string{"hw_id", "x", "hw_type", "fan", "hw_state", "ok"}
	work := make([]string, len(labels))
	if n := testing.AllocsPerRun(100, func() {
		copy(work, labels)
		d.Translate(&probes.Sample{Family: StatusOf.Family(), Labels: work})
	}); n > 0 {
		t.Errorf("it makes %v allocations", n)
	}
}

// TestOneVocabulary: no other package writes a metric or a label of the vocabulary by its name, so that each goes through a Report and its
// dialect.
func TestOneVocabulary(t *testing.T) {
	names := map[string]bool{LabelID: true, LabelName: true, LabelParent: true, LabelType: true, LabelState: true, SensorUnit: true}
	for i := range families {
		names[families[i].Name] = true
		for _, label := range strings.Fields(table[i].attributes) {
			names[label] = true
		}
	}
	for _, label := range []string{Vendor, Model, Serial, UUID, Firmware, Driver, BIOS, Chemistry, EnclosureType, MemoryType, PhysicalAddress, DiskType, DriverName, Device, Source} {
		names[label] = true
	}
	literal := regexp.MustCompile("[\"`](hw_[a-z0-9_]+)[\"`{]")
	files := 0
	for _, dir := range []string{"../../probes", "../../agent", "../../receivers"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../../probes/hw/") {
				return err
			}
			files++
			text, err := os.ReadFile(path)
			for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
				// A family that is made elsewhere has a unit, too, that the table lacks.
				if names[m[1]] || regexp.MustCompile(`_(celsius|volts|amperes|watts|joules|hertz|rpm|ratio|seconds|bytes|total|dbm|per_minute)$`).MatchString(m[1]) {
					t.Errorf("%s writes %s itself", path, m[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("only %d files were read", files)
	}
}

// TestDialectOfEveryQuantity: MetricsHub's names are found for every metric of the table, with every label that it can have; what keeps a name
// of its own is listed.
func TestDialectOfEveryQuantity(t *testing.T) {
	d := NewDialect(MetricsHub)
	own := map[string]bool{"hw_parent_id": true, "hw_type": true, "hw_error_type": true}
	for _, l := range strings.Fields(strings.Join([]string{UUID, DriverName, Device, Source, Chemistry, EnclosureType, MemoryType, DiskType,
		"hw_member_state hw_throttle_scope hw_severity hw_sensor_unit"}, " ")) {
		own[l] = true // of this project alone, or of the conventions and not of MetricsHub
	}
	for i := range table {
		labels := []string{"hw_id", "i", "hw_name", "n", "hw_parent", "p", "hw_type", "fan"}
		for _, a := range strings.Fields(table[i].attributes) {
			labels = append(labels, a, "x")
		}
		s := probes.Sample{Family: &families[i], Labels: labels}
		d.Translate(&s)
		for j := 0; j < len(s.Labels); j += 2 {
			if name := s.Labels[j]; strings.HasPrefix(name, "hw_") && !own[name] {
				t.Errorf("%s keeps the label %s", s.Family.Name, name)
			}
		}
	}
}
