package convert

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// bareVariable matches a variable of Telegraf without braces.
var bareVariable = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// telegraf converts the inputs of this host, snmp and prometheus, and the outputs http and prometheus_client.
func (c *converter) telegraf(root *yaml.Node) {
	rewrite(root, func(s string) string { return bareVariable.ReplaceAllString(s, "$${$1}") })
	global := ensure(c.out, "global", mapping)
	if every := get(root, "agent", "interval"); every != nil {
		set(global, "scrape_interval", every)
	}
	c.telegrafLabels(ensure(global, "external_labels", mapping), root)
	c.plugins(root, "inputs", c.telegrafInput)
	c.plugins(root, "outputs", c.telegrafOutput)
	if get(c.out, "global", "scrape_interval") == nil {
		set(ensure(c.out, "global", mapping), "scrape_interval", raw("10s")) // Telegraf's default
	}
	if get(c.out, "remote_write") == nil {
		c.remark(nil, "remote_write", "there is no outputs.http with data_format = \"prometheusremotewrite\": add an entry with a url")
	}
}

// telegrafLabels converts the tags that Telegraf adds to everything: those of the file, and the name of the host.
func (c *converter) telegrafLabels(labels, root *yaml.Node) {
	host := c.text(root, "agent", "hostname")
	switch {
	case c.text(root, "agent", "omit_hostname") != "true":
		set(labels, "host", str(orDefault(host, "${host:name}")))
	case host != "":
		c.note(keyOf(get(root, "agent"), "hostname"), "agent.hostname", "has no effect beside omit_hostname")
	}
	pairs(get(root, "global_tags"), func(tag string, _, v *yaml.Node) {
		c.take(v)
		set(labels, labelName(tag), str(v.Value))
	})
}

// whyTelegraf returns a note on a key without a counterpart.
func whyTelegraf(key string) string {
	switch key {
	case "metric_buffer_limit", "metric_batch_size", "flush_interval", "flush_jitter", "skip_processors_after_aggregators":
		return "is not needed: samples wait on disk; queue_config bounds requests and how long they wait to fill"
	case "round_interval", "collection_jitter", "collection_offset", "precision", "startup_error_behavior":
		return "is not needed: each probe has a moment of its own, and keeps going after errors"
	case "debug", "quiet", "logtarget", "logfile", "logformat", "log_with_timezone",
		"logfile_rotation_interval", "logfile_rotation_max_size", "logfile_rotation_max_archives":
		return "the log is set by --log.level and --log.format"
	case "name_override", "name_prefix", "name_suffix", "namepass", "namedrop", "fieldpass", "fieldinclude", "fielddrop", "fieldexclude",
		"tagpass", "tagdrop", "taginclude", "tagexclude":
		return "names are others here: write metric_relabel_configs, or write_relabel_configs of a target"
	case "agent":
		return "is not needed: the log is set by --log.level and --log.format, and samples wait on disk"
	case "processors", "aggregators":
		return "is not converted: metric_relabel_configs and write_relabel_configs may do it, or a recording rule at the receiver"
	case "secretstores":
		return "secrets are files or variables here: ${file:PATH} and ${VAR}"
	case "field", "table":
		return "the probe reads by modules, not by single OIDs: name others of docs/probes/snmp.md, or an snmp.yml with config_files"
	case "percpu", "totalcpu", "collect_cpu_time", "report_active", "core_tags":
		return "the probe has the seconds of each CPU and mode, from which queries compute the rest"
	}
	return "has no counterpart here"
}

// plugins calls f for each plugin of a section, with its path.
func (c *converter) plugins(root *yaml.Node, section string, f func(kind string, k, v *yaml.Node, path string)) {
	pairs(get(root, section), func(kind string, k, v *yaml.Node) {
		path := section + "." + kind
		if v.Kind == yaml.MappingNode {
			f(kind, k, v, path)
			return
		}
		for i, one := range items(v) {
			f(kind, one, one, at(path, i))
		}
	})
}

