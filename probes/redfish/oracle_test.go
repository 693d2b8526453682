package redfish

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hwsagent/probes/hw"
)

// folder is a service in the form of DMTF's mockups: an index.json for each resource, below a directory that is /redfish/v1.
type folder struct{ dir string }

func (f *folder) stale() {}

func (f *folder) at(string) int64 { return 0 }

func (f *folder) read(_ context.Context, w want) (object, error) {
	path, _, _ := strings.Cut(w.path, "?")
	body, err := os.ReadFile(filepath.Join(f.dir, filepath.FromSlash(strings.TrimPrefix(path, rootPath)), "index.json"))
	if err != nil {
		return nil, nil
	}
	return parse(body)
}

func walkFolder(t testing.TB, dir string) *tree {
	t.Helper()
	w := walker{source: &folder{dir: dir}, changed: func([]string, bool) bool { return false }}
	tr, err := w.walk(t.Context())
	if err != nil {
		t.Logf("%s: %v", dir, err)
	}
	return tr
}

// mockups returns the directories of services below CORPUS.
func mockups(t *testing.T) []string {
	corpus := os.Getenv("CORPUS")
	if corpus == "" {
		t.Skip("needs mockups of Redfish in CORPUS: run by hand, see internal/tools/README.md")
	}
	var dirs []string
	for _, pattern := range []string{"mockups/public-*", "*/mockups/public-*", "internal/collector/testdata/*/redfish/v1", "*/internal/collector/testdata/*/redfish/v1"} {
		found, _ := filepath.Glob(filepath.Join(corpus, pattern))
		dirs = append(dirs, found...)
	}
	if len(dirs) == 0 {
		t.Skipf("there are no mockups of Redfish in %s", corpus)
	}
	return dirs
}

// TestOracle compares what is reported of each mockup with what a plain search through all its files finds.
func TestOracle(t *testing.T) {
	for _, dir := range mockups(t) {
		name := strings.TrimPrefix(dir, os.Getenv("CORPUS"))
		t.Run(strings.ReplaceAll(strings.Trim(name, "/"), "/", "_"), func(t *testing.T) {
			tr := walkFolder(t, dir)
			all := reports(tr)
			checkVocabulary(t, all)
			o := newOracle(t, dir)
			o.compare(t, tr, all)
		})
	}
}

// checkVocabulary holds the reports to the table of the vocabulary, and the IDs to be unique.
func checkVocabulary(t *testing.T, all []hw.Report) {
	t.Helper()
	ids := map[string]bool{}
	for _, p := range all {
		key := p.Kind.String() + " " + p.ID
		if ids[key] || p.ID == "" && p.Kind != hw.Host {
			t.Errorf("%q is there twice, or empty", key)
		}
		ids[key] = true
		seen := map[string]bool{}
		for _, r := range p.Readings {
			if !r.Metric.Allows(p.Kind, r.Attributes) || math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
				t.Errorf("%s %s has %s %v %v", p.Kind, p.ID, r.Metric.Family().Name, r.Attributes, r.Value)
			}
			id := fmt.Sprint(r.Metric, r.Attributes)
			if seen[id] {
				t.Errorf("%s %s has %s %v twice", p.Kind, p.ID, r.Metric.Family().Name, r.Attributes)
			}
			seen[id] = true
		}
	}
}

// oracle is every file of a mockup, read without the code under test.
type oracle struct{ files map[string]map[string]any }

