package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestNoInputIsWarnedAbout: the warning that nothing is collected comes exactly when no input
// but the agent's own probe is configured: every list of probes with every receiver, with and
// without scrape jobs.
func TestNoInputIsWarnedAbout(t *testing.T) {
	probes := map[string]bool{ // whether the agent collects anything by it, or the user has chosen
		"":                                       false,
		"probes: []":                             false,
		"probes: [{type: self, name: hwsagent}]": true, // the user has written what there is
		"probes: [{type: self, name: hwsagent, enabled: false}]": true,
		"probes: [{type: host, name: host}]":                     true,
	}
	receivers := map[string]bool{
		"":              false,
		"receivers: {}": false,
		"receivers: {remote_write: {listen: '127.0.0.1:1'}}": true,
		"receivers: {pushgateway: {listen: '127.0.0.1:1'}}":  true,
		"receivers: {import: {listen: '127.0.0.1:1'}}":       true,
		"receivers: {otlp: {http: {listen: '127.0.0.1:1'}}}": true,
		"receivers: {otlp: {grpc: {listen: '127.0.0.1:1'}}}": true,
	}
	scraping := map[string]bool{
		"":                   false,
		"scrape_configs: []": false,
		"scrape_configs: [{job_name: a, static_configs: [{targets: ['127.0.0.1:1']}]}]": true,
	}
	for probe, a := range probes {
		for receiver, b := range receivers {
			for scrape, c := range scraping {
				text := fmt.Sprintf("%s\n%s\n%s\n", probe, receiver, scrape)
				_, warnings, err := LoadBytes("agent.yaml", []byte(text), testEnv)
				if err != nil {
					t.Fatalf("%s\n%v", text, err)
				}
				got := false
				for _, w := range warnings {
					got = got || strings.Contains(w.String(), "only the agent's own metrics")
				}
				if want := !a && !b && !c; got != want {
					t.Errorf("warned: %t, want %t: %v\n%s", got, want, warnings, text)
				}
			}
		}
	}
}

// TestMisspeltSection: the mistake is the unknown key. That the section is missing is its consequence, and no warning of its own.
func TestMisspeltSection(t *testing.T) {
	const probes, targets = "only the agent's own metrics", "no targets are configured"
	for text, want := range map[string][]string{
		"prbes: [{name: host, type: host}]\n":                                      nil,
		"remote_wirte: [{url: 'http://a/'}]\nprobes: [{name: host, type: host}]\n": nil,
		"wal: {nonsense: 1}\n":                                                     {targets, probes}, // not a section
	} {
		_, warnings, err := LoadBytes("agent.yaml", []byte(text), testEnv)
		if err == nil || !strings.Contains(err.Error(), "unknown key") {
			t.Errorf("%s: %v, want an unknown key", text, err)
		}
		if len(warnings) != len(want) {
			t.Fatalf("%s: %v, want warnings %q", text, warnings, want)
		}
		for i, w := range warnings {
			if !strings.Contains(w.String(), want[i]) {
				t.Errorf("%s: %s, want %q", text, w, want[i])
			}
		}
	}
}
