package hardware

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/agent/check"
	"hwsagent/agent/config"
	"hwsagent/internal/panics"
	"hwsagent/probes"
	"hwsagent/probes/catalog"
	"hwsagent/probes/devices"
	"hwsagent/probes/self"
	"hwsagent/probes/snmp"
)

// ErrProbe means that a probe's round failed.
var ErrProbe = errors.New("the probe failed")

// ProbeResult is the outcome of one round of a probe.
type ProbeResult struct {
	Name    string  `json:"name"`
	Type    string  `json:"type"`
	Target  string  `json:"target,omitempty"`
	State   string  `json:"state"` // ok, failing, hung
	Seconds float64 `json:"seconds"`
	Samples int     `json:"samples"`
	Error   string  `json:"error,omitempty"` // also set if the round was read in part

	Series []ProbeSample `json:"series"`
}

// ProbeSample is one sample as it would be appended.
type ProbeSample struct {
	Labels map[string]string `json:"labels"`
	Value  string            `json:"value"` // formatted, since JSON has no NaN; or a histogram
}

// ProbeOnce runs the named probe once, as the agent would, and writes its samples to w in Prometheus' text format. If
// the round fails, it writes the samples read so far and returns ErrProbe.
func ProbeOnce(ctx context.Context, configFile, name string, w io.Writer, logger *slog.Logger) (ProbeResult, error) {
	cfg, _, err := config.Load(configFile, os.LookupEnv)
	if err != nil {
		return ProbeResult{}, err
	}
	p, err := cfg.Probe(name)
	if err != nil {
		return ProbeResult{}, err
	}
	c, st, err := runOnce(ctx, p, logger)
	if err != nil {
		return ProbeResult{}, errors.Join(ErrProbe, err)
	}
	r := ProbeResult{Name: p.Name, Type: p.Type, Target: p.Target, State: st.State, Seconds: st.Took.Seconds(), Samples: st.Samples, Error: st.LastError}
	for _, s := range c.samples {
		r.Series = append(r.Series, ProbeSample{Labels: s.labels.Map(), Value: s.text()})
	}
	if err := c.write(w); err != nil {
		return r, fmt.Errorf("write samples: %w", err)
	}
	if st.State != "ok" {
		return r, fmt.Errorf("%w: %s", ErrProbe, st.LastError)
	}
	return r, nil
}

// deviceDown is the series in which a probe of a remote device reports why it cannot reach the device.
const deviceDown = "hwsagent_device_down"

// RunRound runs one round of a probe and keeps none of its samples.
func RunRound(ctx context.Context, p *config.Probe, logger *slog.Logger) (check.Round, error) {
	c, st, err := runOnce(ctx, p, logger)
	if err != nil {
		return check.Round{}, err
	}
	round := check.Round{Status: st}
	for _, s := range c.samples {
		if s.family == deviceDown {
			round.Why = devices.Reason(s.labels.Get("reason"))
		}
	}
	return round, nil
}

// runOnce constructs the probe and runs one round into memory.
func runOnce(ctx context.Context, p *config.Probe, logger *slog.Logger) (*capture, probes.Status, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, probes.Status{}, fmt.Errorf("get the host name: %w", err)
	}
	probe, err := construct(p, logger, panics.New("probe "+p.Name, logger))
	if err != nil {
		return nil, probes.Status{}, err
	}
	c := &capture{}
	st := probes.Once(ctx, p.Spec(probe, hostname), c, logger)
	return c, st, nil
}

// construct returns the probe of an entry by itself: it shares nothing with other probes, and the agent has no metrics.
func construct(p *config.Probe, logger *slog.Logger, guard *panics.Guard) (probes.Probe, error) {
	none := prometheus.NewRegistry()
	return p.New(catalog.Env{
		Logger: logger, Guard: guard, Plans: new(snmp.Plans), Own: func(self.Level) prometheus.Gatherer { return none },
	}, new(devices.Paces))
}
