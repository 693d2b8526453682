package snmp

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
	"hwsagent/probes/hw"
	"hwsagent/probes/snmp/imports"
	"hwsagent/probes/snmp/library"
	"hwsagent/probes/snmp/recording"
)

// TestOracle reads recorded devices with the module hardware, over the network, and compares the samples with the results
// in the same directory: NAME.snmprec below tests/snmpsim and NAME.json below tests/data. The directory is not in the
// repository, CORPUS. It prints recall, wrong values and missing detections by vendor, and fails on an
// error of a probe, a critical state reported as ok, an impossible value, a name with a state, and a violated bound. ORACLE_LIBRENMS
// and ORACLE_PROFILES (with ORACLE_MIBS) name directories that are imported first, as by hwsagent snmp import.
func TestOracle(t *testing.T) {
	corpus := os.Getenv("CORPUS")
	if corpus == "" {
		t.Skip("needs recordings and results in CORPUS: run by hand, see internal/tools/README.md")
	}
	files := usableRecordings(t, corpus)
	dirs := importedDefinitions(t)
	total := &score{vendors: map[string]*tally{}, tables: map[string]int{}, families: map[string]int{}, forgiven: map[any]bool{}}
	work := make(chan string)
	var lock sync.Mutex
	var all sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			var plans Plans
			for f := range work {
				judge(t, corpus, f, dirs, &plans, total, &lock)
			}
		})
	}
	for _, f := range files {
		work <- f
	}
	close(work)
	all.Wait()
	total.print(t, len(files))
	if os.Getenv("ORACLE_ONLY") == "" {
		total.judge(t, os.Getenv("ORACLE_LIBRENMS") != "")
		total.judgeReviews(t)
	}
}