func newOracle(t *testing.T, dir string) *oracle {
	o := &oracle{files: map[string]map[string]any{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "index.json" {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var v map[string]any
		if json.Unmarshal(body, &v) != nil {
			return nil
		}
		rel, _ := filepath.Rel(dir, filepath.Dir(path))
		o.files[strings.TrimSuffix("/redfish/v1/"+filepath.ToSlash(rel), "/.")] = v
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// typeOf returns a resource's schema.
func typeOf(v map[string]any) string {
	s, _ := v["@odata.type"].(string)
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "#"), ".")
	return s
}

func state(v map[string]any) (health, state string) {
	st, _ := v["Status"].(map[string]any)
	health, _ = st["Health"].(string)
	state, _ = st["State"].(string)
	return health, state
}

// of the schemas each resource must be a component, unless it is absent.
var componentTypes = strings.Fields("Chassis ComputerSystem Manager Processor Memory Storage StorageController Drive Volume NetworkAdapter Port Fan PowerSupply Battery Pump LeakDetector Sensor Outlet Circuit PowerDistribution CoolingUnit CoolantConnector LogService SoftwareInventory")

func (o *oracle) compare(t *testing.T, tr *tree, all []hw.Report) {
	values := map[string]int{} // of readings, written out, and how often
	byID := map[string]hw.Report{}
	for _, p := range all {
		byID[p.ID] = p
		for _, r := range p.Readings {
			values[fmt.Sprintf("%s %.6g", r.Metric.Family().Name, r.Value)]++
		}
	}
	var missing []string
	sensors, listed := 0, o.listed()
	for _, path := range slices.Sorted(func(yield func(string) bool) {
		for p := range o.files {
			if !yield(p) {
				return
			}
		}
	}) {
		v := o.files[path]
		typ := typeOf(v)
		health, st := state(v)
		if !slices.Contains(componentTypes, typ) || st == "Absent" || !listed[path] {
			continue
		}
		if typ == "Sensor" {
			sensors++
			o.sensor(t, path, v, values)
			continue
		}
		n := tr.byPath[path]
		if n == nil {
			missing = append(missing, typ+" "+path)
			continue
		}
		if n.gone() || n.name == "metrics" || !n.role.part {
			continue
		}
		found := false
		for _, p := range all {
			if p.ID == pathID(path) || p.Kind == hw.PhysicalDisk && typ == "Drive" {
				found = true
				want := map[string]hw.Status{"OK": hw.OK, "Warning": hw.Degraded, "Critical": hw.Failed}[health]
				if want != 0 && p.ID == pathID(path) && p.Status&(hw.OK|hw.Degraded|hw.Failed) < want {
					t.Errorf("%s is %s, its health is %s", path, p.Status, health)
				}
			}
		}
		if !found {
			missing = append(missing, "report of "+typ+" "+path)
		}
	}
	missing = append(missing, o.unread(tr, all)...)
	slices.Sort(missing)
	for _, m := range missing {
		t.Errorf("missing: %s", m)
	}
	t.Logf("%d files, %d nodes, %d reports, %d sensors", len(o.files), len(tr.nodes), len(all), sensors)
}

// sensor checks that a sensor's reading is there once, by its value in the unit of its metric.
func (o *oracle) sensor(t *testing.T, path string, v map[string]any, values map[string]int) {
	x, ok := v["Reading"].(float64)
	if !ok {
		return
	}
	units, _ := v["ReadingUnits"].(string)
	metrics := map[string][]string{
		"Cel": {"hw_temperature_celsius 1"}, "C": {"hw_temperature_celsius 1"}, "A": {"hw_current_amperes 1"}, "V": {"hw_voltage_volts 1"},
		"W":    {"hw_power_watts 1", "hw_power_supply_usage_watts 1", "hw_host_power_watts 1"},
		"kW.h": {"hw_energy_joules_total 3600000", "hw_host_energy_joules_total 3600000"}, "kW": {"hw_energy_joules_total 3600000", "hw_sensor_value 1"},
		"%": {"hw_fan_speed_ratio 0.01", "hw_sensor_value 1", "hw_humidity_ratio 0.01", "hw_battery_health_ratio 0.01", "hw_cooling_device_level_ratio 0.01", "hw_battery_charge_ratio 0.01"},
	}[units]
	if metrics == nil {
		metrics = []string{"hw_sensor_value 1"}
	}
	for _, m := range metrics {
		var name string
		var scale float64
		if _, err := fmt.Sscan(m, &name, &scale); err != nil {
			t.Fatal(err)
		}
		if key := fmt.Sprintf("%s %.6g", name, x*scale); values[key] > 0 {
			values[key]--
			return
		}
	}
	t.Errorf("%s reads %v %s, which is nowhere, or not as often as there are sensors", path, x, units)
}

// hours are the properties in hours, beside those with a Reading, whose values must be there in seconds.
var hours = []string{"ServiceHours", "RatedServiceHours"}

// unread returns the readings in resources other than sensors that no report has: each object with a Reading that no sensor of the service
// provides, the revolutions beside it, and hours of service.
func (o *oracle) unread(tr *tree, all []hw.Report) (missing []string) {
	has := map[string]bool{}
	for _, p := range all {
		for _, r := range p.Readings {
			name := r.Metric.Family().Name
			for _, s := range []float64{1, 100, 1. / 3600, 1. / 3.6e6} {
				has[fmt.Sprintf("%s %.5g", name[strings.LastIndexByte(name, '_')+1:], r.Value*s)] = true
				has[fmt.Sprintf("%.5g", r.Value*s)] = true
			}
		}
	}
	seen := map[string]bool{} // sensors, by what refers to them
	var look func(path string, v any)
	look = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for _, inner := range v {
				look(path, inner)
			}
		case map[string]any:
			uri, _ := v["DataSourceUri"].(string)
			if _, sensor := o.files[uri]; uri != "" && (sensor || seen[uri]) {
				return
			}
			seen[uri] = true
			if x, ok := v["Reading"].(float64); ok && !has[fmt.Sprintf("%.5g", x)] {
				missing = append(missing, fmt.Sprintf("reading %v of %s", x, path))
			}
			if x, ok := v["SpeedRPM"].(float64); ok && !has[fmt.Sprintf("rpm %.5g", x)] {
				missing = append(missing, fmt.Sprintf("%v rpm of %s", x, path))
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if x, ok := v[key].(float64); ok && slices.Contains(hours, key) && !has[fmt.Sprintf("seconds %.5g", x)] {
					missing = append(missing, fmt.Sprintf("%s %v of %s", key, x, path))
				}
				if !slices.Contains(notRead, key) {
					look(path+" "+key, v[key])
				}
			}
		}
	}
	// In the order in which the resources were found: of several that name one sensor which the service does not have, the first counts. Two
	// connectors of a mockup name the same sensor, with different readings.
	for _, n := range tr.nodes {
		path := n.path
		if v := o.files[path]; v != nil && !n.gone() && typeOf(v) != "Sensor" && !strings.HasSuffix(typeOf(v), "Collection") && typeOf(v) != "Thermal" && typeOf(v) != "Power" {
			look(path, v)
		}
	}
	return missing
}