// telegrafCollectors maps inputs to collectors of the probe host.
var telegrafCollectors = map[string][]string{
	"cpu": {"cpu"}, "mem": {"meminfo"}, "disk": {"filesystem"}, "diskio": {"diskstats"}, "net": {"netdev", "netclass"},
	"system": {"loadavg", "time"}, "swap": {"vmstat"}, "processes": {"processes"}, "kernel": {"stat"}, "kernel_vmstat": {"vmstat"},
	"netstat": {"sockstat", "tcpstat"}, "nstat": {"netstat"}, "interrupts": {"interrupts"}, "linux_sysctl_fs": {"filefd"},
	"conntrack": {"conntrack"}, "sensors": {"hwmon"}, "temp": {"thermal_zone", "hwmon"}, "bond": {"bonding"}, "systemd_units": {"systemd"},
	"mdstat": {"mdadm"}, "zfs": {"zfs"}, "infiniband": {"infiniband"}, "nfsclient": {"nfs"}, "ipvs": {"ipvs"},
}

func (c *converter) telegrafInput(kind string, k, v *yaml.Node, path string) {
	switch {
	case telegrafCollectors[kind] != nil:
		c.telegrafHost(kind, k, v, path)
	case kind == "snmp":
		c.telegrafSNMP(v, path)
	case kind == "prometheus":
		c.telegrafScrape(v, path)
	case slices.Contains([]string{"smart", "nvidia_smi", "ipmi_sensor", "redfish", "upsd", "exec"}, kind):
		probe := map[string]string{"nvidia_smi": "nvidia", "ipmi_sensor": "ipmi", "upsd": "nut"}[kind]
		c.note(k, path, "write a probe of type %s for it", orDefault(probe, kind))
	case kind == "internal":
		c.note(k, path, "is not needed: the agent always collects its own metrics, as job hwsagent")
	default:
		c.note(k, path, "has no counterpart here: run an exporter for it, and read that with a probe of type exec with scrape_url or with scrape_configs")
	}
}

// telegrafHost adds collectors to the probe of this host.
func (c *converter) telegrafHost(kind string, k, v *yaml.Node, path string) {
	first := !c.hasHost()
	p := c.hostProbe()
	own := ensure(p, "collectors", func() *yaml.Node { return flow(list(str("uname"))) })
	for _, name := range telegrafCollectors[kind] {
		if !slices.ContainsFunc(own.Content, func(n *yaml.Node) bool { return n.Value == name }) {
			own.Content = append(own.Content, str(name))
		}
	}
	set(p, "hw", raw("true"))
	if len(v.Content) == 0 {
		c.take(v)
	}
	if first {
		c.remark(k, path, "is the probe host here, as other inputs of this host are: its metrics have node_exporter's names (node_cpu_seconds_total), not Telegraf's (cpu_usage_idle)")
	}
	if list := get(v, "ignore_fs"); kind == "disk" && len(items(list)) > 0 {
		var names []string
		for _, name := range items(list) {
			names = append(names, regexp.QuoteMeta(name.Value))
		}
		c.take(list)
		set(p, "fs_types_exclude", str("^("+strings.Join(names, "|")+")$"))
	}
	c.pluginKeys(p, v, path)
}

// pluginKeys converts the settings that every input has.
func (c *converter) pluginKeys(p, v *yaml.Node, path string) {
	if every := get(v, "interval"); every != nil {
		set(p, "interval", every)
	}
	if alias := get(v, "alias"); alias != nil {
		c.note(keyOf(v, "alias"), path+".alias", "the name of the entry is %s here", text(p, "name")+text(p, "job_name"))
	}
	pairs(get(v, "tags"), func(tag string, _, value *yaml.Node) {
		c.take(value)
		set(ensure(p, "labels", mapping), labelName(tag), str(value.Value))
	})
}

