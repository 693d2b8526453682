package config

import (
	"fmt"
	"net"

	"hwsagent/internal/loopback"
)

// defaultPull is the default address of the pull endpoint.
const defaultPull = "127.0.0.1:24375"

// Pull says where the agent serves the newest values to scrapers.
type Pull struct {
	Listen        string `yaml:"listen"`                    // host:port; `:24375` is every address of the host; default 127.0.0.1:24375
	WebConfigFile string `yaml:"web_config_file,omitempty"` // TLS and users, in exporter-toolkit's format
}

// Reachable reports whether other hosts can reach the endpoint.
func (c *Pull) Reachable() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	return err == nil && !loopback.Host(host)
}

// validatePull checks the pull endpoint. An address that other hosts can reach is allowed with a warning, because the
// endpoint only shows values.
func (c *Config) validatePull(d *document) {
	if c.Pull == nil {
		if n := d.value("pull"); n != nil {
			d.errorAtKey("pull", "the key has no value", "write pull: {} to listen on "+defaultPull+", or remove the key")
		}
		return
	}
	if _, _, err := net.SplitHostPort(c.Pull.Listen); err != nil {
		d.errorAt("pull.listen", fmt.Sprintf("%q is not host:port", c.Pull.Listen), `as in "`+defaultPull+`"`)
		return
	}
	taken := map[string]string{c.Web.Listen: "web.listen"}
	for _, l := range c.Receivers.Listeners() {
		taken[l.Listen] = "receivers." + l.Path
	}
	if other := taken[c.Pull.Listen]; other != "" {
		d.errorAt("pull.listen", fmt.Sprintf("%s is already the address of %s", c.Pull.Listen, other), "give each listener a port of its own")
	}
	if c.Pull.Reachable() && c.Pull.WebConfigFile == "" {
		d.warnAt("pull.listen", fmt.Sprintf("whoever reaches %s can read every value, in clear text", c.Pull.Listen), "give web_config_file, with TLS and users, or listen on 127.0.0.1")
	}
}
