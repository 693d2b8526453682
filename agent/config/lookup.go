package config

import (
	"errors"
	"fmt"
	"strings"

	remoteconfig "hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
)

// ErrNoSuchTarget means that neither the log nor the configuration has a target of that name.
var ErrNoSuchTarget = errors.New("no such target")

// ErrNoSuchProbe means that the configuration has no probe of that name.
var ErrNoSuchProbe = errors.New("no such probe")

// ErrNoSuchInput means that the agent has no probe, scrape job or receiver of that name.
var ErrNoSuchInput = errors.New("no such input")

// ErrUsage means that a person's request cannot be understood.
var ErrUsage = errors.New("wrong usage")

// noTarget is ErrNoSuchTarget with the names that exist.
type noTarget struct{ text string }

func (e *noTarget) Error() string { return e.text }
func (e *noTarget) Unwrap() error { return ErrNoSuchTarget }

// Names returns the names of the targets and probes in a configuration file, in order, for a shell that completes a
// command. It does not read files named by ${file:…}. For a file that cannot be loaded it returns none; `hwsagent
// check` shows the mistakes.
func Names(path string, env func(string) (string, bool)) (targets, probes []string) {
	cfg, _, err := LoadWithoutFiles(path, env)
	if err != nil {
		return nil, nil
	}
	for _, t := range cfg.RemoteWrite {
		targets = append(targets, t.TargetName())
	}
	for _, p := range cfg.Probes {
		probes = append(probes, p.Name)
	}
	return targets, probes
}

// Target returns the entry with that name, or the part of an entry that has the tenant of that name. The error is
// ErrNoSuchTarget.
func (c *Config) Target(name string) (*remoteconfig.Config, error) {
	var names []string
	for _, t := range c.RemoteWrite {
		if in := inFamily(t, name); in != nil {
			return in, nil
		}
		if t.TargetName() == name {
			return t, nil
		}
		names = append(names, t.TargetName())
	}
	text := fmt.Sprintf("no such target: %s has no entry called %q", c.File, name)
	if len(names) > 0 {
		text += "; it has " + strings.Join(names, ", ")
	}
	return nil, &noTarget{text}
}

// Probe returns the probe with that name. The error is ErrNoSuchProbe.
func (c *Config) Probe(name string) (*Probe, error) {
	var names []string
	for i := range c.Probes {
		if c.Probes[i].Name == name {
			return &c.Probes[i], nil
		}
		names = append(names, c.Probes[i].Name)
	}
	err := fmt.Errorf("%w: %q; there are %s", ErrNoSuchProbe, name, strings.Join(names, ", "))
	if n := nearest(name, names); n != "" {
		err = fmt.Errorf("%w: %q; did you mean %q?", ErrNoSuchProbe, name, n)
	}
	return nil, err
}

// inFamily returns the configuration for a target of that name in an entry with tenants; nil if no entry has it.
func inFamily(c *remoteconfig.Config, name string) *remoteconfig.Config {
	if c.Target.Tenant == nil {
		return nil
	}
	if name == c.TargetName() {
		return c.ForRest()
	}
	if id, ok := queue.MemberOf(c.TargetName(), name); ok && remoteconfig.CheckTenant(id) == nil {
		return c.ForTenant(id)
	}
	return nil
}

// sharedName returns an error that says which tenant's target has the same name as an entry.
func sharedName(family *remoteconfig.Config, name string) error {
	if family.Target.Tenant != nil && inFamily(family, name) != nil && name != family.TargetName() {
		return fmt.Errorf("%q is the name of the target of a tenant of %q", name, family.TargetName())
	}
	return nil
}
