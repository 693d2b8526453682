package agent

import (
	"fmt"
	"net"
	"time"

	"hwsagent/inputs/pull"
	"hwsagent/receivers"
	"hwsagent/web"
)

// defaultPull is the default address of the pull endpoint.
const defaultPull = "127.0.0.1:24375"

// pullName is the name of the endpoint in logs, metrics and the status.
const pullName = "pull"

// PullConfig says where the agent serves the newest values to scrapers.
type PullConfig struct {
	Listen        string `yaml:"listen"`                    // host:port; default 127.0.0.1:24375
	WebConfigFile string `yaml:"web_config_file,omitempty"` // TLS and users, in exporter-toolkit's format
}

// reachable reports whether other hosts can reach the endpoint.
func (c *PullConfig) reachable() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	return err == nil && !receivers.LoopbackHost(host)
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
	for _, l := range c.Receivers.listeners() {
		taken[l.Listen] = "receivers." + l.path
	}
	if other := taken[c.Pull.Listen]; other != "" {
		d.errorAt("pull.listen", fmt.Sprintf("%s is already the address of %s", c.Pull.Listen, other), "give each listener a port of its own")
	}
	if c.Pull.reachable() && c.Pull.WebConfigFile == "" {
		d.warnAt("pull.listen", fmt.Sprintf("whoever reaches %s can read every value, in clear text", c.Pull.Listen), "give web_config_file, with TLS and users, or listen on 127.0.0.1")
	}
}

// pullSpecs is the pull endpoint of cfg, or nothing.
func (a *Agent) pullSpecs(cfg *Config) []receivers.Spec {
	if cfg.Pull == nil {
		return nil
	}
	handler := pull.New(pull.Options{Newest: a.inputs.Newest, External: cfg.Global.Labels(), Selector: parseSelector, Unshown: &a.unshown, Logger: a.logger})
	limits := receivers.DefaultLimits()
	limits.Connections = 64
	return []receivers.Spec{{
		Name: pullName, Identity: a.ids.of(pullName, []any{cfg.Pull, cfg.Global.ExternalLabels}),
		Listen: cfg.Pull.Listen, WebConfigFile: cfg.Pull.WebConfigFile, Insecure: true, // reported by check and on the page
		Gate: receivers.NewGate(receivers.GateOptions{Name: pullName, Limits: limits, Logger: a.logger, Guard: a.pulling}), Handler: handler,
	}}
}

// pullStatus describes the pull endpoint; nil if there is none.
func (a *Agent) pullStatus(cfg *Config, now time.Time) *web.PullStatus {
	for _, s := range a.pull.Status() {
		if cfg.Pull != nil {
			return &web.PullStatus{Listen: s.Address, TLS: s.TLS, Open: cfg.Pull.reachable() && !s.Users, Unshown: int(a.unshown.Load()), Panics: panicStatus(a.pulling.State(), now)}
		}
	}
	return nil
}
