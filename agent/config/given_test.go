package config

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"hwsagent/probes/exec"
	"hwsagent/remotewrite/client"
)

// givenConfig has a token that a variable gives in the path of each address, and one address that is
// a variable as a whole.
const givenConfig = `
probes:
  - {name: e, type: exec, command: [/bin/false, "--key=${TOKEN}"], scrape_url: "http://127.0.0.1:{{port}}/x/${TOKEN}/metrics"}
scrape_configs:
  - job_name: j
    metrics_path: /x/${TOKEN}/metrics
    http_sd_configs: [{url: "http://sd.example/${TOKEN}/sd"}]
remote_write:
  - {name: a, url: "https://h.example/w/${TOKEN}/push", oauth2: {client_id: i, client_secret: s, token_url: "https://idp.example/${TOKEN}/token"}}
  - {name: b, url: "${WHOLE}"}
  - {url: "https://no-name.example/w/${TOKEN}/push"}
  - {name: c, url: "https://${HOST}:443/open/path"}
`

func givenEnv(name string) (string, bool) {
	v, ok := map[string]string{"TOKEN": "CANARY token/+x", "WHOLE": "https://u:CANARY@whole.example/CANARY/path?CANARY", "HOST": "host.example"}[name]
	return v, ok
}

func TestGivenPathsShowNowhere(t *testing.T) {
	cfg, warns, err := LoadBytes("agent.yaml", []byte(givenConfig), givenEnv)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := cfg.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	out := string(shown) + fmt.Sprint(warns)
	for _, c := range cfg.RemoteWrite {
		out += fmt.Sprintf(" %s %s %+v", c.TargetName(), c.URL, c.URL)
		c, err := client.New(c, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		a := c.Send(ctx, client.Request{Body: []byte("x")})
		out += fmt.Sprint(a.Err)
		c.Close()
	}
	s, ok := cfg.Probes[0].Settings.(*exec.Config)
	if !ok || s.Hide == nil {
		t.Fatalf("%+v", cfg.Probes[0])
	}
	if strings.Contains(out, "CANARY") {
		t.Errorf("what a variable gave shows:\n%s", out)
	}
	for _, want := range []string{
		"https://h.example/w/<secret>/push", "https://idp.example/<secret>/token", "https://whole.example/<secret>", "no-name.example/w/<secret>/push",
		"https://host.example:443/open/path", "http://127.0.0.1:{{port}}/x/<secret>/metrics", "http://sd.example/<secret>/sd", "metrics_path: /x/<secret>/metrics", "--key=<secret>",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in:\n%s", want, out)
		}
	}
	if got := cfg.RemoteWrite[0].URL.Full().Path; got != "/w/CANARY token/+x/push" {
		t.Errorf("requests go to %q", got)
	}
}
