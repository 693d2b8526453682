//go:build linux

package host

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hwsagent/probes"
)

// TestNodeExporterFull: each metric used by the panels of this dashboard exists, from the fixtures, this machine or a
// simulated systemd. Missing ones are listed with a reason.
func TestNodeExporterFull(t *testing.T) {
	there := map[string]bool{}
	note := func(c Config) {
		r := probes.NewRound(0)
		if err := mustNew(t, c).Collect(t.Context(), r); err != nil {
			t.Logf("not all could be read: %v", err) // of the running machine
		}
		for _, s := range r.Samples() {
			there[s.Family.Name] = true
		}
	}
	note(Config{DBusSocket: busyMachine(t).Path, Collectors: []string{"+processes", "+tcpstat", "+interrupts", "+systemd"}})
	c := fixtures(t)
	c.Collectors = hostOnly
	note(c)
	reasons := []struct{ name, reason string }{
		{`^node_memory_\w+$`, "named by the kernel, of which neither the fixtures' nor this one has all fields"},
		{`^node_(netstat_TcpExt_TCPSynRetrans|network_receive_nohandler_total|processes_\w+|interrupts_total|filesystem_\w+)$`, "of this machine, which may be a container without it"},
		{`^node_hwmon_temp_crit_hyst_celsius$`, "named by the driver; no chip here has it"},
		{`^node_netstat_Tcp_MaxConn$`, "as in node_exporter, let in by netstat_fields only"},
		{`^node_kernel_hung_tasks$`, "has another name in node_exporter, too: node_kernel_hung_tasks_total"},
		{`^node_textfile_scrape_error$`, "a probe of its own reads text files"},
	}
	text, err := os.ReadFile(filepath.Join("testdata", "node-exporter-full.txt"))
	if err != nil {
		t.Fatal(err)
	}
	read := 0
next:
	for line := range strings.Lines(string(text)) {
		name := strings.TrimSpace(line)
		if strings.HasPrefix(name, "#") {
			continue
		}
		read++
		if there[name] {
			continue
		}
		for _, r := range reasons {
			if regexp.MustCompile(r.name).MatchString(name) {
				continue next
			}
		}
		t.Errorf("the dashboard reads %s, which the probe does not give", name)
	}
	if read < 200 {
		t.Errorf("only %d metrics are looked for", read)
	}
}
