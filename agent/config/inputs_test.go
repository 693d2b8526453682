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
