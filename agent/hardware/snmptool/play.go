package snmptool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"hwsagent/probes"
	"hwsagent/probes/snmp"
	"hwsagent/probes/snmp/recording"
)

// played is a probe that reads recorded hardware through an agent on loopback.
type played struct {
	probe *snmp.Probe
	agent *recording.Agent
}

// Play returns a probe of a recorded device; definitions are directories of definitions of hardware in addition to the agent's.
func Play(file string, definitions []string, logger *slog.Logger) (interface {
	probes.Probe
	probes.Closer
}, error) {
	f, err := os.Open(file) // #nosec G304 -- the user's own
	if err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	rec, _, err := recording.Parse(f)
	_ = f.Close() // opened for reading only
	if err != nil {
		return nil, err
	}
	if rec.Len() == 0 {
		return nil, fmt.Errorf("read %s: it is not a recording: one begins with hwsagent-recording, or over SNMP has lines OID|TAG|VALUE", file)
	}
	device, err := recording.Serve(rec)
	if err != nil {
		return nil, err
	}
	c := config(device.Addr(), snmp.Auth{}, 2*time.Second, 1)
	c.Modules, c.Definitions = snmp.DefaultModules(), definitions
	p, err := snmp.New(c, nil, logger)
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return &played{p, device}, nil
}

// Collect implements [probes.Probe].
func (p *played) Collect(ctx context.Context, r *probes.Round) error { return p.probe.Collect(ctx, r) }

// Close closes the probe and the agent.
func (p *played) Close() error { return errors.Join(p.probe.Close(), p.agent.Close()) }
