//go:build linux

package ipmi

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"hwsagent/e2e/bmcsim"
	"hwsagent/e2e/exportertest"
	"hwsagent/probes"
)

// differences returns the series of ipmi_exporter whose values differ here, by their beginning, with the reason. docs/probes/ipmi.md has
// them, too.
func differences() []exportertest.Difference {
	differ := func(series string, ours, theirs float64, why string) exportertest.Difference {
		return exportertest.Difference{Series: series, Ours: ours, Theirs: theirs, Why: why}
	}
	return []exportertest.Difference{
		differ(`ipmi_bmc_info{firmware_revision="9.08",manufacturer_id="MontaVista`, math.NaN(), 1, "manufacturer_id is the number, without FreeIPMI's name for it; system_firmware_version is not read"),
		differ(`ipmi_temperature_state{id="1",`, 1, 0, nonCritical),
		differ(`ipmi_fan_speed_state{id="19",`, 1, 0, nonCritical),
		differ(`ipmi_voltage_state{id="29",`, 1, 0, nonCritical),
		differ(`ipmi_power_state{id="39",`, 1, 0, nonCritical),
		differ(`ipmi_fan_speed_state{id="5",name="FAN REAR"}`, 1, 0, nonCritical),
		differ(`ipmi_sensor_state{id="42",name="PS2 Status"`, 1, 2, lostInput),
		differ(`ipmi_sensor_state{id="11",name="PSU B STATE"`, 1, 2, lostInput),
	}
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
	return exportertest.Start(t, 20*time.Second, program, "--config.file="+file)
}

// TestAgainstIpmiExporter compares each series of Debian's ipmi_exporter with the probe's, of a server that is well, of one with faults, and
// of OpenIPMI's simulator. Where it says "not a number", the probe has no sample.
func TestAgainstIpmiExporter(t *testing.T) {
	exporter := startExporter(t)
	// FreeIPMI prints two digits.
	c := exportertest.Comparison{Exporter: "ipmi_exporter", Tolerance: 0.006, Differences: differences()}
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
			theirs := exportertest.Page(t, "http://"+exporter+"/ipmi?target="+url.QueryEscape(address), nil)
			delete(theirs, "ipmi_scrape_duration_seconds{}") // of the exporter itself
			r := probes.NewRound(0)
			if err := newProbe(t, Config{Target: address, Username: "watcher", Password: "watch-pass"}).Collect(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if n := c.Compare(t, exportertest.Round(r), theirs); n < bmc.least {
				t.Errorf("%d series were compared, want %d or more: %v", n, bmc.least, theirs)
			}
		})
	}
	c.AllUsed(t)
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
