package config

import "testing"

// TestListenOnThisHost: what the page's server and the receivers take for this host, the configuration takes as well.
func TestListenOnThisHost(t *testing.T) {
	for _, host := range []string{"localhost", "LOCALHOST", "foo.localhost", "127.0.0.1", "[::1]"} {
		text := "web:\n  listen: '" + host + ":9464'\nprobes: [{type: host}]\n"
		cfg, _, err := LoadBytes("agent.yaml", []byte(text), testEnv)
		if err != nil {
			t.Errorf("%s: %v", host, err)
		} else if cfg.Web.Reachable() {
			t.Errorf("%s counts as reachable from other hosts", host)
		}
	}
	for _, host := range []string{"", "0.0.0.0", "localhost.example.com"} {
		text := "web:\n  listen: '" + host + ":9464'\nprobes: [{type: host}]\n"
		if _, _, err := LoadBytes("agent.yaml", []byte(text), testEnv); err == nil {
			t.Errorf("%q loads without config_file", host)
		}
	}
}
