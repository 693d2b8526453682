package convert

import (
	"strings"
	"testing"
)

// TestSameReceiverOfAnotherTenant: two receivers of one address that differ in how they are asked are both there, or it is said
// which one is not.
func TestSameReceiverOfAnotherTenant(t *testing.T) {
	const text = `metrics:
  configs:
    - name: a
      remote_write:
        - {url: "http://r.example/push", headers: {X-Scope-OrgID: one}}
integrations:
  prometheus_remote_write:
    - {url: "http://r.example/push", headers: {X-Scope-OrgID: two}}
`
	r, err := Convert("grafana-agent", "f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	named := false
	for _, n := range r.Notes {
		named = named || strings.Contains(n.String(), "prometheus_remote_write")
	}
	if !strings.Contains(r.Config, "two") && !named {
		t.Errorf("the second one is gone without a word:\n%s", r.Config)
	}
}

// TestNotesHaveNoSecrets: the values of secrets stand in the configuration alone, not in what is said of it.
func TestNotesHaveNoSecrets(t *testing.T) {
	for format, text := range map[string]string{
		"hws": `resourceGroups:
  g:
    attributes: {site: s}
    metrics: {hw.site.pue: CANARY, other: CANARY}
    resources:
      h:
        attributes: {host.name: h, host.type: linux}
        protocols:
          ipmi: {username: u, password: CANARY, bmcKey: CANARY, surprise: CANARY}
          http: {username: u, password: CANARY, https: false, token: CANARY}
          snmp: {version: v2c, community: CANARY, retryIntervals: [1]}
          snmpv3: {username: u, password: CANARY, privacyPassword: CANARY, privacy: aes, authType: sha, contextName: CANARY}
          ssh: {username: u, password: CANARY, privateKey: CANARY}
          wbem: {username: u, password: CANARY}
`,
		"alloy": `prometheus.remote_write "d" {
  endpoint {
    url = "https://u:CANARY@r.example/push?token=CANARY"
    basic_auth {
      password = "CANARY" + sys.env("X") + 1
    }
    surprise = "CANARY"
  }
}
prometheus.scrape "s" {
  targets      = [{password = "CANARY"}]
  bearer_token = join("CANARY", "")
  forward_to   = ["CANARY"]
}
`,
		"telegraf": `[[inputs.prometheus]]
urls = ["http://u:CANARY@h/metrics"]
[[inputs.redfish]]
password = "CANARY"
[[outputs.http]]
data_format = "CANARY"
url = "CANARY"
[[outputs.http]]
data_format = "prometheusremotewrite"
url = "https://r.example/push"
method = "CANARY"
[outputs.http.headers]
Authorization = "CANARY"
`,
		"grafana-agent": `server: {http_tls_config: {key: CANARY}}
agent_management: {basic_auth: {password: CANARY}}
metrics:
  global: {remote_write: [{url: "https://u:CANARY@r.example/push?token=CANARY", basic_auth: {username: u, password: CANARY}, surprise: CANARY}]}
  configs:
    - name: a
      surprise: CANARY
      scrape_configs: [{job_name: j, authorization: {credentials: CANARY}, consul_sd_configs: [{token: CANARY}]}]
integrations:
  redis_exporter: {enabled: true, redis_password: CANARY}
  mysqld_exporter_configs: [{data_source_name: "root:CANARY@tcp"}]
`,
	} {
		r, err := Convert(format, "f.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range r.Notes {
			if strings.Contains(n.String(), "CANARY") {
				t.Errorf("%s: %s", format, n)
			}
		}
		for line := range strings.Lines(r.Config) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") && strings.Contains(line, "CANARY") {
				t.Errorf("%s: a comment: %s", format, line)
			}
		}
	}
}
