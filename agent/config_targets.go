package agent

import (
	"errors"
	"fmt"
	"maps"

	"hwsagent/probes/snmp"
)

// TargetGroup is a list of devices that one entry of probes is about, and labels that they have in
// addition to the entry's: as in Prometheus' static_configs.
type TargetGroup struct {
	Targets []string          `yaml:"targets"`
	Labels  map[string]string `yaml:"labels,omitempty"`
}

// maxListed bounds the devices of one entry.
const maxListed = 10_000

// about is the type's settings for one of several targets; nil where the type reads no device.
func (p *ProbeConfig) about(target string) any {
	s, ok := p.Settings.(*snmp.Config)
	if !ok {
		return nil
	}
	one := *s
	one.Target = target
	return &one
}

// validateTargets checks the list of targets, and the settings with the first of them.
func (p *ProbeConfig) validateTargets(d *document, path string) {
	if p.about("") == nil {
		d.errorAtKey(path+".static_configs", fmt.Sprintf("a probe of type %s reads no list of targets", p.Type), "static_configs belong to the type snmp")
		return
	}
	if p.Target != "" {
		d.errorAt(path+".target", "an entry has target or static_configs, not both", "move it to the list")
	}
	seen := map[string]bool{}
	for i, g := range p.StaticConfigs {
		d.checkLabels(fmt.Sprintf("%s.static_configs[%d].labels", path, i), g.Labels)
		for j, target := range g.Targets {
			at := fmt.Sprintf("%s.static_configs[%d].targets[%d]", path, i, j)
			switch {
			case seen[target]:
				d.errorAt(at, fmt.Sprintf("the target %q is listed twice", target), "take one out")
				continue
			case len(seen) == maxListed:
				d.errorAt(at, fmt.Sprintf("the entry has more than %d targets", maxListed), "make several entries of it")
				return
			}
			err := p.about(target).(interface{ Validate() error }).Validate()
			for _, one := range unjoined(err) {
				var f *snmp.FieldError
				switch {
				case errors.As(one, &f) && f.Key == "target":
					d.errorAt(at, f.Message, "")
				case len(seen) == 0: // the same for each of them
					d.errorsAt(path, one)
				}
			}
			seen[target] = true
		}
	}
	if len(seen) == 0 {
		d.errorAtKey(path+".static_configs", "the list names no target", "write static_configs: [{targets: [192.0.2.7, 192.0.2.8]}]")
	}
}

// checkListed refuses a target whose probe would have the name of another one, and adds the others to
// names.
func (d *document) checkListed(path string, p *ProbeConfig, names map[string]int, entry int) {
	for i, g := range p.StaticConfigs {
		for j, target := range g.Targets {
			name := p.Name + "/" + target
			if first, ok := names[name]; ok && first != entry {
				d.errorAt(fmt.Sprintf("%s.static_configs[%d].targets[%d]", path, i, j), fmt.Sprintf("the name %q of its probe is that of %s, too", name, d.cite(fmt.Sprintf("probes[%d]", first))), "give one of the entries another name")
			}
			names[name] = entry
		}
	}
}

// unjoined are the errors of a joined one.
func unjoined(err error) []error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		return many.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// expandTargets makes a probe for each target of a list: of its own name, with its own connection,
// phase, deadline and state.
func (c *Config) expandTargets() {
	var all []ProbeConfig
	for _, p := range c.Probes {
		if len(p.StaticConfigs) == 0 {
			all = append(all, p)
			continue
		}
		for _, g := range p.StaticConfigs {
			for _, target := range g.Targets {
				one := p
				one.Name, one.Job, one.Target, one.StaticConfigs, one.Settings = p.Name+"/"+target, p.Name, target, nil, p.about(target)
				one.Labels = maps.Clone(p.Labels)
				if one.Labels == nil {
					one.Labels = map[string]string{}
				}
				maps.Copy(one.Labels, g.Labels)
				all = append(all, one)
			}
		}
	}
	c.Probes = all
}
