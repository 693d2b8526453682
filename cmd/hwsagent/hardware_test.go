package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"hwsagent/agent/hardware/inventory"
	"hwsagent/agent/status"
)

// fakeSmartctl returns an entry for a smartctl that prints one disk.
func fakeSmartctl(t *testing.T) (entry, serial string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs /bin/sh")
	}
	dir := t.TempDir()
	disk := `{"smartctl": {"exit_status": 0}, "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"}, "model_name": "Example 9", "serial_number": "ZX12345678", "smart_status": {"passed": true}, "temperature": {"current": 31}}`
	script := "case \"$*\" in *--scan*) echo '{\"devices\": [{\"name\": \"/dev/sda\", \"type\": \"sat\"}]}';; *) cat " + filepath.Join(dir, "disk") + ";; esac\n"
	for name, text := range map[string]string{"disk": disk, "smartctl": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "{type: smart, command: [/bin/sh, " + filepath.Join(dir, "smartctl") + "]}", "ZX12345678"
}

// Hardware is shown of an entry, of a configuration's probes and of a recording; the recording has no serial number.
func TestHardware(t *testing.T) {
	entry, serial := fakeSmartctl(t)
	file := filepath.Join(t.TempDir(), "disk.rec")
	config := write(t, "agent.yaml", "probes:\n- {name: disks, "+strings.TrimPrefix(entry, "{")+"\n- {name: c, type: canary}\n")
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string // a part of each
	}{
		{[]string{"inventory", entry}, status.ExitOK, `ok        physical_disk "sda" Example 9 ` + serial, ""},
		{[]string{"inventory", "--config.file", config}, status.ExitOK, "disks (smart): ", ""},
		{[]string{"inventory", "disks", "--config.file", config}, status.ExitOK, "1 ok", ""},
		{[]string{"record", entry, file}, status.ExitOK, "2 answers", ""},
		{[]string{"record", entry, file}, status.ExitFailed, "", "is there already"},
		{[]string{"inventory", "--recording", file}, status.ExitOK, `ok        physical_disk "sda" Example 9`, ""},
		{[]string{"inventory", "c", "--config.file", config}, status.ExitUsage, "", "of type canary, which reads no hardware"},
		{[]string{"inventory", "x", "--config.file", config}, status.ExitUsage, "", "no such probe"},
		{[]string{"inventory", "x", "--config.file", config + "x"}, status.ExitConfig, "", "the configuration cannot be read"},
		{[]string{"inventory", "{type: smart, nonsense: 1}"}, status.ExitConfig, "", "nonsense"},
		{[]string{"inventory", "{type: canary}"}, status.ExitUsage, "", "does not read hardware"},
		{[]string{"inventory", "disks", "--recording", file, "--config.file", config}, status.ExitUsage, "", "not both"},
		{[]string{"inventory", "--recording", config}, status.ExitFailed, "", "it is not a recording"},
		{[]string{"inventory", "--recording", file + "x"}, status.ExitFailed, "", "no such file"},
		{[]string{"inventory", "{type: smart, command: [/nonexistent/smartctl]}"}, status.ExitAttention, "not all could be read: scan for disks", ""},
		{[]string{"record", "{type: smart, command: [/nonexistent/smartctl]}", file + "2"}, status.ExitAttention, "1 answers", "the recording is not complete"},
		{[]string{"record", entry, file + "3", "--keep", "all"}, status.ExitUsage, "", "the kinds are names"},
	} {
		code, stdout, stderr := hwsagent(t, c.args...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("hwsagent %s: exit %d, want %d\nstdout (want %q):\n%s\nstderr (want %q):\n%s", strings.Join(c.args, " "), code, c.code, c.stdout, stdout, c.stderr, stderr)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), serial) {
		t.Errorf("%v\n%s", err, text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	code, stdout, _ := hwsagent(t, "inventory", "--recording", file, "--json")
	var got struct {
		Schema      int
		Inventories []inventory.Inventory
	}
	if err := json.Unmarshal([]byte(stdout), &got); code != status.ExitOK || err != nil || got.Schema != 1 || len(got.Inventories) != 1 || got.Inventories[0].Components[0].State != "ok" {
		t.Errorf("exit %d, %v\n%s", code, err, stdout)
	}
}
