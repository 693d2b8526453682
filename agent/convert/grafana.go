package convert

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// grafana converts a configuration of the Grafana Agent in static mode: the key metrics (prometheus before version 0.24) has a list
// configs, and each of these has its own scrape_configs and remote_write.
func (c *converter) grafana(root *yaml.Node) {
	pairs(root, func(key string, k, v *yaml.Node) {
		switch key {
		case "metrics", "prometheus":
			c.grafanaMetrics(v, key)
		case "integrations":
			c.integrations(v)
		case "server":
			pairs(v, func(part string, pk, _ *yaml.Node) { c.note(pk, key+"."+part, "%s", whyGrafana(key)) })
		default:
			c.note(k, key, "%s", whyGrafana(key))
		}
	})
	c.usualInterval()
	if get(c.out, "remote_write") == nil {
		c.remark(nil, "remote_write", "there is no remote_write: add an entry with a url")
	}
}

// whyGrafana returns the remedy for a key without a counterpart.
func whyGrafana(key string) string {
	switch key {
	case "logs", "loki", "traces", "tempo":
		return "the agent collects metrics only: keep another program for logs and traces"
	case "server":
		return "the agent's own page is set by web: listen and config_file; the log by --log.level and --log.format"
	case "wal_directory":
		return "the log is at --storage.path"
	case "wal_cleanup_age", "wal_cleanup_period", "wal_truncate_frequency", "min_wal_time", "max_wal_time", "remote_flush_deadline", "write_stale_on_shutdown":
		return "is not needed: wal.max_bytes bounds the log, and samples that were not sent before a stop are sent after the next start"
	case "scraping_service", "host_filter", "host_filter_relabel_configs":
		return "agents do not share jobs here: give each agent its own file, or shard by relabelling with hashmod"
	case "agent_management":
		return "the configuration is a file here, which a reload reads again"
	}
	return why(key)
}

// grafanaMetrics converts jobs and receivers. In the Grafana Agent each config sends to its own receivers; in this
// agent every target gets all samples.
func (c *converter) grafanaMetrics(v *yaml.Node, path string) {
	global := get(v, "global")
	var shared *yaml.Node
	if global != nil {
		plain := mapping()
		pairs(global, func(key string, k, value *yaml.Node) {
			if key == "remote_write" {
				shared = value
				return
			}
			plain.Content = append(plain.Content, k, value) // keep the key, which has the line
		})
		c.global(plain, path+".global")
	}
	pairs(v, func(key string, k, value *yaml.Node) {
		switch key {
		case "global", "configs":
		default:
			c.note(k, path+"."+key, "%s", whyGrafana(key))
		}
		if key != "configs" {
			return
		}
		senders, usesShared := 0, false
		for i, config := range items(value) {
			at := at(path+".configs", i)
			c.grafanaConfig(config, at)
			if own := get(config, "remote_write"); len(items(own)) > 0 {
				senders++
				c.writers(own, at+".remote_write")
			} else {
				usesShared = true
			}
		}
		if usesShared && senders > 0 || senders > 1 {
			c.remark(k, path+".configs", "several configs had receivers of their own; here every entry of remote_write gets the samples of all jobs: to send only some jobs, write write_relabel_configs with source_labels: [job]")
		}
		if usesShared {
			c.writers(shared, path+".global.remote_write")
			shared = nil
		}
	})
	if get(v, "configs") == nil {
		c.writers(shared, path+".global.remote_write") // integrations send to these
	}
}

// grafanaConfig converts the jobs of one entry of configs.
func (c *converter) grafanaConfig(v *yaml.Node, path string) {
	pairs(v, func(key string, k, value *yaml.Node) {
		switch key {
		case "name":
			c.note(k, path+".name", "is not needed: there is one list of jobs")
		case "remote_write":
		case "scrape_configs":
			for i, job := range items(value) {
				c.job(job, at(path+"."+key, i))
			}
		default:
			c.note(k, path+"."+key, "%s", whyGrafana(key))
		}
	})
	c.apart(v, path)
}

// apart renames a job whose name another config uses, too. Its series keep the label job.
func (c *converter) apart(v *yaml.Node, path string) {
	jobs := items(get(c.out, "scrape_configs"))
	for i, one := range jobs {
		name := c.text(one, "job_name")
		for _, before := range jobs[:i] {
			if name == "" || c.text(before, "job_name") != name {
				continue
			}
			c.take(get(one, "job_name"))
			set(one, "job_name", str(fmt.Sprintf("%s-%d", name, i+1)))
			rule := mapping()
			set(rule, "target_label", str("job"))
			set(rule, "replacement", str(strings.ReplaceAll(name, "$", "$$")))
			push(one, "relabel_configs", flow(rule))
			c.remark(v, path, "two configs have a job %q; the second one is called %s-%d here, and its series keep the label job", name, name, i+1)
		}
	}
}

