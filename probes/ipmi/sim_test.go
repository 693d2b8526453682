//go:build linux

package ipmi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hwsagent/probes"
	"hwsagent/probes/tape"
	"hwsagent/probes/tape/tapetest"
)

// needProgram skips the test by name where the program is missing; in CI it fails.
func needProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is not installed, and CI must run this test", name)
	}
	t.Skipf("%s is not installed (Debian: apt-get install openipmi ipmitool prometheus-ipmi-exporter freeipmi-tools)", name)
	return ""
}

// startSim runs OpenIPMI's simulator of a BMC and returns its address. Flags are those of sdrcomp: without -8 it packs names into
// six bits a character.
func startSim(t *testing.T, flags ...string) string {
	t.Helper()
	sim, compiler := needProgram(t, "ipmi_sim"), needProgram(t, "sdrcomp")
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.LocalAddr().String()
	_ = l.Close()
	dir := t.TempDir()
	records := filepath.Join(dir, "ipmi_sim", "bmc")
	if err := os.MkdirAll(records, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, append(flags, "-o", filepath.Join(records, "sdr.20.main"), "testdata/sim/bmc.sdrs")...).CombinedOutput(); err != nil {
		t.Fatalf("sdrcomp: %v\n%s", err, out)
	}
	for name, mode := range map[string]os.FileMode{"bmc.emu": 0o600, "lan.conf": 0o600, "chassis.sh": 0o700} {
		text, err := os.ReadFile(filepath.Join("testdata/sim", name))
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte("PORT"), []byte(address[strings.LastIndexByte(address, ':')+1:]))
		if err := os.WriteFile(filepath.Join(dir, name), text, mode); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, sim, "-c", filepath.Join(dir, "lan.conf"), "-f", filepath.Join(dir, "bmc.emu"), "-s", dir, "-n")
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	for deadline := time.Now().Add(20 * time.Second); ; {
		session, err := (&login{address: address, user: "watcher", password: "watch-pass", privilege: 2, patience: time.Second}).open(t.Context(), suite3)
		if err == nil {
			session.close(t.Context())
			return address
		}
		select {
		case <-done:
			t.Fatalf("ipmi_sim ended: %s", said.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("ipmi_sim does not answer: %v", err)
		}
	}
}

var simUnits = map[string]string{"degrees C": "ipmi_temperature_celsius", "RPM": "ipmi_fan_speed_rpm", "Volts": "ipmi_voltage_volts", "Watts": "ipmi_power_watts", "Amps": "ipmi_current_amperes"}

