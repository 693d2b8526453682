package convert

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"
)

// usualPeriod is the default collect period of both programs.
const usualPeriod = "1m"

// bmc adds the probe ipmi or redfish of a host's management controller; reached is its address.
func (c *converter) bmc(d device, host, reached, where, typ string, v *yaml.Node) {
	c.secretMade(v)
	if c.text(v, "username") == "" || c.text(v, "password") == "" {
		c.note(v, where, "the host %s is left out: there is no username with a password, which a probe of type %s needs", host, typ)
		return
	}
	p := mapping()
	set(p, "name", str(c.free(d, host, typ)))
	set(p, "type", str(typ))
	target := reached
	if typ == "redfish" {
		target = c.address(v, reached)
	}
	set(p, "target", str(target))
	set(p, "username", str(c.text(v, "username")))
	set(p, "password", str(c.text(v, "password")))
	c.common(p, d)
	c.patience(p)
	push(c.out, "probes", p)
	switch {
	case typ == "redfish" && strings.HasPrefix(target, "http://"):
		c.remark(keyOf(d.protocols, "http"), where, "is read as Redfish, without TLS: the password of %s is sent in clear", host)
	case typ == "redfish":
		c.remark(keyOf(d.protocols, "http"), where, "is read as Redfish. The agent checks the certificate of %s, which MetricsHub did not: name its CA in tls_config, or the fingerprint that hwsagent check shows", host)
	}
	pairs(v, func(part string, k, _ *yaml.Node) {
		switch part {
		case "username", "password", "hostname", "https", "port":
		case "timeout":
			c.note(k, where+".timeout", "the probe's timeout is of a whole round; %s is of one request", map[string]string{"ipmi": "packet_timeout", "redfish": "request_timeout"}[typ])
		case "bmcKey", "skipAuth":
			c.note(k, where+"."+part, "is not supported: the session uses username and password only")
		default:
			c.note(k, where+"."+part, "has no counterpart here")
		}
	})
}

// address returns the target for a service reached by http or https.
func (c *converter) address(v *yaml.Node, host string) string {
	port, scheme := orDefault(c.text(v, "port"), "443"), ""
	if c.text(v, "https") == "false" {
		scheme = "http://"
	}
	if port == "443" && scheme == "" {
		return host
	}
	return scheme + net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// patience gives a probe of a slow device a long timeout, if its interval allows that.
func (c *converter) patience(p *yaml.Node) {
	period := orDefault(c.text(p, "interval"), orDefault(c.text(c.out, "global", "scrape_interval"), ""))
	if period == "" {
		period = usualPeriod
		set(p, "interval", raw(period))
	}
	if every, err := model.ParseDuration(period); err == nil && time.Duration(every) >= time.Minute {
		set(p, "timeout", raw("50s"))
	}
}

// free returns a probe name for a host that no other probe has. If the host's name is taken, it appends the type.
func (c *converter) free(d device, host, typ string) string {
	name := orDefault(d.name, host)
	if d.name != "" && host != c.text(d.about, "hostname") {
		name = d.name + "-" + host
	}
	taken := func(n string) bool {
		return slices.ContainsFunc(items(get(c.out, "probes")), func(o *yaml.Node) bool { return c.text(o, "name") == n })
	}
	if taken(name) {
		name += "-" + typ
	}
	base := name
	for i := 2; taken(name); i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	return name
}

// restOnly returns the first connector of a host whose connectors all use http for interfaces other than Redfish, such
// as a storage system's; "" for any other host.
func (c *converter) restOnly(d device) string {
	first := ""
	for _, key := range []string{"connectors", "selectedConnectors"} {
		for _, n := range items(get(d.node, key)) {
			name := strings.ToLower(strings.TrimLeft(n.Value, "+"))
			switch {
			case strings.HasPrefix(name, "!") || strings.HasPrefix(name, "#"):
			case slices.ContainsFunc([]string{"redfish", "ilo", "idrac", "xcc", "irmc", "imm", "bmc"}, func(s string) bool { return strings.Contains(name, s) }):
				return ""
			case first == "":
				first = n.Value
			}
		}
	}
	return first
}

// secretMade notes once that MetricsHub's own tool may have encrypted a password, in which case only MetricsHub can
// decrypt it.
func (c *converter) secretMade(v *yaml.Node) {
	if k := keyOf(v, "password"); k != v && !c.secrets && !strings.HasPrefix(c.text(v, "password"), "${") {
		c.secrets = true
		c.remark(k, "password", "the agent cannot read a password that metricshub-encrypt made: write the plain one, or a file with it in password_file; this goes for every password of the file")
	}
}

// siteMetrics maps names of metrics to keys of a probe of type site. Older versions append a unit to the name.
var siteMetrics = map[string]string{
	"hw.site.carbon_intensity": "carbon_intensity", "hw.site.carbon_density": "carbon_intensity", "hw.site.electricity_cost": "electricity_cost", "hw.site.pue": "pue",
}

// site adds a probe of type site for constants of a group, or of the whole file if name is "". It returns the name of
// the site.
func (c *converter) site(path string, metrics *yaml.Node, name string) string {
	p := mapping()
	pairs(metrics, func(metric string, k, v *yaml.Node) {
		plain := metric
		for _, unit := range []string{"_grams", "_dollars", "_ratio"} {
			plain = strings.TrimSuffix(plain, unit)
		}
		key, ok := siteMetrics[strings.ReplaceAll(plain, "hw_site_", "hw.site.")]
		if !ok {
			c.note(k, path+"."+metric, "%s", whyHWS("metrics"))
			return
		}
		c.take(v)
		set(p, key, raw(v.Value))
		if strings.HasSuffix(metric, "_dollars") {
			set(p, "currency", str("USD"))
		}
	})
	if len(p.Content) == 0 {
		return name
	}
	if name == "" {
		name = "default"
		c.remark(metrics, path, "the site of these figures has no name: it is called %s here, also in global.external_labels; write your own name in both places", name)
		set(ensure(ensure(c.out, "global", mapping), "external_labels", mapping), "site", str(name))
	}
	entry := mapping()
	set(entry, "name", str(c.free(device{}, "site-"+name, "site")))
	set(entry, "type", str("site"))
	set(entry, "site", str(name))
	entry.Content = append(entry.Content, p.Content...)
	push(c.out, "probes", entry)
	return name
}
