package convert

import (
	"net"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"hwsagent/internal/loopback"
)

// otelVariable matches the Collector's variables: ${env:VAR}, ${env:VAR:-default}, ${VAR}.
var otelVariable = regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?)\}`)

// collector is the configuration of an OpenTelemetry Collector.
type collector struct {
	*converter
	root *yaml.Node
	// used holds the components that appear in a pipeline of metrics, by section and name.
	used map[string]bool
	// through holds the processors in front of each exporter, in order.
	through map[string][]string
	// reaches holds the exporters that each receiver's data goes to.
	reaches map[string]map[string]bool
	// promoted and kept are the paths of the settings of exporters that do, or do not, make attributes of resources labels.
	promoted, kept []string
}

// kindOf returns the type of a component: the part of its name before the slash.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, "/")
	return kind
}

// otelcol converts the configuration of an OpenTelemetry Collector.
func (c *converter) otelcol(root *yaml.Node) {
	rewrite(root, func(s string) string {
		const dollar = "\x00"
		s = strings.ReplaceAll(s, "$$", dollar)
		if strings.Contains(s, "${file:") || strings.Contains(s, "${yaml:") {
			c.remark(nil, "${…}", "a value comes from a provider of the Collector: %s; ${file:PATH} is known here, other providers are not", s)
		}
		s = strings.ReplaceAll(otelVariable.ReplaceAllString(s, "$${$1}"), dollar+"{", "$${")
		return strings.ReplaceAll(s, dollar, "$")
	})
	unescapeRules(root)
	o := &collector{converter: c, root: root, used: map[string]bool{}, through: map[string][]string{}, reaches: map[string]map[string]bool{}}
	o.pipelines()
	for _, section := range []string{"receivers", "exporters", "extensions", "processors"} {
		pairs(get(root, section), func(name string, k, v *yaml.Node) {
			where := section + "." + name
			if !o.used[where] {
				c.note(k, where, "no pipeline of metrics uses it")
				return
			}
			switch section {
			case "receivers":
				o.receiver(name, k, v, where)
			case "exporters":
				o.exporter(name, k, v, where)
			case "extensions":
				o.extension(name, k, v, where)
			case "processors":
				o.processor(name, k, v, where)
			}
		})
	}
	o.promote()
	o.mixes()
	c.usualInterval()
	pairs(root, func(key string, k, _ *yaml.Node) {
		if !slices.Contains([]string{"receivers", "exporters", "extensions", "processors", "service"}, key) {
			c.note(k, key, "%s", whyOTel(key))
		}
	})
	pairs(get(root, "service"), func(key string, k, _ *yaml.Node) {
		if key == "telemetry" {
			c.note(k, "service.telemetry", "the agent's own metrics are collected by themselves as job hwsagent; its log is set by --log.level and --log.format")
		}
	})
}

// unescapeRules turns $$1 into $1 in relabelling, where the Collector escapes it.
func unescapeRules(n *yaml.Node) {
	if n == nil {
		return
	}
	if n.Kind == yaml.ScalarNode {
		n.Value = strings.ReplaceAll(n.Value, "$$", "$")
		return
	}
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 && !(child.Kind == yaml.ScalarNode) {
			unescapeRules(child)
		} else if i%2 == 1 && slices.Contains([]string{"replacement", "regex", "target_label"}, n.Content[i-1].Value) {
			child.Value = strings.ReplaceAll(child.Value, "$$", "$")
		}
	}
}

// pipelines determines which components the pipelines of metrics use.
func (o *collector) pipelines() {
	o.take(get(o.root, "service", "extensions"))
	for _, e := range items(get(o.root, "service", "extensions")) {
		o.used["extensions."+e.Value] = true
	}
	pairs(get(o.root, "service", "pipelines"), func(name string, k, v *yaml.Node) {
		if kindOf(name) != "metrics" {
			o.note(k, "service.pipelines."+name, "is not a pipeline of metrics; keep a Collector for it")
			return
		}
		o.take(v)
		for _, r := range items(get(v, "receivers")) {
			o.used["receivers."+r.Value] = true
			if o.reaches[r.Value] == nil {
				o.reaches[r.Value] = map[string]bool{}
			}
			for _, e := range items(get(v, "exporters")) {
				o.reaches[r.Value][e.Value] = true
			}
		}
		var processors []string
		for _, p := range items(get(v, "processors")) {
			o.used["processors."+p.Value] = true
			processors = append(processors, p.Value)
		}
		for _, e := range items(get(v, "exporters")) {
			o.used["exporters."+e.Value] = true
			if _, again := o.through[e.Value]; again {
				o.remark(k, "service.pipelines."+name, "the exporter %s is in another pipeline, too: the agent has one log, and every target gets all; narrow that with write_relabel_configs", e.Value)
			}
			o.through[e.Value] = slices.Clip(o.through[e.Value]) // the key must exist even without processors
			for _, p := range processors {
				if !slices.Contains(o.through[e.Value], p) {
					o.through[e.Value] = append(o.through[e.Value], p)
				}
			}
		}
	})
}

func (o *collector) receiver(name string, k, v *yaml.Node, where string) {
	switch kindOf(name) {
	case "prometheus":
		o.scrapes(v, where)
	case "prometheus_exec":
		o.exec(name, k, v, where)
	case "otlp":
		o.otlp(v, where)
	case "prometheusremotewrite":
		o.listener("remote_write", mapping(), v, where, "127.0.0.1:9090")
	case "hostmetrics":
		o.hostmetrics(v, where)
		o.remark(k, where, "is the probe host here: its metrics have node_exporter's names (node_cpu_seconds_total), not the Collector's (system_cpu_time_seconds_total)")
	case "snmp":
		o.note(k, where, "write an entry of type snmp under probes: for it: it reads by modules, as snmp_exporter does, not by single OIDs")
	default:
		o.note(k, where, "has no counterpart here; run an exporter for it, by an entry of type exec with scrape_url, or scrape one")
	}
}

// exec converts a prometheus_exec receiver.
func (o *collector) exec(name string, k, v *yaml.Node, where string) {
	_, own, ok := strings.Cut(name, "/")
	if !ok {
		own = "exec"
	}
	command := words(o.text(v, "exec"))
	if len(command) == 0 {
		o.note(k, where, "has no command; it is left out")
		return
	}
	if !path.IsAbs(command[0]) {
		command[0] = path.Join("/usr/local/bin", path.Base(command[0]))
		o.remark(keyOf(v, "exec"), where+".exec", "the program needs its absolute path: %s is a guess", command[0])
	}
	port := "{{port}}"
	if p := o.text(v, "port"); p != "" && p != "0" {
		port = p
	}
	p, args, env := mapping(), list(), mapping()
	// The receiver does the same, whether the port is given or a free one.
	there := strings.NewReplacer("{{port}}", port).Replace
	for _, word := range command {
		args.Content = append(args.Content, str(there(word)))
	}
	for _, e := range items(get(v, "env")) {
		set(env, o.text(e, "name"), str(there(o.text(e, "value"))))
	}
	set(p, "name", str(own))
	set(p, "type", str("exec"))
	set(p, "command", flow(args))
	if len(env.Content) > 0 {
		set(p, "env", flow(env))
	}
	set(p, "scrape_url", str("http://127.0.0.1:"+port+"/metrics"))
	if every := o.text(v, "scrape_interval"); every != "" {
		set(p, "interval", raw(every))
	}
	if limit := o.text(v, "scrape_timeout"); limit != "" {
		set(p, "timeout", raw(limit))
	}
	push(o.out, "probes", p)
	o.remark(k, where, "the command gets the environment of env: and nothing else, and no shell")
}

// words splits a command as the receiver does: at spaces, respecting quotes.
func words(s string) []string {
	var all []string
	word, quote, open := "", byte(0), false
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, open = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if open || word != "" {
				all = append(all, word)
			}
			word, open = "", false
		default:
			word += string(c)
		}
	}
	if open || word != "" {
		all = append(all, word)
	}
	return all
}

// otlp converts an otlp receiver.
func (o *collector) otlp(v *yaml.Node, where string) {
	own := mapping()
	for _, protocol := range []struct{ name, usual string }{{"grpc", "127.0.0.1:4317"}, {"http", "127.0.0.1:4318"}} {
		p := get(v, "protocols", protocol.name)
		if p == nil && !written(orEmpty(get(v, "protocols")), protocol.name) {
			continue
		}
		if p != nil && len(p.Content) == 0 { // the usual address
			o.take(p)
		}
		l := mapping()
		o.listen(l, p, where+".protocols."+protocol.name, protocol.usual)
		set(own, protocol.name, flow(l))
	}
	set(ensure(o.out, "receivers", mapping), "otlp", own)
}

func orEmpty(n *yaml.Node) *yaml.Node {
	if n == nil {
		return mapping()
	}
	return n
}

// listener converts a receiver with one listener.
func (o *collector) listener(name string, own, v *yaml.Node, where, usual string) {
	o.listen(own, v, where, usual)
	set(ensure(o.out, "receivers", mapping), name, own)
}

// listen converts the listen address of a receiver.
func (o *collector) listen(own, v *yaml.Node, where, usual string) {
	address := strings.Replace(o.text(v, "endpoint"), "localhost:", "127.0.0.1:", 1)
	if address == "" {
		address = usual
	}
	set(own, "listen", str(address))
	if _, _, err := net.SplitHostPort(address); err == nil && !loopback.Address(address) {
		set(own, "insecure_listen", raw("true"))
		o.remark(keyOf(v, "endpoint"), where+".endpoint", "other hosts can reach it; replace insecure_listen with web_config_file, which has TLS and users, or listen on 127.0.0.1")
	}
	pairs(v, func(key string, k, _ *yaml.Node) {
		switch key {
		case "endpoint":
		case "tls", "auth":
			o.note(k, where+"."+key, "write it into a file in exporter-toolkit's format and name that with web_config_file")
		default:
			o.note(k, where+"."+key, "has no counterpart here; limits: has the bounds")
		}
	})
}

// extension converts a component outside of pipelines.
func (o *collector) extension(name string, k, v *yaml.Node, where string) {
	switch kindOf(name) {
	case "health_check", "healthcheckv2":
		o.note(k, where, "is GET /-/healthy and /-/ready of the page, at web.listen (127.0.0.1:9464); it listened on %s", orDefault(o.text(v, "endpoint"), "localhost:13133"))
	case "pprof":
		set(ensure(o.out, "web", mapping), "pprof", raw("true"))
		o.note(k, where, "is /debug/pprof/ of the page, at web.listen")
	case "zpages":
		o.note(k, where, "is the page, at web.listen")
	case "file_storage":
		o.note(k, where, "is not needed: everything goes through the log at --storage.path")
	case "memory_ballast":
		o.note(k, where, "is not needed")
	case "basicauth", "bearertokenauth", "oauth2client", "headers_setter":
		if kindOf(name) == "headers_setter" || !o.authenticates(name) {
			o.note(k, where, "no exporter uses it; for a receiver, write users into its web_config_file")
		}
	default:
		o.note(k, where, "has no counterpart here")
	}
}

// authenticates reports whether a converted exporter uses an extension to log in.
func (o *collector) authenticates(name string) bool {
	found := false
	pairs(get(o.root, "exporters"), func(exporter string, _, v *yaml.Node) {
		found = found || kindOf(exporter) == "prometheusremotewrite" && o.text(v, "auth", "authenticator") == name
	})
	return found
}

func orDefault(s, standby string) string {
	if s == "" {
		return standby
	}
	return s
}

// whyOTel returns a note on a key without a counterpart.
func whyOTel(key string) string {
	switch key {
	case "wal":
		return "is not needed: everything goes through the log at --storage.path, bounded by wal.max_bytes"
	case "compression", "read_buffer_size", "write_buffer_size", "max_batch_size_bytes", "max_batch_request_parallelism":
		return "is not needed: requests are snappy, and of queue_config.max_samples_per_send"
	case "target_info", "export_created_metric":
		return "how OTLP becomes series is set under receivers.otlp"
	case "initial_delay":
		return "is not needed: a probe begins at a moment of its own"
	case "include", "include_fs_types", "include_mount_points", "include_devices":
		return "the probe host leaves out by pattern only: drop other series with metric_relabel_configs"
	}
	return "has no counterpart here"
}
