package hardware

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hwsagent/agent/config"
	"hwsagent/agent/hardware/inventory"
	"hwsagent/probes/snmp/recording"
)

// switchRecording is a switch with a sensor, a name and a serial number.
const switchRecording = `1.3.6.1.2.1.1.1.0|4|Example Switch
1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.32473.1.1
1.3.6.1.2.1.1.3.0|67|4711
1.3.6.1.2.1.1.5.0|4|core-switch-17
1.3.6.1.2.1.47.1.1.1.1.7.3|4|Inlet
1.3.6.1.2.1.47.1.1.1.1.11.3|4|SN12345678
1.3.6.1.2.1.99.1.1.1.1.3|2|8
1.3.6.1.2.1.99.1.1.1.2.3|2|9
1.3.6.1.2.1.99.1.1.1.3.3|2|1
1.3.6.1.2.1.99.1.1.1.4.3|2|235
1.3.6.1.2.1.99.1.1.1.5.3|2|1
1.3.6.1.4.1.32473.9.6.0|4|key s3cr3tcommunity
`

func recordedSwitch(t *testing.T) string {
	t.Helper()
	rec, notes, err := recording.Parse(strings.NewReader(switchRecording))
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	a, err := recording.Serve(rec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a.Addr()
}

// A device over SNMP is the same in an inventory and in that of its recording, whatever modules its entry has; the recording has no
// name, no serial number and no community.
func TestRecordedDevice(t *testing.T) {
	dir := t.TempDir()
	secret := write(t, filepath.Join(dir, "community"), "s3cr3tcommunity\n", 0o600)
	cfgFile := write(t, filepath.Join(dir, "agent.yaml"), fmt.Sprintf("probes:\n- {name: sw, type: snmp, targets: [%q, %q], modules: [system], auth: {community_file: %s}}\n- {name: off, type: nut, enabled: false}\n", recordedSwitch(t), recordedSwitch(t), secret), 0o600)
	o := Options{ConfigFile: cfgFile, Logger: slog.New(slog.DiscardHandler)}
	all, err := TakeInventory(t.Context(), o)
	if err != nil || len(all) != 2 || len(all[0].Components) != 1 || all[0].Components[0].Values["temperature_celsius"] != "23.5" {
		t.Fatalf("%+v %v", all, err)
	}
	o.Probe = "sw"
	file := filepath.Join(dir, "sw.snmprec")
	if _, err := Record(t.Context(), o, file, nil); !errors.Is(err, config.ErrUsage) || !strings.Contains(err.Error(), "has 2 devices") {
		t.Errorf("two devices in one recording: %v", err)
	}
	o.Probe = all[0].Name
	done, err := Record(t.Context(), o, file, nil)
	if err != nil || done.Type != "snmp" || done.Answers != 12 || done.Problem != "" {
		t.Fatalf("%+v %v", done, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"core-switch", "SN12345678", "s3cr3t"} {
		if strings.Contains(string(text), word) {
			t.Errorf("%q is in the recording:\n%s", word, text)
		}
	}
	again, err := InventoryOf(t.Context(), file, Options{Logger: o.Logger})
	if err != nil || !reflect.DeepEqual(again.Components, all[0].Components) {
		t.Errorf("%+v %v", again, err)
	}
}

// A probe that cannot be read is reported beside the others; if none can be read, that is an error. Without hardware
// there is nothing to show.
func TestInventoryProblems(t *testing.T) {
	dir := t.TempDir()
	broken := "- {name: disks, type: smart, command: [/nonexistent/smartctl]}\n"
	good := fmt.Sprintf("- {name: sw, type: snmp, target: %q}\n", recordedSwitch(t))
	for _, c := range []struct {
		probes string
		err    error
		want   []string // the problem of each, a part; "" for none
	}{
		{broken + good, nil, []string{"scan for disks", ""}},
		{broken, ErrProbe, []string{"scan for disks"}},
		{"- {name: c, type: canary}\n", config.ErrNoSuchProbe, nil},
	} {
		cfgFile := write(t, filepath.Join(dir, "agent.yaml"), "probes:\n"+c.probes, 0o600)
		all, err := TakeInventory(t.Context(), Options{ConfigFile: cfgFile, Logger: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, c.err) || len(all) != len(c.want) {
			t.Errorf("%s: %d, %v", c.probes, len(all), err)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(all[i].Problem, want) || (want == "") != (all[i].Problem == "") || all[i].Components == nil {
				t.Errorf("%s: %+v", c.probes, all[i])
			}
		}
	}
}

// Recordings that lie give an error, and nothing else.
func TestInventoryOfRubbish(t *testing.T) {
	for text, want := range map[string]string{
		"hwsagent-recording 1 toaster\n> a\n":                              `no recording of the type "toaster"`,
		"hwsagent-recording 1 host\n> ../outside\n|x\n":                    "not a path of such a recording",
		"hwsagent-recording 1 redfish\n> /redfish/v1/Systems\n= 99\n|{}\n": "none of HTTP",
		"hwsagent-recording 1 ipmi\n> 06.0 01\n= completion zz\n":          "which is none",
		"hwsagent-recording 1 nut\n> LIST UPS\n|a\n> LIST VAR a\n|odd\n":   "not a variable and its value",
		"hwsagent-recording 1 nvidia\n> x\n":                               "no answer to the arguments",
		"hwsagent-recording 1 raid\n> storcli64 x\n":                       "no answer to the arguments",
		"hwsagent-recording 1 kernel\n> x\n":                               "no answer to",
		"hwsagent-recording 1 smart\n":                                     "no answer to the arguments",
		"":                                                                 "it is not a recording",
	} {
		file := write(t, filepath.Join(t.TempDir(), "r"), text, 0o600)
		inv, err := InventoryOf(t.Context(), file, Options{Logger: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(inv.Components, []*inventory.Component{}) {
			t.Errorf("%q: %v, want %q; %+v", text, err, want, inv)
		}
	}
}
