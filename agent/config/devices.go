package config

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"hwsagent/probes/devices"
)

// remote is implemented by the settings of probe types that read remote devices. An entry of such a type may have a
// list of devices.
type remote interface {
	// CheckTarget judges the form of a target.
	CheckTarget(target string) error
	// ForDevice returns the settings for one device of a list. An error concerns its secrets.
	ForDevice(d devices.Device) (any, error)
}

// validateDevices checks the list of devices, the keys that go with it, and the settings that all devices share.
func (p *Probe) validateDevices(d *document, path string) {
	r, ok := p.Settings.(remote)
	if !ok {
		for _, key := range listKeys() {
			if d.values[path+"."+key] != nil {
				d.errorAtKey(path+"."+key, fmt.Sprintf("a probe of type %s reads no list of devices", p.Type), key+" belongs to types of remote devices, such as snmp")
			}
		}
		return
	}
	if p.Target != "" && p.Devices.IsSet() {
		d.errorAt(path+".target", "an entry has target or static_configs, not both", "move it to the list")
	}
	for _, one := range unjoined(p.Devices.Validate(r.CheckTarget)) {
		var f *devices.FieldError
		switch {
		case !errors.As(one, &f):
		case strings.HasSuffix(f.Key, "]"):
			d.errorAt(path+"."+f.Key, f.Message, f.Hint)
		default:
			d.errorAtKey(path+"."+f.Key, f.Message, f.Hint)
		}
	}
	v, ok := p.Settings.(interface{ Validate() error })
	if !ok || !p.Devices.IsSet() {
		return
	}
	for _, one := range unjoined(v.Validate()) {
		if !strings.HasPrefix(one.Error(), "target: ") { // each device has its own target
			d.errorsAt(path, one)
		}
	}
}

// checkListed reports a device whose probe would have the name of another, and adds the names of the rest to names.
func (d *document) checkListed(path string, p *Probe, names map[string]int, entry int) {
	check := func(key string, targets []string) {
		for j, target := range targets {
			name := p.Name + "/" + target
			if first, ok := names[name]; ok && first != entry {
				d.errorAt(fmt.Sprintf("%s.%s[%d]", path, key, j), fmt.Sprintf("the name %q of its probe is already used by %s", name, d.cite(fmt.Sprintf("probes[%d]", first))), "give one of the entries another name")
			}
			names[name] = entry
		}
	}
	check("targets", p.Devices.Targets)
	for i, g := range p.Devices.StaticConfigs {
		check(fmt.Sprintf("static_configs[%d].targets", i), g.Targets)
	}
}

// unjoined returns the single errors of a joined error.
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

// ExpandDevices turns the entries into probes: each device of a list gets a probe with its own name, connection, phase,
// deadline and state. Load has done so once; the running agent calls it again, on a copy of the Config, after a file has changed.
// It returns problems of device lists, which have no other effect.
func (c *Config) ExpandDevices(files *devices.Files) (problems []devices.Problem) {
	var all []Probe
	names := map[string]bool{}
	for i := range c.entries {
		if !c.entries[i].Devices.IsSet() {
			names[c.entries[i].Name] = true
		}
	}
	for _, p := range c.entries {
		r, ok := p.Settings.(remote)
		if !ok || !p.Devices.IsSet() {
			all = append(all, p)
			continue
		}
		list, wrong := p.Devices.Devices(files, r.CheckTarget)
		problems = append(problems, wrong...)
		for _, d := range list {
			one, err := p.oneOf(r, d)
			if err == nil && names[one.Name] {
				err = fmt.Errorf("another probe has the name %q", one.Name)
			}
			if err != nil {
				problems = append(problems, devices.Problem{File: p.Name, Text: fmt.Sprintf("target %q left out: %v", d.Target, err)})
				continue
			}
			names[one.Name] = true
			all = append(all, one)
		}
	}
	c.Probes = all
	return problems
}

// oneOf returns the probe for one device of the entry's list.
func (p *Probe) oneOf(r remote, d devices.Device) (Probe, error) {
	one := *p
	one.Name, one.Job, one.Target = p.Name+"/"+d.Target, p.Name, d.Target
	one.Devices = devices.List{MaxRequests: p.Devices.MaxRequests, MaxRequestsPerDevice: p.Devices.MaxRequestsPerDevice}
	one.Labels = maps.Clone(p.Labels)
	if one.Labels == nil {
		one.Labels = map[string]string{}
	}
	maps.Copy(one.Labels, d.SeriesLabels())
	var err error
	one.Settings, err = r.ForDevice(d)
	return one, err
}

// ListFiles returns the paths and patterns of the device lists of enabled probes.
func (c *Config) ListFiles() (all []string) {
	for i := range c.entries {
		if p := &c.entries[i]; p.Enabled {
			all = append(all, p.Devices.Patterns()...)
		}
	}
	return all
}

// ListProblems returns the problems of device lists that [Load] found. The probes of the devices in such a file are missing.
func (c *Config) ListProblems() []devices.Problem { return c.listProblems }
