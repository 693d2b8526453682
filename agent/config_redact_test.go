package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every key that can hold a secret holds the canary here.
const secrets = `
probes:
  - {name: v2, type: snmp, target: "a:161", modules: [system], auth: {community: hunter2-community}}
  - name: v3
    type: snmp
    target: a:161
    modules: [system]
    auth: {version: 3, username: u, password: hunter2-auth, auth_protocol: SHA256, priv_password: hunter2-priv, priv_protocol: AES}
remote_write:
  - {name: url, url: "https://hunter2-user:hunter2-pass@a.example/push?token=hunter2-query"}
  - {name: bearer, url: "https://a.example/push", bearer_token: hunter2-bearer}
  - {name: auth, url: "https://a.example/push", authorization: {credentials: hunter2-credentials}}
  - {name: basic, url: "https://a.example/push", basic_auth: {username: u, password: hunter2-basic}}
  - name: rest
    url: https://a.example/push
    headers: {X-Token: hunter2-header, X-Scope-OrgID: plant-7}
    http_headers: {X-Other: {secrets: [hunter2-headers]}}
    tls_config: {cert: a, key: hunter2-key}
    proxy_url: http://puser:hunter2-proxy@proxy.example:3128
    proxy_connect_header: {X-Proxy: [hunter2-connect]}
`

func TestRedacted(t *testing.T) {
	cfg, _, err := LoadBytes("agent.yaml", []byte(secrets), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cfg.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, secretCanary) {
			t.Errorf("a secret shows: %s", line)
		}
	}
	for _, want := range []string{"name: v3", "community: <secret>", "X-Scope-OrgID: plant-7", "max_bytes: 2GiB", "sync: 1s", "scrape_interval: 15s"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// The example at the module's root holds on a machine that has nothing set up.
func TestExampleConfig(t *testing.T) {
	cfg, warns, err := Load(filepath.Join("..", "agent.yaml"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if len(warns) != 0 {
		t.Errorf("warnings: %v", warns)
	}
	if len(cfg.RemoteWrite) == 0 || len(cfg.Probes) < 2 {
		t.Errorf("the example shows nothing: %+v", cfg)
	}
}