// importedDefinitions imports what the environment names, and gives the directories of definitions.
func importedDefinitions(t *testing.T) (dirs []string) {
	profiles := func(dir string) (*imports.Result, error) { return imports.Profiles(dir, os.Getenv("ORACLE_MIBS")) }
	for name, read := range map[string]func(string) (*imports.Result, error){"ORACLE_LIBRENMS": imports.LibreNMS, "ORACLE_PROFILES": profiles} {
		from := os.Getenv(name)
		if from == "" {
			continue
		}
		start := time.Now()
		r, err := read(from)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for _, x := range r.Texts() {
			if err := os.WriteFile(filepath.Join(dir, x.Name), x.Text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Printf("%s: %d definitions, %d values, %d not carried over, %s\n", name, r.Definitions, r.Values, r.Left, time.Since(start).Round(time.Millisecond))
		if to := os.Getenv("ORACLE_DETAILS"); to != "" {
			var b strings.Builder
			_ = r.Write(&b, dir) // a builder takes everything
			if err := os.WriteFile(filepath.Join(to, name+".txt"), []byte(b.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// usable reports whether a recording may be looked at: the SHA-1 of its system's name begins with none of 1, 5, 9 and d. The others
// stay unused, so that they can measure what the library makes of unknown devices.
func usable(file string) bool {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	name, _, _ = strings.Cut(name, "_")
	return sha1.Sum([]byte(name))[0]>>4%4 != 1
}

// expected is a file of results, as far as it is compared.
type expected struct {
	OS struct {
		Discovery struct {
			Devices []struct{ OS string } `json:"devices"`
		} `json:"discovery"`
	} `json:"os"`
	Sensors struct {
		Discovery struct {
			Sensors []sensorResult `json:"sensors"`
			States  []struct {
				Name  string      `json:"state_name"`
				Value json.Number `json:"state_value"`
				Means int         `json:"state_generic_value"`
			} `json:"state_indexes"`
		} `json:"discovery"`
	} `json:"sensors"`
}

type sensorResult struct {
	Class      string      `json:"sensor_class"`
	OID        string      `json:"sensor_oid"`
	Divisor    float64     `json:"sensor_divisor"`
	Multiplier float64     `json:"sensor_multiplier"`
	Current    json.Number `json:"sensor_current"`
	State      string      `json:"state_name"`
	Descr      string      `json:"sensor_descr"`
}

// classes maps the classes of hardware sensors to the allowed metrics, and the conversion of our unit to
// theirs.
var classes = map[string]struct {
	metrics []hw.Metric
	factor  float64
}{
	"state": {nil, 1}, "temperature": {[]hw.Metric{hw.TemperatureNow}, 1}, "voltage": {[]hw.Metric{hw.VoltageNow}, 1},
	"current": {[]hw.Metric{hw.CurrentNow}, 1}, "power": {[]hw.Metric{hw.Power, hw.PowerSupplyUsage}, 1},
	"fanspeed": {[]hw.Metric{hw.FanSpeed}, 1}, "humidity": {[]hw.Metric{hw.HumidityNow}, 100}, "charge": {[]hw.Metric{hw.BatteryCharge}, 100},
	"runtime": {[]hw.Metric{hw.BatteryTimeLeft}, 1. / 60}, "load": {[]hw.Metric{hw.PowerSupplyUtilization, hw.FanSpeedRatio}, 100},
	"frequency": {[]hw.Metric{hw.FrequencyNow}, 1}, "dbm": {[]hw.Metric{hw.OpticalPower}, 1}, "airflow": {nil, 1},
}

// tally counts sensors of one vendor or standard.
type tally struct{ sensors, read, wrong, reviewed, states, otherState, criticalOK int }

type score struct {
	vendors                        map[string]*tally
	tables                         map[string]int // of what is not read
	families                       map[string]int
	wrong                          []string
	errors, nonsense               int          // results with values that hardware cannot have
	known, vendorOnly, rightFamily int          // devices recognised; without a family; with the right one
	forgiven                       map[any]bool // reviews that a recording needed
	devices, complete, nothing     int          // with sensors; those of which nine in ten are read, and none
	identities
}

// judge reads one recording and compares.
func judge(t *testing.T, corpus, file string, dirs []string, plans *Plans, total *score, lock *sync.Mutex) {
	name := strings.TrimSuffix(filepath.Base(file), ".snmprec")
	f, err := os.Open(file)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	rec, _, err := recording.Parse(f)
	if err != nil {
		t.Error(err)
		return
	}
	reader, round, err := readHardware(plans, rec, dirs)
	lock.Lock()
	defer lock.Unlock()
	if err != nil {
		total.errors++
		t.Errorf("%s: %v", name, err)
		return
	}
	total.identity(name, round.Samples())
	text, err := os.ReadFile(filepath.Join(corpus, "tests/data", name+".json"))
	if err != nil {
		return // a recording without results
	}
	var want expected
	if err := json.Unmarshal(text, &want); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	total.detection(&want, reader.device)
	total.sensors(name, &want, reader.last.Findings)
}

// readHardware runs a probe against the recording.
func readHardware(plans *Plans, rec *recording.Recording, dirs []string) (*libraryReader, *probes.Round, error) {
	a, err := recording.Serve(rec)
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	c := Config{Target: a.Addr(), Modules: []string{hardwareModule}, Definitions: dirs, PacketTimeout: model.Duration(20 * time.Second), MaxRepetitions: 60}
	p, err := plans.New(c, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	defer p.Close()
	round := probes.NewRound(0)
	if err := p.Collect(context.Background(), round); !errors.Is(err, ErrNothingKnown) {
		return p.modules[0].device, round, err
	}
	return p.modules[0].device, round, nil
}

func (s *score) detection(want *expected, got *library.Device) {
	if len(want.OS.Discovery.Devices) == 1 && got.Vendor != "" {
		os := want.OS.Discovery.Devices[0].OS
		switch s.known++; {
		case got.Family == "":
			s.vendorOnly++
		case os == got.Family:
			s.rightFamily++
		}
		s.families[got.Vendor+" "+got.Family+" = "+want.OS.Discovery.Devices[0].OS]++
	}
}

// severities are the words of state_generic_value.
var severities = []string{"ok", "warning", "critical", "unknown"}

func severity(s hw.Status) string {
	switch {
	case s.Is(hw.Failed):
		return "critical"
	case s.Is(hw.Degraded), s.Is(hw.PredictedFailure), s.Is(hw.NeedsCleaning):
		return "warning"
	case s.Is(hw.OK):
		return "ok"
	}
	return "unknown"
}

func (s *score) sensors(name string, want *expected, findings []library.Finding) {
	byOID := map[string][]library.Finding{}
	for _, f := range findings {
		byOID[f.OID.String()] = append(byOID[f.OID.String()], f)
	}
	sensors, read := 0, 0
	described := map[string]int{} // by OID: results that name one twice have mistaken one of them
	for _, x := range want.Sensors.Discovery.Sensors {
		described[x.OID]++
	}
	for _, x := range want.Sensors.Discovery.Sensors {
		if _, ok := classes[x.Class]; !ok {
			continue
		}
		if v, err := strconv.ParseFloat(x.Current.String(), 64); err == nil && impossibleResult(x.Class, v) {
			s.nonsense++
			continue
		}
		oid := strings.TrimPrefix(x.OID, ".")
		vendor := vendorOf(oid)
		if s.vendors[vendor] == nil {
			s.vendors[vendor] = &tally{}
		}
		v := s.vendors[vendor]
		v.sensors++
		sensors++
		found := byOID[oid]
		if len(found) == 0 {
			s.tables[x.Class+" "+oid+" "+name]++
			continue
		}
		ok, note := s.compare(name, x, want, found, v)
		if described[x.OID] == 1 {
			s.kind(name, x, found)
		}
		if ok {
			v.read++
			read++
		} else {
			s.wrong = append(s.wrong, fmt.Sprintf("%s %s %s %q: %s", name, oid, found[0].Object, x.Descr, note))
		}
	}
	if sensors > 0 {
		s.devices++
		switch {
		case float64(read) >= 0.9*float64(sensors):
			s.complete++
		case read == 0:
			s.nothing++
		}
	}
}

// compare counts one sensor that was read; ok is false if the values differ.
func (s *score) compare(device string, x sensorResult, want *expected, found []library.Finding, v *tally) (ok bool, note string) {
	if x.Class == "state" {
		v.states++
		means := 3
		for _, st := range want.Sensors.Discovery.States {
			if st.Name == x.State && st.Value == x.Current {
				means = st.Means
			}
		}
		theirs := severities[min(max(means, 0), 3)]
		best := ""
		for _, f := range found {
			if f.Metric == hw.StatusOf {
				if best = severity(f.Status); best == theirs {
					return true, ""
				}
			}
		}
		why := s.reviewedState(device, found[0].Object, x.Current.String(), best)
		switch {
		case theirs == "critical" && best == "ok":
			v.criticalOK++
		case why != "":
			v.reviewed++
			return false, fmt.Sprintf("REVIEWED %s of %s is %q, theirs %s: %s", x.State, x.Current, best, theirs, why)
		}
		v.otherState++
		return false, fmt.Sprintf("STATE %s of %s is %q, theirs %s", x.State, x.Current, best, theirs)
	}
	e, err := strconv.ParseFloat(x.Current.String(), 64)
	if err != nil {
		e = 0
	}
	c := classes[x.Class]
	step := cmp.Or(x.Multiplier, 1) / cmp.Or(x.Divisor, 1)
	for _, f := range found {
		got := f.Value * c.factor
		if x.Class == "power" && f.Metric == hw.OpticalPower { // of an optic in watts, which is sent in dBm as all others
			if w := math.Pow(10, f.Value/10) / 1000; math.Abs(w-e) <= 1e-6*math.Abs(e) {
				return true, ""
			}
		}
		if slices.Contains(c.metrics, f.Metric) && (math.Abs(got-e) <= 1e-6*math.Abs(e) || math.Abs(got-e) < math.Abs(step)*1.001) {
			return true, ""
		}
	}
	f := found[0]
	if why := s.reviewedValue(device, f.Object, x.Class, e, f.Value*c.factor); why != "" {
		v.reviewed++
		return false, fmt.Sprintf("REVIEWED %s %v is %s %v: %s", x.Class, e, f.Metric.Family().Name, f.Value*c.factor, why)
	}
	v.wrong++
	return false, fmt.Sprintf("WRONG %s %v is %s %v", x.Class, e, f.Metric.Family().Name, f.Value*c.factor)
}
