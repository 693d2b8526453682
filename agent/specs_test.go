package agent

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/agent/config"
	"hwsagent/probes"
	"hwsagent/probes/devices"
	"hwsagent/probes/hw"
	"hwsagent/probes/snmp"
)

// A list of targets makes a probe of each: its own name and instance, the entry's job, and the
// labels of the entry and of its group.
func TestTargetsOfAnEntry(t *testing.T) {
	cfg, _, err := config.LoadBytes("agent.yaml", []byte(`probes:
  - name: switches
    type: snmp
    static_configs:
      - {targets: ["192.0.2.7", "192.0.2.8:1161"], labels: {site: fra1, rack: b4}}
      - {targets: ["tcp:[2001:db8::1]:161"]}
    labels: {rack: none}
    auth: {community: CANARY}
    modules: [system]
`), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range cfg.Probes {
		p := &cfg.Probes[i]
		s, ok := p.Settings.(*snmp.Config)
		if !ok {
			continue
		}
		probe, err := newProbe(p, nil, slog.New(slog.DiscardHandler), nil, new(snmp.Plans), new(devices.Paces), "")
		if err != nil {
			t.Fatal(err)
		}
		spec := p.Spec(probe, "host")
		got = append(got, fmt.Sprintf("%s reads %s: %s", spec.Name, s.Target, spec.Labels))
	}
	want := []string{
		`switches/192.0.2.7 reads 192.0.2.7: {instance="192.0.2.7", job="switches", rack="b4", site="fra1"}`,
		`switches/192.0.2.8:1161 reads 192.0.2.8:1161: {instance="192.0.2.8:1161", job="switches", rack="b4", site="fra1"}`,
		`switches/tcp:[2001:db8::1]:161 reads tcp:[2001:db8::1]:161: {instance="tcp:[2001:db8::1]:161", job="switches", rack="none"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	shown, err := cfg.Redacted()
	if err != nil || strings.Contains(string(shown), "CANARY") || strings.Count(string(shown), "instance") > 0 {
		t.Errorf("%v\n%s", err, shown)
	}
}

// TestHWLabels: the names of hardware are those of the entry, else of global, else of the conventions; host_name is there in MetricsHub's only.
func TestHWLabels(t *testing.T) {
	for _, c := range []struct{ global, entry, labels, name, host string }{
		{"", "", "", "hw_memory_size_bytes", ""}, {"metricshub", "", "", "hw_memory_limit_bytes", "h"}, {"metricshub", "semconv", "", "hw_memory_size_bytes", ""},
		{"semconv", "metricshub", "", "hw_memory_limit_bytes", "h"}, {"metricshub", "", "host_name: other", "hw_memory_limit_bytes", "other"},
	} {
		key := func(v string) string {
			if v == "" {
				return ""
			}
			return "hw_labels: " + v
		}
		text := fmt.Sprintf("global: {%s}\nprobes: [{type: host, labels: {%s}%s}]\n", key(c.global), c.labels, strings.TrimSuffix(", "+key(c.entry), ", "))
		cfg, _, err := config.LoadBytes("/etc/hwsagent/agent.yaml", []byte(text), noEnv)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		spec := cfg.Probes[0].Spec(nil, "h")
		s := probes.Sample{Family: hw.MemorySize.Family()}
		if spec.Translate != nil {
			spec.Translate(&s)
		}
		if s.Family.Name != c.name || spec.Labels.Get("host_name") != c.host {
			t.Errorf("%s\ngives %s and host_name %q, want %s and %q", text, s.Family.Name, spec.Labels.Get("host_name"), c.name, c.host)
		}
	}
	for _, text := range []string{"global: {hw_labels: otel}\nprobes: [{type: host}, {type: smart}]\n", "probes: [{type: host, hw_labels: otel}]\n"} {
		_, _, err := config.LoadBytes("/etc/hwsagent/agent.yaml", []byte(text), noEnv)
		if err == nil || strings.Count(err.Error(), `unknown value "otel"`) != 1 {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A reload makes a probe anew when the modules that it reads have changed, and only then.
func TestVersionOfModules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snmp.yml")
	c := &config.Probe{Name: "p", Type: "snmp", Settings: &snmp.Config{Target: "h", ConfigFiles: []string{path}, Modules: []string{"m"}}}
	var ids identities
	identity := func(text string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := newProbe(c, nil, slog.New(slog.DiscardHandler), nil, new(snmp.Plans), new(devices.Paces), "")
		if err != nil {
			t.Fatal(err)
		}
		return ids.of("probe "+c.Name, probeParts{c, filesVersion(p)})
	}
	first := identity("modules:\n  m:\n    walk: [1.3.6]\n  n:\n    walk: [1.3.7]\n")
	if again := identity("modules:\n  m:\n    walk: [1.3.6]\n  n:\n    walk: [1.3.8]\n"); again != first {
		t.Errorf("%s, then %s, though only another module changed", first, again)
	}
	if other := identity("modules:\n  m:\n    walk: [1.3.9]\n"); other == first {
		t.Error("the module changed, and the probe is kept")
	}
}