// telegrafSNMP makes a probe of an input snmp.
func (c *converter) telegrafSNMP(v *yaml.Node, path string) {
	p, targets := mapping(), list()
	set(p, "name", str(c.free(device{}, "snmp", "snmp")))
	set(p, "type", str("snmp"))
	for _, agent := range items(get(v, "agents")) {
		target := agent.Value
		for _, scheme := range []string{"udp://", "udp4://", "udp6://"} {
			target = strings.TrimPrefix(target, scheme)
		}
		for _, scheme := range []string{"tcp://", "tcp4://", "tcp6://"} {
			if rest, ok := strings.CutPrefix(target, scheme); ok {
				target = "tcp:" + rest
			}
		}
		c.take(agent)
		targets.Content = append(targets.Content, str(target))
	}
	if len(targets.Content) == 0 {
		c.note(v, path, "has no agents; it is left out")
		return
	}
	set(p, "targets", flow(targets))
	auth := mapping()
	for _, key := range [][2]string{{"version", "version"}, {"community", "community"}, {"sec_name", "username"}, {"sec_level", "security_level"},
		{"auth_protocol", "auth_protocol"}, {"auth_password", "password"}, {"priv_protocol", "priv_protocol"}, {"priv_password", "priv_password"},
		{"context_name", "context_name"}} {
		if n := get(v, key[0]); n != nil && n.Value != "" {
			set(auth, key[1], n)
		} else if n != nil {
			c.take(n)
		}
	}
	set(p, "auth", flow(auth))
	set(p, "modules", flow(list(str("system"), str("if_mib"), str("hardware"))))
	for _, key := range [][2]string{{"timeout", "packet_timeout"}, {"retries", "retries"}, {"max_repetitions", "max_repetitions"}} {
		if n := get(v, key[0]); n != nil {
			set(p, key[1], n)
		}
	}
	c.pluginKeys(p, v, path)
	push(c.out, "probes", p)
	c.remark(v, path, "is a probe of type snmp here, with the modules system, if_mib and hardware and their names of metrics")
}

// telegrafScrape makes jobs of an input prometheus: one for each scheme, path and query of its URLs.
func (c *converter) telegrafScrape(v *yaml.Node, path string) {
	var jobs []*yaml.Node
	for i, one := range items(get(v, "urls")) {
		u, err := url.Parse(one.Value)
		if err != nil || u.Host == "" || u.User != nil {
			c.note(one, at(path+".urls", i), "is no URL like http://host:port/metrics; it is left out")
			continue
		}
		c.take(one)
		own := mapping()
		set(own, "scheme", str(u.Scheme))
		set(own, "metrics_path", str(orDefault(u.Path, "/metrics")))
		params := mapping()
		for _, name := range sortedKeys(u.Query()) {
			values := list()
			for _, value := range u.Query()[name] {
				values.Content = append(values.Content, str(value))
			}
			set(params, name, values)
		}
		if len(params.Content) > 0 {
			set(own, "params", flow(params))
		}
		target := str(u.Host)
		if j := slices.IndexFunc(jobs, func(job *yaml.Node) bool { return samePlace(job, own) }); j >= 0 {
			targets := get(get(jobs[j], "static_configs").Content[0], "targets")
			targets.Content = append(targets.Content, target)
			continue
		}
		static := mapping()
		set(static, "targets", list(target))
		set(own, "static_configs", list(flow(static)))
		jobs = append(jobs, own)
	}
	if len(jobs) == 0 {
		c.note(v, path, "has no urls; it is left out")
		return
	}
	for _, job := range jobs {
		c.telegrafJob(job, v, path)
	}
}

// samePlace reports whether two jobs differ in their targets only.
func samePlace(a, b *yaml.Node) bool {
	for _, key := range []string{"scheme", "metrics_path", "params"} {
		x, y := get(a, key), get(b, key)
		if (x == nil) != (y == nil) || x != nil && !same(x, y) {
			return false
		}
	}
	return true
}

