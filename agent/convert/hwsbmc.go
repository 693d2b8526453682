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

// usualPeriod is how often both programs read where nothing says so.
const usualPeriod = "1m"

// bmc adds the probe ipmi or redfish of a host's management controller, which is reached at the host's name or another.
func (c *converter) bmc(d device, host, reached, where, typ string, v *yaml.Node) {
	c.secretMade(v)
	if text(v, "username") == "" || text(v, "password") == "" {
		c.note(v, where, "the host %s is left out: there is no username with a password, which a probe of type %s needs", host, typ)
		return
	}
	p := mapping()
	set(p, "name", str(c.free(d, host, typ)))
	set(p, "type", str(typ))
	target := reached
	if typ == "redfish" {
		target = address(v, reached)
	}
	set(p, "target", str(target))
	set(p, "username", str(text(v, "username")))
	set(p, "password", str(text(v, "password")))
	c.common(p, d)
	c.patience(p)
	push(c.out, "probes", p)
	switch {
	case typ == "redfish" && strings.HasPrefix(target, "http://"):
		c.note(keyOf(d.protocols, "http"), where, "is read as Redfish, without TLS: the password of %s goes in clear", host)
	case typ == "redfish":
		c.note(keyOf(d.protocols, "http"), where, "is read as Redfish. The certificate of %s, which was not looked at before, is checked: hwsagent check shows its fingerprint, or name its CA in tls_config", host)
	}
	pairs(v, func(part string, k, _ *yaml.Node) {
		switch part {
		case "username", "password", "hostname", "https", "port":
		case "timeout":
			c.note(k, where+".timeout", "the probe's timeout is of a whole round; %s is of one request", map[string]string{"ipmi": "packet_timeout", "redfish": "request_timeout"}[typ])
		case "bmcKey", "skipAuth":
			c.note(k, where+"."+part, "is not there: the session is made with username and password alone")
		default:
			c.note(k, where+"."+part, "has no counterpart here")
		}
	})
}

// address is the target of a service that is reached by http or https.
func address(v *yaml.Node, host string) string {
	port, scheme := orDefault(text(v, "port"), "443"), ""
	if text(v, "https") == "false" {
		scheme = "http://"
	}
	if port == "443" && scheme == "" {
		return host
	}
	return scheme + net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// patience gives a probe of a slow device the time that it needs, as far as its interval allows.
func (c *converter) patience(p *yaml.Node) {
	period := orDefault(text(p, "interval"), orDefault(text(c.out, "global", "scrape_interval"), ""))
	if period == "" {
		period = usualPeriod
		set(p, "interval", raw(period))
	}
	if every, err := model.ParseDuration(period); err == nil && time.Duration(every) >= time.Minute {
		set(p, "timeout", raw("50s"))
	}
}

// free is a name for the probe of a host that no other probe has: with its type, where the host has another one.
func (c *converter) free(d device, host, typ string) string {
	name := orDefault(d.name, host)
	if d.name != "" && host != text(d.about, "hostname") {
		name = d.name + "-" + host
	}
	taken := func(n string) bool {
		return slices.ContainsFunc(items(get(c.out, "probes")), func(o *yaml.Node) bool { return text(o, "name") == n })
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

// restOnly names the connector that says that a host's http is no Redfish but the interface of a storage system or the like; ""
// if none does.
func restOnly(d device) string {
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

// secretMade says once that a secret may be one that MetricsHub's own tool made, which only that can read.
func (c *converter) secretMade(v *yaml.Node) {
	if k := keyOf(v, "password"); k != v && !c.secrets && !strings.HasPrefix(text(v, "password"), "${") {
		c.secrets = true
		c.note(k, "password", "a password that metricshub-encrypt made is no password here: write the plain one, or its file in password_file; this holds for every password of the file")
	}
}

// siteMetrics are the keys of a probe of type site, by the names of metrics without the units that older versions have.
var siteMetrics = map[string]string{
	"hw.site.carbon_intensity": "carbon_intensity", "hw.site.carbon_density": "carbon_intensity", "hw.site.electricity_cost": "electricity_cost", "hw.site.pue": "pue",
}

// site adds a probe of type site for constants of a group, or of the whole file where name is "". It reports the name of the site.
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
		c.note(metrics, path, "the figures are of a site that has no name: it is %s here, in global.external_labels, too", name)
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
