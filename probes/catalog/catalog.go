// Package catalog is the table of probe types. A new type is a package of its own and one entry in [Types].
package catalog

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/internal/panics"
	"hwsagent/probes"
	"hwsagent/probes/canary"
	"hwsagent/probes/devices"
	"hwsagent/probes/exec"
	"hwsagent/probes/host"
	"hwsagent/probes/ipmi"
	"hwsagent/probes/kernel"
	"hwsagent/probes/nut"
	"hwsagent/probes/nvidia"
	"hwsagent/probes/raid"
	"hwsagent/probes/redfish"
	"hwsagent/probes/self"
	"hwsagent/probes/site"
	"hwsagent/probes/smart"
	"hwsagent/probes/snmp"
	"hwsagent/probes/tape"
	"hwsagent/probes/textfile"
)

// Env has the agent's parts that a probe may use. Every field but State is set.
type Env struct {
	Logger *slog.Logger
	Guard  *panics.Guard                              // contains panics of the probe's own goroutines
	Pace   func() *devices.Pace                       // the request limits of the entry, which its probes share
	Plans  *snmp.Plans                                // shared by all probes of a configuration
	Own    func(level self.Level) prometheus.Gatherer // the agent's own metrics
	State  string                                     // a file that the probe may keep across restarts, in a directory that may not exist; "": it keeps nothing
}

// Type is one type of probe.
type Type struct {
	Name string // as in the key type of an entry

	// Settings returns a pointer to new settings, into which an entry is decoded. If they have a method Validate() error,
	// it checks them.
	Settings func() any
	// New constructs a probe from such settings, which must not change afterwards.
	New func(settings any, e Env) (probes.Probe, error)

	// The following is only for types that read hardware.

	Hardware bool   // the commands inventory and record take it
	Bare     string // an entry that needs no settings; "" if there is none
	Port     string // that a firewall must let through, as in "UDP port 161"; "" if there is none
	// Whole returns a copy of settings that selects all hardware, with further definitions; nil: settings always do.
	Whole func(settings any, definitions []string) any
	// Replay returns a probe that reads a recording; it may write files below dir. nil: the type has no such recordings.
	Replay func(t *tape.Tape, dir string, logger *slog.Logger) (probes.Probe, error)
}

// Types returns all types of probes, in the order of their names.
func Types() []Type {
	return []Type{
		of("canary", func(c canary.Config, _ Env) (probes.Probe, error) { return canary.New(c) }),
		of("exec", func(c exec.Config, e Env) (probes.Probe, error) { return exec.New(c, e.Logger, e.Guard) }),
		hostType(),
		ipmiType(),
		kernelType(),
		nutType(),
		nvidiaType(),
		raidType(),
		redfishType(),
		of("self", func(c self.Config, e Env) (probes.Probe, error) { return self.New(e.Own(c.Level)), nil }),
		of("site", func(c site.Config, _ Env) (probes.Probe, error) { return site.New(c) }),
		smartType(),
		snmpType(),
		of("textfile", func(c textfile.Config, _ Env) (probes.Probe, error) { return textfile.New(c) }),
	}
}

// of returns a type whose settings are a C.
func of[C any](name string, construct func(c C, e Env) (probes.Probe, error)) Type {
	return Type{
		Name:     name,
		Settings: func() any { return new(C) },
		New: func(settings any, e Env) (probes.Probe, error) {
			c, ok := settings.(*C)
			if !ok {
				return nil, fmt.Errorf("a probe of type %s has settings of %T", name, settings)
			}
			return construct(*c, e)
		},
	}
}

func hostType() Type {
	t := of("host", func(c host.Config, e Env) (probes.Probe, error) { return host.New(c, e.Logger, e.Guard) })
	t.Hardware, t.Bare = true, "{type: host}"
	t.Whole = func(settings any, _ []string) any {
		c := *settings.(*host.Config)
		c.HW, c.Collectors = new(true), nil
		return &c
	}
	t.Replay = func(r *tape.Tape, dir string, logger *slog.Logger) (probes.Probe, error) {
		return host.Replay(r, dir, logger)
	}
	return t
}

