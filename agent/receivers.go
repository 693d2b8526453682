package agent

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"hwsagent/agent/clock"
	"hwsagent/agent/config"
	"hwsagent/agent/inputs"
	"hwsagent/agent/status"
	"hwsagent/probes"
	"hwsagent/receivers"
	"hwsagent/receivers/catalog"
	"hwsagent/wal"
)

// receiverKind is the kind of the receivers' inputs. The gate, not the input, applies their rules and series limit: it
// tells a sender which samples were refused, and does not count samples dropped by the rules as active.
const receiverKind = "receiver"

// keepReceivers removes the inputs of receivers that are no longer configured.
func keepReceivers(path *inputs.Path, p *receivers.Plan) { path.Keep(receiverKind, p.Names()) }

// receiverSpecs constructs every receiver of cfg, and the probe that appends pushed metrics if the push gateway is
// configured.
func (a *Agent) receiverSpecs(cfg *config.Config) (specs []receivers.Spec, probe *probes.Spec, err error) {
	for _, t := range catalog.Types() {
		if c := cfg.Receivers.Simple[t.Name]; c != nil {
			g := a.gate(t.Name, &c.Intake)
			specs = append(specs, a.receiverSpec(c, t.Name, &c.Listener, g, t.New(g)))
		}
	}
	if c := cfg.Receivers.Pushgateway; c != nil {
		spec, err := a.pushgateway(c)
		if err != nil {
			return nil, nil, fmt.Errorf("receiver %s: %w", config.PushgatewayName, err)
		}
		specs = append(specs, spec.receiver)
		probe = &spec.probe
	} else {
		a.pushed = pushed{store: a.pushed.store}
	}
	if c := cfg.Receivers.OTLP; c != nil {
		specs = append(specs, a.otlpSpecs(c)...)
	}
	return specs, probe, nil
}

// gate returns the gate for a receiver.
func (a *Agent) gate(name string, c *config.Intake) *receivers.Gate {
	return receivers.NewGate(receivers.GateOptions{
		Name: name, Limits: c.Limits.WithDefaults(), Relabel: c.MetricRelabelConfigs, Out: a.inputs.Input(receiverKind, name, inputs.Settings{}), Logger: a.logger,
		Full:  func(err error) bool { return errors.Is(err, wal.ErrFull) },
		Guard: a.inputs.Guard(receiverKind, name),
	})
}

// receiverSpec returns the listener l of a receiver with the configuration config.
func (a *Agent) receiverSpec(config any, name string, l *config.Listener, g *receivers.Gate, h http.Handler) receivers.Spec {
	return receivers.Spec{
		Name: name, Identity: a.ids.of("receiver "+name, config),
		Listen: l.Listen, WebConfigFile: l.WebConfigFile, Insecure: l.InsecureListen,
		Gate: g, Handler: h,
	}
}

// receiverStatus describes a receiver.
func receiverStatus(s receivers.Status, now time.Time) status.ReceiverStatus {
	r := status.ReceiverStatus{
		Name: s.Name, Listen: s.Address, TLS: s.TLS,
		Requests: s.Requests, Accepted: s.Accepted, Samples: s.Samples, ActiveSeries: s.ActiveSeries,
		LastRequest: clock.OnWall(now, s.LastRequest), LastError: s.LastError, LastErrorAt: clock.OnWall(now, s.LastErrorAt),
	}
	named := func(counts map[receivers.Reason]uint64) map[string]uint64 {
		if len(counts) == 0 {
			return nil
		}
		out := map[string]uint64{}
		for reason, n := range counts {
			out[string(reason)] = n
		}
		return out
	}
	r.RefusedRequests, r.RefusedSamples = named(s.RefusedRequests), named(s.RefusedSamples)
	return r
}
