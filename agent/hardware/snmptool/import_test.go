package snmptool

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	acmeLibreNMS = "../../../probes/snmp/imports/testdata/librenms"
	acmeProfiles = "../../../probes/snmp/imports/testdata/profiles"
)

// acmeDevice is a device that only imported definitions know.
const acmeDevice = `1.3.6.1.2.1.1.1.0|4|Acme v2
1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.99999.5
1.3.6.1.4.1.99999.1.1.1.1.1.3.7.1|4|Temp inlet
1.3.6.1.4.1.99999.1.1.1.1.1.3.7.2|4|Temp gone
1.3.6.1.4.1.99999.1.1.1.1.1.4.7.1|2|235
1.3.6.1.4.1.99999.1.1.1.1.1.4.7.2|2|999
1.3.6.1.4.1.99999.1.1.1.1.1.5.7.1|2|600
1.3.6.1.4.1.99999.1.1.1.1.1.6.7.1|2|3
1.3.6.1.4.1.99999.1.1.1.1.1.6.7.2|2|4
1.3.6.1.4.1.99999.1.1.1.2.1.1.7|4|Slot seven
1.3.6.1.4.1.99999.1.1.1.3.0|2|230100
1.3.6.1.4.1.99999.1.1.1.4.0|4|north
`

// TestImport reads a recorded device with imported definitions: they give the results that the source files describe.
func TestImport(t *testing.T) {
	device := filepath.Join(t.TempDir(), "acme.snmprec")
	if err := os.WriteFile(device, []byte(acmeDevice), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		profiles, librenms, mibs string
		want                     map[string]int
	}{
		{"", acmeLibreNMS, "", map[string]int{"hw_temperature_celsius": 3 /* two entries of one column */, "hw_temperature_limit_celsius": 1, "hw_voltage_volts": 1}},
		{acmeProfiles, "", acmeLibreNMS + "/mibs", map[string]int{"hw_temperature_celsius": 2, "hw_voltage_volts": 1}},
		{acmeProfiles, "", "", map[string]int{"hw_temperature_celsius": 0, "hw_voltage_volts": 0}},
	} {
		to := filepath.Join(t.TempDir(), "new", "definitions")
		done, err := Import(c.profiles, c.librenms, c.mibs, to)
		if err != nil || done.Values == 0 || done.Left == 0 {
			t.Fatalf("%+v gives %+v, %v", c, done, err)
		}
		tested, err := Test(t.Context(), device, []string{"hardware"}, []string{to}, slog.New(slog.DiscardHandler))
		if err != nil || tested.Modules[0].Error != "" {
			t.Fatalf("%+v: %+v, %v", c, tested, err)
		}
		for name, n := range c.want {
			if got := tested.Modules[0].Metrics[name]; got != n {
				t.Errorf("%+v gives %d of %s, want %d: %v", c, got, name, n, tested.Modules[0].Metrics)
			}
		}
		if tested.Modules[0].Metrics["hw_status"] == 0 {
			t.Errorf("%+v gives no state", c)
		}
	}
}

// TestImportAgain overwrites the files of an earlier import, removes the obsolete ones, and touches no other file.
func TestImportAgain(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Import("", acmeLibreNMS, "", dir); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(filepath.Join(dir, "librenms-acme.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	put("librenms-gone.yaml", "# Made by hwsagent snmp import from gone.yaml.\ndefinition: librenms-gone\n")
	put("librenms-own.yaml", "# mine\ndefinition: librenms-own\n")
	put("other.yaml", "definition: other\n")
	put("librenms-acme.yaml", "# Made by hwsagent snmp import, and changed\ndefinition: x\n")
	done, err := Import("", acmeLibreNMS, "", dir)
	if err != nil || done.Removed != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	for name, want := range map[string]bool{"librenms-gone.yaml": false, "librenms-own.yaml": true, "other.yaml": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again, err := os.ReadFile(filepath.Join(dir, "librenms-acme.yaml")); err != nil || string(again) != string(made) {
		t.Errorf("it is not written anew: %s, %v", again, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "librenms-acme.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	put("librenms-acme.yaml", "definition: librenms-acme\n")
	if _, err := Import("", acmeLibreNMS, "", dir); err == nil || !strings.Contains(err.Error(), "librenms-acme.yaml was not made by an import") {
		t.Errorf("a file of the user's gives %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "librenms-acme.yaml")); err != nil || string(text) != "definition: librenms-acme\n" {
		t.Errorf("the user's file is %s, %v", text, err)
	}
	if _, err := Import(t.TempDir(), "", "", dir); err == nil || !strings.Contains(err.Error(), "nothing is written") {
		t.Errorf("a directory without profiles gives %v", err)
	}
}
