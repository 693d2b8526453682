//go:build minimal

package agent

import "hwsagent/receivers"

// canReceiveOTLP says whether this build links the translation of OTLP.
const canReceiveOTLP = false

// otlpSpecs are none: the configuration is refused before.
func (a *Agent) otlpSpecs(*OTLPConfig) []receivers.Spec { return nil }
