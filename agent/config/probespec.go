package config

import (
	"cmp"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// MaxSamples bounds a round without a configured max_samples: far above any real device, yet low enough that a broken
// device costs tens of megabytes at most.
const MaxSamples = 200_000

// hostNameLabel is the label in which MetricsHub has the machine's name.
const hostNameLabel = "host_name"

// Spec returns how the probe of the entry runs on this host, without an identity and an input. It has the labels of a
// scrape: job is the name of the probe, instance its target.
func (p *Probe) Spec(probe probes.Probe, hostname string) probes.Spec {
	dialect := hw.NewDialect(p.HWLabels)
	instance := p.Target
	if instance == "" {
		instance = hostname
	}
	lb := labels.NewBuilder(labels.FromStrings(model.JobLabel, cmp.Or(p.Job, p.Name), model.InstanceLabel, instance))
	if dialect != nil {
		lb.Set(hostNameLabel, instance)
	}
	for name, value := range p.Labels {
		lb.Set(name, value)
	}
	limit := p.MaxSamples
	if limit == 0 {
		limit = MaxSamples
	}
	spec := probes.Spec{
		Name:       p.Name,
		Type:       p.Type,
		Host:       hostname,
		Probe:      probe,
		Interval:   time.Duration(p.Interval),
		Timeout:    time.Duration(p.Timeout),
		Labels:     lb.Labels(),
		Relabel:    p.MetricRelabelConfigs,
		MaxSamples: limit,
	}
	if dialect != nil {
		spec.Translate = dialect.Translate
	}
	return spec
}
