//go:build linux

package nvidia

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"hwsagent/internal/tools/reference"
	"hwsagent/probes"
	"hwsagent/probes/hw"
)

var update = flag.Bool("update", false, "write testdata/*.prom anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine returns a directory with an nvidia-smi that prints these texts.
func machine(t *testing.T, xml string) (dir string, c Config) {
	t.Helper()
	dir = t.TempDir()
	put(t, dir, "nvidia-smi", read(t, "testdata/nvidia-smi"))
	put(t, dir, "links", read(t, "testdata/nvlink.txt"))
	put(t, dir, "xml", xml)
	return dir, Config{Command: []string{"/bin/sh", filepath.Join(dir, "nvidia-smi")}}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func newProbe(t *testing.T, c Config) *Probe {
	t.Helper()
	p, err := New(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// round returns what a round says, sorted, and its error.
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
	series := make(map[string]bool)
	for _, l := range lines {
		if name := l[:strings.LastIndexByte(l, ' ')]; series[name] {
			t.Errorf("the series %s is there twice", name)
		} else {
			series[name] = true
		}
	}
	return strings.Join(lines, ""), err
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"a100-sxm4-v12", "gtx-1660-ti", "rtx-4000-sff-ada-v13", "tesla-t4"} {
		dir, c := machine(t, read(t, "testdata/"+name+".xml"))
		c.NVLink = name == "a100-sxm4-v12"
		c.Processes = name == "tesla-t4"
		got, err := round(t, newProbe(t, c))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		golden := filepath.Join("testdata", name+".prom")
		if *update {
			put(t, "testdata", name+".prom", got)
		}
		if d := cmp.Diff(strings.Split(read(t, golden), "\n"), strings.Split(got, "\n")); d != "" {
			t.Errorf("%s reads differently (-want +got):\n%s", name, d)
		}
		want := "-q -x\n"
		if c.NVLink {
			want += "nvlink --status\nnvlink --errorcounters\n"
		}
		if calls := read(t, filepath.Join(dir, "calls")); calls != want {
			t.Errorf("%s: it was called by %q", name, calls)
		}
		if strings.Contains(got, "nvidia_gpu_process") != c.Processes {
			t.Errorf("%s: processes are there, or missing", name)
		}
	}
}

// TestDCGM: the names, labels and units are those of dcgm-exporter 4.4 (etc/default-counters.csv, and its README's sample); nvidia_* is not sent.
func TestDCGM(t *testing.T) {
	_, c := machine(t, read(t, "testdata/rtx-4000-sff-ada-v13.xml"))
	c.Names = "dcgm"
	p := newProbe(t, c)
	p.hostname = "node1"
	got, err := round(t, p)
	if err != nil || strings.Contains(got, "nvidia_") || !strings.Contains(got, "hw_power_watts") {
		t.Errorf("%v\n%s", err, got)
	}
	g, err := parse([]byte(read(t, "testdata/rtx-4000-sff-ada-v13.xml")))
	if err != nil {
		t.Fatal(err)
	}
	first := g.all("gpu")[0]
	labels := fmt.Sprintf(`{DCGM_FI_DRIVER_VERSION=%q,Hostname="node1",UUID=%q,device="nvidia%s",gpu=%q,modelName=%q,pci_bus_id=%q}`,
		g.say("driver_version"), first.say("uuid"), first.say("minor_number"), first.say("minor_number"), first.say("product_name"), strings.ToUpper(first.id))
	for name, path := range map[string]string{"GPU_TEMP": "temperature/gpu_temp", "SM_CLOCK": "clocks/sm_clock", "FB_USED": "fb_memory_usage/used", "FB_FREE": "fb_memory_usage/free", "GPU_UTIL": "utilization/gpu_util", "MEM_CLOCK": "clocks/mem_clock"} {
		digits, _, _ := strings.Cut(first.say(path), " ") // nvidia-smi prints them in dcgm-exporter's units
		if want := "DCGM_FI_DEV_" + name + labels + " " + digits + "\n"; !strings.Contains(got, want) {
			t.Errorf("without %s", want)
		}
	}
	if !strings.Contains(got, "DCGM_FI_DEV_ROW_REMAP_FAILURE"+labels+" 0\n") {
		t.Errorf("without the failure of remapping:\n%s", got)
	}
}

// TestEnergy: the energy is the power over time; a GPU that was away begins anew.
func TestEnergy(t *testing.T) {
	const one = `<nvidia_smi_log><gpu id="a"><uuid>GPU-1</uuid><gpu_power_readings><instant_power_draw>100.00 W</instant_power_draw></gpu_power_readings></gpu></nvidia_smi_log>`
	dir, c := machine(t, one)
	p, now := newProbe(t, c), time.Unix(1000, 0)
	p.now = func() time.Time { return now }
	for _, step := range []struct {
		xml    string
		after  time.Duration
		joules string
	}{{one, 0, "0"}, {one, 15 * time.Second, "1500"}, {one, time.Hour, "61500"}, {"<nvidia_smi_log></nvidia_smi_log>", 0, ""}, {one, time.Second, "0"}} {
		now = now.Add(step.after)
		put(t, dir, "xml", step.xml)
		got, err := round(t, p)
		want := fmt.Sprintf("hw_energy_joules_total{hw_id=\"gpu:GPU-1\",hw_name=\"a\",hw_type=\"gpu\"} %s\n", step.joules)
		if err != nil || strings.Contains(got, want) != (step.joules != "") || strings.Contains(got, "hw_energy") != (step.joules != "") {
			t.Errorf("%v, want %s in\n%s", err, want, got)
		}
	}
}

// TestHanging: nvidia-smi does not come back; it is killed, and the next round works.
func TestHanging(t *testing.T) {
	dir, c := machine(t, read(t, "testdata/tesla-t4.xml"))
	put(t, dir, "hang", "")
	c.ReadTimeout = model.Duration(2 * time.Second)
	p := newProbe(t, c)
	for range 2 {
		if got, err := round(t, p); err == nil || !strings.Contains(err.Error(), "it did not end in time and was killed") || got != "" {
			t.Errorf("%v\n%s", err, got)
		}
	}
	if n := strings.Count(read(t, filepath.Join(dir, "calls")), "\n"); n != 2 || p.flights.Len() != 0 {
		t.Errorf("%d calls, %d on their way", n, p.flights.Len())
	}
	if err := os.Remove(filepath.Join(dir, "hang")); err != nil {
		t.Fatal(err)
	}
	p.config.ReadTimeout = 0
	if got, err := round(t, p); err != nil || !strings.Contains(got, "hw_temperature_celsius") {
		t.Errorf("after it: %v\n%s", err, got)
	}
}

// TestStuck: the kernel does not release nvidia-smi; no second one is started until it does.
func TestStuck(t *testing.T) {
	dir, c := machine(t, read(t, "testdata/tesla-t4.xml"))
	p := newProbe(t, c)
	over, never := make(chan time.Time), make(chan printed)
	close(over)
	p.flights.Start("", func() printed { return <-never }, nil)
	if _, ok := p.flights.Wait("", over); ok {
		t.Fatal("what hangs has come back")
	}
	if _, err := round(t, p); err == nil || !strings.Contains(err.Error(), "nvidia-smi of an earlier round has not ended") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "calls")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was started: %v", err)
	}
	never <- printed{}
	p.flights.Wait("", nil)
	if _, err := round(t, p); err != nil {
		t.Errorf("after it ended: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ name, said, status, want string }{
		{"no driver", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n", "9", "the driver is not loaded"},
		{"no right", "Failed to initialize NVML: Insufficient Permissions\n", "4", "this user may not open /dev/nvidia"},
		{"no GPU", "No devices were found\n", "6", "nvidia-smi refuses"},
		{"no XML", "hello\n", "0", "no element nvidia_smi_log"},
		{"half", "<nvidia_smi_log><gpu id=\"x\"><uuid>", "0", "read the XML of nvidia-smi"},
		{"deep", strings.Repeat("<a>", maxDepth+2), "0", "too many elements"},
	} {
		dir, c := machine(t, tc.said)
		put(t, dir, "status", tc.status)
		if got, err := round(t, newProbe(t, c)); err == nil || !strings.Contains(err.Error(), tc.want) || got != "" {
			t.Errorf("%s: %v\n%s", tc.name, err, got)
		}
	}
	if _, err := round(t, newProbe(t, Config{Command: []string{"/nonexistent/nvidia-smi"}})); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without nvidia-smi: %v", err)
	}
	// One GPU of two is lost: the exit status says so, the other one is read.
	dir, c := machine(t, `<nvidia_smi_log><gpu id="a"><uuid>GPU-1</uuid><temperature><gpu_temp>40 C</gpu_temp></temperature></gpu><gpu id="00000000:02:00.0"><temperature><gpu_temp>GPU is lost</gpu_temp></temperature></gpu></nvidia_smi_log>`)
	put(t, dir, "status", "15")
	got, err := round(t, newProbe(t, c))
	if err != nil || !strings.Contains(got, `hw_temperature_celsius{hw_id="gpu:GPU-1",hw_name="a",hw_sensor_location="gpu"} 40`) ||
		!strings.Contains(got, `hw_status{hw_id="gpu:pci:00000000:02:00.0",hw_name="0000:02:00.0",hw_state="failed",hw_type="gpu"} 1`) {
		t.Errorf("one of two: %v\n%s", err, got)
	}
}

func TestStatus(t *testing.T) {
	for xml, want := range map[string]hw.Status{
		"": hw.OK,
		"<gpu_recovery_action>None</gpu_recovery_action>":                                 hw.OK,
		"<gpu_recovery_action>Reset</gpu_recovery_action>":                                hw.Failed,
		"<gpu_recovery_action>Drain P2P</gpu_recovery_action>":                            hw.Degraded,
		"<gpu_reset_status><reset_required>Yes</reset_required></gpu_reset_status>":       hw.Failed,
		"<remapped_rows><remapped_row_pending>Yes</remapped_row_pending></remapped_rows>": hw.Degraded,
		"<remapped_rows><remapped_row_failure>Yes</remapped_row_failure></remapped_rows>": hw.Degraded | hw.PredictedFailure,
		"<remapped_rows>N/A</remapped_rows>":                                              hw.OK,
		"<fan_speed>ERR!</fan_speed>":                                                     hw.Failed,
		"<clocks_event_reasons><clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown></clocks_event_reasons>":                                     hw.Degraded,
		"<clocks_throttle_reasons><clocks_throttle_reason_sw_thermal_slowdown>Active</clocks_throttle_reason_sw_thermal_slowdown></clocks_throttle_reasons>":                         hw.Degraded,
		"<clocks_event_reasons><clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap></clocks_event_reasons>":                                                   hw.OK,
		"<ecc_errors><unrepairable_memory>Yes</unrepairable_memory></ecc_errors><gpu_reset_status><drain_and_reset_recommended>Yes</drain_and_reset_recommended></gpu_reset_status>": hw.Degraded | hw.PredictedFailure,
	} {
		log, err := parse([]byte("<nvidia_smi_log><gpu>" + xml + "</gpu></nvidia_smi_log>"))
		if err != nil {
			t.Errorf("%s: %v", xml, err)
		} else if got := status(log.at("gpu")); got != want {
			t.Errorf("%s is %q, want %q", xml, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for in, want := range map[string]float64{"8.81 W": 8.81, "30 %": 0.3, "20475 MiB": 20475 << 20, "405 MHz": 405e6, "912.500 mV": 0.9125, "4251825415 us": 4251.825415, "830 KB/s": 830e3, "16x": 16, "-7 C": -7, "25 GB/s": 25e9} {
		if got, ok := number(in); !ok || math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%q is %v, %t", in, got, ok)
		}
	}
	for _, in := range []string{"", "N/A", "nan", "inf", "1 furlong", "0x10", "12 V 3", "1_0"} {
		if got, ok := number(in); ok {
			t.Errorf("%q is %v", in, got)
		}
	}
}

func TestConfig(t *testing.T) {
	err := (&Config{Command: []string{"nvidia-smi"}, ReadTimeout: -1, Names: "smi"}).Validate()
	if err == nil || !strings.Contains(err.Error(), "names: ") || !strings.Contains(err.Error(), "command: ") || !strings.Contains(err.Error(), "read_timeout: ") {
		t.Errorf("the error is %v", err)
	}
	if (&Config{}).Validate() != nil || (&Config{}).command()[0] != "/usr/bin/nvidia-smi" || (&Config{}).limit() != 10*time.Second {
		t.Error("the defaults are wrong")
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"a100-sxm4-v12", "tesla-t4"} {
		text, err := os.ReadFile("testdata/" + name + ".xml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	p, err := New(Config{Processes: true}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = parseLinks(string(b))
		log, err := parse(b)
		if err != nil {
			return
		}
		r := probes.NewRound(0)
		p.add(r, log)
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
	reference.Section(t, "../../docs/reference/probes.md", "nvidia", reference.Families(rows), *update)
}

// FuzzLinks has any text for what nvidia-smi nvlink prints.
func FuzzLinks(f *testing.F) {
	f.Add(read(f, "testdata/nvlink.txt"))
	f.Fuzz(func(t *testing.T, text string) {
		all := parseLinks(text)
		if len(all) > maxLinks {
			t.Errorf("%d links", len(all))
		}
		for _, l := range all {
			if l.uuid == "" || l.number == "" || math.IsNaN(l.value) || math.IsInf(l.value, 0) {
				t.Errorf("%+v", l)
			}
		}
	})
}
