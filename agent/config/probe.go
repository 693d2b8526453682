package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"

	"hwsagent/probes/canary"
	"hwsagent/probes/exec"
	"hwsagent/probes/host"
	"hwsagent/probes/ipmi"
	"hwsagent/probes/nut"
	"hwsagent/probes/nvidia"
	"hwsagent/probes/redfish"
	"hwsagent/probes/site"
	"hwsagent/probes/smart"
	"hwsagent/probes/snmp"
	"hwsagent/probes/textfile"
)

// probeTypes are the types of probes, as they are written in agent.yaml.
var probeTypes = []string{"canary", "exec", "host", "ipmi", "nut", "nvidia", "redfish", "self", "site", "smart", "snmp", "textfile"}

// newSettings returns an empty configuration for a probe type, or nil if the type is unknown.
func newSettings(probeType string) any {
	switch probeType {
	case "canary":
		return new(canary.Config)
	case "exec":
		return new(exec.Config)
	case "host":
		return new(host.Config)
	case "ipmi":
		return new(ipmi.Config)
	case "nut":
		return new(nut.Config)
	case "nvidia":
		return new(nvidia.Config)
	case "redfish":
		return new(redfish.Config)
	case "self":
		return new(Self)
	case "site":
		return new(site.Config)
	case "smart":
		return new(smart.Config)
	case "snmp":
		return new(snmp.Config)
	case "textfile":
		return new(textfile.Config)
	}
	return nil
}

// UnmarshalYAML reads one entry of probes. Keys that every type has are stored in the entry, others in Settings; target
// is stored in both if the type has it.
func (p *Probe) UnmarshalYAML(n *yaml.Node) error {
	type plain Probe
	if n.Kind != yaml.MappingNode {
		return n.Load((*plain)(p))
	}
	p.Enabled = true
	common, rest := *n, *n
	common.Content, rest.Content = nil, nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Value == "type" && v.Kind == yaml.ScalarNode {
			p.Settings = newSettings(v.Value)
		}
	}
	theirs := settingsKeys(p.Settings)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		ours := slices.Contains(probeKeys(), k.Value) || k.Value == "<<"
		if ours {
			common.Content = append(common.Content, n.Content[i:i+2]...)
		}
		if !ours || k.Value == "target" && slices.Contains(theirs, "target") || k.Value == "<<" {
			rest.Content = append(rest.Content, n.Content[i:i+2]...)
		}
	}
	var failures yaml.LoadErrors
	keep := func(err error) {
		var many *yaml.LoadErrors
		var one *yaml.LoadError
		switch {
		case errors.As(err, &many):
			failures.Errors = append(failures.Errors, many.Errors...)
		case errors.As(err, &one):
			failures.Errors = append(failures.Errors, one)
		}
	}
	keep(common.Load((*plain)(p), yaml.WithKnownFields()))
	if p.Settings != nil {
		keep(rest.Load(p.Settings, yaml.WithKnownFields()))
	}
	if len(failures.Errors) > 0 {
		return &failures
	}
	return nil
}

// validate checks the keys that every probe has. p must be complete.
func (p *Probe) validate(d *document, path string) {
	switch {
	case p.Type == "":
		d.errorAt(path, "a probe needs a type", "one of "+strings.Join(probeTypes, ", "))
	case p.Settings == nil:
		hint := "known types: " + strings.Join(probeTypes, ", ")
		if n := nearest(p.Type, probeTypes); n != "" {
			hint = fmt.Sprintf("did you mean %q? %s", n, hint)
		}
		d.errorAt(path+".type", fmt.Sprintf("unknown type of probe %q", p.Type), hint)
	}
	d.checkName(path, p.Name)
	if p.Interval < minInterval {
		d.errorAt(path+".interval", fmt.Sprintf("%s is shorter than the least interval, %s", p.Interval, minInterval), "")
	}
	if p.Timeout > p.Interval {
		d.errorAt(path+".timeout", fmt.Sprintf("the timeout %s is longer than the interval %s", p.Timeout, p.Interval),
			"a round must end before the next begins: raise interval or lower timeout")
	} else if p.Timeout <= 0 {
		d.errorAt(path+".timeout", "must be more than 0", "")
	}
	d.checkDialect(path+".hw_labels", p.HWLabels)
	if p.MaxSamples < 0 {
		d.errorAt(path+".max_samples", "must not be negative", "0 stands for no limit of its own")
	}
	if p.MaxSeries < 0 {
		d.errorAt(path+".max_series", "must not be negative", "0 stands for no limit")
	}
	d.checkLabels(path+".labels", p.Labels)
	for i, r := range p.MetricRelabelConfigs {
		at := fmt.Sprintf("%s.metric_relabel_configs[%d]", path, i)
		if r == nil {
			d.errorAt(at, "the rule is empty", "")
		} else if err := r.Validate(model.UTF8Validation); err != nil {
			d.errorAt(at, err.Error(), "")
		}
	}
	p.validateTargets(d, path)
	if p.Devices.IsSet() {
		return
	}
	if v, ok := p.Settings.(interface{ Validate() error }); ok {
		d.errorsAt(path, v.Validate())
	}
}

func probeKeys() []string {
	return append(listKeys(), "name", "type", "enabled", "target", "interval", "timeout", "labels", "metric_relabel_configs", "hw_labels", "max_samples", "max_series")
}

// listKeys are the keys of [devices.List].
func listKeys() []string {
	return []string{"targets", "static_configs", "file_sd_configs", "shard", "max_requests_per_second", "max_requests_per_second_per_device"}
}
