package convert

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// processor notes how a processor is converted. process adds its effect to each entry behind it.
func (o *collector) processor(name string, k, v *yaml.Node, where string) {
	switch kindOf(name) {
	case "batch":
		o.remark(k, where, "is queue_config of each target: timeout is batch_send_deadline, send_batch_size max_samples_per_send")
		for _, key := range []string{"send_batch_max_size", "metadata_keys", "metadata_cardinality_limit"} {
			if get(v, key) != nil {
				o.note(keyOf(v, key), where+"."+key, "has no counterpart here")
			}
		}
	case "memory_limiter":
		o.note(k, where, "is not needed: pending samples are on disk; the samples of a probe, a scrape or a receiver are bounded by max_samples, max_series, sample_limit and limits")
	case "metricstransform":
		for i, t := range items(get(v, "transforms")) {
			o.transformNotes(t, at(where+".transforms", i))
		}
	case "filter":
		pairs(get(v, "metrics"), func(key string, k, n *yaml.Node) {
			o.matchType(n, where+".metrics."+key)
			if key != "include" && key != "exclude" || get(n, "metric_names") == nil {
				o.note(k, where+".metrics."+key, "conditions of this language are not known here; write them as write_relabel_configs")
			}
		})
		pairs(v, func(key string, k, _ *yaml.Node) {
			if key != "metrics" {
				o.note(k, where+"."+key, "conditions of this language are not known here; write them as write_relabel_configs")
			}
		})
	case "attributes":
		for i, a := range items(get(v, "actions")) {
			switch action := o.text(a, "action"); action {
			case "insert", "update", "upsert", "delete":
				if action != "delete" && get(a, "value") == nil {
					o.note(a, at(where+".actions", i), "only a value that is written here is carried over")
				}
			default:
				o.note(a, at(where+".actions", i), "the action %s has no counterpart; write_relabel_configs may do it", action)
			}
		}
		for _, key := range []string{"include", "exclude"} {
			if get(v, key) != nil {
				o.note(keyOf(v, key), where+"."+key, "the actions hold for every series here")
			}
		}
	case "resource", "resourcedetection", "k8sattributes":
		o.note(k, where, "attributes of resources are in target_info here; labels for everything that is sent are global.external_labels")
	case "cumulativetodelta":
		o.note(k, where, "Prometheus' counters are cumulative")
	case "deltatocumulative":
		o.note(k, where, "is not needed: the OTLP receiver does it")
	default:
		o.note(k, where, "has no counterpart here; write_relabel_configs may do it")
	}
}

// matchType notes a kind of pattern that is not known.
func (o *collector) matchType(v *yaml.Node, where string) {
	switch kind := text(v, "match_type"); kind {
	case "", "strict", "regexp":
	default:
		o.note(keyOf(v, "match_type"), where+".match_type", "%s is neither strict nor regexp; the names count as they are", kind)
	}
}

// process adds the effect of a processor to an entry of remote_write.
func (o *collector) process(own, queue *yaml.Node, name string) {
	v := get(o.root, "processors", name)
	switch kindOf(name) {
	case "batch":
		o.take(get(v, "timeout"), get(v, "send_batch_size"))
		if n := get(v, "timeout"); n != nil && strings.Trim(n.Value, "0smh") != "" {
			set(queue, "batch_send_deadline", n)
		}
		if n := get(v, "send_batch_size"); n != nil && n.Value != "0" {
			set(queue, "max_samples_per_send", n)
		}
	case "metricstransform":
		for _, t := range items(get(v, "transforms")) {
			for _, rule := range o.transform(t) {
				push(own, "write_relabel_configs", flow(rule))
			}
		}
	case "filter":
		for _, part := range []struct{ key, action string }{{"include", "keep"}, {"exclude", "drop"}} {
			names := get(v, "metrics", part.key, "metric_names")
			if names == nil {
				continue
			}
			var all []string
			o.take(names)
			for _, n := range items(names) {
				all = append(all, pattern(n.Value, o.text(v, "metrics", part.key, "match_type")))
			}
			push(own, "write_relabel_configs", flow(rule(strings.Join(all, "|"), "action", part.action)))
		}
	case "attributes":
		for _, a := range items(get(v, "actions")) {
			label, value := labelName(o.text(a, "key")), o.text(a, "value")
			switch o.text(a, "action") {
			case "delete":
				r := mapping()
				set(r, "action", str("labeldrop"))
				set(r, "regex", str(regexp.QuoteMeta(label)))
				push(own, "write_relabel_configs", flow(r))
			case "insert", "update", "upsert":
				if get(a, "value") == nil {
					continue
				}
				r := mapping()
				if o.text(a, "action") != "upsert" {
					set(r, "source_labels", flow(list(str(label))))
					set(r, "regex", str(map[string]string{"insert": "", "update": ".+"}[o.text(a, "action")]))
				}
				set(r, "target_label", str(label))
				set(r, "replacement", str(strings.ReplaceAll(value, "$", "$$")))
				push(own, "write_relabel_configs", flow(r))
			}
		}
	}
}

