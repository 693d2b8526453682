package convert

import (
	"net"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// hws converts the configuration of Hardware Sentry (hws-config.yaml: targets or hosts) or of
// MetricsHub (metricshub.yaml: resourceGroups or resources).
func (c *converter) hws(root *yaml.Node) {
	rewrite(root, func(s string) string {
		return strings.ReplaceAll(literal(s), "$${env::", "${")
	})
	pairs(root, func(key string, _, v *yaml.Node) { // read the settings that probes need first
		switch key {
		case "collectPeriod":
			set(ensure(c.out, "global", mapping), "scrape_interval", c.duration(v))
		case "extraLabels", "attributes":
			labels := ensure(ensure(c.out, "global", mapping), "external_labels", mapping)
			c.take(v)
			pairs(v, func(name string, _, value *yaml.Node) { set(labels, labelName(name), str(value.Value)) })
		}
	})
	pairs(root, func(key string, k, v *yaml.Node) {
		switch key {
		case "collectPeriod", "extraLabels", "attributes":
		case "extraMetrics", "metrics":
			c.site(key, v, c.text(c.out, "global", "external_labels", "site"))
		case "targets", "hosts":
			for i, e := range items(v) {
				c.entry(at(key, i), strings.TrimSuffix(key, "s"), e)
			}
		case "resourceGroups":
			pairs(v, func(group string, _, g *yaml.Node) { c.group(key+"."+group, group, g) })
		case "resources":
			c.resources(v, key, nil)
		default:
			c.note(k, key, "%s", whyHWS(key))
		}
	})
	set(ensure(c.out, "global", mapping), "hw_labels", str("metricshub"))
	c.remark(nil, "hw_labels", "hw_* have MetricsHub's names, for its dashboards and rules; remove the key for the names of this project")
	c.remark(nil, "remote_write", "the Collector's configuration has the targets: convert that file, too, and add its remote_write here")
	set(c.out, "pull", flow(mapping()))
	c.remark(nil, "pull", "shows every series at 127.0.0.1:24375/metrics, as the Collector's exporter did at :24375; remove it if no Prometheus scrapes there")
}

// group converts a group of resources. A group with figures of a site becomes that site.
func (c *converter) group(path, name string, g *yaml.Node) {
	attributes := get(g, "attributes")
	pairs(g, func(part string, pk, v *yaml.Node) {
		switch part {
		case "resources", "attributes":
		case "metrics":
			given := c.text(attributes, "site")
			if site := c.site(path+".metrics", v, orDefault(given, name)); given == "" && site != "" {
				attributes = ensure(g, "attributes", mapping)
				set(attributes, "site", str(site))
			}
		default:
			c.note(pk, path+"."+part, "%s", whyHWS(part))
		}
	})
	c.resources(get(g, "resources"), path+".resources", attributes)
}

// whyHWS returns a note on a key without a counterpart.
func whyHWS(key string) string {
	switch key {
	case "extraMetrics", "metrics":
		return "a constant: write it into a *.prom file and read it with a probe of type textfile"
	case "loggerLevel", "outputDirectory":
		return "the log is set by --log.level and --log.format"
	case "jobPoolSize", "sequential", "discoveryCycle":
		return "is not needed: each probe runs on its own, and discovers in each round"
	case "exporter", "otel", "grpc":
		return "the agent sends by remote_write"
	case "enableSelfMonitoring":
		return "the agent's own metrics are collected by themselves as job hwsagent"
	case "connectors", "selectedConnectors", "excludedConnectors", "connectorVariables", "patchDirectory":
		return "there are no connectors: a probe reads by modules"
	case "monitorFilters":
		return "drop unwanted series with metric_relabel_configs"
	case "alertingSystem", "alertingSystemConfig", "hardwareProblemTemplate", "disableAlerts":
		return "alerts belong to the server that receives the data"
	}
	return "has no counterpart here"
}

// device is a monitored host.
type device struct {
	path      string // of the mapping with the protocols
	node      *yaml.Node
	name      string     // name of the resource, if any
	about     *yaml.Node // hostname and type
	protocols *yaml.Node // the mapping with the protocols, possibly among other keys
	labels    []*yaml.Node
}

// entry converts an entry of hosts or targets: a host, or a hostGroup, whose hostnames are a list, or keys with their
// own labels.
func (c *converter) entry(path, kind string, e *yaml.Node) {
	for _, key := range []string{kind, kind + "Group"} {
		about := get(e, key)
		hosts := get(about, "hostnames")
		c.typed(get(about, "type"), path+"."+key+".type")
		switch {
		case about == nil:
			continue
		case hosts == nil:
			c.device(device{path: path, node: e, about: about, protocols: e})
		case hosts.Kind == yaml.MappingNode:
			pairs(hosts, func(name string, _, own *yaml.Node) {
				if len(own.Content) == 0 {
					c.take(own)
				}
				one := mapping()
				set(one, "hostname", str(name))
				c.device(device{path: path, node: e, about: one, protocols: e, labels: []*yaml.Node{get(own, "extraLabels")}})
				pairs(own, func(part string, k, _ *yaml.Node) {
					if part != "extraLabels" {
						c.note(k, path+"."+key+".hostnames."+name+"."+part, "%s", whyHWS(part))
					}
				})
			})
		default:
			set(about, "hostname", hosts)
			c.device(device{path: path, node: e, about: about, protocols: e})
		}
		return
	}
	c.note(e, path, "has neither %s nor %[1]sGroup; it is left out", kind)
}

// typed notes once that the types of hosts, which say what MetricsHub tries, are not needed.
func (c *converter) typed(n *yaml.Node, path string) {
	if n != nil && !c.types {
		c.types = true
		c.remark(n, path, "is not needed: a probe finds out what the device is; this goes for the type of every host")
	}
	c.take(n)
}

// resources converts the resources of MetricsHub.
func (c *converter) resources(v *yaml.Node, path string, group *yaml.Node) {
	pairs(v, func(name string, _, r *yaml.Node) {
		about := mapping()
		attributes := get(r, "attributes")
		if n := get(attributes, "host.name"); n != nil {
			c.take(n)
			set(about, "hostname", n)
		}
		c.typed(get(attributes, "host.type"), path+"."+name+".attributes.host.type")
		if n := get(attributes, "host.type"); n != nil {
			set(about, "type", n)
		}
		d := device{path: path + "." + name + ".protocols", name: name, node: r, about: about, protocols: get(r, "protocols"), labels: []*yaml.Node{group, attributes}}
		pairs(r, func(key string, k, value *yaml.Node) {
			switch key {
			case "attributes", "protocols", "collectPeriod":
			case "metrics":
				pairs(value, func(metric string, mk, _ *yaml.Node) {
					c.note(mk, path+"."+name+".metrics."+metric, "%s", whyHWS("metrics"))
				})
			default:
				c.note(k, path+"."+name+"."+key, "%s", whyHWS(key))
			}
		})
		c.device(d)
	})
}

// device converts one host: a probe for each protocol that has one.
func (c *converter) device(d device) {
	var hosts []string
	if n := get(d.about, "hostname"); n != nil && n.Kind == yaml.SequenceNode {
		c.take(n)
		for _, h := range items(n) {
			hosts = append(hosts, h.Value)
		}
	} else {
		hosts = []string{orDefault(c.text(d.about, "hostname"), orDefault(c.text(d.about, "id"), "localhost"))}
	}
	pairs(d.protocols, func(key string, k, v *yaml.Node) {
		where := d.path + "." + key
		switch key {
		case "target", "host", "targetGroup", "hostGroup", "collectPeriod":
		case "extraLabels", "attributes":
			d.labels = append([]*yaml.Node{v}, d.labels...) // a host's own labels win
		case "snmp", "snmpv3":
		case "osCommand", "ssh", "winrm", "wmi", "winRm":
			if local(hosts) {
				c.host(d)
				c.note(k, where, "became the probe host, which needs no login and no commands")
				return
			}
			c.note(k, where, "is left out: to read %s, run an agent there, with a probe of type host", strings.Join(hosts, ", "))
		case "ipmi":
		case "http":
			if other := c.restOnly(d); other != "" {
				c.note(k, where, "is left out: the connector %s reads %s by an interface that is not Redfish; run an exporter for it, and read that with a probe of type exec with scrape_url or with scrape_configs", other, strings.Join(hosts, ", "))
			}
		case "wbem", "jdbc", "jmx":
			c.note(k, where, "is left out: no probe speaks %s to %s; run an exporter for it, and read that with a probe of type exec with scrape_url or with scrape_configs", strings.ToUpper(key), strings.Join(hosts, ", "))
		case "ping":
			c.note(k, where, "scrape a blackbox_exporter for it")
		default:
			c.note(k, where, "%s", whyHWS(key))
		}
	})
	for _, key := range []string{"snmp", "snmpv3", "ipmi", "http"} {
		v := get(d.protocols, key)
		if v == nil || key == "http" && c.restOnly(d) != "" {
			continue
		}
		for i, host := range hosts {
			at := c.own(v, host, i)
			switch key {
			case "ipmi":
				c.bmc(d, host, at, d.path+".ipmi", "ipmi", v)
			case "http":
				c.bmc(d, host, at, d.path+".http", "redfish", v)
			default:
				c.snmp(d, host, at, key, v)
			}
		}
	}
}

// own returns the address of the i-th host for a protocol, which may have its own host names.
func (c *converter) own(v *yaml.Node, host string, i int) string {
	if names := items(get(v, "hostname")); i < len(names) {
		c.take(names[i])
		return names[i].Value
	}
	return orDefault(c.text(v, "hostname"), host)
}

func local(hosts []string) bool {
	return len(hosts) == 1 && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, hosts[0])
}

