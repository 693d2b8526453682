//go:build linux

package smart

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hwsagent/probes"
)

// member is a disk behind a RAID controller: how smartctl is asked for it, and the words of its answer that depend on the controller
// (smartctl(8), -d TYPE).
type member struct {
	device, kind string
	info         string // smartctl's name for the disk
	detected     string // the type in the answer
	sas          bool
	label        string
}

// members has SATA and SAS disks of each controller that smartctl reads on Linux.
var members = []member{
	{"/dev/bus/0", "megaraid,1", "/dev/bus/0 [megaraid_disk_01]", "megaraid,1", true, "bus_0_megaraid_1"},
	{"/dev/bus/0", "megaraid,14", "/dev/bus/0 [megaraid_disk_14] [SAT]", "sat+megaraid,14", false, "bus_0_megaraid_14"},
	{"/dev/twa0", "3ware,2", "/dev/twa0 [3ware_disk_02]", "3ware", false, "twa0_3ware_2"},
	{"/dev/twl0", "3ware,1", "/dev/twl0 [3ware_disk_01]", "3ware", false, "twl0_3ware_1"},
	{"/dev/sg2", "areca,3", "/dev/sg2 [areca_disk#03_enc#01]", "areca", false, "sg2_areca_3"},
	{"/dev/sg2", "areca,1/2", "/dev/sg2 [areca_disk#01_enc#02]", "areca", true, "sg2_areca_1/2"},
	{"/dev/sg1", "cciss,0", "/dev/sg1 [cciss_disk_00]", "cciss", true, "sg1_cciss_0"},
	{"/dev/sg1", "cciss,1", "/dev/sg1 [cciss_disk_01] [SAT]", "sat+cciss", false, "sg1_cciss_1"},
	{"/dev/cciss/c0d0", "cciss,0", "/dev/cciss/c0d0 [cciss_disk_00]", "cciss", true, "cciss_c0d0_cciss_0"},
	{"/dev/sdb", "aacraid,1,0,4", "/dev/sdb [aacraid_disk_01_00_4] [SAT]", "sat+aacraid,1,0,4", false, "sdb_aacraid_1_0_4"},
	{"/dev/sdc", "hpt,1/2/3", "/dev/sdc [hpt_disk_1/2/3]", "hpt", false, "sdc_hpt_1/2/3"},
	{"/dev/bsg/sssraid0", "sssraid,0,1", "/dev/bsg/sssraid0 [sssraid_disk_00_01]", "sssraid", true, "bsg_sssraid0_sssraid_0_1"},
}

// protocol returns the protocol in smartctl's answer.
func (m *member) protocol() string {
	if m.sas {
		return "SCSI"
	}
	return "ATA"
}

// serial returns the serial number of disk number n.
func serial(n int) string { return fmt.Sprintf("MEMBER%02d", n) }

