package convert

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// alloy is a configuration of Grafana Alloy.
type alloy struct {
	*converter
	root *yaml.Node
	// receivers are the paths of the components that write, in order.
	receivers []string
	variables map[*yaml.Node]bool // rules with variables
	ofTarget  map[string][]placed // rules that belong to a receiver, by its path; see findWays
}

// alloy converts prometheus.scrape, prometheus.relabel, prometheus.remote_write, prometheus.exporter.unix and the common kinds of discovery.
func (c *converter) alloy(root *yaml.Node) {
	a := &alloy{converter: c, root: root, variables: map[*yaml.Node]bool{}}
	a.localFiles(root)
	a.findWays()
	a.components("prometheus.remote_write", func(path string, v *yaml.Node) {
		a.receivers = append(a.receivers, path)
		external := get(v, "external_labels")
		for i, endpoint := range blocks(v, "endpoint") {
			a.endpoint(endpoint, external, blockPath(v, path, "endpoint", i), path)
		}
	})
	a.components("prometheus.scrape", a.scrape)
	a.components("prometheus.exporter.unix", func(path string, v *yaml.Node) {
		if !a.taken[v] && !a.hasHost() {
			a.note(v, path, "no prometheus.scrape reads it; write a probe of type host to have its metrics")
		}
	})
	c.usualInterval()
	if get(c.out, "remote_write") == nil {
		c.remark(nil, "remote_write", "there is no prometheus.remote_write: add an entry with a url")
	}
}

// whyAlloy returns a note on a key without a counterpart.
func whyAlloy(key string) string {
	family, _, _ := strings.Cut(key, ".")
	switch {
	case key == "logging":
		return "the log is set by --log.level and --log.format"
	case key == "tracing", slices.Contains([]string{"loki", "otelcol", "pyroscope", "beyla", "faro"}, family):
		return "is not converted: keep Alloy for logs, traces and profiles, and let an otelcol exporter send metrics by OTLP to receivers.otlp"
	case key == "http", key == "livedebugging", key == "remotecfg":
		return "the agent's own page is set by web: listen and config_file"
	case key == "wal":
		return "is not needed: everything goes through the log at --storage.path, bounded by wal.max_bytes"
	case key == "clustering":
		return "agents do not share jobs here: shard by relabelling with hashmod"
	case key == "declare", family == "import", key == "foreach", key == "argument":
		return "modules are not read: write their components into the file"
	case strings.HasPrefix(key, "prometheus.exporter."):
		return "the exporter was part of Alloy: run it beside this agent, and read it with a probe of type exec with scrape_url or with scrape_configs"
	case strings.HasPrefix(key, "discovery."):
		return "no converted component reads it, or this kind of discovery is not built in (file, http, dns and kubernetes are)"
	}
	return "has no counterpart here"
}

// components calls f for each component of a kind, with its path.
func (a *alloy) components(kind string, f func(path string, v *yaml.Node)) {
	pairs(get(a.root, kind), func(label string, _, v *yaml.Node) {
		if v.Kind == yaml.MappingNode {
			f(kind+"."+label, v)
		}
	})
}

// component returns the component that a reference such as prometheus.relabel.x.receiver names, with its path.
func (a *alloy) component(reference, kind, export string) (v *yaml.Node, path string) {
	inner, ok := strings.CutPrefix(reference, kind+".")
	label, found := strings.CutSuffix(inner, "."+export)
	if !ok || !found {
		return nil, ""
	}
	return get(a.root, kind, label), kind + "." + label
}

// blocks returns the blocks of a name in another.
func blocks(v *yaml.Node, name string) []*yaml.Node {
	n := get(v, name)
	if n == nil || n.Kind == yaml.SequenceNode {
		return items(n)
	}
	return []*yaml.Node{n}
}

// blockPath returns the path of the i-th block of a name.
func blockPath(v *yaml.Node, path, name string, i int) string {
	if n := get(v, name); n != nil && n.Kind == yaml.SequenceNode {
		return at(path+"."+name, i)
	}
	return path + "." + name
}

// localFiles turns references to the contents of files, and to the name of the host, into variables of the agent.
func (a *alloy) localFiles(n *yaml.Node) {
	if n.Tag == tagReference && n.Value == "constants.hostname" {
		n.Tag, n.Value = tagVariable, "${host:name}"
	}
	if n.Kind == yaml.ScalarNode && n.Tag == tagReference {
		if file, _ := a.component(n.Value, "local.file", "content"); file != nil && textual(orEmpty(get(file, "filename"))) {
			n.Tag, n.Value = tagVariable, "${file:"+a.text(file, "filename")+"}"
		}
	}
	for _, inner := range n.Content {
		a.localFiles(inner)
	}
}

