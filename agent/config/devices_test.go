package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

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

// What check says of a broken list, and that shares do not overlap.
func TestListsOfAConfiguration(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.yml"), []byte("- targets: [a, b, c, d, e, f, g, h]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, index := range []string{"0", "1"} {
		cfg, _, err := LoadBytes(filepath.Join(dir, "agent.yaml"), []byte("probes: [{type: snmp, modules: [system], auth: {community: public}, file_sd_configs: [{files: [x.yml, y.yml]}], shard: {index: "+index+", total: 2}}]"), testEnv)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range cfg.Probes {
			if p.Target != "" {
				all = append(all, p.Target)
			}
		}
		if len(cfg.ListProblems()) != 1 || !strings.Contains(cfg.ListProblems()[0].Error(), "y.yml: the file does not exist; its devices are not read until the file is correct") {
			t.Errorf("%v", cfg.ListProblems())
		}
		if cfg.Probes[0].Timeout > cfg.Probes[0].Interval || time.Duration(cfg.Probes[0].Interval) == 0 {
			t.Errorf("%+v", cfg.Probes[0])
		}
	}
	slices.Sort(all)
	if got := strings.Join(all, ""); got != "abcdefgh" {
		t.Errorf("%q", got)
	}
}
