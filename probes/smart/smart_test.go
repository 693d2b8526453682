//go:build linux

package smart

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v4"

	"hwsagent/internal/tools/reference"
	"hwsagent/probes"
	"hwsagent/probes/hw"
)

var update = flag.Bool("update", false, "write testdata/golden.prom anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a directory with a smartctl that prints captures.
func machine(t *testing.T, captures map[string]string) (dir string, c Config) {
	t.Helper()
	dir = t.TempDir()
	put := func(from, to string, mode os.FileMode) {
		text, err := os.ReadFile(filepath.Join("testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), text, mode); err != nil {
			t.Fatal(err)
		}
	}
	put("smartctl", "smartctl", 0o700)
	put("scan.json", "scan.json", 0o600)
	for device, capture := range captures {
		put(capture, device+".json", 0o600)
	}
	return dir, Config{Command: []string{"/bin/sh", filepath.Join(dir, "smartctl")}}
}

func newProbe(t *testing.T, c Config) *Probe {
	t.Helper()
	p, err := New(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// round is what a round says, sorted, and its error.
func round(t *testing.T, p *Probe) (string, error) {
	t.Helper()
	r := probes.NewRound(0)
	err := p.Collect(t.Context(), r)
	var lines []string
	for _, s := range r.Samples() {
		var labels []string
		for i := 0; i < len(s.Labels); i += 2 {
			if s.Labels[i+1] != "" {
				labels = append(labels, fmt.Sprintf("%s=%q", s.Labels[i], s.Labels[i+1]))
			}
		}
		slices.Sort(labels)
		lines = append(lines, fmt.Sprintf("%s{%s} %v\n", s.Family.Name, strings.Join(labels, ","), s.Value))
	}
	slices.Sort(lines)
	if n := len(slices.Compact(slices.Clone(lines))); n != len(lines) {
		t.Errorf("%d of %d samples are there twice", len(lines)-n, len(lines))
	}
	return strings.Join(lines, ""), err
}

var whole = map[string]string{"sda": "ata.json", "nvme0": "nvme.json", "bus_0": "sas.json", "sdb": "refused.json"}

func TestGolden(t *testing.T) {
	dir, c := machine(t, whole)
	got, err := round(t, newProbe(t, c))
	if !errors.Is(err, probes.ErrPartial) || !strings.Contains(err.Error(), "/dev/sdb: smartctl refuses: Smartctl open device: /dev/sdb failed: Permission denied; smartctl needs root") {
		t.Errorf("the error is %v", err)
	}
	golden := filepath.Join("testdata", "golden.prom")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("the captures read differently (-want +got):\n%s", d)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for call := range strings.Lines(string(calls)) {
		if !strings.Contains(call, "--scan") && !strings.Contains(call, "--nocheck=standby") {
			t.Errorf("a disk may be woken by %s", call)
		}
		if strings.Contains(call, "--all") || strings.Contains(call, "--device=-x") {
			t.Errorf("a word of the scan became an option: %s", call)
		}
		if strings.Contains(call, "--device=scsi") {
			t.Errorf("a SATA disk that the scan took for a SCSI disk is read as one: %s", call)
		}
	}
}

// TestSleeping: a disk that falls asleep keeps its constant values, is not an error, and comes back.
func TestSleeping(t *testing.T) {
	dir, c := machine(t, map[string]string{"sda": "ata.json"})
	c.Devices = []Device{{Device: "/dev/sda"}}
	p := newProbe(t, c)
	awake, err := round(t, p)
	if err != nil || !strings.Contains(awake, "smartctl_device_temperature") || !strings.Contains(awake, "hw_temperature_celsius{") {
		t.Errorf("%v\n%s", err, awake)
	}
	asleep, err := os.ReadFile("testdata/sleeps.json")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sda.json"), asleep, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := round(t, p)
	if err != nil || strings.Contains(got, "hw_temperature_celsius{") || strings.Contains(got, "smartctl_device_temperature") ||
		!strings.Contains(got, "hw_component_info{") || !strings.Contains(got, `hw_state="predicted_failure",hw_type="physical_disk"} 1`) ||
		!strings.Contains(got, `smartctl_device_smartctl_exit_status{device="sda"} 2`) {
		t.Errorf("asleep: %v\n%s", err, got)
	}
	if got, err := round(t, newProbe(t, c)); err != nil || strings.Contains(got, "hw_") {
		t.Errorf("never seen awake: %v\n%s", err, got)
	}
}

// TestHanging: a disk that does not answer costs its own series, and its processes end.
func TestHanging(t *testing.T) {
	dir, c := machine(t, whole)
	if err := os.WriteFile(filepath.Join(dir, "nvme0.hang"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.ReadTimeout = model.Duration(2 * time.Second)
	c.Exclude = "sdb"
	p := newProbe(t, c)
	for range 2 {
		got, err := round(t, p)
		if !errors.Is(err, probes.ErrPartial) || !strings.Contains(err.Error(), "/dev/nvme0 nvme: ") || !strings.Contains(err.Error(), "killed") {
			t.Errorf("the error is %v", err)
		}
		if strings.Contains(got, `device="nvme0"`) || !strings.Contains(got, `hw_device="sda"`) || !strings.Contains(got, `device="bus_0_megaraid_1"`) {
			t.Errorf("the round has\n%s", got)
		}
	}
	if n := p.flights.Len(); n != 0 {
		t.Errorf("%d are still on their way", n)
	}
}

// TestHangingBesideSlowDisks: two of eight disks hang, and the others take 2.4 s each. The hanging ones cost the others a
// second each, not read_timeout, so that a round of ten seconds is enough for all. That holds whether or not the kernel
// can end a killed smartctl.
func TestHangingBesideSlowDisks(t *testing.T) {
	for name, letsGo := range map[string]bool{"killed": true, "cannot be killed": false} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { hangBesideSlow(t, letsGo) }) })
	}
}

func hangBesideSlow(t *testing.T, letsGo bool) {
	c := Config{ReadTimeout: model.Duration(4 * time.Second)}
	for i := range 8 {
		c.Devices = append(c.Devices, Device{Device: fmt.Sprintf("/dev/sd%c", 'a'+i)})
	}
	capture, err := os.ReadFile("testdata/ata.json")
	if err != nil {
		t.Fatal(err)
	}
	p := newProbe(t, c)
	var hung atomic.Int64
	resume := make(chan struct{})
	p.smartctl = func(ctx context.Context, args ...string) ([]byte, error) {
		if device := args[len(args)-1]; device == "/dev/sdc" || device == "/dev/sdf" {
			hung.Add(1)
			<-ctx.Done()
			if !letsGo {
				<-resume
			}
			return nil, ctx.Err()
		}
		time.Sleep(2400 * time.Millisecond)
		return capture, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	start := time.Now()
	answers := p.ask(ctx, c.Devices, 0)
	for i, a := range answers {
		if hangs := i == 2 || i == 5; (a.err != nil) != hangs {
			t.Errorf("%s: error %v", c.Devices[i].Device, a.err)
		}
	}
	if took := time.Since(start); took > 9*time.Second {
		t.Errorf("the disks took %s, so that little is left of a round of 10 s", took)
	}
	if n := hung.Load(); n != 2 {
		t.Errorf("%d disks hung, want 2", n)
	}
	if n, want := p.flights.Len(), map[bool]int{true: 0, false: 2}[letsGo]; n != want {
		t.Errorf("%d reads have not come back, want %d", n, want)
	}
	close(resume)
}

// TestPatience: a disk that hangs is given up before the round is, also where read_timeout is longer than the round.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for timeout, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Minute: 10 * time.Second, 3 * time.Second: 3 * time.Second} {
			p := newProbe(t, Config{ReadTimeout: model.Duration(timeout)})
			if got := p.patience(ctx); got != want {
				t.Errorf("read_timeout %s, 20 s left: %s, want %s", timeout, got, want)
			}
		}
		p := newProbe(t, Config{})
		time.Sleep(12 * time.Second)
		if got := p.patience(ctx); got != 4*time.Second {
			t.Errorf("8 s left: %s", got)
		}
		if got := p.patience(t.Context()); got != 30*time.Second {
			t.Errorf("a round without an end: %s", got)
		}
	})
}

