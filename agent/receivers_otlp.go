package agent

import (
	"hwsagent/agent/config"
	"hwsagent/receivers"
	"hwsagent/receivers/otlp"
)

// otlpSpecs returns the listeners of the OTLP receiver. They share the sums of delta metrics.
func (a *Agent) otlpSpecs(c *config.OTLP) (specs []receivers.Spec) {
	off := func(b *bool) bool { return b != nil && !*b }
	v := otlp.New(otlp.Settings{
		PromoteResourceAttributes: c.PromoteResourceAttributes, PromoteAllResourceAttributes: c.PromoteAllResourceAttributes,
		IgnoreResourceAttributes: c.IgnoreResourceAttributes, TranslationStrategy: c.TranslationStrategy,
		KeepIdentifyingResourceAttributes: c.KeepIdentifyingResourceAttributes, ConvertHistogramsToNHCB: c.ConvertHistogramsToNHCB,
		PromoteScopeMetadata:     c.PromoteScopeMetadata,
		NoUnderscoreSanitization: off(c.LabelNameUnderscoreSanitization), CollapseUnderscores: off(c.LabelNamePreserveMultipleUnderscores),
	}, c.Limits.WithDefaults().ActiveSeries)
	if c.HTTP != nil {
		g := a.gate("otlp_http", &c.Intake)
		specs = append(specs, a.receiverSpec(c, "otlp_http", c.HTTP, g, v.HTTP(g)))
	}
	if c.GRPC != nil {
		g := a.gate("otlp_grpc", &c.Intake)
		spec := a.receiverSpec(c, "otlp_grpc", c.GRPC, g, v.GRPC(g))
		spec.HTTP2 = true
		specs = append(specs, spec)
	}
	return specs
}
