//go:build !linux

package host

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"hwsagent/internal/panics"
	"hwsagent/probes"
)

// Probe reads this machine. It does not support this platform yet, and says so.
type Probe struct{}

// New checks the configuration and returns the probe.
func New(c Config, _ *slog.Logger, _ *panics.Guard) (*Probe, error) {
	if _, err := newSettings(c); err != nil {
		return nil, fmt.Errorf("host probe: %w", err)
	}
	return &Probe{}, nil
}

// Collect adds nothing and returns an error that says so.
func (*Probe) Collect(context.Context, *probes.Round) error {
	return fmt.Errorf("host probe: not supported on %s yet", runtime.GOOS)
}