// host adds the probe of this host, once.
func (c *converter) host(d device) {
	for _, p := range items(get(c.out, "probes")) {
		if c.text(p, "type") == "host" {
			return
		}
	}
	c.common(c.hostProbe(), d)
}

// common sets the keys that every probe of a device has.
func (c *converter) common(p *yaml.Node, d device) {
	if n := get(d.node, "collectPeriod"); n != nil {
		set(p, "interval", c.duration(n))
	}
	labels := mapping()
	for _, from := range d.labels {
		pairs(from, func(name string, _, v *yaml.Node) {
			c.take(v)
			if v.Kind == yaml.ScalarNode && name != "host.name" && name != "host.type" {
				set(labels, labelName(name), str(v.Value))
			}
		})
	}
	if len(labels.Content) > 0 {
		set(p, "labels", flow(labels))
	}
}

// duration returns a period; a plain number means seconds.
func (c *converter) duration(n *yaml.Node) *yaml.Node {
	c.take(n)
	if n.Value != "" && strings.Trim(n.Value, "0123456789") == "" {
		return raw(n.Value + "s")
	}
	return raw(n.Value)
}

// snmp adds the probe snmp of a host; reached is its address.
func (c *converter) snmp(d device, host, reached, key string, v *yaml.Node) {
	where := d.path + "." + key
	c.secretMade(v)
	p := mapping()
	set(p, "name", str(c.free(d, host, "snmp")))
	set(p, "type", str("snmp"))
	set(p, "target", str(net.JoinHostPort(strings.Trim(reached, "[]"), orDefault(c.text(v, "port"), "161"))))
	auth := mapping()
	version := strings.ToLower(c.text(v, "version"))
	if rest, v3 := strings.CutPrefix(version, "v3"); v3 && !slices.Contains(strings.Fields("-md5 -sha -sha224 -sha256 -sha384 -sha512 -no-auth -no_auth -noauth"), rest) && rest != "" {
		c.remark(keyOf(v, "version"), where+".version", "%s is no version: 3 is used", version)
	}
	if key == "snmpv3" || strings.HasPrefix(version, "v3") || version == "3" {
		c.snmpv3(auth, v, version, where)
	} else {
		if !slices.Contains([]string{"", "v1", "v2c", "v2", "1", "2", "2c"}, version) {
			c.remark(keyOf(v, "version"), where+".version", "%s is no version: 2 is used", version)
		}
		if strings.HasSuffix(version, "1") {
			set(auth, "version", raw("1"))
		}
		set(auth, "community", str(orDefault(c.text(v, "community"), "public")))
	}
	set(p, "auth", flow(auth))
	set(p, "modules", flow(list(str("system"), str("if_mib"), str("hardware"))))
	c.common(p, d)
	push(c.out, "probes", p)
	pairs(v, func(part string, k, _ *yaml.Node) {
		switch part {
		case "version", "community", "port", "hostname", "username", "password", "privacy", "privacyPassword", "authType", "contextName":
		case "timeout", "retryIntervals":
			c.note(k, where+"."+part, "the probe's timeout is of a whole round; packet_timeout and retries are of one request")
		default:
			c.note(k, where+"."+part, "has no counterpart here")
		}
	})
}