func ipmiType() Type {
	t := of("ipmi", func(c ipmi.Config, e Env) (probes.Probe, error) { return ipmi.New(c, e.Pace(), e.Logger) })
	t.Hardware, t.Bare, t.Port = true, "{type: ipmi, target: /dev/ipmi0}", "UDP port 623"
	t.Replay = func(r *tape.Tape, _ string, logger *slog.Logger) (probes.Probe, error) { return ipmi.Replay(r, logger) }
	return t
}

func kernelType() Type {
	t := of("kernel", func(c kernel.Config, e Env) (probes.Probe, error) { return kernel.New(c, e.State) })
	t.Hardware, t.Bare = true, "{type: kernel}"
	t.Replay = func(r *tape.Tape, _ string, _ *slog.Logger) (probes.Probe, error) { return kernel.Replay(r) }
	return t
}

func nutType() Type {
	t := of("nut", func(c nut.Config, e Env) (probes.Probe, error) { return nut.New(c, e.Pace()) })
	t.Hardware, t.Bare, t.Port = true, "{type: nut}", "TCP port 3493"
	t.Replay = func(r *tape.Tape, _ string, _ *slog.Logger) (probes.Probe, error) { return nut.Replay(r) }
	return t
}

func nvidiaType() Type {
	t := of("nvidia", func(c nvidia.Config, e Env) (probes.Probe, error) { return nvidia.New(c, e.Guard) })
	t.Hardware, t.Bare = true, "{type: nvidia}"
	t.Replay = func(r *tape.Tape, _ string, _ *slog.Logger) (probes.Probe, error) { return nvidia.Replay(r) }
	return t
}

func raidType() Type {
	t := of("raid", func(c raid.Config, e Env) (probes.Probe, error) { return raid.New(c, e.Guard) })
	t.Hardware, t.Bare = true, "{type: raid}"
	t.Replay = func(r *tape.Tape, _ string, _ *slog.Logger) (probes.Probe, error) { return raid.Replay(r) }
	return t
}

func redfishType() Type {
	t := of("redfish", func(c redfish.Config, e Env) (probes.Probe, error) { return redfish.New(c, e.Pace(), e.Guard) })
	t.Hardware, t.Port = true, "TCP port 443"
	t.Replay = func(r *tape.Tape, _ string, _ *slog.Logger) (probes.Probe, error) { return redfish.Replay(r) }
	return t
}

func smartType() Type {
	t := of("smart", func(c smart.Config, e Env) (probes.Probe, error) { return smart.New(c, e.Guard) })
	t.Hardware, t.Bare = true, "{type: smart}"
	t.Replay = func(r *tape.Tape, _ string, _ *slog.Logger) (probes.Probe, error) { return smart.Replay(r) }
	return t
}

// snmpType has a format of its own for recordings, which are devices that answer.
func snmpType() Type {
	t := of("snmp", func(c snmp.Config, e Env) (probes.Probe, error) { return e.Plans.New(c, e.Pace(), e.Logger) })
	t.Hardware, t.Port = true, "UDP port 161"
	t.Whole = func(settings any, definitions []string) any {
		c := *settings.(*snmp.Config)
		c.Modules, c.Definitions = snmp.DefaultModules(), slices.Concat(c.Definitions, definitions)
		return &c
	}
	return t
}

// Find returns the type of that name.
func Find(name string) (Type, bool) {
	all := Types()
	if i := slices.IndexFunc(all, func(t Type) bool { return t.Name == name }); i >= 0 {
		return all[i], true
	}
	return Type{}, false
}

// Names returns the names of all types.
func Names() []string { return names(func(Type) bool { return true }) }

// HardwareNames returns the names of the types that read hardware.
func HardwareNames() []string { return names(func(t Type) bool { return t.Hardware }) }

func names(fits func(Type) bool) (all []string) {
	for _, t := range Types() {
		if fits(t) {
			all = append(all, t.Name)
		}
	}
	return all
}
