package config

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// prometheusOnly explains keys of a Prometheus configuration that have no effect here, by the key of their mapping.
var prometheusOnly = map[string]map[string]string{
	"": {
		"rule_files":  "rules belong to the server that receives the data",
		"alerting":    "alerting belongs to the server that receives the data",
		"remote_read": "reading belongs to a Prometheus server",
		"storage":     "the flag --storage.path names the log's directory, and wal: bounds it",
		"tracing":     "the agent sends no traces",
		"otlp":        "receivers.otlp has these settings, and an address to listen on",
		"runtime":     "the environment variable GOGC sets it",
	},
	"global": {
		"evaluation_interval": "the agent evaluates no rules",
		"rule_query_offset":   "the agent evaluates no rules",
		"query_log_file":      "the agent answers no queries",
	},
}

// ignorePrometheus removes the keys of a Prometheus configuration that have no effect here, with a warning for each, so that
// such a file runs as it is. Their values may have "${", which is no variable there.
func (d *document) ignorePrometheus() {
	d.ignoreIn(d.root, "")
	if global := d.value("global"); global != nil && global.Kind == yaml.MappingNode {
		d.ignoreIn(global, "global")
	}
}

func (d *document) ignoreIn(mapping *yaml.Node, path string) {
	var rest, ignored []*yaml.Node
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		why := prometheusOnly[path][key.Value]
		at := key.Value
		if path != "" {
			at = path + "." + at
		}
		if why == "" || slices.ContainsFunc(ignored, func(k *yaml.Node) bool { return k.Value == key.Value }) { // a key twice is a mistake
			rest = append(rest, key, mapping.Content[i+1])
			continue
		}
		ignored = append(ignored, key)
		d.warnAt(at, "the key has no effect: "+why, "")
	}
	mapping.Content = rest
}
