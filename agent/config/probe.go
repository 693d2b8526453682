package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hwsagent/probes"
	"hwsagent/probes/catalog"
	"hwsagent/probes/devices"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"
)

// newSettings returns an empty configuration for a probe type, or nil if the type is unknown.
func newSettings(probeType string) any {
	if t, ok := catalog.Find(probeType); ok {
		return t.Settings()
	}
	return nil
}

// New constructs the probe of the entry. It sets the logger's name and the pace in e; paces are the request limits of all entries.
func (p *Probe) New(e catalog.Env, paces *devices.Paces) (probes.Probe, error) {
	t, ok := catalog.Find(p.Type)
	if !ok {
		return nil, fmt.Errorf("probe type %q has no constructor", p.Type)
	}
	e.Logger = e.Logger.With("probe", p.Name)
	e.Pace = func() *devices.Pace { return paces.For(cmp.Or(p.Job, p.Name), &p.Devices) }
	return t.New(p.Settings, e)
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
	var failures loadFailures
	failures.add(common.Load((*plain)(p), yaml.WithKnownFields()))
	if p.Settings != nil {
		failures.add(rest.Load(p.Settings, yaml.WithKnownFields()))
	}
	return failures.err()
}

// validate checks the keys that every probe has. p must be complete.
func (p *Probe) validate(d *document, path string) {
	switch {
	case p.Type == "":
		d.errorAt(path, "a probe needs a type", "one of "+strings.Join(catalog.Names(), ", "))
	case p.Settings == nil:
		hint := "known types: " + strings.Join(catalog.Names(), ", ")
		if n := nearest(p.Type, catalog.Names()); n != "" {
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
	p.validateDevices(d, path)
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
