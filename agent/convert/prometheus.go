package convert

import (
	"os"
	"regexp"
	"slices"
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
			c.global(v)
		case "scrape_config_files":
			set(c.out, key, v)
		case "scrape_configs":
			for i, job := range items(v) {
				c.job(job, at(key, i))
			}
		case "remote_write":
			for i, entry := range items(v) {
				c.remoteWrite(entry, at(key, i))
			}
		default:
			c.note(k, key, "%s", why(key))
		}
	})
	c.usualInterval()
	if get(c.out, "remote_write") == nil {
		text := "there is no remote_write: add an entry with a url"
		if c.format == "vmagent" {
			text = "vmagent has its receivers in flags: for each -remoteWrite.url add an entry with that url"
		}
		c.note(nil, "remote_write", "%s", text)
	}
}

func (c *converter) global(v *yaml.Node) {
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
			c.note(k, "global."+key, "%s", why(key))
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
			if rules := c.rules(value, path+"."+key); len(rules.Content) > 0 {
				set(own, key, rules)
			}
		case slices.Contains(jobKeys(), key):
			rewrite(value, c.variables)
			set(own, key, value)
			if key == "static_configs" || strings.HasSuffix(key, "_sd_configs") {
				found++
			}
		case strings.HasSuffix(key, "_sd_configs"):
			lost++
			c.note(k, path+"."+key, "this kind of discovery is not built in (static, file, http, dns and kubernetes are): let something write its targets to a file for file_sd_configs, or serve them for http_sd_configs")
		default:
			c.note(k, path+"."+key, "%s", why(key))
		}
	})
	if found == 0 && lost > 0 {
		c.note(v, path, "the job %q has no targets without that discovery; it is left out", text(v, "job_name"))
		return
	}
	push(c.out, "scrape_configs", own)
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
			set(r, "regex", str(strings.Join(all, "|")))
		}
		switch action := text(r, "action"); action {
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

// remoteWrite converts one entry.
func (c *converter) remoteWrite(v *yaml.Node, path string) {
	own := mapping()
	pairs(v, func(key string, k, value *yaml.Node) {
		switch key {
		case "write_relabel_configs":
			value = c.rules(value, path+"."+key)
		default:
			rewrite(value, c.variables)
		}
		set(own, key, value)
	})
	c.target(own)
}

// target adds a remote_write entry, with a name if another entry has the same address.
func (c *converter) target(own *yaml.Node) {
	for _, other := range items(get(c.out, "remote_write")) {
		if text(other, "url") == text(own, "url") && text(own, "name") == "" {
			name := strings.TrimSuffix(at("target", len(items(get(c.out, "remote_write")))), "]")
			set(own, "name", str(strings.ReplaceAll(name, "[", "-")))
		}
	}
	push(c.out, "remote_write", own)
}
