//go:build linux

package ipmi

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hwsagent/e2e/bmcsim"
	"hwsagent/probes"
)

// differences are the series of ipmi_exporter whose values differ here, by their beginning, with the reason. docs/probes/ipmi.md has them, too.
var differences = []difference{
	{`ipmi_bmc_info{firmware_revision="9.08",manufacturer_id="MontaVista`, math.NaN(), 1, "manufacturer_id is the number, without FreeIPMI's name for it; system_firmware_version is not read"},
	{`ipmi_temperature_state{id="1",`, 1, 0, nonCritical},
	{`ipmi_fan_speed_state{id="19",`, 1, 0, nonCritical},
	{`ipmi_voltage_state{id="29",`, 1, 0, nonCritical},
	{`ipmi_power_state{id="39",`, 1, 0, nonCritical},
	{`ipmi_fan_speed_state{id="5",name="FAN REAR"}`, 1, 0, nonCritical},
	{`ipmi_sensor_state{id="42",name="PS2 Status"`, 1, 2, lostInput},
	{`ipmi_sensor_state{id="11",name="PSU B STATE"`, 1, 2, lostInput},
}

type difference struct {
	series       string
	ours, theirs float64 // NaN: none
	why          string
}

const (
	nonCritical = "a reading beyond a non-critical limit is a warning here; FreeIPMI's default configuration calls it nominal"
	lostInput   = "a power supply that lost its input is a warning here, for the machine still runs; FreeIPMI calls it critical"
)

// startExporter runs Debian's ipmi_exporter, which runs FreeIPMI, and returns its address.
func startExporter(t *testing.T) string {
	t.Helper()
	program := needProgram(t, "prometheus-ipmi-exporter")
	_ = needProgram(t, "ipmimonitoring")
	dir := t.TempDir()
	config := fmt.Sprintf(`modules: {default: {user: watcher, pass: watch-pass, driver: LAN_2_0, privilege: user, timeout: 20000, workaround_flags: [opensesspriv], collectors: [bmc, ipmi, chassis, dcmi, sel],
 custom_args: {ipmi: [--sdr-cache-directory=%s]}}}`, dir)
	file := filepath.Join(dir, "ipmi.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	cmd := exec.Command(program, "--config.file="+file, "--web.listen-address="+address)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if t.Failed() {
			t.Logf("ipmi_exporter: %s", said.String())
		}
	})
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		select {
		case <-done:
			t.Fatalf("ipmi_exporter ended: %s", said.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatal("ipmi_exporter does not listen")
	return ""
}

// exported returns the samples of a page for that BMC, as the samples of a round are written by key.
func exported(t *testing.T, exporter, bmc string) map[string]float64 {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + exporter + "/ipmi?target=" + url.QueryEscape(bmc))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for name, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName(), l.GetValue())
			}
			all[seriesKey(name, labels)] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return all
}

// seriesKey is a series as text, its labels in order and those without a value left out.
func seriesKey(name string, labels []string) string {
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		if labels[i+1] != "" {
			pairs = append(pairs, labels[i]+"="+strconv.Quote(labels[i+1]))
		}
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}

// TestAgainstIpmiExporter compares each series of Debian's ipmi_exporter with the probe's, of a server that is well, of one with faults, and
// of OpenIPMI's simulator. Where it says "not a number", the probe has no sample.
func TestAgainstIpmiExporter(t *testing.T) {
	exporter := startExporter(t)
	used := make([]bool, len(differences))
	for _, bmc := range []struct {
		name  string
		start func(t *testing.T) string
		least int // series to compare
	}{
		{"well", func(t *testing.T) string { return startServer(t, func(*bmcsim.Machine) {}) }, 120},
		{"faults", func(t *testing.T) string { return startServer(t, breakParts) }, 120},
		{"OpenIPMI", func(t *testing.T) string { return startSim(t, "-8") }, 30},
	} {
		t.Run(bmc.name, func(t *testing.T) {
			address := bmc.start(t)
			theirs := exported(t, exporter, address)
			r := probes.NewRound(0)
			if err := newProbe(t, Config{Target: address, Username: "watcher", Password: "watch-pass"}).Collect(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			ours := make(map[string]float64)
			for _, s := range r.Samples() {
				ours[seriesKey(s.Family.Name, s.Labels)] = s.Value
			}
			compared := 0
			for key, want := range theirs {
				if key == "ipmi_scrape_duration_seconds{}" { // of the exporter itself
					continue
				}
				got, there := ours[key]
				if !there {
					got = math.NaN()
				}
				if i := slices.IndexFunc(differences, func(d difference) bool { return strings.HasPrefix(key, d.series) }); i >= 0 && !equal(got, want) {
					if d := differences[i]; !equal(got, d.ours) || !equal(want, d.theirs) {
						t.Errorf("%s is %v, and %v of ipmi_exporter; listed is that it is %v and %v", key, got, want, d.ours, d.theirs)
					}
					used[i] = true
					continue
				}
				if !equal(got, want) {
					t.Errorf("%s is %v, and %v of ipmi_exporter", key, got, want)
				}
				compared++
			}
			if compared < bmc.least {
				t.Errorf("%d series were compared, want %d or more: %v", compared, bmc.least, theirs)
			}
			t.Logf("%d series are equal", compared)
		})
	}
	for i, d := range differences {
		if !used[i] {
			t.Errorf("%s is listed as different (%s), and is not", d.series, d.why)
		}
	}
}

// equal compares values as FreeIPMI prints them, with two digits.
func equal(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 0.006
}

// startServer runs a simulated BMC of a server, after a change.
func startServer(t *testing.T, change func(*bmcsim.Machine)) string {
	t.Helper()
	m := bmcsim.NewMachine("watcher", "watch-pass")
	change(m)
	b, err := bmcsim.Listen("127.0.0.1:0", m, bmcsim.Well)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(b.Run)
	t.Cleanup(func() { b.Close(); wg.Wait() })
	return b.Address()
}

// breakParts puts readings beyond their limits and parts into bad states.
func breakParts(m *bmcsim.Machine) {
	for name, raw := range map[string]byte{"CPU1 Temp": 90, "CPU2 Temp": 99, "FAN1": 10, "FAN2": 7, "P12V0": 140, "PS1 Input Power": 245} {
		m.Sensors[slices.IndexFunc(m.Sensors, func(s bmcsim.Sensor) bool { return s.Name == name })].Raw = raw
	}
	for name, states := range map[string]uint16{"PS1 Status": 1<<0 | 1<<1, "PS2 Status": 1<<0 | 1<<3, "DIMM1": 1<<6 | 1<<0, "DIMM2": 1<<6 | 1<<1, "Disk1": 1<<0 | 1<<1, "Disk2": 1 << 7} {
		m.Sensors[slices.IndexFunc(m.Sensors, func(s bmcsim.Sensor) bool { return s.Name == name })].States = states
	}
}
