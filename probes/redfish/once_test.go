package redfish

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hwsagent/probes/hw"
)

// readingKeys are the names of properties that hold what an instrument reads (schemas Sensor and its excerpts, Thermal, Power,
// PowerSupply, Processor…).
var readingKeys = strings.Fields("Reading ReadingCelsius ReadingVolts ReadingRPM PowerConsumedWatts PowerInputWatts PowerOutputWatts LastPowerOutputWatts LineInputVoltage ConsumedPowerWatt TemperatureCelsius SpeedRPM")

// marked is a mockup in which each reading has a value of its own, so that it is known wherever it comes out. An
// excerpt has the value of the sensor that it is an excerpt of.
type marked struct {
	files  map[string]map[string]any
	values map[string]float64 // by the path of the sensor, or of the property
	where  map[string][]string
}

// firstMark is more than any limit or size of a mockup that stands among readings.
const firstMark = 100_000

func mark(files map[string]map[string]any) *marked {
	m := &marked{files: files, values: map[string]float64{}, where: map[string][]string{}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		m.object(file, "", files[file])
	}
	return m
}

func (m *marked) object(file, inside string, v any) {
	switch v := v.(type) {
	case []any:
		for i, one := range v {
			m.object(file, inside+"/"+strconv.Itoa(i), one)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			_, number := v[key].(float64)
			if !number {
				if key != "Thresholds" {
					m.object(file, inside+"/"+key, v[key])
				}
				continue
			}
			if !slices.Contains(readingKeys, key) {
				continue
			}
			id := file + inside + "/" + key
			if inside == "" && key == "Reading" {
				id = file // a sensor
			}
			if of, ok := v["DataSourceUri"].(string); ok && key == "Reading" {
				id = strings.TrimRight(of, "/")
			}
			if m.values[id] == 0 {
				m.values[id] = float64(firstMark + len(m.values))
			}
			v[key] = m.values[id]
			m.where[id] = append(m.where[id], file+inside+"/"+key)
		}
	}
}

func (m *marked) stale() {}

func (m *marked) at(string) int64 { return 0 }

// read answers as [folder] does.
func (m *marked) read(_ context.Context, w want) (object, error) {
	name, _, _ := strings.Cut(w.path, "?")
	v := m.files[strings.TrimRight(name, "/")]
	if v == nil {
		return nil, nil
	}
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return parse(body)
}

// found returns the components that show each mark, whatever the unit.
func (m *marked) found(all []hw.Report) map[float64][]string {
	out := map[float64][]string{}
	last := float64(firstMark + len(m.values))
	for i := range all {
		for _, r := range all[i].Readings {
			if strings.Contains(r.Metric.Family().Name, "_limit_") {
				continue
			}
			for _, scale := range []float64{1, 0.01, 3.6e6, 1e-3, 1e3, 3600} {
				v := r.Value / scale
				if whole := math.Round(v); whole >= firstMark && whole < last && math.Abs(v-whole) < 1e-4 {
					out[whole] = append(out[whole], fmt.Sprintf("%s of %s %s", r.Metric.Family().Name, all[i].Kind, all[i].ID))
					break
				}
			}
		}
	}
	return out
}

// generations returns the readings of each quantity of each chassis that are in the older resources, and those that are in the
// newer ones: services tell their sensors by both, without links between them.
func (m *marked) generations(found map[float64][]string) (older, newer map[string][]string) {
	older, newer = map[string][]string{}, map[string][]string{}
	for id, mark := range m.values {
		part := strings.Split(strings.TrimPrefix(id, rootPath+"/"), "/")
		if n := found[mark]; len(n) == 1 && len(part) > 2 && part[0] == "Chassis" {
			words := strings.Fields(n[0]) // METRIC of KIND ID
			key, of := part[1]+": "+words[0]+" of "+words[2], newer
			if part[2] == "Thermal" || part[2] == "Power" {
				of = older
			}
			of[key] = append(of[key], id)
		}
	}
	return older, newer
}

// once gives each reading below files a value of its own: none may come out twice, and each of must has to come out.
func once(t *testing.T, files map[string]map[string]any, must func(id string) bool) (readings, read int) {
	t.Helper()
	m := mark(files)
	w := walker{source: m, changed: func([]string, bool) bool { return false }}
	tr, err := w.walk(t.Context())
	if err != nil {
		t.Log(err)
	}
	found := m.found(reports(tr))
	for _, id := range slices.Sorted(maps.Keys(m.values)) {
		switch n := found[m.values[id]]; {
		case len(n) > 1:
			t.Errorf("%s is there %d times: %v", id, len(n), n)
		case len(n) == 1:
			read++
		case must(id):
			t.Errorf("%s is nowhere", id)
		default:
			t.Logf("%v is not read", m.where[id])
		}
	}
	older, newer := m.generations(found)
	for key, all := range older {
		if len(newer[key]) > 0 {
			t.Errorf("%s is read from two generations of resources: %v and %v", key, all, newer[key])
		}
	}
	return len(m.values), read
}

// TestOnce: no reading of testdata's services comes out twice.
func TestOnce(t *testing.T) {
	for _, name := range []string{"rackmount1", "localstorage", "idrac", "ilo"} {
		t.Run(name, func(t *testing.T) {
			files := map[string]map[string]any{}
			for path, o := range load(t, name+".json") {
				files[strings.TrimRight(path, "/")] = o
			}
			if all, read := once(t, files, func(string) bool { return false }); read < 5 || read*2 < all {
				t.Errorf("%d of %d readings are read", read, all)
			}
		})
	}
}

// TestOracleOnce does the same with each mockup, of which each sensor that links lead to must come out, too.
func TestOracleOnce(t *testing.T) {
	readings, read := 0, 0
	for _, dir := range mockups(t) {
		t.Run(path.Base(dir), func(t *testing.T) {
			o := newOracle(t, dir)
			listed := o.listed()
			all, n := once(t, o.files, func(id string) bool {
				_, st := state(o.files[id])
				return listed[id] && st != "Absent"
			})
			readings, read = readings+all, read+n
		})
	}
	t.Logf("%d readings, %d of them read, each once", readings, read)
}
