//go:build minimal

package agent

import (
	"hwsagent/agent/config"
	"hwsagent/receivers"
)

// otlpSpecs returns none: the configuration was refused before.
func (a *Agent) otlpSpecs(*config.OTLP) []receivers.Spec { return nil }
