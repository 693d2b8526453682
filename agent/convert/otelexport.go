package convert

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

func (o *collector) exporter(name string, k, v *yaml.Node, where string) {
	switch kindOf(name) {
	case "prometheusremotewrite":
		o.remote(name, v, where)
	case "prometheus":
		o.pull(v, where)
	case "debug", "logging":
		o.note(k, where, "is not needed: `hwsagent status` and the page show the samples that are sent")
	default:
		o.note(k, where, "the agent sends remote write only")
	}
}

// pull converts a prometheus exporter, which is scraped.
func (o *collector) pull(v *yaml.Node, where string) {
	own := mapping()
	pairs(v, func(key string, k, value *yaml.Node) {
		switch key {
		case "endpoint":
			o.take(value)
			set(own, "listen", str(strings.Replace(value.Value, "localhost:", "127.0.0.1:", 1)))
		case "tls", "auth":
			o.note(k, where+"."+key, "write it into a file in exporter-toolkit's format and name that with pull.web_config_file")
		case "metric_expiration":
			o.note(k, where+"."+key, "a series disappears when it is marked stale, or after five minutes")
		case "send_timestamps":
			o.note(k, where+"."+key, "/metrics has no timestamps; /federate?match[]=… has")
		case "resource_to_telemetry_conversion", "add_metric_suffixes", "translation_strategy":
			o.translation(key, k, value, where+"."+key)
		case "enable_open_metrics":
			o.note(k, where+"."+key, "is negotiated")
		default:
			o.note(k, where+"."+key, "has no counterpart here")
		}
	})
	set(o.out, "pull", own)
}

// remote converts a prometheusremotewrite exporter to an entry of remote_write.
func (o *collector) remote(name string, v *yaml.Node, where string) {
	own, queue := mapping(), mapping()
	if _, after, ok := strings.Cut(name, "/"); ok {
		set(own, "name", str(after))
	}
	if url := get(v, "endpoint"); url != nil {
		set(own, "url", url)
	}
	for _, p := range o.through[name] { // before the names and labels that the exporter itself adds
		o.process(own, queue, p)
	}
	pairs(v, func(key string, k, value *yaml.Node) {
		at := where + "." + key
		switch key {
		case "endpoint":
		case "timeout":
			set(own, "remote_timeout", value)
		case "headers":
			o.headers(own, value, at)
		case "proxy_url":
			set(own, "proxy_url", value)
		case "tls":
			o.tls(own, value, at)
		case "external_labels":
			o.external(own, value, at)
		case "auth":
			o.login(own, o.text(value, "authenticator"), k, at+".authenticator")
		case "send_metadata":
			m := mapping()
			set(m, "send", value)
			set(own, "metadata_config", flow(m))
		case "remote_write_queue":
			o.queue(queue, value, at)
		case "retry_on_failure":
			o.retries(queue, value, at)
		case "resource_to_telemetry_conversion", "add_metric_suffixes", "translation_strategy":
			o.translation(key, k, value, at)
		case "namespace":
			rule := mapping()
			o.take(value)
			set(rule, "source_labels", flow(list(str("__name__"))))
			set(rule, "target_label", str("__name__"))
			set(rule, "replacement", str(value.Value+"_$1"))
			push(own, "write_relabel_configs", flow(rule))
		case "protobuf_message":
			set(own, "protobuf_message", value)
		default:
			o.note(k, at, "%s", whyOTel(key))
		}
	})
	if len(queue.Content) > 0 {
		set(own, "queue_config", flow(queue))
	}
	o.target(own, v, where)
}

// queue converts the queue of an exporter.
func (o *collector) queue(queue, value *yaml.Node, at string) {
	pairs(value, func(part string, k, n *yaml.Node) {
		switch part {
		case "num_consumers":
			set(queue, "max_shards", n)
		case "queue_size":
			o.note(k, at+"."+part, "is not needed: pending samples are on disk, up to wal.max_bytes")
		case "enabled":
			o.take(n)
			if n.Value == "false" {
				o.note(k, at+"."+part, "samples always wait on disk")
			}
		default:
			o.note(k, at+"."+part, "has no counterpart here")
		}
	})
}

