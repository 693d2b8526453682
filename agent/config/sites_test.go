package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestSites: a site without machines, machines at a site without figures, and a second entry for a site are reported; each case with and without
// an entry of the other side.
func TestSites(t *testing.T) {
	const a, b = "- {name: sa, type: site, site: a, pue: 1.2}\n", "- {name: sb, type: site, site: b, pue: 1.2}\n"
	const ofA, ofB = "- {name: ha, type: host, labels: {site: a}}\n", "- {name: hb, type: host, labels: {site: b}}\n"
	const listed = "- {name: l, type: snmp, static_configs: [{targets: [192.0.2.1], labels: {site: b}}], auth: {community: x}}\n"
	const files = "- {name: l, type: snmp, file_sd_configs: [{files: [/nowhere/*.yaml]}], auth: {community: x}}\n"
	for _, c := range []struct{ probes, global, want string }{
		{ofA, "", ""}, {a + ofA, "", ""}, {a + ofA + b + ofB, "", ""}, {b + listed, "", ""}, {a + files, "", ""},
		{a, "external_labels: {site: a}", ""}, {a, "", "no probe has the label site: a"}, {a + b + ofA, "", "no probe has the label site: b"},
		{a + ofA + ofB, "", `no entry of type site has figures of "b"`}, {a + ofA + strings.Replace(a, "sa", "s2", 1), "", `the site "a" is already used by`},
		{"- {name: sa, type: site, site: a, pue: 1.2, enabled: false}\n", "", ""},
	} {
		text := fmt.Sprintf("global: {%s}\nprobes:\n%s", c.global, c.probes)
		_, warnings, err := LoadBytes("/etc/hwsagent/agent.yaml", []byte(text), testEnv)
		var said []string
		if err != nil {
			said = append(said, err.Error())
		}
		for _, w := range warnings {
			if strings.Contains(w.String(), "site") {
				said = append(said, w.String())
			}
		}
		if got := strings.Join(said, "; "); !strings.Contains(got, c.want) || (got != "") != (c.want != "") {
			t.Errorf("%s\ngives %q, want %q", text, got, c.want)
		}
	}
	_, _, err := LoadBytes("/etc/hwsagent/agent.yaml", []byte("probes:\n- {type: site, site: a, pue: 0.5}\n"), testEnv)
	if err == nil || !strings.Contains(err.Error(), "probes[0].pue") && !strings.Contains(err.Error(), "pue: 0.5 is not between") {
		t.Errorf("a PUE of 0.5: %v", err)
	}
}
