package agent

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/probes/devices"
	"hwsagent/probes/snmp"
)

// A list of targets makes a probe of each: its own name and instance, the entry's job, and the
// labels of the entry and of its group.
func TestTargetsOfAnEntry(t *testing.T) {
	cfg, _, err := LoadBytes("agent.yaml", []byte(`probes:
  - name: switches
    type: snmp
    static_configs:
      - {targets: ["192.0.2.7", "192.0.2.8:1161"], labels: {site: fra1, rack: b4}}
      - {targets: ["tcp:[2001:db8::1]:161"]}
    labels: {rack: none}
    auth: {community: CANARY}
    modules: [system]
`), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var ids identities
	for i := range cfg.Probes {
		p := &cfg.Probes[i]
		s, ok := p.Settings.(*snmp.Config)
		if !ok {
			continue
		}
		probe, err := newProbe(p, nil, slog.New(slog.DiscardHandler), nil, new(snmp.Plans), new(devices.Paces))
		if err != nil {
			t.Fatal(err)
		}
		spec := probeSpec(p, probe, "host", &ids)
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

func TestBrokenTargets(t *testing.T) {
	for text, want := range map[string]string{
		"{type: snmp, modules: [system], static_configs: []}":                                                 "names no target",
		"{type: snmp, modules: [system], static_configs: [{targets: [a, 'http://b']}]}":                       "static_configs[0].targets[1]: what follows the colon is not a port",
		"{type: snmp, modules: [system], static_configs: [{targets: [a]}, {targets: [a]}]}":                   "listed twice",
		"{type: snmp, modules: [system], target: b, static_configs: [{targets: [a]}]}":                        "not both",
		"{type: snmp, modules: [none], static_configs: [{targets: [a, b]}]}":                                  "there is no module \"none\"",
		"{type: snmp, modules: [system], static_configs: [{targets: [a], labels: {'a b': c}}]}":               "a b",
		"{type: host, static_configs: [{targets: [a]}]}":                                                      "reads no list",
		"{type: snmp, modules: [system], static_configs: [a]}":                                                "static_configs",
		"{name: x, type: snmp, modules: [system], static_configs: [{targets: [a]}]}, {name: x/a, type: host}": "the name \"x/a\"",
		"{name: x/a, type: host}, {name: x, type: snmp, modules: [system], static_configs: [{targets: [a]}]}": "the name \"x/a\"",
		"{type: snmp, modules: [system], static_configs: [{targets: [b], extra: 1}]}":                         "extra",
		"{type: snmp, modules: [system], targets: [a], shard: {index: 1, total: 1}}":                          "shard: index 1 of total 1 is not a share",
		"{type: snmp, modules: [system], target: a, shard: {index: 0, total: 1}}":                             "there is no list to share",
		"{type: snmp, modules: [system], targets: [a, a]}":                                                    "targets[1]: the target \"a\" is listed twice",
		"{type: snmp, modules: [system], file_sd_configs: [{files: ['[x']}]}":                                 "file_sd_configs[0].files[0]: is not a path",
		"{type: snmp, modules: [system], target: a, max_requests_per_second: -1}":                             "max_requests_per_second: -1 is not between",
		"{type: host, max_requests_per_second: 1}":                                                            "reads no list",
		"{name: x, type: snmp, modules: [system], targets: [a]}, {name: x/a, type: host}":                     "the name \"x/a\"",
	} {
		_, _, err := LoadBytes("agent.yaml", []byte("probes: ["+text+"]"), testEnv)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", text, want, err)
		}
	}
}