// plain returns a value as YAML; in rules ${1} is a group, elsewhere "${" is escaped. It fails for a value that only Alloy can evaluate.
func (a *alloy) plain(n *yaml.Node, rules bool) (*yaml.Node, bool) {
	own := &yaml.Node{Kind: n.Kind, Line: n.Line}
	switch {
	case n.Tag == tagReference || n.Tag == tagOther:
		return nil, false
	case textual(n) && n.Tag != tagVariable && !rules:
		return str(literal(n.Value)), true
	case textual(n):
		return str(n.Value), true
	case n.Kind == yaml.ScalarNode:
		return raw(n.Value), true
	}
	for i, inner := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			own.Content = append(own.Content, str(inner.Value))
			continue
		}
		v, ok := a.plain(inner, rules)
		if !ok {
			return nil, false
		}
		own.Content = append(own.Content, v)
	}
	return own, true
}

// set sets a key of the result to a value of the input.
func (a *alloy) set(own *yaml.Node, key string, k, v *yaml.Node, path string) {
	value, ok := a.plain(v, key == "write_relabel_configs")
	if !ok {
		a.note(k, path, "only Alloy can evaluate the expression: write its value")
		return
	}
	a.take(v)
	set(own, key, value)
}

// variable reports whether a value has a variable.
func variable(n *yaml.Node) bool {
	return n.Tag == tagVariable || slices.ContainsFunc(n.Content, variable)
}

// placed is a rule with its path.
type placed struct {
	rule *yaml.Node
	path string
}

// placedRules converts blocks of relabelling rules.
func (a *alloy) placedRules(v *yaml.Node, path, name string) []placed {
	var all []placed
	for i, block := range blocks(v, name) {
		where := blockPath(v, path, name, i)
		rule, ok := a.plain(block, true)
		if !ok {
			a.note(block, where, "only Alloy can evaluate an expression in the rule; it is left out")
			continue
		}
		a.take(block)
		all = append(all, placed{flow(rule), where})
		if variable(block) {
			a.variables[rule] = true
		}
	}
	return all
}

// ruleBlocks is placedRules without rules that have variables.
func (a *alloy) ruleBlocks(v *yaml.Node, path, name string) []*yaml.Node {
	return a.expandable(a.placedRules(v, path, name))
}

// expandable returns the rules without variables, which the agent does not expand in rules, and notes the others.
func (a *alloy) expandable(rules []placed) (all []*yaml.Node) {
	for _, one := range rules {
		if a.variables[one.rule] {
			a.note(one.rule, one.path, "a rule cannot have a variable: write its value; the rule is left out")
			continue
		}
		all = append(all, one.rule)
	}
	return all
}

// endpoint converts an endpoint of prometheus.remote_write.
func (a *alloy) endpoint(v, external *yaml.Node, path, component string) {
	own := mapping()
	if label := strings.TrimPrefix(component, "prometheus.remote_write."); label != "default" && get(v, "name") == nil {
		set(own, "name", str(label))
	}
	pairs(v, func(key string, k, value *yaml.Node) {
		where := path + "." + key
		switch {
		case key == "write_relabel_config":
		case key == "tls_config":
			a.tls(own, value, where)
		case key == "queue_config":
			queue := mapping()
			pairs(value, func(part string, pk, n *yaml.Node) {
				if slices.Contains(writeKeys(), "."+part) {
					a.set(queue, part, pk, n, where+"."+part)
				}
			})
			set(own, key, flow(queue))
		case key == "http_headers":
			a.httpHeaders(own, k, value, where)
		case slices.Contains(writeKeys(), key):
			a.set(own, key, k, value, where)
		}
	})
	for _, rule := range a.expandable(a.ofTarget[component]) {
		push(own, "write_relabel_configs", rule)
	}
	for _, rule := range a.ruleBlocks(v, path, "write_relabel_config") {
		push(own, "write_relabel_configs", rule)
	}
	if external != nil {
		a.external(own, external, component+".external_labels")
	}
	a.target(own, v, path)
}

