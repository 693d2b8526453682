//go:build minimal

package agent

import "hwsagent/receivers"

// canReceiveOTLP says whether this build includes the OTLP translation.
const canReceiveOTLP = false

// otlpSpecs returns none: the configuration was refused before.
func (a *Agent) otlpSpecs(*OTLPConfig) []receivers.Spec { return nil }
