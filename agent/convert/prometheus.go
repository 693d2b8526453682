package convert

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// globalKeys returns the keys of global that the agent has as well.
func globalKeys() []string {
	return strings.Fields(`scrape_interval scrape_timeout external_labels scrape_protocols body_size_limit sample_limit target_limit label_limit
		label_name_length_limit label_value_length_limit keep_dropped_targets metric_name_validation_scheme metric_name_escaping_scheme
		scrape_native_histograms convert_classic_histograms_to_nhcb always_scrape_classic_histograms extra_scrape_metrics scrape_failure_log_file`)
}

// jobKeys returns the keys of a scrape configuration that the agent has.
func jobKeys() []string {
	return strings.Fields(`job_name scrape_interval scrape_timeout scrape_protocols fallback_scrape_protocol scrape_native_histograms
		always_scrape_classic_histograms convert_classic_histograms_to_nhcb extra_scrape_metrics metrics_path honor_labels honor_timestamps
		track_timestamps_staleness scheme params basic_auth authorization oauth2 follow_redirects enable_http2 tls_config bearer_token bearer_token_file
		proxy_url no_proxy proxy_from_environment proxy_connect_header http_headers static_configs file_sd_configs http_sd_configs dns_sd_configs
		kubernetes_sd_configs relabel_configs metric_relabel_configs body_size_limit sample_limit label_limit label_name_length_limit label_value_length_limit
		target_limit keep_dropped_targets native_histogram_bucket_limit native_histogram_min_bucket_factor metric_name_validation_scheme
		metric_name_escaping_scheme scrape_failure_log_file enable_compression`)
}

// why returns a note on a key without a counterpart.
func why(key string) string {
	switch key {
	case "rule_files", "alerting":
		return "rules and alerts belong to the server that receives the data"
	case "remote_read":
		return "reading belongs to a Prometheus server"
	case "storage":
		return "the agent has no database: its log is bounded by wal:, and is at --storage.path"
	case "tracing":
		return "the agent sends no traces"
	case "otlp":
		return "how OTLP becomes series is set under receivers.otlp"
	case "evaluation_interval", "rule_query_offset", "query_log_file":
		return "the agent evaluates nothing"
	case "series_limit":
		return "limits the series of a target there; hwsagent.max_series limits those of the whole job"
	case "gogc", "runtime":
		return "is the environment variable GOGC of the agent"
	}
	return "has no counterpart here"
}

// prometheus converts the configuration of a Prometheus, or of a vmagent (-promscrape.config).
func (c *converter) prometheus(root *yaml.Node) {
	pairs(root, func(key string, k, v *yaml.Node) {
		switch key {
		case "global":
			c.global(v, key)
		case "scrape_config_files":
			set(c.out, key, v)
		case "scrape_configs":
			for i, job := range items(v) {
				c.job(job, at(key, i))
			}
		case "remote_write":
			c.writers(v, key)
		default:
			c.note(k, key, "%s", c.unknown(key))
		}
	})
	c.usualInterval()
	if get(c.out, "remote_write") == nil {
		text := "there is no remote_write: add an entry with a url"
		if c.format == "vmagent" {
			text = "vmagent has its receivers in flags: for each -remoteWrite.url add an entry with that url"
		}
		c.remark(nil, "remote_write", "%s", text)
	}
}

func (c *converter) global(v *yaml.Node, path string) {
	own := ensure(c.out, "global", mapping)
	pairs(v, func(key string, k, value *yaml.Node) {
		switch {
		case key == "external_labels":
			rewrite(value, c.external)
			set(own, key, value)
		case slices.Contains(globalKeys(), key):
			rewrite(value, c.variables)
			set(own, key, value)
		default:
			c.note(k, path+"."+key, "%s", c.unknown(key))
		}
	})
}

// external converts the variables that Prometheus expands in external_labels: $VAR and ${VAR}, empty if unset.
func (c *converter) external(s string) string {
	if c.format != "prometheus" {
		return c.variables(s)
	}
	return os.Expand(s, func(name string) string {
		if name == "$" {
			return "$"
		}
		return "${" + name + ":-}"
	})
}

