package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// scrapes converts a prometheus receiver. A Collector may have several, each with its own global and its own job names.
func (o *collector) scrapes(v *yaml.Node, where string) {
	pairs(v, func(key string, k, _ *yaml.Node) {
		if key != "config" {
			o.note(k, where+"."+key, "has no counterpart here")
		}
	})
	inner := get(v, "config")
	global, several := get(inner, "global"), o.several("prometheus")
	if global != nil && !several {
		o.global(global, where+".config.global")
	}
	for i, job := range items(get(inner, "scrape_configs")) {
		at := at(where+".config.scrape_configs", i)
		if several {
			o.withGlobal(job, global, where)
			o.named(job, at)
		}
		o.job(job, at)
	}
	if files := get(inner, "scrape_config_files"); files != nil {
		for _, file := range items(files) {
			push(o.out, "scrape_config_files", file)
		}
		if several && global != nil {
			o.remark(keyOf(inner, "scrape_config_files"), where+".config.scrape_config_files", "the global of this receiver no longer applies to the jobs in these files: write its settings into the jobs")
		}
	}
}

// several reports whether pipelines use more than one receiver of a kind.
func (o *collector) several(kind string) bool {
	n := 0
	for name := range o.used {
		if receiver, ok := strings.CutPrefix(name, "receivers."); ok && kindOf(receiver) == kind {
			n++
		}
	}
	return n > 1
}

// withGlobal adds the keys of its receiver's global to a job that lacks them.
func (o *collector) withGlobal(job, global *yaml.Node, where string) {
	interval := false
	pairs(global, func(key string, k, value *yaml.Node) {
		interval = interval || key == "scrape_interval"
		switch {
		case key == "external_labels":
			pairs(value, func(label string, _, v *yaml.Node) {
				rule := mapping()
				set(rule, "target_label", str(label))
				o.take(v)
				set(rule, "replacement", str(strings.ReplaceAll(v.Value, "$", "$$")))
				push(job, "relabel_configs", flow(rule))
			})
		case !slices.Contains(globalKeys(), key) || !slices.Contains(jobKeys(), key):
			o.note(k, where+".config.global."+key, "%s", whyOTel(key))
		case get(job, key) == nil:
			set(job, key, value)
		}
	})
	if !interval && get(job, "scrape_interval") == nil {
		set(job, "scrape_interval", raw(usual))
	}
}

// named renames a job whose name an earlier receiver uses, and keeps its label job.
func (o *collector) named(job *yaml.Node, where string) {
	name := o.text(job, "job_name")
	taken := func(name string) bool {
		return slices.ContainsFunc(items(get(o.out, "scrape_configs")), func(other *yaml.Node) bool { return o.text(other, "job_name") == name })
	}
	if !taken(name) {
		return
	}
	n := 2
	for taken(fmt.Sprintf("%s-%d", name, n)) {
		n++
	}
	own := fmt.Sprintf("%s-%d", name, n)
	o.remark(keyOf(job, "job_name"), where+".job_name", "another receiver has a job %s: this one is %s here, and its series keep the label", name, own)
	set(job, "job_name", str(own))
	rule := mapping()
	set(rule, "target_label", str("job"))
	set(rule, "replacement", str(strings.ReplaceAll(name, "$", "$$")))
	before := items(get(job, "relabel_configs"))
	set(job, "relabel_configs", list(append([]*yaml.Node{flow(rule)}, before...)...))
}

// mixes notes data that reaches a target only after the conversion.
func (o *collector) mixes() {
	for _, exporter := range slices.Sorted(maps.Keys(o.through)) {
		if kindOf(exporter) != "prometheusremotewrite" {
			continue
		}
		var others []string
		for _, receiver := range slices.Sorted(maps.Keys(o.reaches)) {
			if !o.reaches[receiver][exporter] && get(o.root, "receivers", receiver) != nil {
				others = append(others, receiver)
			}
		}
		if len(others) > 0 {
			o.remark(keyOf(get(o.root, "exporters"), exporter), "exporters."+exporter,
				"also gets the data of %s: the agent has one log, and every target gets all of it; limit that with write_relabel_configs", strings.Join(others, ", "))
		}
	}
}

// usual is the default interval of Prometheus, vmagent and the Collector's receivers; that of the agent is 15 s.
const usual = "1m"

// usualInterval sets that interval if jobs or probes depend on it.
func (c *converter) usualInterval() {
	for _, key := range []string{"scrape_configs", "scrape_config_files", "probes"} {
		if get(c.out, key) != nil && get(c.out, "global", "scrape_interval") == nil {
			set(ensure(c.out, "global", mapping), "scrape_interval", raw(usual))
		}
	}
}

// headers converts the headers of an exporter. It does not carry over a header with a login.
func (c *converter) headers(own, v *yaml.Node, where string) {
	rest := mapping()
	pairs(v, func(name string, k, value *yaml.Node) {
		switch strings.ToLower(name) {
		case "authorization":
			c.take(value)
			kind, credentials, ok := strings.Cut(value.Value, " ")
			if !ok {
				kind, credentials = "", value.Value
				c.remark(k, where+"."+name, "is authorization: with type and credentials here: which is which?")
			}
			auth := mapping()
			set(auth, "type", str(kind))
			set(auth, "credentials", str(credentials))
			set(own, "authorization", flow(auth))
		case "content-encoding", "content-type", "x-prometheus-remote-write-version", "user-agent", "host":
			c.note(k, where+"."+name, "is set by the agent")
		default:
			set(rest, name, value)
		}
	})
	if len(rest.Content) > 0 {
		rest.Style = v.Style
		set(own, "headers", rest)
	}
}