// integrations converts the exporters built into the Grafana Agent: one with an equivalent probe becomes that probe,
// and each other one gets a note.
func (c *converter) integrations(v *yaml.Node) {
	pairs(v, func(key string, k, value *yaml.Node) {
		where := "integrations." + key
		if enabled := text(value, "enabled"); enabled == "false" {
			c.note(k, where, "is off there; it is left out")
			return
		}
		name := strings.TrimSuffix(key, "_configs")
		switch name {
		case "node_exporter", "unix":
			c.nodeExporter(k, value, where)
		case "windows_exporter", "windows":
			c.windows(k, value, where)
		case "snmp", "snmp_exporter":
			c.note(k, where, "the probe snmp does this and reads an snmp.yml: write a probe with the targets")
		case "agent":
			c.note(k, where, "is not needed: the agent always collects its own metrics, as job hwsagent")
		case "prometheus_remote_write":
			for i, entry := range items(value) {
				c.integrationWriter(entry, at(where, i))
			}
		case "scrape_integrations", "replace_instance_label", "integration_restart_backoff", "use_hostname_label", "autoscrape", "metrics":
			c.note(k, where, "is not needed: each probe is an entry of its own, with labels")
		default:
			c.note(k, where, "the exporter %s was part of the Grafana Agent: run it beside this agent, and read it with a probe of type exec with scrape_url or with scrape_configs", strings.TrimSuffix(name, "_exporter"))
		}
	})
}

// integrationWriter converts an entry of remote_write for integrations only, unless another one has its URL.
func (c *converter) integrationWriter(v *yaml.Node, where string) {
	all := items(get(c.out, "remote_write"))
	i := slices.IndexFunc(all, func(other *yaml.Node) bool { return text(other, "url") == text(v, "url") })
	switch {
	case i < 0:
		c.remoteWrite(v, where)
	case len(v.Content) == 2 || same(v, all[i]): // the URL only
		c.take(v)
	default: // it may be for another tenant
		c.note(v, where, "is left out, since every sample would go to one address twice; if its login or headers differ from those of the other entry, add it")
	}
}

// nodeExporter converts the integration node_exporter.
func (c *converter) nodeExporter(k, v *yaml.Node, where string) {
	c.text(v, "enabled")
	p := c.hostProbe()
	set(ensure(p, "labels", mapping), "job", str("integrations/node_exporter"))
	c.integrationKeys(p, v, where)
	c.nodeKeys(p, v, where)
	c.remark(k, where, "is the probe host here: with node_exporter's names, and hw_* beside them")
}

// integrationKeys converts the keys that every integration has.
func (c *converter) integrationKeys(p, v *yaml.Node, where string) {
	pairs(v, func(key string, k, value *yaml.Node) {
		switch key {
		case "scrape_interval":
			set(p, "interval", value)
		case "scrape_timeout":
			set(p, "timeout", value)
		case "instance":
			set(ensure(p, "labels", mapping), "instance", value)
		case "metric_relabel_configs":
			c.addRules(p, key, value, where)
		case "relabel_configs":
			for i, r := range items(value) {
				c.targetRule(p, r, at(where+"."+key, i))
			}
		case "scrape_integration":
			if value.Value == "true" {
				c.take(value)
				return
			}
			c.note(k, where+"."+key, "a probe always collects: write enabled: false to keep its entry without running it")
		}
	})
	if instance := get(v, "instance"); instance != nil && get(p, "labels", "instance") != instance {
		c.note(keyOf(v, "instance"), where+".instance", "relabel_configs overrides it")
	}
}

// targetRule converts a rule for the labels of a probe, which has one target: constants become labels, and rules on labels that series
// have become rules on these.
func (c *converter) targetRule(p, r *yaml.Node, where string) {
	action, target := orDefault(text(r, "action"), "replace"), text(r, "target_label")
	value := text(r, "replacement")
	hidden := strings.HasPrefix(target, "__")
	for _, label := range items(get(r, "source_labels")) {
		hidden = hidden || strings.HasPrefix(label.Value, "__")
	}
	variable := strings.HasPrefix(value, "${") && strings.HasSuffix(value, "}") && strings.Trim(value, "${}0123456789") != ""
	switch {
	case hidden:
		c.note(r, where, "needs labels that targets had there: write the result under labels: of the probe")
	case action == "replace" && len(items(get(r, "source_labels"))) == 0 && target != "" && value != "" && (variable || !strings.Contains(value, "$")):
		c.take(r)
		set(ensure(p, "labels", mapping), target, str(value))
	default:
		push(p, "metric_relabel_configs", r)
	}
}

// windows converts the part of windows_exporter that the agent has.
func (c *converter) windows(k, v *yaml.Node, where string) {
	if dir := get(v, "text_file", "text_file_directory"); dir != nil {
		c.textfile(dir)
	}
	c.text(v, "enabled")
	c.remark(k, where, "there is no probe for Windows: run windows_exporter beside the agent and read it with a probe of type exec with scrape_url or with scrape_configs")
}