// TestStuck has smartctls that survive their kill: they are not started again, and do not take the turns of others.
func TestStuck(t *testing.T) {
	_, c := machine(t, whole)
	c.Devices = []Device{{Device: "/dev/sda"}, {Device: "/dev/nvme0"}}
	p := newProbe(t, c)
	over, never := make(chan time.Time), make(chan answer)
	close(over)
	p.flights.Start("/dev/sda ", func() answer { return <-never }, nil)
	if _, ok := p.flights.Wait("/dev/sda ", over); ok {
		t.Fatal("what hangs has come back")
	}
	got, err := round(t, p)
	if err == nil || !strings.Contains(err.Error(), "/dev/sda: smartctl of an earlier round has not ended") || !strings.Contains(got, `device="nvme0"`) {
		t.Errorf("%v\n%s", err, got)
	}
	never <- answer{}
	p.flights.Wait("/dev/sda ", nil)
	if got, err := round(t, p); err != nil || !strings.Contains(got, `device="sda"`) {
		t.Errorf("after it ended: %v\n%s", err, got)
	}
}

func TestNoSmartctl(t *testing.T) {
	_, err := round(t, newProbe(t, Config{Command: []string{"/nonexistent/smartctl"}}))
	if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "scan for disks: ") {
		t.Errorf("the error is %v", err)
	}
	_, c := machine(t, whole)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newProbe(t, c).Collect(ctx, probes.NewRound(0)); err == nil {
		t.Error("a round that is over is no error")
	}
}