// notRead are the properties behind which the probe reads nothing, on purpose: resources that are seen elsewhere, too, or are
// no hardware of this service.
var notRead = strings.Fields("Links RelatedItem Oem Actions CompositionService Fabrics TelemetryService SubProcessors PCIeDevices PCIeFunctions NetworkInterfaces NetworkDeviceFunctions " +
	"TrustedComponents ComponentIntegrity VirtualMedia Certificates Controls Facilities PowerDomains Assembly USBControllers GraphicsControllers FabricAdapters AccelerationFunctions " +
	"MemoryDomains HostInterfaces OperatingSystem Cables Registries AutomationNodes StoragePools ConsistencyGroups EndpointGroups Connections Applications Containers SharedNetworkPorts ContainerImages ResourceBlocks @Redfish.CollectionCapabilities JobService LocalImageStore")

// listed returns the paths of the resources that links from the root lead to, found without the table of roles.
func (o *oracle) listed() map[string]bool {
	seen := map[string]bool{}
	var follow func(v any, of string)
	follow = func(v any, of string) {
		switch v := v.(type) {
		case map[string]any:
			if id, ok := v["@odata.id"].(string); ok && id != of {
				id = strings.TrimRight(id, "/")
				if !seen[id] && o.files[id] != nil {
					seen[id] = true
					h, st := state(o.files[id])
					if st == "Absent" && h == "" {
						return
					}
					follow(o.files[id], id)
				}
				if len(v) == 1 {
					return
				}
			}
			for key, inner := range v {
				if slices.Contains(notRead, key) || key == "Ports" && typeOf(v) != "NetworkAdapter" {
					continue
				}
				follow(inner, of)
			}
		case []any:
			for _, inner := range v {
				follow(inner, of)
			}
		}
	}
	follow(o.files["/redfish/v1"], "/redfish/v1")
	return seen
}