var vmVariable = regexp.MustCompile(`%\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// variables converts a program's syntax of variables. Prometheus has none, those of a Collector have been converted in
// the whole file, and the Grafana Agent has the agent's.
func (c *converter) variables(s string) string {
	if c.format == "otelcol" || c.format == "grafana-agent" { // which has ${VAR} with -config.expand-env
		return s
	}
	s = literal(s)
	if c.format == "vmagent" {
		s = vmVariable.ReplaceAllString(s, "$${$1}")
	}
	return s
}

// job converts one scrape configuration.
func (c *converter) job(v *yaml.Node, path string) {
	own, found, lost := mapping(), 0, 0
	pairs(v, func(key string, k, value *yaml.Node) {
		switch {
		case strings.HasSuffix(key, "relabel_configs"):
			c.addRules(own, key, value, path)
		case slices.Contains(jobKeys(), key):
			rewrite(value, c.variables)
			set(own, key, value)
			if key == "static_configs" || strings.HasSuffix(key, "_sd_configs") {
				found++
			}
		case strings.HasSuffix(key, "_sd_configs"):
			lost++
			c.note(k, path+"."+key, "this kind of discovery is not built in (static, file, http, dns and kubernetes are): let something write its targets to a file for file_sd_configs, or serve them for http_sd_configs")
		case c.format == "vmagent" && c.vmJob(own, key, value):
		default:
			c.note(k, path+"."+key, "%s", c.unknown(key))
		}
	})
	if found == 0 && lost > 0 {
		c.note(v, path, "the job %q has no targets without that discovery; it is left out", c.text(v, "job_name"))
		return
	}
	push(c.out, "scrape_configs", own)
}

// addRules converts relabelling rules and appends them to the list at a key of own.
func (c *converter) addRules(own *yaml.Node, key string, value *yaml.Node, path string) {
	if len(value.Content) == 0 {
		set(own, key, value)
		return
	}
	for _, rule := range c.rules(value, path+"."+key).Content {
		push(own, key, rule)
	}
}

// rules converts relabelling rules. vmagent has more actions than Prometheus.
func (c *converter) rules(v *yaml.Node, path string) *yaml.Node {
	out := list()
	for i, r := range items(v) {
		where := at(path, i)
		if n := get(r, "if"); n != nil {
			c.note(keyOf(r, "if"), where, "a rule with if is vmagent's own; it is left out: write the condition with source_labels and regex")
			continue
		}
		if n := get(r, "regex"); n != nil && n.Kind == yaml.SequenceNode {
			var all []string
			for _, one := range items(n) {
				all = append(all, one.Value)
			}
			c.take(n)
			set(r, "regex", str(strings.Join(all, "|")))
		}
		switch action := c.text(r, "action"); action {
		case "keep_metrics", "drop_metrics":
			set(r, "source_labels", flow(list(str("__name__"))))
			set(r, "action", str(strings.TrimSuffix(action, "_metrics")))
		case "replace_all", "labelmap_all", "graphite", "keep_if_contains", "drop_if_contains", "keep_if_equal", "drop_if_equal":
			c.note(keyOf(r, "action"), where, "the action %s is vmagent's own; the rule is left out%s", action, equalHint(action))
			continue
		}
		out.Content = append(out.Content, r)
	}
	return out
}

func equalHint(action string) string {
	switch action {
	case "keep_if_equal":
		return ": Prometheus has keepequal"
	case "drop_if_equal":
		return ": Prometheus has dropequal"
	}
	return ""
}

// writeKeys returns the keys of an entry of remote_write that the agent has; those of queue_config follow a dot.
func writeKeys() []string {
	return strings.Fields(`url name remote_timeout headers send_exemplars send_native_histograms round_robin_dns protobuf_message failed_request_logging
		basic_auth authorization oauth2 sigv4 azuread google_iam follow_redirects enable_http2 tls_config bearer_token bearer_token_file http_headers
		proxy_url no_proxy proxy_from_environment proxy_connect_header queue_config metadata_config hwsagent
		.capacity .max_shards .min_shards .max_samples_per_send .batch_send_deadline .min_backoff .max_backoff .retry_on_http_429 .sample_age_limit`)
}

// writers converts a list of entries of remote_write.
func (c *converter) writers(list *yaml.Node, path string) {
	for i, entry := range items(list) {
		c.remoteWrite(entry, at(path, i))
	}
}

// remoteWrite converts one entry.
func (c *converter) remoteWrite(v *yaml.Node, path string) {
	own := mapping()
	pairs(v, func(key string, k, value *yaml.Node) {
		switch {
		case key == "write_relabel_configs":
			c.addRules(own, key, value, path)
		case key == "queue_config":
			rewrite(value, c.variables)
			if queue := c.known(value, path+"."+key, "."); len(queue.Content) > 0 {
				set(own, key, queue)
			}
		case slices.Contains(writeKeys(), key):
			rewrite(value, c.variables)
			set(own, key, value)
		default:
			c.note(k, path+"."+key, "%s", c.unknown(key))
		}
	})
	c.target(own, v, path)
}

// known returns the keys of a mapping that are among writeKeys with that prefix, and notes the others.
func (c *converter) known(v *yaml.Node, path, prefix string) *yaml.Node {
	own := mapping()
	own.Style = v.Style
	pairs(v, func(key string, k, value *yaml.Node) {
		if slices.Contains(writeKeys(), prefix+key) {
			set(own, key, value)
			return
		}
		c.note(k, path+"."+key, "%s", c.unknown(key))
	})
	return own
}

// target adds an entry of remote_write, made from the value at a path. An entry that is there already is not added; one with
// the name of another gets a name of its own.
func (c *converter) target(own, from *yaml.Node, path string) {
	all := items(get(c.out, "remote_write"))
	for _, other := range all {
		if same(own, other) {
			c.take(from)
			c.remark(from, path, "is equal to another entry, and is there once: every target gets all samples")
			return
		}
	}
	name := text(own, "name")
	taken := func(name string) bool {
		return slices.ContainsFunc(all, func(other *yaml.Node) bool { return text(other, "name") == name })
	}
	if name != "" && taken(name) {
		n := 2
		for taken(name + "-" + strconv.Itoa(n)) {
			n++
		}
		c.take(get(own, "name"))
		set(own, "name", str(name+"-"+strconv.Itoa(n)))
		c.remark(from, path, "another entry has the name %s: this one is %s-%d", name, name, n)
	}
	push(c.out, "remote_write", own)
}

// same reports whether two values are equal.
func same(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Value != b.Value || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !same(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}