func TestStatus(t *testing.T) {
	for _, tc := range []struct {
		json string
		want hw.Status
	}{
		{`{"smart_status":{"passed":true}}`, hw.OK},
		{`{"smart_status":{"passed":false}}`, hw.OK | hw.PredictedFailure},
		{`{"smart_status":{"passed":true},"smartctl":{"exit_status":16}}`, hw.OK | hw.PredictedFailure},
		{`{"smart_status":{"passed":true},"smartctl":{"exit_status":64}}`, hw.OK}, // old entries in its log
		{`{}`, hw.Unknown},
		{`{"nvme_smart_health_information_log":{"critical_warning":0}}`, hw.OK},
		{`{"nvme_smart_health_information_log":{"critical_warning":1}}`, hw.OK | hw.PredictedFailure},
		{`{"nvme_smart_health_information_log":{"critical_warning":2}}`, hw.Degraded},
		{`{"nvme_smart_health_information_log":{"critical_warning":4}}`, hw.Degraded | hw.PredictedFailure},
		{`{"nvme_smart_health_information_log":{"critical_warning":8}}`, hw.Failed},
		{`{"nvme_smart_health_information_log":{"critical_warning":16}}`, hw.Degraded},
		{`{"smart_status":"rubbish"}`, hw.Unknown},
	} {
		c, err := parseCapture([]byte(tc.json))
		if err != nil {
			t.Errorf("%s: %v", tc.json, err)
		} else if got := c.status(); got != tc.want {
			t.Errorf("%s is %q, want %q", tc.json, got, tc.want)
		}
	}
}

func TestLabel(t *testing.T) {
	for d, want := range map[Device]string{
		{"/dev/sda", "sat"}: "sda", {"/dev/sda", "sat,12"}: "sda", {"/dev/nvme0", ""}: "nvme0", {"/dev/nvme0", "nvme,0x1"}: "nvme0",
		{"/dev/bus/0", "megaraid,1"}: "bus_0_megaraid_1", {"/dev/sg1", "cciss,3"}: "sg1_cciss_3", {"/dev/twa0", "3ware,2"}: "twa0_3ware_2",
		{"/dev/sda", "sat,auto+cciss,3"}: "sda_sat_auto+cciss_3", {"/dev/disk/by-id/ata-X_1", ""}: "ata-X_1",
	} {
		if got := d.label(); got != want {
			t.Errorf("%+v is %q, want %q", d, got, want)
		}
	}
}

func TestConfig(t *testing.T) {
	var c Config
	err := yaml.Unmarshal([]byte("command: [smartctl]\nexclude: (\nread_timeout: 5s\nscan: true\ndevices: [{device: sda}, {device: /dev/sdb, type: --all}, {device: /dev/sdc}, {device: /dev/sdc}]\n"), &c)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Validate()
	for _, want := range []string{`command: "smartctl" is not an absolute path`, "exclude: error parsing", `devices[0].device: "sda" is not a path`, `devices[1].type: "--all" is not a type`, "devices[3]: /dev/sdc is there twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if (&Config{}).Validate() != nil || (&Config{}).command()[0] != "/usr/sbin/smartctl" || (&Config{}).limit() != 30*time.Second || c.limit() != 5*time.Second {
		t.Error("the defaults are wrong")
	}
}

// FuzzCapture has any bytes for the JSON of a disk.
func FuzzCapture(f *testing.F) {
	for _, name := range []string{"ata.json", "nvme.json", "sas.json", "sleeps.json", "scan.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	p, err := New(Config{}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if devices, err := parseScan(b); err == nil {
			for _, d := range devices {
				if strings.HasPrefix(d.Device, "-") || strings.HasPrefix(d.Type, "-") {
					t.Errorf("%+v is an option", d)
				}
			}
		}
		c, err := parseCapture(b)
		if err != nil {
			return
		}
		r := probes.NewRound(0)
		p.add(r, Device{Device: "/dev/sda"}, answer{capture: c}, map[string]bool{})
		if n := len(r.Samples()); n > 200+len(b) {
			t.Errorf("%d samples of %d bytes", n, len(b))
		}
		for _, s := range r.Samples() {
			if len(s.Labels)%2 != 0 || math.IsNaN(s.Value) {
				t.Errorf("%+v", s)
			}
		}
	})
}

