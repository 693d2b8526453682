package convert

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// alloyTargets are the targets of a prometheus.scrape.
type alloyTargets struct {
	*alloy
	kinds *yaml.Node // static_configs, file_sd_configs and others
	rules []placed   // on their labels
	host  *yaml.Node // the prometheus.exporter.unix among them
	path  string     // of host
}

// discoveries maps kinds of discovery to their keys here, and to the settings that they have in both.
var discoveries = map[string]struct{ key, settings string }{
	"discovery.file":       {"file_sd_configs", "files refresh_interval"},
	"discovery.http":       {"http_sd_configs", "url refresh_interval basic_auth authorization oauth2 bearer_token bearer_token_file proxy_url follow_redirects enable_http2"},
	"discovery.dns":        {"dns_sd_configs", "names type port refresh_interval"},
	"discovery.kubernetes": {"kubernetes_sd_configs", "role api_server kubeconfig_file namespaces selectors attach_metadata"},
}

// add adds the targets of a value: a list of labels, a reference, or several of both.
func (t *alloyTargets) add(n *yaml.Node, path string, depth int) {
	if t.kinds == nil {
		t.kinds = mapping()
	}
	switch {
	case n == nil || depth > maxDepth:
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			t.add(item, at(path, i), depth+1)
		}
	case n.Kind == yaml.MappingNode:
		t.static(n, path)
	case n.Tag == tagReference:
		t.reference(n, path, depth)
	}
}

// static adds a target that is written as its labels.
func (t *alloyTargets) static(n *yaml.Node, path string) {
	plain, ok := t.plain(n, false)
	if !ok || text(plain, "__address__") == "" {
		t.note(n, path, "the target has an expression that only Alloy can evaluate, or no __address__; it is left out")
		return
	}
	t.take(n)
	own, labels := mapping(), mapping()
	pairs(plain, func(name string, _, v *yaml.Node) {
		if name != "__address__" {
			set(labels, name, str(v.Value))
		}
	})
	set(own, "targets", list(str(text(plain, "__address__"))))
	if len(labels.Content) > 0 {
		set(own, "labels", labels)
	}
	push(t.kinds, "static_configs", flow(own))
}

// reference adds the targets that another component has.
func (t *alloyTargets) reference(n *yaml.Node, path string, depth int) {
	if v, where := t.component(n.Value, "prometheus.exporter.unix", "targets"); v != nil {
		t.take(n)
		t.host, t.path = v, where
		return
	}
	if v, where := t.component(n.Value, "discovery.relabel", "output"); v != nil {
		t.take(n)
		if len(t.kinds.Content) > 0 || t.host != nil {
			t.remark(n, path, "its rules hold for all targets of the job here")
		}
		t.add(get(v, "targets"), where+".targets", depth+1)
		t.rules = append(t.rules, t.placedRules(v, where, "rule")...)
		return
	}
	for kind, one := range discoveries {
		if v, where := t.component(n.Value, kind, "targets"); v != nil {
			t.take(n)
			own := mapping()
			pairs(v, func(key string, k, value *yaml.Node) {
				switch {
				case key == "tls_config":
					t.tls(own, value, where+"."+key)
				case key == "selectors":
					for i, selector := range blocks(v, key) {
						s := mapping()
						pairs(selector, func(part string, pk, pv *yaml.Node) { t.set(s, part, pk, pv, blockPath(v, where, key, i)+"."+part) })
						push(own, key, s)
					}
				case slices.Contains(strings.Fields(one.settings), key):
					t.set(own, key, k, value, where+"."+key)
				}
			})
			push(t.kinds, one.key, own)
			return
		}
	}
	t.note(n, path, "%s has no targets that are known here", n.Value)
}

// unix makes the probe host of a prometheus.exporter.unix that a job reads.
func (a *alloy) unix(t *alloyTargets, scrape *yaml.Node, path string, rules []*yaml.Node) {
	if len(t.host.Content) == 0 {
		a.take(t.host)
	}
	p := a.hostProbe()
	set(ensure(p, "labels", mapping), "job", str("integrations/unix"))
	for _, key := range []string{"scrape_interval", "scrape_timeout"} {
		if v := get(scrape, key); v != nil {
			a.set(p, strings.TrimPrefix(key, "scrape_"), keyOf(scrape, key), v, path+"."+key)
		}
	}
	for _, one := range t.rules {
		a.targetRule(p, one.rule, one.path)
	}
	for _, rule := range rules {
		push(p, "metric_relabel_configs", rule)
	}
	flat := mapping() // filesystem { fs_types_exclude } is filesystem_fs_types_exclude in other agents
	pairs(t.host, func(key string, k, v *yaml.Node) {
		if v.Kind != yaml.MappingNode {
			a.flat(flat, key, k, v, t.path+"."+key)
			return
		}
		pairs(v, func(part string, pk, inner *yaml.Node) {
			a.flat(flat, key+"_"+part, pk, inner, t.path+"."+key+"."+part)
		})
	})
	a.nodeKeys(p, flat, t.path)
}

// flat adds a setting of the exporter for nodeKeys, if that knows it.
func (a *alloy) flat(flat *yaml.Node, key string, k, v *yaml.Node, path string) {
	if nodeSettings[key] == "" && key != "textfile_directory" && !strings.HasSuffix(key, "_collectors") {
		return
	}
	if strings.HasSuffix(key, "_collectors") { // whose items nodeKeys takes one by one
		flat.Content = append(flat.Content, k, v)
		return
	}
	a.set(flat, key, k, v, path)
}