// snmpv3 fills in a login of version 3.
func (c *converter) snmpv3(auth, v *yaml.Node, version, where string) {
	set(auth, "version", raw("3"))
	set(auth, "username", str(c.text(v, "username")))
	hash := strings.ToUpper(c.text(v, "authType"))
	for _, h := range []string{"SHA512", "SHA384", "SHA256", "SHA224", "SHA", "MD5"} { // older files have it in the version: v3-sha
		if hash == "" && strings.Contains(strings.ToUpper(version), h) {
			hash = h
		}
	}
	private := strings.ToUpper(c.text(v, "privacy"))
	level := "noAuthNoPriv"
	if hash != "" && hash != "NO_AUTH" {
		level = "authNoPriv"
		set(auth, "auth_protocol", str(hash))
		set(auth, "password", str(c.text(v, "password")))
	}
	if private != "" && private != "NONE" && private != "NO_ENCRYPTION" && level == "authNoPriv" {
		level = "authPriv"
		set(auth, "priv_protocol", str(private))
		set(auth, "priv_password", str(c.text(v, "privacyPassword")))
	}
	set(auth, "security_level", str(level))
	if name := c.text(v, "contextName"); name != "" {
		set(auth, "context_name", str(name))
	}
	if private == "AES256" || private == "AES192" {
		c.remark(keyOf(v, "privacy"), where+".privacy", "if the device is Cisco's, write %sC", private)
	}
}