// TestSim reads OpenIPMI's BMC and compares each sensor with ipmitool; also with names that other programs choke on.
func TestSim(t *testing.T) {
	for _, flags := range [][]string{{"-8"}, nil} {
		t.Run(fmt.Sprint("sdrcomp", flags), func(t *testing.T) {
			address := startSim(t, flags...)
			p := newProbe(t, Config{Target: address, Username: "watcher", Password: "watch-pass"})
			got, err := round(t, p)
			if err != nil {
				t.Error(err)
			}
			compareWithIpmitool(t, address, got)
			for _, line := range []string{
				`ipmi_temperature_celsius{id="2",name="CPU B CORE"} 93`, `ipmi_temperature_celsius{id="3",name="AIR INLET"} -7`, `ipmi_voltage_volts{id="6",name="P12V MAIN"} 12.095`,
				`ipmi_temperature_state{id="1",name="CPU A CORE"} 0`, `ipmi_temperature_state{id="2",name="CPU B CORE"} 2`, `ipmi_fan_speed_state{id="5",name="FAN REAR"} 1`,
				`hw_status{hw_id="ipmi:20.0.12",hw_name="CPU B CORE",hw_parent="ipmi:processor.2",hw_state="failed",hw_type="temperature"} 1`,
				`hw_status{hw_id="ipmi:20.0.22",hw_name="FAN REAR",hw_parent="ipmi:fan.2",hw_state="degraded",hw_type="fan"} 1`,
				`hw_status{hw_id="ipmi:20.0.52",hw_name="PSU B STATE",hw_parent="ipmi:power_supply.2",hw_state="degraded",hw_type="power_supply"} 1`,
				`hw_status{hw_id="ipmi:20.0.62",hw_name="BAY 2",hw_parent="ipmi:disk.2",hw_state="failed",hw_type="physical_disk"} 1`,
				`hw_status{hw_id="ipmi:20.0.81",hw_name="DIMM 1",hw_parent="ipmi:memory_module.1",hw_state="ok",hw_type="memory"} 1`,
				`hw_status{hw_id="ipmi:20.0.82",hw_name="DIMM 2",hw_parent="ipmi:memory_module.2",hw_state="degraded",hw_type="memory"} 1`,
				`hw_temperature_limit_celsius{hw_id="ipmi:20.0.11",hw_limit_type="high.critical",hw_name="CPU A CORE",hw_parent="ipmi:processor.1"} 90`,
				`hw_fan_speed_limit_rpm{hw_id="ipmi:20.0.21",hw_limit_type="low.degraded",hw_name="FAN FRONT",hw_parent="ipmi:fan.1"} 960`,
				`hw_component_info{hw_id="enclosure",hw_model="Server 700",hw_name="Server 700",hw_serial_number="SRV-000700",hw_type="enclosure",hw_uuid="33221100-5544-7766-8899-aabbccddeeff",hw_vendor="Example Systems"} 1`,
				`hw_host_power_watts{hw_quality="estimated",hw_serial_number="SRV-000700",hw_uuid="33221100-5544-7766-8899-aabbccddeeff"} 282`,
				`ipmi_chassis_power_state{} 1`, `ipmi_chassis_drive_fault_state{} 1`, `ipmi_sel_logs_count{} 2`, `ipmi_up{collector="ipmi"} 1`, `ipmi_up{collector="dcmi"} 0`,
				`ipmi_bmc_info{firmware_revision="9.08",manufacturer_id="4753"} 1`, `ipmi_sensors{} 16`, `ipmi_records_unread{} 0`,
			} {
				if !strings.Contains(got, line+"\n") {
					t.Errorf("%s is missing", line)
				}
			}
			if t.Failed() {
				t.Log(got)
			}
			records := p.records
			still := func(text string) string { // without what grows
				return regexp.MustCompile(`hw_host_energy_joules_total\S+ \S+\n`).ReplaceAllString(text, "")
			}
			if again, err := round(t, p); err != nil || still(again) != still(got) || p.records != records {
				t.Errorf("the second round: %v; the records were read again: %t", err, p.records != records)
			}
		})
	}
}

// compareWithIpmitool compares the analog sensors with the output of ipmitool.
func compareWithIpmitool(t *testing.T, address, got string) {
	t.Helper()
	host, port, _ := net.SplitHostPort(address)
	out, err := exec.Command(needProgram(t, "ipmitool"), "-I", "lanplus", "-C", "3", "-H", host, "-p", port, "-U", "watcher", "-P", "watch-pass", "-L", "USER", "sdr", "elist", "full").Output()
	if err != nil {
		t.Fatalf("ipmitool: %v", err)
	}
	compared := 0
	for _, m := range regexp.MustCompile(`(?m)^.*\| ([0-9A-F]{2})h \| .*\| (-?[0-9.]+) (.*?)\s*$`).FindAllStringSubmatch(string(out), -1) {
		want, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		metric := strings.NewReplacer("ipmi_temperature", "hw_temperature", "ipmi_fan", "hw_fan", "ipmi_voltage", "hw_voltage", "ipmi_power", "hw_power", "ipmi_current", "hw_current").Replace(simUnits[m[3]])
		found := regexp.MustCompile(metric + `\{hw_id="ipmi:20\.0\.` + strings.ToLower(m[1]) + `"[^}]*\} (\S+)`).FindStringSubmatch(got)
		if found == nil {
			t.Errorf("ipmitool has %s; %s of it is missing", m[0], metric)
			continue
		}
		compared++
		v, err := strconv.ParseFloat(found[1], 64)
		if err != nil || math.Abs(v-want) > 0.005*math.Max(1, math.Abs(want)) { // ipmitool rounds
			t.Errorf("ipmitool has %s; the probe has %v", m[0], v)
		}
	}
	if compared != 9 {
		t.Errorf("%d sensors were compared, want 9:\n%s", compared, out)
	}
}

