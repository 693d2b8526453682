package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"reflect"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/agent/config"
	"hwsagent/agent/queues"
	"hwsagent/internal/panics"
	"hwsagent/probes"
	"hwsagent/probes/catalog"
	"hwsagent/probes/devices"
	"hwsagent/probes/self"
	"hwsagent/probes/snmp"
)

// newProbe constructs the probe of an entry. The guard contains panics of the probe's goroutines; the probes of one
// entry share plans and request limits.
func newProbe(c *config.Probe, own prometheus.Gatherer, logger *slog.Logger, guard *panics.Guard, plans *snmp.Plans, paces *devices.Paces, state string) (probes.Probe, error) {
	return c.New(catalog.Env{
		Logger: logger, Guard: guard, Plans: plans, State: state,
		Own: func(level self.Level) prometheus.Gatherer { return ownSeries(level, own) },
	}, paces)
}

// stateFile returns the file that a probe may keep across restarts. Names of probes may contain slashes.
func (a *Agent) stateFile(probe string) string {
	return filepath.Join(a.o.StoragePath, queues.ProbeFolder, url.PathEscape(probe)+".json")
}

// identities gives equivalent configurations the same string. A reload leaves a probe or target alone if its identity
// is unchanged.
type identities struct {
	known map[string]identity // by kind and name
}

type identity struct {
	config any
	n      int
}

// of returns the identity of config under name: a new one if config differs from the previous one under name.
func (ids *identities) of(name string, config any) string {
	if ids.known == nil {
		ids.known = make(map[string]identity)
	}
	id, ok := ids.known[name]
	if !ok || !reflect.DeepEqual(id.config, config) {
		id = identity{config: config, n: id.n + 1}
		ids.known[name] = id
	}
	return name + "#" + strconv.Itoa(id.n)
}

// probeSpecs constructs every enabled probe of cfg. On failure it returns all errors as one, and no probes.
func (a *Agent) probeSpecs(cfg *config.Config) ([]probes.Spec, error) {
	var specs []probes.Spec
	var errs []error
	var plans snmp.Plans
	for i := range cfg.Probes {
		c := &cfg.Probes[i]
		if !c.Enabled {
			continue
		}
		guard := a.inputs.Guard(inputProbe, c.Name)
		p, err := newProbe(c, a.registry, a.logger, guard, &plans, &a.lists.paces, a.stateFile(c.Name))
		if err != nil {
			errs = append(errs, fmt.Errorf("probe %q: %w", c.Name, err))
			continue
		}
		spec := c.Spec(p, a.hostname)
		spec.Identity = a.ids.of("probe "+c.Name, probeParts{c, filesVersion(p)})
		spec.Guard = guard
		specs = append(specs, spec)
	}
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, closeProbes(specs))...)
	}
	return specs, nil
}

// closeProbes closes probes that no runner owns.
func closeProbes(specs []probes.Spec) error {
	var errs []error
	for _, s := range specs {
		if c, ok := s.Probe.(probes.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// probeParts identify a running probe: its entry, and the version of the files that it read.
type probeParts struct {
	entry   *config.Probe
	version string
}

// filesVersion returns the version of the files that a probe read when it was made.
func filesVersion(p probes.Probe) string {
	if v, ok := p.(interface{ Version() string }); ok {
		return v.Version()
	}
	return ""
}
