package convert_test

import (
	"os"
	"strings"
	"testing"

	"hwsagent/agent/convert"
)

// TestAlloyTenants: rules between a job and its receivers are those of the targets where the receivers have different ones, and come before
// the targets' own. A rule with a variable is left out with a note.
func TestAlloyTenants(t *testing.T) {
	text, err := os.ReadFile("testdata/cases/alloy/tenants.alloy")
	if err != nil {
		t.Fatal(err)
	}
	r, err := convert.Convert("", "f.alloy", text)
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(r.Config), " ")
	for _, want := range []string{
		"name: a url: https://mimir.example/push headers: X-Scope-OrgID: a write_relabel_configs: - {source_labels: [tenant], regex: a, action: keep}",
		"write_relabel_configs: - {source_labels: [tenant], regex: b, action: keep} - {regex: tenant, action: labeldrop}",
		"f.alloy:25: prometheus.relabel.b.rule[1]: a rule cannot have a variable",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("it lacks %s in\n%s", want, r.Config)
		}
	}
	if strings.Contains(flat, "metric_relabel_configs") {
		t.Errorf("the rules are the job's:\n%s", r.Config)
	}
}

// TestAlloyShort: a component without settings that a job reads has no note.
func TestAlloyShort(t *testing.T) {
	r, err := convert.Convert("alloy", "f.alloy", []byte(`prometheus.exporter.unix "h" { }
prometheus.scrape "x" {
  targets    = prometheus.exporter.unix.h.targets
  forward_to = [prometheus.remote_write.d.receiver]
}
prometheus.remote_write "d" { endpoint { url = env("U") } }
`))
	if err != nil || len(r.Notes) != 0 || !strings.Contains(r.Config, "type: host") || !strings.Contains(r.Config, "url: ${U}") {
		t.Errorf("%v %v\n%s", err, r.Notes, r.Config)
	}
}
