// Package toy is a probe of a configured number.
package toy

import (
	"context"

	"hwsagent/probes"
)

// Config is the configuration of the probe.
type Config struct {
	Answer float64 `yaml:"answer"` // the number
}

// Probe adds the number to each round.
type Probe struct{ c Config }

// New returns the probe.
func New(c Config) (*Probe, error) { return &Probe{c}, nil }

// Collect implements [probes.Probe].
func (p *Probe) Collect(_ context.Context, r *probes.Round) error {
	r.Add(&probes.Family{Name: "toy_answer"}, p.c.Answer)
	return nil
}