// rule returns a relabelling rule for the metrics whose names match, with more keys and values.
func rule(regex string, more ...string) *yaml.Node {
	r := mapping()
	set(r, "source_labels", flow(list(str("__name__"))))
	set(r, "regex", str(regex))
	for i := 0; i+1 < len(more); i += 2 {
		set(r, more[i], str(more[i+1]))
	}
	return r
}

// pattern returns the regular expression for a name, with dots as underscores. Relabelling anchors it at both ends, the
// Collector does not.
func pattern(name, matchType string) string {
	if matchType != "regexp" {
		return regexp.QuoteMeta(metricName(name))
	}
	name = strings.ReplaceAll(name, `\.`, "_")
	if strings.Contains(name, "|") {
		return ".*(?:" + name + ").*" // ^ and $ keep their meaning inside
	}
	if bare, ok := strings.CutPrefix(name, "^"); ok {
		name = bare
	} else if !strings.HasPrefix(name, ".*") {
		name = ".*" + name
	}
	if bare, ok := strings.CutSuffix(name, "$"); ok {
		name = bare
	} else if !strings.HasSuffix(name, ".*") {
		name += ".*"
	}
	return name
}

var (
	notInMetric = regexp.MustCompile(`[^A-Za-z0-9_:]`)
	notInLabel  = regexp.MustCompile(`[^A-Za-z0-9_]`)
)

// metricName and labelName turn OpenTelemetry's names into Prometheus', with underscores.
func metricName(s string) string { return notInMetric.ReplaceAllString(s, "_") }
func labelName(s string) string  { return notInLabel.ReplaceAllString(s, "_") }

// transform returns the part of a transform of metricstransform that relabelling can do.
func (o *collector) transform(t *yaml.Node) []*yaml.Node {
	var all []*yaml.Node
	match := pattern(o.text(t, "include"), o.text(t, "match_type"))
	if action := o.text(t, "action"); action != "update" {
		return nil // insert and combine create series, which relabelling cannot
	}
	for _, op := range items(get(t, "operations")) {
		label := labelName(o.text(op, "label"))
		to := labelName(orDefault(o.text(op, "new_label"), o.text(op, "label")))
		both := func(value string, more ...string) *yaml.Node {
			r := rule(match+";"+value, more...)
			set(r, "source_labels", flow(list(str("__name__"), str(label))))
			return r
		}
		switch o.text(op, "action") {
		case "add_label":
			all = append(all, rule(match, "target_label", to, "replacement", strings.ReplaceAll(o.text(op, "new_value"), "$", "$$")))
		case "delete_label_value":
			all = append(all, both(regexp.QuoteMeta(o.text(op, "label_value")), "action", "drop"))
		case "update_label":
			for _, va := range items(get(op, "value_actions")) {
				all = append(all, both(regexp.QuoteMeta(o.text(va, "value")), "target_label", label, "replacement", strings.ReplaceAll(o.text(va, "new_value"), "$", "$$")))
			}
			if to != label {
				// The group with the value follows those of the name.
				named := both("(?P<value>.+)", "target_label", to, "replacement", "${value}")
				all = append(all, named, rule(match, "target_label", label, "replacement", ""))
			}
		}
	}
	if name := strings.ReplaceAll(o.text(t, "new_name"), "$${", "${"); name != "" {
		all = append(all, rule(match, "target_label", "__name__", "replacement", newName(name)))
	}
	return all
}

var group = regexp.MustCompile(`\$\{?[0-9A-Za-z_]+\}?`)

// newName returns a new name with underscores, except in references to groups.
func newName(s string) string {
	out, last := "", 0
	for _, m := range group.FindAllStringIndex(s, -1) {
		out += metricName(s[last:m[0]]) + s[m[0]:m[1]]
		last = m[1]
	}
	return out + metricName(s[last:])
}

// transformNotes notes the parts that transform leaves out.
func (o *collector) transformNotes(t *yaml.Node, where string) {
	if action := o.text(t, "action"); action != "update" {
		o.note(keyOf(t, "action"), where, "the action %s makes series out of others, which relabelling cannot: use a recording rule at the receiver", action)
		return
	}
	o.matchType(t, where)
	for i, op := range items(get(t, "operations")) {
		switch action := o.text(op, "action"); action {
		case "add_label", "update_label", "delete_label_value":
		default:
			o.note(keyOf(op, "action"), at(where+".operations", i), "the operation %s changes values or aggregates, which relabelling cannot: use a recording rule at the receiver", action)
		}
	}
	o.remark(t, where, "is write_relabel_configs of each target behind it; names are Prometheus' there, with suffixes such as _total")
}