// external converts the labels of prometheus.remote_write. Those of several components stay with their targets.
func (a *alloy) external(own, labels *yaml.Node, path string) {
	several := 0
	a.components("prometheus.remote_write", func(string, *yaml.Node) { several++ })
	all := mapping()
	if several == 1 {
		all = ensure(ensure(a.out, "global", mapping), "external_labels", mapping)
	}
	pairs(labels, func(name string, k, v *yaml.Node) { a.set(all, name, k, v, path+"."+name) })
	if several == 1 {
		return
	}
	pairs(all, func(name string, _, v *yaml.Node) {
		rule := mapping()
		set(rule, "target_label", str(name))
		set(rule, "replacement", str(strings.ReplaceAll(v.Value, "$", "$$")))
		push(own, "write_relabel_configs", flow(rule))
		if strings.Contains(v.Value, "${") {
			a.note(keyOf(labels, name), path+"."+name, "a rule cannot have a variable: write the value")
		}
	})
}

// tls converts a block tls_config.
func (a *alloy) tls(own, v *yaml.Node, path string) {
	t := mapping()
	pairs(v, func(key string, k, value *yaml.Node) {
		switch key {
		case "ca_pem", "cert_pem", "key_pem":
			a.set(t, strings.TrimSuffix(key, "_pem"), k, value, path+"."+key)
		case "ca_file", "cert_file", "key_file", "server_name", "insecure_skip_verify", "min_version":
			a.set(t, key, k, value, path+"."+key)
		}
	})
	set(own, "tls_config", flow(t))
}

// httpHeaders converts a map of header values.
func (a *alloy) httpHeaders(own, k, v *yaml.Node, path string) {
	headers := mapping()
	pairs(v, func(name string, hk, values *yaml.Node) {
		one := mapping()
		a.set(one, "values", hk, values, path+"."+name)
		if len(one.Content) > 0 {
			set(headers, name, flow(one))
		}
	})
	set(own, "http_headers", headers)
}

// scrape converts prometheus.scrape: to a job, and what prometheus.exporter.unix gives to the probe host.
func (a *alloy) scrape(path string, v *yaml.Node) {
	t := &alloyTargets{alloy: a}
	t.add(get(v, "targets"), path+".targets", 0)
	rules := a.forwarded(v, path)
	if t.host != nil {
		a.unix(t, v, path, rules)
		if name := get(v, "job_name"); name != nil && len(t.kinds.Content) == 0 {
			a.note(keyOf(v, "job_name"), path+".job_name", "has no effect there: the targets of the exporter have a label job")
		}
	}
	if len(t.kinds.Content) == 0 {
		if t.host == nil {
			a.note(get(v, "targets"), path, "the job has no targets that are known here; it is left out")
		}
		return
	}
	own := mapping()
	name := a.text(v, "job_name")
	if name == "" {
		name = path // as Alloy calls it
	}
	set(own, "job_name", str(a.freeJob(literal(name))))
	if taken := text(own, "job_name"); taken != literal(name) {
		a.remark(v, path, "another job has the name %s: this one is %s here", name, taken)
	}
	a.jobKeys(own, v, path)
	own.Content = append(own.Content, t.kinds.Content...)
	for _, rule := range a.expandable(t.rules) {
		push(own, "relabel_configs", rule)
	}
	for _, rule := range rules {
		push(own, "metric_relabel_configs", rule)
	}
	push(a.out, "scrape_configs", own)
}

// freeJob returns a name that no other job has.
func (c *converter) freeJob(name string) string {
	own := name
	for n := 2; slices.ContainsFunc(items(get(c.out, "scrape_configs")), func(job *yaml.Node) bool { return text(job, "job_name") == own }); n++ {
		own = fmt.Sprintf("%s-%d", name, n)
	}
	return own
}

// jobKeys converts the settings of a job.
func (a *alloy) jobKeys(own, v *yaml.Node, path string) {
	pairs(v, func(key string, k, value *yaml.Node) {
		where := path + "." + key
		switch {
		case key == "targets" || key == "forward_to" || key == "job_name" || strings.HasSuffix(key, "_configs"):
		case key == "tls_config":
			a.tls(own, value, where)
		case key == "http_headers":
			a.httpHeaders(own, k, value, where)
		case key == "scrape_classic_histograms":
			a.set(own, "always_scrape_classic_histograms", k, value, where)
		case slices.Contains(jobKeys(), key):
			a.set(own, key, k, value, where)
		}
	})
}