func sortedKeys(all url.Values) (names []string) {
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// telegrafJob adds a job with the settings of its input.
func (c *converter) telegrafJob(place, v *yaml.Node, path string) {
	own := mapping()
	set(own, "job_name", str(c.freeJob(orDefault(c.text(v, "alias"), "prometheus"))))
	own.Content = append(own.Content, place.Content...)
	for _, key := range [][2]string{{"bearer_token", "bearer_token_file"}, {"bearer_token_string", "bearer_token"}, {"interval", "scrape_interval"},
		{"timeout", "scrape_timeout"}, {"response_timeout", "scrape_timeout"}, {"http_proxy_url", "proxy_url"}} {
		if n := get(v, key[0]); n != nil {
			set(own, key[1], n)
		}
	}
	c.telegrafClient(own, v)
	static := get(own, "static_configs").Content[0]
	pairs(get(v, "tags"), func(tag string, _, value *yaml.Node) {
		c.take(value)
		set(ensure(static, "labels", mapping), labelName(tag), str(value.Value))
	})
	push(c.out, "scrape_configs", own)
}

// telegrafClient converts the login and the TLS settings of a plugin that speaks HTTP.
func (c *converter) telegrafClient(own, v *yaml.Node) {
	part := func(name string, keys ...[2]string) {
		for _, key := range keys {
			if n := get(v, key[0]); n != nil && n.Value != "" {
				set(ensure(own, name, func() *yaml.Node { return flow(mapping()) }), key[1], n)
			} else {
				c.take(n)
			}
		}
	}
	part("basic_auth", [2]string{"username", "username"}, [2]string{"password", "password"})
	part("tls_config", [2]string{"tls_ca", "ca_file"}, [2]string{"tls_cert", "cert_file"}, [2]string{"tls_key", "key_file"}, [2]string{"tls_server_name", "server_name"},
		[2]string{"insecure_skip_verify", "insecure_skip_verify"})
	part("oauth2", [2]string{"client_id", "client_id"}, [2]string{"client_secret", "client_secret"}, [2]string{"token_url", "token_url"})
	if scopes := get(v, "scopes"); scopes != nil && get(own, "oauth2") != nil {
		set(get(own, "oauth2"), "scopes", scopes)
	}
}

func (c *converter) telegrafOutput(kind string, k, v *yaml.Node, path string) {
	switch kind {
	case "http":
		c.telegrafHTTP(k, v, path)
	case "prometheus_client":
		own := mapping()
		if listen := get(v, "listen"); listen != nil {
			set(own, "listen", listen)
		}
		set(c.out, "pull", own)
	default:
		c.note(k, path, "the agent sends remote write only")
	}
}

// telegrafHTTP makes an entry of remote_write of an output http.
func (c *converter) telegrafHTTP(k, v *yaml.Node, path string) {
	if text(v, "data_format") != "prometheusremotewrite" {
		c.note(k, path, "is left out: the agent sends remote write only, which is data_format = \"prometheusremotewrite\"")
		return
	}
	c.take(get(v, "data_format"))
	own := mapping()
	for _, key := range [][2]string{{"url", "url"}, {"timeout", "remote_timeout"}, {"http_proxy_url", "proxy_url"}, {"alias", "name"}} {
		if n := get(v, key[0]); n != nil {
			set(own, key[1], n)
		}
	}
	for _, fixed := range [][2]string{{"method", "POST"}, {"content_encoding", "snappy"}} {
		if n := get(v, fixed[0]); n != nil && strings.EqualFold(n.Value, fixed[1]) {
			c.take(n)
		} else if n != nil {
			c.note(keyOf(v, fixed[0]), path+"."+fixed[0], "remote write is always %s", fixed[1])
		}
	}
	c.telegrafClient(own, v)
	if headers := get(v, "headers"); headers != nil {
		c.headers(own, headers, path+".headers")
	}
	sig := mapping()
	for _, key := range [][2]string{{"region", "region"}, {"access_key", "access_key"}, {"secret_key", "secret_key"}, {"role_arn", "role_arn"}, {"profile", "profile"}} {
		if n := get(v, key[0]); n != nil && get(v, "aws_service") != nil {
			set(sig, key[1], n)
		}
	}
	if service := get(v, "aws_service"); service != nil {
		set(sig, "service_name", service)
		set(own, "sigv4", flow(sig))
	}
	c.target(own, v, path)
}