// TestSimRefusals: the BMC's refusals, explained; and a wrong password is tried once.
func TestSimRefusals(t *testing.T) {
	address := startSim(t, "-8")
	for _, tc := range []struct {
		name, want string
		c          Config
	}{
		{"password", "is wrong, or the account is locked", Config{Username: "watcher", Password: "not-this-one"}},
		{"user", `does not know the user "nobody"`, Config{Username: "nobody", Password: "watch-pass"}},
		{"suite", "does not take the cipher suite", Config{Username: "watcher", Password: "watch-pass", CipherSuite: 17}},
	} {
		tc.c.Target = address
		p := newProbe(t, tc.c)
		_, err := round(t, p)
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, probes.ErrPartial) || strings.Contains(err.Error(), "watch-pass") {
			t.Errorf("%s: %v", tc.name, err)
		}
		_, err = round(t, p)
		if again := err != nil && strings.Contains(err.Error(), "not tried again yet"); again == (tc.name == "suite") {
			t.Errorf("%s, the second round: %v", tc.name, err)
		}
	}
}

// TestSimSessions: sessions are closed, also when the time of a round is over: after many rounds the BMC, which has few, takes another one.
func TestSimSessions(t *testing.T) {
	address := startSim(t, "-8")
	p := newProbe(t, Config{Target: address, Username: "watcher", Password: "watch-pass", CipherSuite: 3})
	for i := range 150 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%30)*200*time.Microsecond+time.Millisecond)
		_ = p.Collect(ctx, probes.NewRound(0))
		cancel()
		p.contact.Ask()
		if i%10 == 0 {
			if _, err := round(t, p); err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
		}
	}
}

// TestSimEvents: new entries of the event log are counted once.
func TestSimEvents(t *testing.T) {
	address := startSim(t, "-8")
	p := newProbe(t, Config{Target: address, Username: "chief", Password: "chief-pass", Privilege: "administrator"})
	got, err := round(t, p)
	if err != nil || strings.Contains(got, "ipmi_sel_new_entries_total") {
		t.Errorf("%v\n%s", err, got)
	}
	l, err := p.open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	// Add SEL Entry (section 31.6): two entries of the sensor 52h.
	for range 2 {
		if _, err := l.ask(t.Context(), 0, netStorage, 0x44, 0, 0, 2, 0, 0, 0, 0, 0x20, 0, 4, typePowerSupply, 0x52, specific, 1, 0xff, 0xff); err != nil {
			t.Fatal(err)
		}
	}
	l.close(t.Context())
	for range 2 {
		got, err = round(t, p)
		if err != nil || !strings.Contains(got, `ipmi_sel_new_entries_total{type="Power Supply"} 2`) || !strings.Contains(got, "ipmi_sel_logs_count{} 4") {
			t.Errorf("%v\n%s", err, got)
		}
	}
}

// A replayed recording of OpenIPMI's BMC gives the same samples as the BMC.
func TestSimReplay(t *testing.T) {
	address := startSim(t)
	c := Config{Target: address, Username: "watcher", Password: "watch-pass"}
	want, err := round(t, newProbe(t, c))
	if err != nil {
		t.Log(err) // of a record that cannot be read
	}
	taped, p := tape.New("ipmi"), newProbe(t, c)
	if err := p.Record(t.Context(), taped); err != nil {
		t.Log(err)
	}
	read, text := tapetest.File(t, taped, p, tape.Kinds()...)
	again, err := Replay(read, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	got, err := round(t, again)
	if err != nil {
		t.Log(err)
	}
	if got != want || !strings.Contains(got, "CPU B CORE") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(text, "watch-pass") {
		t.Error("the password is in the recording")
	}
}