// TestReference holds the table of the families in docs/reference/probes.md to the code.
func TestReference(t *testing.T) {
	rows := map[string][2]string{}
	for _, f := range newFamilies() {
		rows[f.Name] = [2]string{string(f.Type), f.Help}
	}
	reference.Section(t, "../../docs/reference/probes.md", "smart", reference.Families(rows), *update)
	text, err := os.ReadFile("../../docs/reference/probes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range watched {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("the attribute %s is not in the text", name)
		}
	}
}

// TestModelOfSCSI: smartctl until 7.3 has another key for the model of a SCSI disk than for all others.
func TestModelOfSCSI(t *testing.T) {
	for text, want := range map[string]string{
		`{"scsi_model_name": "EXAMPLE SAS1200"}`:                          "EXAMPLE SAS1200",
		`{"scsi_model_name": "EXAMPLE SAS1200", "model_name": "SAS1200"}`: "SAS1200",
		`{"model_name": "SAS1200"}`:                                       "SAS1200",
		`{}`:                                                              "",
	} {
		if c, err := parseCapture([]byte(text)); err != nil || c.ModelName != want {
			t.Errorf("of %s the model is %q (%v), want %q", text, c.ModelName, err, want)
		}
	}
}

// TestEndurance: what is left of a disk's life by the standards, or by an attribute of an SSD; a SAS disk without a sensor has no temperature.
func TestEndurance(t *testing.T) {
	attribute := func(name string, value int) string {
		return fmt.Sprintf(`"ata_smart_attributes": {"table": [{"id": 9, "name": "Power_On_Hours", "value": 50}, {"id": 231, "name": %q, "value": %d}]}`, name, value)
	}
	for text, want := range map[string]float64{
		`{"device": {"protocol": "ATA"}, "rotation_rate": 0, ` + attribute("SSD_Life_Left", 93) + `}`:              0.93,
		`{"device": {"protocol": "ATA"}, "rotation_rate": 0, ` + attribute("Media_Wearout_Indicator", 7) + `}`:     0.07,
		`{"device": {"protocol": "ATA"}, "rotation_rate": 7200, ` + attribute("SSD_Life_Left", 93) + `}`:           -1,
		`{"device": {"protocol": "ATA"}, "rotation_rate": 0, ` + attribute("Temperature_Celsius", 93) + `}`:        -1,
		`{"device": {"protocol": "SCSI"}, "scsi_percentage_used_endurance_indicator": 12}`:                         0.88,
		`{"device": {"protocol": "SCSI"}, "endurance_used": {"current_percent": 3}}`:                               0.97,
		`{"device": {"protocol": "NVMe"}, "nvme_smart_health_information_log": {"percentage_used": 120}}`:          0,
		`{"device": {"protocol": "SCSI"}, "temperature": {"current": 0, "drive_trip": 0}, "rotation_rate": 10000}`: -1,
	} {
		c, err := parseCapture([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, p := -1.0, c.component("/dev/x")
		for _, r := range p.Readings {
			switch r.Metric {
			case hw.DiskEndurance:
				got = r.Value
			case hw.TemperatureNow:
				t.Errorf("%s has %v °C", text, r.Value)
			}
		}
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s has %v left, want %v", text, got, want)
		}
	}
}

// TestAttributeTwice: of an attribute that a disk lists twice the first one counts, and the round has no error.
func TestAttributeTwice(t *testing.T) {
	dir, c := machine(t, nil)
	text := `{"device":{"protocol":"ATA"},"model_name":"M","serial_number":"S","smart_status":{"passed":true},"ata_smart_attributes":{"table":[` +
		`{"id":246,"name":"Unknown_Attribute","value":100,"raw":{"value":7}},{"id":246,"name":"Unknown_Attribute","value":99,"raw":{"value":8}}]}}`
	if err := os.WriteFile(filepath.Join(dir, "sdx.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Devices = []Device{{Device: "/dev/sdx"}}
	got, err := round(t, newProbe(t, c))
	if err != nil || strings.Count(got, `attribute_value_type="raw"`) != 1 || !strings.Contains(got, `attribute_value_type="raw",device="sdx"} 7`) {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestTooManyDisks: disks above the limit are named by their number.
func TestTooManyDisks(t *testing.T) {
	c := Config{}
	for i := range maxDevices + 3 {
		c.Devices = append(c.Devices, Device{Device: fmt.Sprintf("/dev/sd%d", i)})
	}
	p := &Probe{config: c}
	own, others, err := p.devices(t.Context())
	if len(own)+len(others) != maxDevices || err == nil || !strings.Contains(err.Error(), "3 disks are not read") {
		t.Errorf("%d disks, %v", len(own)+len(others), err)
	}
}