// capture returns smartctl's answer for disk number n with this exit status and message.
func (m *member) capture(t *testing.T, n, exit int, message string) []byte {
	t.Helper()
	file := "ata.json"
	if m.sas {
		file = "sas.json"
	}
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	run := map[string]any{"exit_status": exit}
	if message != "" {
		run["messages"] = []any{map[string]any{"string": message, "severity": "error"}}
	}
	answer["smartctl"], answer["serial_number"] = run, serial(n)
	answer["device"] = map[string]any{"name": m.device, "info_name": m.info, "type": m.detected, "protocol": m.protocol()}
	answer["wwn"], answer["logical_unit_id"] = map[string]any{"naa": 5, "oui": 3152, "id": 1000 + n}, fmt.Sprintf("0x5000c500%08x", 1000+n)
	answer["smart_status"] = map[string]any{"passed": exit&bitFailing == 0}
	if exit&bitOpen != 0 { // then smartctl has read nothing
		answer = map[string]any{"smartctl": run, "device": answer["device"]}
	}
	text, err = json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// put makes the machine's smartctl answer with a text for the disk.
func (m *member) put(t *testing.T, dir string, text []byte) {
	t.Helper()
	name := strings.ReplaceAll(strings.TrimPrefix(m.device, "/dev/"), "/", "_") + "_" + strings.NewReplacer(",", "_", "/", "_").Replace(m.kind)
	if err := os.WriteFile(filepath.Join(dir, name+".json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// raid returns a machine with all members, and a scan that finds these devices.
func raid(t *testing.T, scanned ...Device) (dir string, c Config) {
	t.Helper()
	dir, c = machine(t, nil)
	for n := range members {
		members[n].put(t, dir, members[n].capture(t, n, 0, ""))
	}
	found := []map[string]string{}
	for _, d := range scanned {
		found = append(found, map[string]string{"name": d.Device, "type": d.Type})
	}
	text, err := json.Marshal(map[string]any{"devices": found})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "scan.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, c
}

// TestMembers: a disk of each kind of controller is read with its type, whether the scan or the configuration has it, and has the labels,
// the identity and the readings of its protocol.
func TestMembers(t *testing.T) {
	var all []Device
	for _, m := range members {
		all = append(all, Device{Device: m.device, Type: m.kind})
	}
	for name, configured := range map[string]bool{"configured": true, "scanned": false} {
		t.Run(name, func(t *testing.T) {
			dir, c := raid(t, all...)
			if configured {
				dir, c = raid(t)
				c.Devices = all
			}
			got, err := round(t, newProbe(t, c))
			if err != nil || !strings.Contains(got, fmt.Sprintf("smartctl_devices{} %d\n", len(members))) {
				t.Errorf("the round: %v\n%s", err, got)
			}
			calls, err := os.ReadFile(filepath.Join(dir, "calls"))
			if err != nil {
				t.Fatal(err)
			}
			for n, m := range members {
				name, id := fmt.Sprintf("%q", m.label), fmt.Sprintf(`hw_id="wwn:5000c500%08x"`, 1000+n)
				own := `smartctl_device_attribute{attribute_flags_long="`
				if m.sas {
					own = "smartctl_scsi_grown_defect_list{device=" + name
				}
				for _, want := range []string{
					"smartctl_device_smartctl_exit_status{device=" + name + "} 0\n", "smartctl_device_smart_status{device=" + name + "} 1\n",
					"smartctl_device_temperature{device=" + name + `,temperature_type="current"}`, own,
					fmt.Sprintf(`interface=%q`, m.detected), id + ",hw_name=" + name + `,hw_parent="enclosure",hw_state="ok",hw_type="physical_disk"} 1`,
					fmt.Sprintf(`hw_serial_number=%q`, serial(n)),
				} {
					if !strings.Contains(got, want) {
						t.Errorf("%s %s lacks %s", m.device, m.kind, want)
					}
				}
				if want := "--device=" + m.kind + " " + m.device + "\n"; strings.Count(string(calls), want) != 1 {
					t.Errorf("smartctl was called %d times with %s", strings.Count(string(calls), want), want)
				}
			}
			if n := strings.Count(string(calls), "--nocheck=standby"); n != len(members) {
				t.Errorf("%d of %d calls do not wake a disk", n, len(members))
			}
		})
	}
}

// TestMembersAsleep: a sleeping member keeps its labels, its constant readings and its state, and is not an error.
func TestMembersAsleep(t *testing.T) {
	for n, m := range members {
		dir, c := raid(t)
		c.Devices = []Device{{Device: m.device, Type: m.kind}}
		p := newProbe(t, c)
		awake, err := round(t, p)
		if err != nil || !strings.Contains(awake, "hw_temperature_celsius{") {
			t.Errorf("%s awake: %v\n%s", m.kind, err, awake)
		}
		word := "STANDBY"
		if m.sas {
			word = "STANDBY BY COMMAND"
		}
		m.put(t, dir, m.capture(t, n, bitOpen, "Device is in "+word+" mode, exit(2)"))
		got, err := round(t, p)
		if err != nil || strings.Contains(got, "hw_temperature_celsius{") || !strings.Contains(got, fmt.Sprintf("smartctl_device_smartctl_exit_status{device=%q} 2\n", m.label)) {
			t.Errorf("%s asleep: %v\n%s", m.kind, err, got)
		}
		for line := range strings.Lines(got) {
			if strings.HasPrefix(line, "hw_") && !strings.Contains(awake, line) {
				t.Errorf("%s: asleep, but not awake, it has %s", m.kind, line)
			}
		}
		if !strings.Contains(got, `hw_state="ok",hw_type="physical_disk"} 1`) {
			t.Errorf("%s asleep has no state:\n%s", m.kind, got)
		}
	}
}

// TestExitStatus: of the bits of smartctl's exit status only the first two, and the second not of a sleeping disk, mean that a disk was
// not read (smartctl(8), EXIT STATUS).
func TestExitStatus(t *testing.T) {
	for bit, c := range []struct {
		means string
		read  bool
		state string
	}{
		{"the command line is wrong", false, ""}, {"the disk cannot be opened", false, ""}, {"a command failed", true, "ok"}, {"the disk fails", true, "predicted_failure"},
		{"a prefailure attribute is below its threshold", true, "predicted_failure"}, {"an attribute was below it", true, "ok"}, {"the error log has entries", true, "ok"}, {"a self-test failed", true, "ok"},
	} {
		for n, m := range members {
			dir, config := raid(t)
			config.Devices = []Device{{Device: m.device, Type: m.kind}}
			m.put(t, dir, m.capture(t, n, 1<<bit, "the message of bit "+fmt.Sprint(bit)))
			got, err := round(t, newProbe(t, config))
			if c.read != (err == nil) || !c.read && !strings.Contains(err.Error(), fmt.Sprintf("%s %s: smartctl refuses: the message of bit %d", m.device, m.kind, bit)) {
				t.Errorf("%s, %s: %v", m.kind, c.means, err)
			}
			if c.read != strings.Contains(got, fmt.Sprintf("smartctl_device_smartctl_exit_status{device=%q} %d\n", m.label, 1<<bit)) ||
				c.read && !strings.Contains(got, fmt.Sprintf(`hw_state=%q,hw_type="physical_disk"} 1`, c.state)) {
				t.Errorf("%s, %s:\n%s", m.kind, c.means, got)
			}
		}
	}
}

// TestVolumes: the scan finds a controller's volumes, too, which smartctl refuses. That is an error only if no member of such a controller
// is read, or if the configuration lists the volume.
func TestVolumes(t *testing.T) {
	const hint = "Smartctl open device: /dev/sda failed: DELL or MegaRaid controller, please try adding '-d megaraid,N'"
	refused := []byte(fmt.Sprintf(`{"smartctl":{"exit_status":2,"messages":[{"string":%q,"severity":"error"}]}}`, hint))
	volume, first, other := Device{Device: "/dev/sda"}, Device{Device: "/dev/bus/0", Type: "megaraid,1"}, Device{Device: "/dev/twa0", Type: "3ware,2"}
	for name, c := range map[string]struct {
		scanned, configured []Device
		disks               int
		fails               bool
	}{
		"members in the scan":      {scanned: []Device{volume, first}, disks: 1},
		"members configured":       {scanned: []Device{volume}, configured: []Device{first}, disks: 1},
		"SATA members":             {scanned: []Device{volume}, configured: []Device{{Device: "/dev/bus/0", Type: "sat+megaraid,14"}}, disks: 1},
		"no members":               {scanned: []Device{volume}, disks: 1, fails: true},
		"members of another":       {scanned: []Device{volume, other}, disks: 2, fails: true},
		"the volume is configured": {scanned: []Device{first}, configured: []Device{volume}, disks: 2, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, config := raid(t, c.scanned...)
			if err := os.WriteFile(filepath.Join(dir, "sda.json"), refused, 0o600); err != nil {
				t.Fatal(err)
			}
			sata := member{device: "/dev/bus/0", kind: "sat+megaraid,14"}
			sata.put(t, dir, members[1].capture(t, 1, 0, ""))
			config.Devices, config.Scan = c.configured, true
			got, err := round(t, newProbe(t, config))
			if c.fails != (err != nil) || !strings.Contains(got, fmt.Sprintf("smartctl_devices{} %d\n", c.disks)) || strings.Contains(got, `device="sda"`) {
				t.Errorf("%v\n%s", err, got)
			}
			if c.fails && (!strings.Contains(err.Error(), hint+`; list the members in devices, as in type: "megaraid,0", or leave the volume out by exclude`) || c.disks > 1 != errors.Is(err, probes.ErrPartial)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestVolumeHints has smartctl's refusals of volumes.
func TestVolumeHints(t *testing.T) {
	for text, want := range map[string]string{
		"Smartctl open device: /dev/sda failed: DELL or MegaRaid controller, please try adding '-d megaraid,N'":                                                                  "megaraid",
		"Smartctl open device: /dev/sda failed: AMCC/3ware controller, please try adding '-d 3ware,N',\nyou may need to replace /dev/sda with /dev/twlN, /dev/twaN or /dev/tweN": "3ware",
		"Smartctl open device: /dev/sda failed: Permission denied":                                                                                                               "",
	} {
		c := new(capture)
		c.Smartctl.Messages = append(c.Smartctl.Messages, struct {
			String string `json:"string"`
		}{text})
		if got := c.controller(); got != want {
			t.Errorf("%q is of %q, want %q", text, got, want)
		}
	}
	if !slices.ContainsFunc(members, func(m member) bool { return Device{Type: m.detected}.of("megaraid") }) {
		t.Error("no SATA member of a MegaRAID controller")
	}
}