// retries converts the retries of an exporter.
func (o *collector) retries(queue, value *yaml.Node, at string) {
	pairs(value, func(part string, k, n *yaml.Node) {
		switch part {
		case "initial_interval":
			set(queue, "min_backoff", n)
		case "max_interval":
			set(queue, "max_backoff", n)
		case "max_elapsed_time":
			o.note(k, at+"."+part, "samples of any age are sent, unless queue_config.sample_age_limit is set")
		case "enabled":
			o.take(n)
			if n.Value == "false" {
				o.note(k, at+"."+part, "failed requests are always retried")
			}
		default:
			o.note(k, at+"."+part, "has no counterpart here")
		}
	})
}

// external converts the external labels of an exporter. Several exporters may have different ones, so they stay with
// the target.
func (o *collector) external(own, v *yaml.Node, where string) {
	o.take(v)
	exporters := 0
	for name := range o.through {
		if kindOf(name) == "prometheusremotewrite" {
			exporters++
		}
	}
	if exporters == 1 {
		all := ensure(ensure(o.out, "global", mapping), "external_labels", mapping) // a receiver may have added some
		pairs(v, func(label string, k, value *yaml.Node) {
			if other := get(all, label); other != nil && other.Value != value.Value {
				o.remark(k, where+"."+label, "the receiver has %s; here all series get the exporter's value", other.Value)
			}
			set(all, label, value)
		})
		all.Style = v.Style
		return
	}
	pairs(v, func(label string, _, value *yaml.Node) {
		rule := mapping()
		set(rule, "target_label", str(label))
		set(rule, "replacement", str(value.Value))
		push(own, "write_relabel_configs", flow(rule))
	})
}

// tls converts the TLS settings of a client.
func (o *collector) tls(own, v *yaml.Node, where string) {
	t := mapping()
	pairs(v, func(key string, k, value *yaml.Node) {
		switch key {
		case "ca_file", "cert_file", "key_file", "insecure_skip_verify":
			set(t, key, value)
		case "server_name_override":
			set(t, "server_name", value)
		case "ca_pem", "cert_pem", "key_pem":
			set(t, strings.TrimSuffix(key, "_pem"), value)
		case "min_version", "max_version":
			o.take(value)
			set(t, key, str("TLS"+strings.ReplaceAll(value.Value, ".", "")))
		case "insecure":
			o.take(value)
			if value.Value == "true" {
				o.remark(k, where+"."+key, "the scheme of the URL switches TLS on or off")
			}
		case "reload_interval":
			o.note(k, where+"."+key, "is not needed: files are read again when they change")
		default:
			o.note(k, where+"."+key, "has no counterpart here")
		}
	})
	if len(t.Content) > 0 {
		set(own, "tls_config", flow(t))
	}
}

// login converts the extension that an exporter uses to log in.
func (o *collector) login(own *yaml.Node, name string, k *yaml.Node, where string) {
	ext := get(o.root, "extensions", name)
	switch kindOf(name) {
	case "basicauth":
		auth := mapping()
		set(auth, "username", str(o.text(ext, "client_auth", "username")))
		set(auth, "password", str(o.text(ext, "client_auth", "password")))
		set(own, "basic_auth", flow(auth))
	case "bearertokenauth":
		if file := o.text(ext, "filename"); file != "" {
			set(own, "bearer_token_file", str(file))
			return
		}
		if scheme := o.text(ext, "scheme"); scheme != "" && scheme != "Bearer" {
			auth := mapping()
			set(auth, "type", str(scheme))
			set(auth, "credentials", str(o.text(ext, "token")))
			set(own, "authorization", flow(auth))
			return
		}
		set(own, "bearer_token", str(o.text(ext, "token")))
	case "oauth2client":
		auth := mapping()
		for _, key := range []string{"client_id", "client_secret", "client_secret_file", "token_url", "scopes", "endpoint_params"} {
			if n := get(ext, key); n != nil {
				set(auth, key, n)
			}
		}
		set(own, "oauth2", auth)
	default:
		o.note(k, where, "the authenticator %q is not known here: the entry has no login now", name)
	}
}
