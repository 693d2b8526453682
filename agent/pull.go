package agent

import (
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/pull"
	"hwsagent/agent/selector"
	"hwsagent/agent/status"
	"hwsagent/receivers"
)

// pullName is the name of the endpoint in logs, metrics and the status.
const pullName = "pull"

// pullSpecs is the pull endpoint of cfg, or nothing.
func (a *Agent) pullSpecs(cfg *config.Config) []receivers.Spec {
	if cfg.Pull == nil {
		return nil
	}
	handler := pull.New(pull.Options{Newest: a.inputs.Newest, External: cfg.Global.Labels(), Selector: selector.Parse, Unshown: &a.unshown, Logger: a.logger})
	limits := receivers.DefaultLimits()
	limits.Connections = 64
	return []receivers.Spec{{
		Name: pullName, Identity: a.ids.of(pullName, []any{cfg.Pull, cfg.Global.ExternalLabels}),
		Listen: cfg.Pull.Listen, WebConfigFile: cfg.Pull.WebConfigFile, Insecure: true, // reported by check and on the page
		Gate: receivers.NewGate(receivers.GateOptions{Name: pullName, Limits: limits, Logger: a.logger, Guard: a.pulling}), Handler: handler,
	}}
}

// pullStatus describes the pull endpoint; nil if there is none.
func (a *Agent) pullStatus(cfg *config.Config, now time.Time) *status.PullStatus {
	for _, s := range a.pull.Status() {
		if cfg.Pull != nil {
			return &status.PullStatus{Listen: s.Address, TLS: s.TLS, Open: cfg.Pull.Reachable() && !s.Users, Unshown: int(a.unshown.Load()), Panics: panicStatus(a.pulling.State(), now)}
		}
	}
	return nil
}
